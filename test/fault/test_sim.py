"""The simulated cluster keeps its promises, and can see a broken one."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Dict, List, Tuple

import pytest
from fault import planted
from fault.sim_twins import (
    FOUND_BY, MOVING_TWINS, TWINS, VERBS_TWINS, one_object_ends_its_session)

from swift_dss.cli.table import Progress
from swift_dss.core.errors import TierUnavailable
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle import pack
from swift_dss.gateway.link import turns
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.restore.catalog import Catalog
from swift_dss.io import switch
from swift_dss.sim import runs
from swift_dss.sim.cluster import REPLICATED, Cluster
from swift_dss.sim.conf import SCHEMES, schemes
from swift_dss.sim.daemon import Daemon
from swift_dss.sim.disks import hash_of
from swift_dss.sim.model import Violation
from swift_dss.sim.studies import lost_state, moves, subsets
from swift_dss.sim.studies.stage import stage
from swift_dss.sim.verbs import WEIGHTS
from swift_dss.sim.world import clock as clocks
from swift_dss.sim.world import databases, locks, memory
from swift_dss.sim.world.power import Power
from swift_dss.sim.world.s3 import MOODS
from swift_dss.tier.index.index import Index
from swift_dss.tier.local.locks import VersionLocks

NODES, STEPS = 5, 80
#: A short campaign tries so many seeds, however long it takes, and then for so
#: many seconds what comes next; ``swift-dss sim --campaign`` goes on.
SEEDS, SECONDS = 60, 20
#: A twin that is not found in so many is not found.
TWIN_SEEDS = 200
#: In so many a twin is not found without the verb that finds it.
ALONE_SEEDS = 40
#: At which state is lost; ``swift-dss sim --lost-state`` has no end.
POINTS, TWIN_POINTS = 30, 40
#: Objects whose stubs move; ``swift-dss sim --moves`` has no end.
MOVED, TWIN_MOVED = 32, 16
#: Faults that meet in a campaign.
FAULTS = {'HDD lost', 'HDD not mounted', 'SSD lost', 'state lost', 'clock off',
          'cut off from S3', 'cut off from nodes', 'daemon killed',
          'key forgotten', 'key of a stub forgotten', 'left the ring',
          'restored', 'session cut', 'expired', 'power cut',
          'file unreadable', 'disk fails', 'not committed',
          'writes exchanged', 'writes in flight', 'drive taken out',
          'stale drive', 'GET under way', 'interrupted',
          'first read kept out'} | {
              'S3 ' + mood for mood in MOODS if mood != 'well'}


#: Verbs of the time when some seeds were found, as often as they were drawn.
FIRST_VERBS = {
    'put': 16, 'delete': 6, 'get': 6, 'work': 30, 'die': 4, 'pass': 12,
    'replicate': 6, 'cut': 3, 'join': 4, 'mood': 4, 'forget': 3,
    'lose-state': 1, 'new-ssd': 1, 'new-hdd': 1, 'leave-ring': 1,
    'enter-ring': 2, 'skew': 1, 'sweep': 3, 'collect': 1, 'restore': 1,
    'post': 6, 'unmount': 3}


#: Verbs of the time when twins and other seeds were found.
SECOND_VERBS = {verb: often for verb, often in WEIGHTS.items() if verb not in (
    'race', 'take-out', 'put-back', 'get-slowly', 'interrupt', 'come-back')}

#: Objects of the first time: none was erasure-coded.
FIRST_NAMES = tuple(REPLICATED)


def swift_dss(*arguments: str) -> subprocess.CompletedProcess:
    """Run the command as an operator does."""
    return subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main', 'sim', *arguments],
        capture_output=True, text=True, timeout=1200)


def outcome_of(seed: int) -> runs.Outcome:
    """Of one seed's run, in this process."""
    return runs.run(runs.plan(seed, NODES, STEPS), NODES, seed)


def outcome_of_first(seed: int) -> runs.Outcome:
    """The same of a seed that was found with the first verbs."""
    return runs.run(runs.plan(seed, NODES, STEPS, FIRST_VERBS, FIRST_NAMES),
                    NODES, seed, SCHEMES[0])


def campaign(*arguments: str) -> Dict:
    """What a campaign says that breaks no promise."""
    done = swift_dss('--campaign', '--json', *arguments)
    said = json.loads(done.stdout)
    assert said['failed'] == [] and said['bytes_lost'] == 0
    assert done.returncode == 0
    return said


def test_a_short_campaign_breaks_no_promise():
    said = campaign('--seeds', str(SEEDS))
    assert said['seeds'] == SEEDS
    # The histories are as full as they are meant to be.
    assert set(said['faults']) == FAULTS
    assert sum(said['faults'].values()) > 5 * SEEDS
    assert said['acknowledged'] > 10 * SEEDS
    assert said['answered'] > 1.5 * SEEDS
    assert said['daemon_steps'] > 30 * SEEDS
    assert said['transitions'] > 150
    more = campaign('--from', str(1 + SEEDS), '--seconds', str(SECONDS))
    assert more['seeds'] > 0


def test_a_campaign_that_is_interrupted_says_from_where_to_go_on():
    first = subprocess.Popen(
        [sys.executable, '-m', 'swift_dss.cli.main', 'sim', '--campaign',
         '--json', '--from', '5', '--jobs', '2'],
        stdout=subprocess.PIPE, text=True,
        # Who runs the tests in the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        assert first.stdout is not None
        # It has begun when its processes ignore the signal.
        while not workers_of(first.pid):
            assert first.poll() is None
        first.send_signal(signal.SIGINT)
        said = json.loads(first.communicate(timeout=600)[0])
    finally:
        first.kill()
    assert first.returncode == 0
    assert said['interrupted'] and said['first'] == 5
    # Every seed that was begun was finished.
    assert said['next'] == 5 + said['seeds'] > 5
    whole = json.loads(swift_dss(
        '--campaign', '--json', '--from', '5', '--seeds',
        str(said['seeds']), '--jobs', '1').stdout)
    assert not whole['interrupted']
    for count in ('next', 'faults', 'acknowledged', 'daemon_steps',
                  'transitions', 'written_bytes'):
        assert whole[count] == said[count], count


def workers_of(pid: int) -> List[int]:
    """Processes of a campaign that ignore SIGINT: they run seeds."""
    pids = []
    for folder in Path('/proc').glob('[0-9]*'):
        try:
            said = dict(line.split(':', 1) for line in
                        (folder / 'status').read_text().splitlines())
        except (OSError, ValueError):
            continue
        if int(said['PPid']) == pid and int(said['SigIgn'], 16) & 2:
            pids.append(int(folder.name))
    return pids


def test_progress_is_whole_lines_where_there_is_no_terminal():
    out = io.StringIO()
    with Progress('sim: seeds', stream=out, lines_seconds=1e-9) as shown:
        shown.show(3, None, '1.5 a second')
        shown.show(4, 9, 'more')
    assert out.getvalue() == ('sim: seeds 3 1.5 a second\n'
                              'sim: seeds 4 of 9 more\n')


def test_the_same_seed_gives_the_same_run_to_the_byte():
    first, again = (swift_dss('--seed', '7', '--json', '--trace')
                    for _ in range(2))
    assert first.stdout == again.stdout
    said = json.loads(first.stdout)
    # Something happened that could have gone wrong.
    assert said['s3']['PUT'] and said['s3']['HEAD']
    assert len(said['trace']) > STEPS / 2


def test_a_trace_does_not_name_the_folder_of_its_run():
    """An error that a daemon meets names a file."""
    steps = [runs.Step('put', name='/a/c2/x', number=1, seed=3),
             runs.Step('unmount', 'n1'), runs.Step('sweep', 'n1')]
    first, again = (runs.run(steps, NODES, 1).trace for _ in range(2))
    assert 'n1/hdd/d1/.dss-capacity' in first[2]
    assert first == again


def shown(outcome: runs.Outcome) -> Tuple[object, ...]:
    """All that a run may say."""
    return (outcome.trace, outcome.violation, outcome.counts,
            outcome.coverage)


@pytest.mark.parametrize('seed', (17, 48, 59))
def test_nothing_that_ran_before_decides(seed):
    first = shown(outcome_of(seed))
    outcome_of(seed + 1)
    assert shown(outcome_of(seed)) == first


@pytest.mark.parametrize('seed', (3, 17))
def test_databases_in_memory_do_what_files_do(seed, monkeypatch):
    """Without power cuts, which take from those in memory alone."""
    first = shown(outcome_of_first(seed))
    monkeypatch.setattr(databases, 'installed', contextlib.nullcontext)
    assert shown(outcome_of_first(seed)) == first


def test_a_database_is_emptied_before_another_run_gets_it(tmp_path):
    path = tmp_path / 'index.db'
    with databases.installed():
        for number in (1, 2):
            path.touch()
            with contextlib.closing(Index(str(path)).file) as file:
                assert file.get_state('word') == ''
                file.set_state('word', str(number))
            with contextlib.closing(Index(str(path)).file) as file:
                assert file.get_state('word') == str(number)
            path.unlink()
    path.touch()
    with databases.installed():
        with contextlib.closing(Index(str(path)).file) as file:
            assert file.get_state('word') == ''


def test_a_simulated_daemon_knows_no_other_clock(tmp_path):
    real = (time.time, time.monotonic, time.sleep)
    # What other tests of this process have left.
    before = [owner_of(referrer) for referrer in gc.get_referrers(*real)]
    clock = clocks.Clock(random.Random(1))
    with clocks.installed(clock), databases.installed():
        cluster = Cluster(str(tmp_path), NODES, random.Random(1), clock)
        cluster.nodes['n1'].work()
        held = {type(owner).__module__ for owner in map(
            owner_of, gc.get_referrers(*real))
            if not any(owner is known for known in before)}
        cluster.close()
    # Whose is asked of the resolver now and then; here they are numbers.
    assert {name for name in held if name.startswith('swift_dss.')
            } <= {'swift_dss.gateway.peers.here'}


def owner_of(referrer: object) -> object:
    """The object whose attributes these are."""
    if isinstance(referrer, dict):
        for owner in gc.get_referrers(referrer):
            if getattr(owner, '__dict__', None) is referrer:
                return owner
    return referrer


def test_another_seed_gives_another_run():
    assert outcome_of(7).trace != outcome_of(8).trace


def found(name: str, verbs: Dict[str, int]) -> bool:
    """Whether a run breaks a promise; it says which one does."""
    last = FOUND_BY.get(name, 0)
    for seed in (last, *range(last), *range(last + 1, TWIN_SEEDS)):
        if runs.run(runs.plan(seed, NODES, STEPS, verbs), NODES,
                    seed).violation:
            print('figure: seed %d finds %r' % (seed, name))
            return True
    return False


@pytest.mark.twin
@pytest.mark.parametrize('name', TWINS)
def test_a_guard_that_is_taken_out_is_missed(name, monkeypatch):
    TWINS[name](monkeypatch.setattr)
    assert found(name, SECOND_VERBS)


@pytest.mark.twin
@pytest.mark.parametrize('name', VERBS_TWINS)
def test_a_verb_finds_what_no_other_one_does(name, monkeypatch):
    verb, plant = VERBS_TWINS[name]
    plant(monkeypatch.setattr)
    # In the midst of a daemon's work others may do what each verb does.
    verbs = {drawn: often for drawn, often in WEIGHTS.items()
             if drawn == verb or drawn not in ('interrupt', 'come-back')}
    others = {drawn: often for drawn, often in verbs.items() if drawn != verb}
    assert found(name, verbs)
    assert not any(runs.run(
        runs.plan(seed, NODES, STEPS, others), NODES, seed).violation
        for seed in range(ALONE_SEEDS))


def test_a_planted_defect_is_found_and_its_seed_is_said():
    shown: List[int] = []
    outcome = planted.look('N0', TWIN_SEEDS, 1, shown.append)
    assert shown == list(range(1, outcome.seed + 1))
    assert 'not ours' in outcome.violation
    assert not planted.broken(outcome.seed), 'it was planted here, too'
    # The others take longer: the command looks for them all.
    assert list(planted.DEFECTS) == [
        'N%d' % number for number in range(7)] + ['B1']


def test_a_defect_that_is_not_found_says_so():
    assert planted.look('N2', 1, 1, lambda seed: None).seed == -1


def test_an_object_is_gone_at_its_time_and_not_before():
    steps = [
        runs.Step('put-until', name='/a/c0/k', number=1, seed=1),
        runs.Step('get', name='/a/c0/k'), runs.Step('expire', number=1),
        runs.Step('pass', seed=5), runs.Step('get', name='/a/c0/k'),
        runs.Step('expire', number=1), runs.Step('get', name='/a/c0/k')]
    done = runs.run(steps, NODES, 1)
    assert not done.violation
    told = [line.partition('s  ')[2] for line in done.trace]
    assert told[1].endswith('200 from n4'), told
    assert '0 gone' in told[2] and 'its time is over' in told[4]
    assert '1 gone, 3 took' in told[5] and told[6].endswith('404 from n4')


def test_an_unreadable_object_ends_no_session(monkeypatch):
    """A node was away for three writes; of one object the node that brings
    them has its bytes on an HDD that is not mounted."""
    steps = [runs.Step('cut', 'n4', number=2)] + [
        runs.Step('put', name=name, number=1, seed=3)
        for name in ('/a/c2/x', '/a/c0/k', '/a/c0/o')] + [
            runs.Step('unmount', 'n1'), runs.Step('join', 'n4'),
            runs.Step('replicate', 'n1')]
    kept = runs.run(steps, NODES, 1)
    assert not kept.violation and 'n1: pushed 1' in '\n'.join(kept.trace)
    one_object_ends_its_session(monkeypatch.setattr)
    assert 'has not brought' in runs.run(steps, NODES, 1).violation


def test_the_last_that_knows_of_a_delete_keeps_its_disk():
    """No software could know of it afterwards."""
    steps = [runs.Step('delete', name='/a/c2/x', number=3, seed=3)] + [
        runs.Step('new-ssd', 'n%d' % number) for number in range(1, 6)]
    done = runs.run(steps, NODES, 8)
    assert 'acknowledged by' in done.trace[0]
    assert not done.violation
    assert 0 < done.coverage.faults['SSD lost'] < NODES


def test_who_dies_has_work_and_a_restore_goes_where_the_disk_is_new():
    """Whatever node was drawn."""
    steps = [runs.Step('put', name='/a/c0/k', number=1, seed=3),
             runs.Step('die', 'n3', number=6), runs.Step('new-ssd', 'n2'),
             runs.Step('restore', 'n5', number=1)]
    done = runs.run(steps, NODES, 1)
    assert not done.violation
    assert 'is killed: n2 instead, ' in done.trace[1]
    assert 'n5 is restored from the bucket: n2 instead, ' in done.trace[3]


def test_a_failure_is_shrunk_to_the_steps_that_matter(monkeypatch):
    TWINS['every policy is ours'](monkeypatch.setattr)
    steps = runs.plan(5, NODES, STEPS)
    assert runs.run(steps, NODES, 5).violation
    few = runs.shrink(steps, NODES, 5)
    assert len(few) <= 4
    assert runs.run(few, NODES, 5).violation


def test_subsets_of_primaries_lose_and_restore_nothing():
    done = swift_dss('--subsets', '--every', '61', '--json',
                     '--jobs', str(os.cpu_count() or 1))
    said = json.loads(done.stdout)
    assert said['said'] == []
    assert said['histories'] == 44 * 9
    assert said['unreadable'] == said['restored'] == said['orphans'] == 0
    assert said['leak'] <= 0.01
    assert done.returncode == 0


def test_subsets_see_a_replica_that_decides_alone(monkeypatch):
    TWINS['one replica decides'](monkeypatch.setattr)
    group = subsets.Group('n1', 'after', 40.0, False)
    assert subsets.run(group, every=17).is_broken


def test_refused_writes_in_bundles_of_a_lost_node_are_no_leak():
    """A bundle that has nothing else stays until ``gc --absent``."""
    group = subsets.Group('n1', 'after', 40.0, False)
    with stage(random.Random(1), subsets.NODES, hdds=False) as cluster:
        cluster.ring.names.remove('n6')
        first = [history for history in subsets.histories()
                 if cluster.ring.primaries(
            cluster.ring.partition(hash_of(history.name)))[0] == 'n1'][:20]
        cluster.ring.names.append('n6')
        # More is alive than absent, or gc would be careful.
        outcome = subsets._Run(cluster, group, [
            history._replace(class_id=1, reached=((0,), (), ()))
            for history in first[:4]] + [
                history._replace(class_id=2, reached=((0, 1, 2), (), ()))
                for history in first[4:]]).run()
    assert len(first) == 20 and not outcome.said
    assert outcome.refused_bytes > 1000 and outcome.leaked_bytes == 0


def test_state_that_is_lost_restores_nothing_that_was_deleted():
    done = swift_dss('--lost-state', str(POINTS), '--json',
                     '--jobs', str(os.cpu_count() or 1))
    said = json.loads(done.stdout)
    assert said['said'] == [] and not done.returncode
    assert said['points'] == POINTS
    assert said['restored'] == said['orphans'] == said['unreadable'] == 0
    # It was lost, of objects that there were.
    assert min(said['lost'].values()) > POINTS // 4
    assert min(said['at_work'], said['everywhere']) > POINTS // 5
    assert min(said['deleted'], said['kept']) > POINTS


def test_lost_state_sees_deletes_that_are_in_the_queue_alone(monkeypatch):
    TWINS['deletes are in the queue alone'](monkeypatch.setattr)
    outcome = lost_state.Found()
    for seed in range(1, TWIN_POINTS + 1):
        outcome.add(lost_state.run(seed))
        if outcome.orphans and outcome.restored:
            break
    assert outcome.is_broken and outcome.orphans and outcome.restored


@pytest.mark.parametrize('seed', (3, 4))
def test_a_point_of_lost_state_is_the_same_each_time(seed):
    assert lost_state.run(seed) == lost_state.run(seed)


def test_stubs_that_move_cost_no_byte_of_s3():
    done = swift_dss('--moves', str(MOVED), '--json', '--jobs', '1')
    said = json.loads(done.stdout)
    assert said['said'] == [] and not done.returncode
    assert said['objects'] == MOVED and said['stubs'] >= 3 * MOVED
    assert said['readable'] == said['read'] == MOVED * (
        len(moves.EXPERIMENTS) + 1)
    assert list(said['rows']) == list(moves.EXPERIMENTS)
    for experiment, rows in said['rows'].items():
        del rows[moves.MARKS]
        for row in rows.values():
            assert not row['data_bytes'], experiment
            assert not {'GET', 'PUT', 'DELETE'} & set(row['asked'])
            assert row['asked'].get('HEAD', 0) <= row['stubs']
    # Of each kind something came, where it could.
    came = {experiment: {kind for kind, row in rows.items() if row['stubs']}
            for experiment, rows in said['rows'].items()}
    fragments = {kind for kind in moves.KINDS if 'fragments' in kind}
    assert came['lost SSD'] == set(moves.KINDS)
    assert came['EC move'] == fragments
    assert came['join'] and came['leave']


@pytest.mark.parametrize('twin, why', [
    ('stubs fetch their bytes', 'has cost bytes of S3'),
    ('fragments are not looked for', 'has cost bytes of S3'),
    ('a book forgets what was lost', 'has bytes of')])
def test_stubs_that_fetch_their_bytes_are_seen(twin, why, monkeypatch):
    MOVING_TWINS.get(twin, TWINS.get(twin))(monkeypatch.setattr)
    outcome = moves.run(1, TWIN_MOVED)
    assert outcome.is_broken and outcome.total().asked['GET']
    assert outcome.total().data_bytes
    assert any(why in text for text in outcome.said), outcome.said[:3]


def test_a_study_of_moves_is_the_same_each_time():
    assert moves.run(3, 8) == moves.run(3, 8)


def synced(path):
    """A file's bytes and its name are on the disk."""
    for synced_path in (path, path.parent):
        fd = os.open(synced_path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)


def written(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(fd, data)
    os.setxattr(fd, 'user.said', data)
    os.close(fd)


#: What is done to a folder with a synced file ``old``; what may be there then.
UNSYNCED = {
    'a new file': (lambda at: written(str(at / 'new'), b'12345678'),
                   [{'old': b'old'}, {'old': b'old', 'new': b''},
                    {'old': b'old', 'new': b'1234'},
                    {'old': b'old', 'new': b'12345678'}]),
    'a file that is written': (
        lambda at: written(str(at / 'old'), b'12345678'),
        [{'old': b'old'}, {'old': b'12345'}, {'old': b'12345678'}]),
    'a name': (lambda at: os.rename(str(at / 'old'), str(at / 'name')),
               [{'old': b'old'}, {'name': b'old'}]),
    'a file that goes': (lambda at: os.unlink(str(at / 'old')),
                         [{'old': b'old'}, {}]),
    'a file that is replaced': (
        lambda at: (written(str(at / 'new'), b''),
                    synced(at / 'new'),
                    os.rename(str(at / 'new'), str(at / 'old'))),
        [{'old': b'old', 'new': b''}, {'old': b''}]),
    'names that are exchanged': (
        lambda at: (written(str(at / 'new'), b''), synced(at / 'new'),
                    switch.exchange(str(at / 'old'), str(at / 'new'))),
        [{'old': b'old', 'new': b''}, {'old': b'', 'new': b'old'}]),
    'a folder': (lambda at: os.mkdir(str(at / 'folder')),
                 [{'old': b'old'}, {'old': b'old', 'folder': None}])}


@pytest.mark.parametrize('is_late', (False, True))
@pytest.mark.parametrize('change', UNSYNCED)
def test_a_power_cut_takes_what_was_not_synced_and_nothing_else(
        change, is_late, tmp_path):
    """Each state that it may leave is met, and no other one; what is older
    than half a minute was written."""
    do, allowed = UNSYNCED[change]
    clock = clocks.Clock(random.Random(1))
    met = []
    for seed in range(60):
        root = tmp_path / str(seed)
        disk = root / 'disk'
        disk.mkdir(parents=True)
        power = Power(str(root), clock)
        with power.recording():
            power.is_on = True
            written(str(disk / 'old'), b'old')
            synced(disk / 'old')
            do(disk)
            if is_late:
                clock.pass_(31.0)
                power.written()
            power.is_on = False
            power.cut((str(disk),), random.Random(seed))
        left = {file.name: None if file.is_dir() else file.read_bytes()
                for file in disk.iterdir()}
        assert left in allowed
        assert 'old' not in left or left['old'] != b'old' or \
            os.getxattr(disk / 'old', 'user.said') == b'old'
        met.append(left)
    assert all(state in met for state in (
        allowed[-1:] if is_late else allowed))
    assert not is_late or all(state == allowed[-1] for state in met)


def test_a_power_cut_takes_commits_that_were_not_to_be_durable(tmp_path):
    path = tmp_path / 'index.db'
    path.touch()
    left = set()
    for seed in range(20):
        with databases.installed() as kept:
            kept.is_followed = True
            with contextlib.closing(sqlite3.connect(
                    str(path), isolation_level=None)) as database:
                database.execute('CREATE TABLE said (word)')
                for word, mode in enumerate((
                        'NORMAL', 'FULL', 'NORMAL', 'NORMAL')):
                    database.execute('PRAGMA synchronous=' + mode)
                    database.execute('BEGIN')
                    database.execute('INSERT INTO said VALUES (?)', (word,))
                    database.execute('COMMIT')
                    kept.copy()
                database.execute('BEGIN')
                database.execute('INSERT INTO said VALUES (9)')
                kept.lose(str(path), random.Random(seed))
                left.add(tuple(row[0] for row in database.execute(
                    'SELECT word FROM said')))
                database.execute('DROP TABLE said')
    assert left == {(0, 1), (0, 1, 2), (0, 1, 2, 3)}


@pytest.mark.parametrize('arguments, why', (
    (('--nodes', '2'), '--nodes 2: give 4 or more'),
    (('--seeds', '3'), '--seeds and --seconds are for --campaign'),
    (('--campaign', '--subsets'), 'give --subsets, --lost-state, '),
    (('--lost-state', '0'), '--lost-state 0: give 1 or more'),
    (('--lost-state', '3', '--subsets'), 'give --subsets, --lost-state, '),
    (('--lost-state', '3', '--moves', '3'), 'give --subsets, --lost-state, '),
    (('--moves', '0'), '--moves 0: give 1 or more'),
    (('--campaign', '--jobs', '0'), '--jobs 0: give 1 or more')))
def test_options_that_mean_nothing_are_refused(arguments, why):
    done = swift_dss(*arguments)
    assert done.returncode and why in done.stderr


def test_a_node_whose_stub_was_forgotten_still_has_what_a_post_set():
    """Seed in which two nodes that took a POST have a stub without its key,
    and a third one has the bytes."""
    assert outcome_of_first(5156).violation == ''


@pytest.mark.parametrize('seed', [100005, 100104])
def test_a_stub_whose_key_is_lost_is_no_obstacle_to_who_has_the_bytes(seed):
    """Seeds in which S3 loses the key of a stub whose replicas are whole."""
    assert outcome_of_first(seed).violation == ''


def test_settling_waits_for_records_that_s3_has_stored_wrong():
    assert outcome_of_first(300000).violation == ''


def test_what_went_with_an_hdd_is_no_replica_that_waits_for_its_bytes():
    assert outcome_of_first(362).violation == ''


def test_a_type_that_all_know_is_not_offered_for_ever():
    """Seed in which a node that left the ring never got rid of what it held,
    and sent an old version to S3 as often as others deleted it."""
    assert outcome_of_first(530).violation == ''


#: Two replicas took a POST over the version before, which the last PUT had not
#: reached; the bytes came to them later.
BENEATH_A_POST = [
    runs.Step('put-until', 'n4', '/a/c4/r', 280, 286300789),
    runs.Step('cut', 'n5', '/a/c0/o', 368, 3881361110),
    runs.Step('put', 'n1', '/a/c4/r', 282, 3658877167),
    runs.Step('work', 'n4', '/a/c2/x', 91, 3532831740),
    runs.Step('post-until', 'n1', '/a/c4/r', 901, 3585826873),
    runs.Step('pass', 'n5', '/a/c1/l', 705, 2376577553)]


@pytest.mark.parametrize('more', ([], [
    runs.Step('work', 'n3', '/a/c4/r', 396, 3360912079)]))
def test_a_version_that_comes_beneath_a_post_has_its_record_renewed(more):
    assert runs.run(BENEATH_A_POST + more, NODES, 740).violation == ''


#: Erasure-coded objects.
CODED, OTHER = '/a/e0/k', '/a/e1/l'


def told(outcome: runs.Outcome) -> List[str]:
    """The outcome of each step of a run."""
    return [line.partition('s  ')[2] for line in outcome.trace]


@pytest.mark.parametrize('scheme', SCHEMES)
def test_an_object_is_read_from_fragments_until_it_is_deleted(scheme):
    nodes = scheme.fragments + 1
    done = runs.run([
        runs.Step('put', name=CODED, number=1, seed=3),
        runs.Step('get', name=CODED),
        # Nodes leave as long as all fragments have a place.
        runs.Step('leave-ring', 'n1'), runs.Step('leave-ring', 'n2'),
        runs.Step('replicate', 'n1'), runs.Step('get', name=CODED),
        runs.Step('delete', name=CODED, number=1),
        runs.Step('get', name=CODED)], nodes, 1, scheme)
    assert not done.violation
    every = ', '.join(map(str, range(scheme.fragments)))
    said = told(done)
    assert said[0].endswith('acknowledged by %d' % scheme.fragments)
    assert said[1].endswith('200 of fragments ' + every)
    assert said[2] == 'n1 leaves the ring' and 'n2 leaves' not in said[3]
    assert said[4].endswith('200 of fragments ' + every)
    assert said[6].endswith('404')


def test_the_seed_decides_the_scheme():
    assert schemes(4) == [(2, 1)]
    assert schemes(5) == [(2, 1), (2, 2), (3, 1)]
    assert schemes(7)[-1] == (4, 2)
    traces = {tuple(told(runs.run(
        [runs.Step('put', name=CODED, number=1, seed=3)], NODES, seed)))
        for seed in range(3)}
    assert {trace[0][-1] for trace in traces} == {'3', '4'}


def test_a_write_that_nobody_commits_is_no_version():
    """Three nodes of five are away. The others store what is never committed,
    or nothing, and readers get what was there before."""
    away = [runs.Step('cut', node, number=2) for node in ('n1', 'n2', 'n3')]
    steps = [runs.Step('put', name=CODED, number=1, seed=3)] + away
    met = set()
    for seed in range(12):
        done = runs.run(steps + [
            runs.Step('put', name=CODED, number=1, seed=seed)] + [
                runs.Step('join', node) for node in ('n1', 'n2', 'n3')] + [
                    runs.Step('get', name=CODED)], NODES, 1, SCHEMES[0])
        assert not done.violation
        assert 'refused, 0 took it' in told(done)[4]
        met.add(told(done)[-2])
    # A fragment that was not committed is newer than what lies behind it.
    assert met == {'GET /a/e0/k: 200 of fragments 0, 1, 2',
                   'GET /a/e0/k: 200 of fragments 0, 2'}


def test_a_fragment_is_made_again_where_all_others_are_stubs():
    """S3 has lost the key of one."""
    steps = [runs.Step('put', 'n3', OTHER, 344, 2769542716),
             runs.Step('sweep', 'n2', CODED, 710, 3388606014),
             runs.Step('power', 'n1', '/a/c4/r', 72, 3354974190),
             runs.Step('forget', 'n3', '/a/c2/t', 351, 3285835537)]
    done = runs.run(steps, NODES, 120)
    assert done.coverage.faults['key of a stub forgotten'] == 1
    assert not done.violation


def test_wrong_bytes_under_the_key_of_a_fragment_are_not_taken_for_it():
    """S3 has stored them, and the disk with the right ones fails before the
    next try."""
    steps = [runs.Step('mood', 'n5', '/a/c2/t', 372, 826197840),
             runs.Step('put', 'n4', CODED, 326, 2422094520),
             runs.Step('work', 'n1', '/a/c4/r', 413, 2377866201),
             runs.Step('spoil', 'n1', '/a/c1/l', 408, 2093381302)]
    done = runs.run(steps, NODES, 862)
    assert done.coverage.faults == {'S3 corrupting': 1, 'file unreadable': 1}
    assert not done.violation


@pytest.mark.parametrize('hash_seed', ('1', '2'))
def test_the_order_of_sets_decides_nothing(hash_seed):
    """Seeds in which fragments move."""
    said = [subprocess.run(
        [sys.executable, '-c', 'from swift_dss.sim import runs\n'
         'for seed in (3011, 3020):\n'
         '    print(runs.run(runs.plan(seed, 5, 80), 5, seed).trace)'],
        capture_output=True, text=True, timeout=600, check=True,
        env=dict(os.environ, PYTHONHASHSEED=salt)).stdout
        for salt in ('0', hash_seed)]
    assert said[0] == said[1] and 'the replicator of' in said[0]


def test_a_post_file_that_a_power_cut_brings_back_is_void():
    """Seed in which the next POST took on what such a file had."""
    steps = runs.plan(800, NODES, STEPS, SECOND_VERBS)
    assert runs.run(steps, NODES, 800).violation == ''


def test_what_is_remembered_of_disks_is_what_they_have(monkeypatch):
    """Whatever a run does to them."""
    asked = []

    def of(kept, read, key):
        now = read(*key)
        asked.append((read, key) in kept)
        assert kept.setdefault((read, key), now) == now
        return now
    monkeypatch.setattr(memory.Memory, '_of', staticmethod(of))
    for seed in range(700, 712):
        assert outcome_of(seed).violation == ''
    # Work that changes no file leaves what is remembered: 77 %, else 62 %.
    assert sum(asked) > 0.7 * len(asked)


def test_writes_come_to_each_replica_in_an_order_of_its_own():
    """The newest that was acknowledged is there at rest, whatever came last.
    """
    met = set()
    for seed in range(40):
        done = runs.run([
            runs.Step('race', name='/a/c0/k', number=4, seed=seed),
            runs.Step('get', name='/a/c0/k')], NODES, 1)
        assert not done.violation
        met.add((done.coverage.faults.get('writes exchanged', 0) > 0,
                 told(done)[1].partition(': ')[2][:3],
                 'by' in told(done)[0] or '2 took' in told(done)[0]))
    assert {(True, '200', True), (True, '404', True)} <= met


def test_a_late_write_of_fragments_breaks_off_before_it_stores_any():
    for seed in range(20):
        done = runs.run([runs.Step('race', name=CODED, number=4, seed=seed)],
                        NODES, 1, SCHEMES[0])
        assert not done.violation
        if done.coverage.faults:
            assert done.coverage.faults == {'writes exchanged': 1}
            assert '0 took' in told(done)[0] or 'DELETE' in told(done)[0]


@pytest.mark.parametrize('number', (1, 2))
@pytest.mark.parametrize('write', ('put', 'delete'))
def test_a_drive_that_was_taken_out_brings_nothing_back(number, write):
    """An SSD, or its HDD with it; before or after S3 has what it had."""
    for before in ([], [runs.Step('work', 'n1', number=3),
                        runs.Step('pass', seed=5),
                        runs.Step('work', 'n1', number=3)]):
        done = runs.run(
            [runs.Step('put', name='/a/c0/k', number=1, seed=3)] + before + [
                runs.Step('take-out', node, number=number)
                for node in ('n1', 'n2', 'n3')] + [
                    runs.Step('replicate', 'n%d' % node_number)
                    for node_number in range(1, 6)
                ] + [runs.Step(write, name='/a/c0/k', number=1, seed=4),
                     runs.Step('work', 'n1', number=3), runs.Step('put-back'),
                     runs.Step('put-back')], NODES, 1)
        assert not done.violation
        assert done.coverage.faults['drive taken out'] > 0
        assert done.coverage.faults['stale drive'] > 0


def test_a_get_goes_on_while_its_version_moves():
    """All of its bytes, or too few; and the same each time."""
    ends = set()
    for seed in range(12):
        steps = [runs.Step('get-slowly', name='/a/c0/k', number=1, seed=seed),
                 runs.Step('work', number=3, node='n1')]
        done = runs.run(steps, NODES, 1)
        assert not done.violation
        assert done.trace == runs.run(steps, NODES, 1).trace
        end, _, meanwhile = told(done)[0].partition(', meanwhile ')
        ends.add(('all' if ': all from' in end else 'of 140000 bytes' in end,
                  'demote' in meanwhile, 'delete' in meanwhile))
    assert {('all', True, False), ('all', False, True)} <= ends
    assert any(end is True for end, _, _ in ends)


def test_others_act_in_the_midst_of_what_a_daemon_does():
    """Clients, other nodes, and threads of the same daemon; and the same each
    time."""
    met = set()
    for seed in range(12):
        steps = [runs.Step('interrupt', 'n1', '/a/c0/k', 3, seed)]
        done = runs.run(steps, NODES, 1)
        assert not done.violation
        assert shown(done) == shown(runs.run(steps, NODES, 1))
        said = told(done)[0].partition('in its midst: ')[2]
        assert done.coverage.faults.get('interrupted', 0) == (
            said != 'nobody')
        met.update(word for word in (
            'at bundle.planned', 'DELETE', 'PUT', 'POST', 'GET',
            'the daemon of', 'its other threads', 'nobody') if word in said)
    assert len(met) == 8


def test_a_thread_that_would_wait_for_another_one_gives_up(tmp_path):
    """In a simulation they are one."""
    version = VersionId('d1', 0, '0' * 32, '4000000000.00000')
    with locks.installed():
        held = VersionLocks()
        with held.hold(version):
            with pytest.raises(TierUnavailable), held.hold(version):
                pass
            with held.hold(replace(version, device='d2')):
                pass
        with held.hold(version):
            pass
        baton = pack.Baton()
        with baton.hold():
            with pytest.raises(TierUnavailable), baton.hold():
                pass
        with baton.hold():
            pass
        sending = turns.Turns(Breaker(), 1, threading.Event())
        with sending.take():
            with pytest.raises(TierUnavailable), sending.take():
                pass
        with sending.take():
            pass


def test_an_error_in_the_midst_of_a_daemon_is_no_error_of_its_work(
        monkeypatch):
    """The run ends with it, though the product catches what its work raises.
    """
    def broken(*_args):
        raise Violation('bytes were lost')
    monkeypatch.setattr(Daemon, 'work_beside', broken)
    assert any(runs.run([runs.Step('interrupt', 'n1', '/a/c0/k', 3, seed)],
                        NODES, 1).violation == 'bytes were lost'
               for seed in range(12))


def test_s3_that_offers_no_version_that_a_node_has_there_is_seen(
        monkeypatch):
    """A restore would not bring it back."""
    steps = [runs.Step('put', name='/a/c0/k', number=1, seed=3)]
    assert not runs.run(steps, NODES, 1).violation
    walk = Catalog.walk
    monkeypatch.setattr(Catalog, 'walk', lambda self: [
        held for held in walk(self) if held.name != '/a/c0/k'])
    assert 'S3 does not offer' in runs.run(steps, NODES, 1).violation
