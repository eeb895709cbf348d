"""The daemon, composed: its sockets, its life, and its command line."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import socket
import sqlite3
import threading
import time

import pytest
from support import wait_until
from support.nodes.daemon_node import CLASSES, write_node, write_policies
from support.nodes.sample_node import (
    PARTITION, SampleNode, read_version, sample_bytes)

from swift_dss.cli.main import main
from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.io import spool
from swift_dss.tier.daemon import Daemon
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.inforce import Source
from swift_dss.tier.local.addresses import object_hash
from swift_dss.tier.space import index_path
from swift_dss.tier.walk.survey import Survey
from swift_dss.tier.walk.sweeper import Sweeper
from swift_dss.wire.control import (
    Event, EventKind, FetchRequest, decode_fetch_reply, encode_event,
    encode_fetch)

SIZE = 100000
LOGGER = logging.getLogger('daemon-test')
OPTIONS = {'io': {'carrier': 'null'},
           'tier': {'ssd_bytes': 1000000, 'interval_seconds': 60}}


class Running:
    """A node with a daemon in this process."""

    def __init__(self, root):
        self.root = root
        self.node = SampleNode(root)
        self.conf_path = write_node(root, dict(OPTIONS, capacity={
            'sda': self.node.capacity_path}))
        os.makedirs(os.path.join(root, 'recon'))
        self.places = []
        self.start()

    @property
    def parts(self):
        return self.daemon.node

    def start(self):
        self.daemon = Daemon(Source(self.conf_path), LOGGER)
        self.daemon.start()

    def write(self, name, text):
        with open(os.path.join(self.root, name), 'w') as target:
            target.write(text)

    def event(self, number, class_id):
        place = self.node.put('o%d' % number, sample_bytes(SIZE, number),
                              class_map=ClassMap.uniform(class_id))
        self.places.append(place)
        return encode_event(Event(
            EventKind.PUT, place.version, place.partition, SIZE,
            str(class_id), at=time.time()))

    def put(self, number, class_id):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(os.path.join(self.root, 'run', 'events.sock'))
            sender.send(self.event(number, class_id))

    def cli(self, *arguments):
        """(exit code, what ``swift-dss tier`` printed)."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = main(['tier', arguments[0], '--config', self.conf_path,
                         *arguments[1:]])
        return code, printed.getvalue()

    def json(self, *arguments):
        code, text = self.cli(*arguments, '--json')
        assert code == 0, text
        return json.loads(text)

    def settle(self):
        assert self.cli('settle', '--seconds', '60')[0] == 0


@pytest.fixture
def running(tmp_path):
    made = Running(str(tmp_path))
    yield made
    with contextlib.suppress(Exception):
        made.daemon.stop()


def test_one_datagram_may_hold_several_events(running):
    lines = [running.event(number, 9) for number in range(3)]
    lines.insert(1, b'rubbish')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(os.path.join(running.root, 'run', 'events.sock'))
        sender.send(b'\n'.join(lines))
    running.settle()
    assert len(running.json('ls')) == 3


def test_events_become_placement_by_class(running):
    for number in range(10):
        running.put(number, (0, 9)[number % 2])
    running.settle()
    rows = running.json('ls')
    assert len(rows) == 10
    on_ssd = [row['name'] for row in rows if row['ssd']]
    assert {'/a/c/o%d' % number for number in (1, 3, 5, 7, 9)} <= set(on_ssd)
    assert sum(row['ssd'] for row in rows) <= 750000
    for number, place in enumerate(running.places):
        assert read_version(place, {}) == sample_bytes(SIZE, number)


def test_objects_are_listed_moved_and_pinned_by_filter(running):
    for number in range(3):
        running.put(number, (0, 9, 0)[number])
    running.settle()
    assert len(running.json('ls', '--class', 'gold')) == 1
    assert len(running.json('ls', '--container', 'a/c')) == 3
    assert running.json('ls', '--container', 'a/other') == []
    moved = running.json('demote', '--class', 'plain')
    assert [row['ssd'] for row in moved['rows']] == [0, 0]
    assert len(running.json('ls', '--on', 'hdd')) >= 2
    back = running.json('promote', '--container', 'a/c')
    assert all(row['ssd'] == SIZE for row in back['rows'])
    running.json('pin', '--class', 'plain')
    assert len(running.json('ls', '--pinned')) == 2
    running.json('unpin', '--pinned')
    assert running.json('ls', '--pinned') == []


def test_tables_show_classes_and_states(running):
    running.put(1, 9)
    running.settle()
    code, text = running.cli('status')
    assert code == 0
    assert 'gold' in text and 'ready' in text and 'sda' in text
    assert '/a/c/o1' in running.cli('ls')[1]


def test_an_object_that_is_not_here_is_an_error_with_a_sentence(
        running, capsys):
    code, _ = running.cli('demote', '/a/c/nothing')
    assert code == 1
    assert 'is not on this node' in capsys.readouterr().err


def test_a_fetch_of_demoted_bytes_comes_from_the_hdd(running):
    running.put(1, 0)
    running.settle()
    running.json('demote', '--class', 'plain')
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as reader:
        reader.connect(os.path.join(running.root, 'run', 'fetch.sock'))
        reader.sendall(encode_fetch(FetchRequest(
            running.places[0].version, PARTITION, 10, 5000, 0, 5.0)))
        with reader.makefile('rb') as answer:
            assert decode_fetch_reply(answer.readline()).status == 200
            assert answer.read() == sample_bytes(SIZE, 1)[10:5010]


def test_spooled_events_are_read(running):
    spool.append(running.node.device_path, running.event(1, 9), 1 << 20)
    running.settle()
    assert len(running.json('ls')) == 1


def test_a_second_daemon_is_refused(running):
    with pytest.raises(TierUnavailable, match='another tier daemon'):
        Daemon(Source(running.conf_path), LOGGER)


def test_a_clean_stop_needs_no_sweep_and_keeps_the_index(running):
    running.put(1, 9)
    running.settle()
    running.json('rebuild')
    running.daemon.stop()
    running.start()
    assert not running.parts.due.unclean
    assert not running.parts.due.rebuild
    assert len(running.json('ls')) == 1


def test_what_was_said_just_before_a_clean_stop_is_in_the_index(running):
    running.json('rebuild')
    for number in range(20):
        running.put(number, 9)
    running.daemon.stop()
    running.start()
    assert not running.parts.due.unclean
    assert len(running.json('ls')) == 20


def test_a_rebuild_takes_over_from_a_sweep_that_is_under_way(
        running, monkeypatch):
    for number in range(3):
        running.put(number, 9)
    running.settle()
    running.json('rebuild')
    running.daemon.stop()
    sweeping, pauses = threading.Event(), []

    def device(walker, *rest):
        if not sweeping.is_set():
            # A walk that lasts until it is told to end.
            sweeping.set()
            while not walker.is_over:
                pauses.append(time.sleep(0.01))
        return real(walker, *rest)

    real = Survey.device
    monkeypatch.setattr(Survey, 'device', device)
    running.daemon = Daemon(Source(running.conf_path), LOGGER)
    running.parts.due.unclean = True
    running.daemon.start()
    assert sweeping.wait(60)
    assert running.json('rebuild')[0]['versions'] == 3
    assert pauses
    assert not running.parts.due.unclean


def test_a_walk_reads_devices_side_by_side(running, monkeypatch):
    """And says of them together how far it is; each begins only when the
    other has."""
    other = SampleNode(running.root, device='sdb')
    for number in range(500):
        other.put('x%d' % number, b'x')
    for number in range(300):
        running.node.put('y%d' % number, b'x')
    both = threading.Barrier(2)
    real = Survey.device

    def device(*args):
        both.wait(60)
        return real(*args)

    monkeypatch.setattr(Survey, 'device', device)
    said = []
    counts = running.parts.sweeper.survey(0, False, said.append)
    assert [(row['device'], row['versions']) for row in counts] == [
        ('sda', 300), ('sdb', 500)]
    assert max(row['versions'] for row in said) == 800
    assert [row['versions'] for row in said] == sorted(
        row['versions'] for row in said)
    index = running.parts.index
    assert [index.occupancy(name)[0]['objects']
            for name in ('sda', 'sdb')] == [300, 500]


def test_a_walk_that_fails_on_one_device_ends_on_the_others(
        running, monkeypatch):
    SampleNode(running.root, device='sdb')
    begun, ended = threading.Event(), []

    def device(walker, device, *rest):
        if device.name == 'sda':
            begun.wait(60)
            raise ZeroDivisionError
        begun.set()
        wait_until(lambda: walker.is_over, 60, 'the walk ends')
        ended.append(device.name)

    monkeypatch.setattr(Survey, 'device', device)
    with pytest.raises(ZeroDivisionError):
        running.parts.sweeper.survey(0, False, lambda said: None)
    assert ended == ['sdb']


def test_a_round_that_fails_is_shown_and_counted(running, monkeypatch):
    def device():
        told = running.json('status')['devices'][0]
        return told['room_state'], told['round_state']

    keeper = next(iter(running.parts.keepers))
    assert keeper.wait_round(60)
    assert device() == ('ready', 'ready')
    with monkeypatch.context() as broken:
        broken.setattr(keeper.duties, 'promote', lambda conf: 1 // 0)
        # Nobody is told that all is done.
        assert not keeper.wait_round(1)
        assert device() == ('failing', 'failing')
        assert 'failing' in running.cli('status')[1]
    assert running.parts.metrics.snapshot()['tier.round_errors'] >= 1
    assert keeper.wait_round(60)
    assert device() == ('ready', 'ready')


def test_an_index_that_shrank_gives_its_room_back(running):
    index = running.parts.index
    rows = [VersionRow(VersionId('sda', 0, '%032x' % number, '1.0'), '5', 9)
            for number in range(5000)]
    index.add(rows)
    index.remove_all(row.version for row in rows)
    before = index.file.free_pages()
    running.daemon.upkeep.look()
    assert before[0] > 50 and not index.file.free_pages()[0]


def test_a_second_rebuild_that_is_asked_for_is_refused(running):
    refused = []

    def once_more(said):
        with pytest.raises(TierUnavailable, match='asked for is under way'):
            running.parts.sweeper.survey(0, False, lambda said: None)
        refused.append(said)

    running.parts.sweeper.survey(0, False, once_more)
    assert refused


def test_a_stop_while_a_sweep_is_due_leaves_it_to_the_next_start(
        running, monkeypatch):
    running.json('rebuild')
    running.daemon.stop()
    monkeypatch.setattr(Sweeper, 'sweep_if_due', lambda self: None)
    running.start()
    assert not running.parts.due.unclean
    running.parts.due.missed = True
    running.daemon.stop()
    again = Daemon(Source(running.conf_path), LOGGER)
    assert again.node.due.unclean
    again.release()


def test_a_bad_class_table_changes_nothing(running):
    running.write('classes.conf', CLASSES.replace('rank = 90', 'rank = x'))
    before = running.parts.in_force.table
    with pytest.raises(BadConfig):
        running.daemon.reload()
    assert running.parts.in_force.table is before


@pytest.mark.parametrize('options, classes, said', [
    ('pin_classes = silver', CLASSES, "pin_classes: .*'silver'"),
    ('pin_depth = 1', CLASSES, "pin_depth: '1'"),
    # Of both files together: each is right by itself.
    ('pin_classes = gold', CLASSES.replace('gold', 'golden'),
     "pin_classes: .*'gold'")])
def test_a_pin_rule_that_cannot_be_understood_changes_nothing(
        running, options, classes, said):
    with open(running.conf_path) as source:
        text = source.read()
    running.write('dss.conf', text.replace(
        '[tier]\n', '[tier]\npin_share = 0.1\n%s\n' % options))
    running.write('classes.conf', classes)
    before = running.parts.in_force.configured
    with pytest.raises(BadConfig, match='dss.conf: .*' + said):
        running.daemon.reload()
    assert running.parts.in_force.configured is before
    running.daemon.stop()
    with pytest.raises(BadConfig, match=said):
        Daemon(Source(running.conf_path), LOGGER)


@pytest.mark.parametrize('error, counted', [
    (TierUnavailable('not mounted'), 0), (OSError(5, 'EIO'), 1)])
def test_a_device_that_cannot_be_spilled_holds_up_no_other_chore(
        running, monkeypatch, error, counted):
    seen = []

    def note(name):
        # The daemon has a thread that looks, too.
        if threading.current_thread() is threading.main_thread():
            seen.append(name)
            if name == 'sda':
                raise error

    os.makedirs(os.path.join(running.node.devices, 'sdb'))
    errors = running.parts.metrics.snapshot()['tier.chore_errors']
    monkeypatch.setattr(running.parts.relocator, 'spill',
                        lambda device: note(device.name))
    monkeypatch.setattr(running.daemon.upkeep, 'publish',
                        lambda: note('published'))
    running.daemon.upkeep.look()
    assert seen == ['sda', 'sdb', 'published']
    assert running.parts.metrics.snapshot()[
        'tier.chore_errors'] == errors + counted


def test_a_reload_that_pins_a_class_takes_it_from_the_candidates(running):
    running.put(1, 9)
    running.settle()
    running.write('classes.conf', CLASSES + 'pin = true\n')
    running.daemon.reload()
    assert not running.json('ls')[0]['classes'][0]['movable']


def test_a_rebuild_finds_everything_and_forgets_what_left(running):
    for number in range(3):
        running.put(number, 0)
    running.settle()
    os.unlink(running.places[0].data_file())
    report = running.json('rebuild')
    assert (report[0]['versions'], report[0]['forgotten']) == (2, 1)
    assert len(running.json('ls')) == 2


def test_a_rebuild_works_without_a_daemon(running):
    running.put(1, 9)
    running.settle()
    running.daemon.stop()
    os.unlink(index_path(running.parts.in_force.conf))
    report = running.json('rebuild')
    assert report[0]['versions'] == 1
    running.start()
    assert len(running.json('ls')) == 1


def _policies_are(running, ours):
    write_policies(running.root, ours, {0, 1} - set(ours))


@pytest.mark.parametrize('how', ['reload', 'chores', 'restart'])
def test_a_policy_that_stops_being_ours_is_left_in_peace(
        running, how, caplog):
    running.put(1, 9)
    running.settle()
    before = os.stat(running.places[0].data_file())
    if how == 'restart':
        running.daemon.stop()
    _policies_are(running, (1,))
    if how == 'restart':
        running.start()
    elif how == 'reload':
        running.daemon.reload()
    else:
        running.parts.ours.look()
    assert any('p0' in line and 'left as they are' in line
               for line in caplog.messages)
    assert running.json('status')['left_policies'] == [
        'storage policy 0 (p0)']
    assert 'storage policy 0 (p0) is not ours any more' in \
        running.cli('status')[1]
    assert running.cli('sweep')[0] == 0
    assert running.json('ls') == []
    after = os.stat(running.places[0].data_file())
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    _policies_are(running, (0, 1))
    running.daemon.reload()
    wait_until(lambda: len(running.json('ls')) == 1, 60)
    assert running.json('status')['left_policies'] == []


def test_no_daemon_runs_beside_a_replicator_with_rsync(running):
    path = os.path.join(running.root, 'object-server.conf')
    with open(running.conf_path) as source:
        text = source.read()
    running.write('dss.conf', text.replace(
        '[dss]\n', '[dss]\nobject_conf = %s\n' % path))
    running.write('object-server.conf', '[object-replicator]\n')
    with pytest.raises(BadConfig, match='object-server.conf.*rsync'):
        running.daemon.reload()
    running.daemon.stop()
    for _ in range(2):
        with pytest.raises(BadConfig, match='object-server.conf.*rsync'):
            Daemon(Source(running.conf_path), LOGGER)
    # Fragments are the reconstructor's, which knows no rsync.
    write_policies(running.root, (), {0, 1})
    running.start()


def test_a_swift_conf_that_breaks_changes_nothing(running, caplog):
    running.put(1, 9)
    running.settle()
    running.write('swift.conf', 'rubbish')
    with pytest.raises(BadConfig):
        running.daemon.reload()
    running.parts.ours.look()
    assert any('stays in force' in line for line in caplog.messages)
    assert len(running.json('ls')) == 1


def test_a_damaged_index_is_replaced_and_rebuilt(running):
    running.put(1, 9)
    running.settle()
    running.daemon.stop()
    path = index_path(running.parts.in_force.conf)
    with open(path, 'r+b') as target:
        target.write(b'\0' * 4096)
    running.start()
    wait_until(lambda: len(running.json('ls')) == 1, 60)
    assert any('damaged' in name for name in
               os.listdir(os.path.dirname(path)))


def test_a_file_without_swifts_attributes_ends_no_sweep(running):
    running.put(1, 9)
    running.settle()
    folder = running.places[0].hash_dir
    stray = os.path.join(folder, '1111111111.00000.data')
    with open(stray, 'wb') as target:
        target.write(b'not ours')
    code, text = running.cli('sweep', '--json')
    assert code == 1, text
    assert json.loads(text)[0]['unreadable'] == 1
    assert len(running.json('ls')) == 1


def test_an_orphan_is_swept_and_a_young_or_wanted_file_is_not(running):
    for number in range(3):
        running.put(number, 0)
    running.settle()
    running.json('demote', '--class', 'plain')
    paths = [place.capacity.file_path(place.version)
             for place in running.places]
    os.unlink(running.places[0].data_file())
    os.unlink(running.places[1].data_file())
    # Rows that are gone take their files along: hide them from the index.
    for place in running.places[:2]:
        running.parts.index.remove(place.version)
    for path in (paths[0], paths[2]):
        os.utime(path, (1, 1))
    report = running.json('sweep')
    assert report[0]['orphans'] == 1
    assert [os.path.exists(path) for path in paths] == [False, True, True]


def test_a_quarantined_versions_hdd_file_is_kept(running):
    running.put(1, 0)
    running.settle()
    running.json('demote', '--class', 'plain')
    place = running.places[0]
    target = os.path.join(running.node.device_path, 'quarantined',
                          'objects')
    os.makedirs(target)
    path = place.capacity.file_path(place.version)
    os.utime(path, (1, 1))
    os.rename(place.hash_dir, os.path.join(
        target, place.version.object_hash))
    running.parts.index.remove(place.version)
    assert running.json('sweep')[0]['orphans'] == 0
    assert os.path.exists(path)


def test_an_index_that_cannot_be_written_drops_events_and_serves(running):
    running.put(1, 0)
    running.settle()
    with sqlite3.connect(index_path(running.parts.in_force.conf),
                         isolation_level=None) as other:
        running.parts.index.file.db.execute('PRAGMA busy_timeout = 10')
        other.execute('BEGIN IMMEDIATE')
        running.put(2, 0)
        wait_until(lambda: running.parts.metrics.snapshot().get(
            'tier.events_dropped'), 30, 'dropped event')
        other.execute('ROLLBACK')
    assert read_version(running.places[1], {}) == sample_bytes(SIZE, 2)


def test_the_recon_file_has_the_numbers(running):
    running.put(1, 9)
    running.settle()
    running.daemon.upkeep.publish()
    with open(os.path.join(running.root, 'recon', 'dss.recon')) as source:
        recon = json.load(source)['dss_tier']
    assert recon['devices']['sda']['objects'] == 1


def test_a_path_has_swifts_own_hash(running, monkeypatch):
    from swift.common import utils
    monkeypatch.setattr(utils, 'HASH_PATH_PREFIX', b'')
    monkeypatch.setattr(utils, 'HASH_PATH_SUFFIX', b'end')
    assert object_hash(running.root, '/AUTH_a/c/o/p') == \
        utils.hash_path('AUTH_a', 'c', 'o/p')


def test_the_gateway_knows_when_the_index_lacks_versions(running):
    local, due = running.parts.local, running.parts.due
    wait_until(local.is_indexed, 30, 'the first walk')
    due.rebuild = True
    assert not local.is_indexed()
    due.walked()
    assert local.is_indexed()
