"""Runs: steps drawn from a seed, judged after each, shrunk when one fails.

A run is a list of steps. Each step carries its own seed, so that leaving
others out does not change it.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
import traceback
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from swift_dss.sim import pieces, rest, server
from swift_dss.sim.cluster import NAMES, Cluster
from swift_dss.sim.conf import Scheme, schemes
from swift_dss.sim.coverage import Coverage
from swift_dss.sim.disks import policy_of
from swift_dss.sim.model import Violation
from swift_dss.sim.verbs import (
    VERBS, WEIGHTS, Spoilt, Step, Verb, audit, spoil)
from swift_dss.sim.world import clock as clocks, databases, worn as disks
from swift_dss.sim.world.clock import START, Clock
from swift_dss.sim.world.power import Mains, Power
from swift_dss.sim.world.ring import CODED
from swift_dss.sim.world.worn import Worn

#: The verb of a power cut: costs nothing in a run that has none.
_CUT = 'power'
#: Where the disks of a simulation lie: memory, where there is some.
_MEMORY = '/dev/shm'
#: Rounds in which everything has to settle at the end of a run.
_SETTLE_ROUNDS = 40
_SETTLE_SECONDS = 60.0
#: The daemons' slow work, done once nothing moves any more: walk disks, prove
#: S3, collect keys that nothing needs.
_DUTIES = ('sweep', 'collect')
#: In so many rounds they are done at the latest, and then again.
_DUTIES_ROUNDS = 12
#: So many in a row in which nothing moved are the end of it.
_QUIET_ROUNDS = 2
_DAYS, _DAY_SECONDS = 5, 90000.0
#: Replicators have passed by then, without the HDDs that are away.
_MOUNT_ROUND = 3


@dataclass
class Outcome:
    """How a run ended.

    :param trace: a line a step
    :param violation: '' if all was well
    :param counts: S3's requests, by verb
    :param bytes_lost: of an acknowledged version, if that is the violation
    """

    trace: List[str]
    violation: str = ''
    counts: Dict[str, int] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    bytes_lost: int = 0


def plan(seed: int, nodes: int, steps: int,
         often: Mapping[str, int] = WEIGHTS,
         objects: Sequence[str] = NAMES) -> List[Step]:
    """The steps of a seed.

    :param often: how often each verb is drawn
    :param objects: names that are drawn
    """
    dice = random.Random(seed)
    names = ['n%d' % number for number in range(1, nodes + 1)]
    verbs = list(often)
    weights = list(often.values())
    return [Step(dice.choices(verbs, weights)[0], dice.choice(names),
                 dice.choice(objects), dice.randrange(1, 1000),
                 dice.getrandbits(32)) for _ in range(steps)]


def run(steps: Sequence[Step], nodes: int, seed: int,
        scheme: Optional[Scheme] = None) -> Outcome:
    """Do the steps on a new cluster, then let it settle.

    :param scheme: of the erasure-coded policy; None: the seed decides
    """
    fitting = schemes(nodes)
    scheme = scheme or fitting[seed % len(fitting)]
    folder = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    root = tempfile.mkdtemp(prefix='dss-sim-', dir=folder)
    dice = random.Random(seed)
    clock = Clock(dice)
    trace: List[str] = []
    worn = Worn()
    with clocks.installed(clock), databases.installed() as kept, \
            server.installed(scheme), disks.installed(worn), \
            contextlib.ExitStack() as recorded:
        mains = None
        if any(step.verb == _CUT for step in steps):
            mains = Mains(Power(root, clock), kept)
            kept.is_followed = True
            recorded.enter_context(mains.power.recording())
        cluster = Cluster(root, nodes, dice, clock, mains=mains, worn=worn)
        try:
            # The folder has another name in each run.
            _do(cluster, steps, lambda line: trace.append(
                line.replace(root + os.sep, '')), recorded.close)
            dice.seed(seed)
            _settle(cluster, trace)
        except Violation as err:
            return Outcome(trace, str(err).replace(root + os.sep, ''),
                           cluster.bucket.by_verb(), cluster.coverage,
                           err.bytes_lost)
        except Exception:
            # No error of the product may end a daemon.
            return Outcome(trace, 'an error that nothing has caught: %s' % (
                traceback.format_exc().replace(root + os.sep, '')),
                cluster.bucket.by_verb(), cluster.coverage)
        finally:
            cluster.close()
            shutil.rmtree(root, ignore_errors=True)
    return Outcome(trace, '', cluster.bucket.by_verb(), cluster.coverage)


def _do(cluster: Cluster, steps: Sequence[Step],
        tell: Callable[[str], None], no_more_cuts: Callable[[], None]) -> None:
    last = max((number for number, step in enumerate(steps)
                if step.verb == _CUT), default=-1)
    for number, step in enumerate(steps):
        cluster.dice.seed(step.seed)
        said = _VERBS[step.verb](cluster, step, cluster.dice)
        if said is not None:
            tell('%9.1f s  %s%s' % (cluster.clock.now - START, step,
                                    said and ': ' + said))
        if number >= last and cluster.mains is not None:
            no_more_cuts()
            cluster.mains = None
        if cluster.mains is not None:
            cluster.mains.step()
        cluster.check()


def _settle(cluster: Cluster, trace: List[str]) -> None:
    cluster.coverage.closed = True
    cluster.cut.clear()
    cluster.bucket.cut_off.clear()
    cluster.bucket.mood = 'well'
    for node in cluster.nodes.values():
        node.skew = 0.0
        node.recover()
    trace.append('%9.1f s  everything is mended, and has time to settle'
                 % (cluster.clock.now - START))
    left: List[str] = []
    quiet = 0
    for number in range(_SETTLE_ROUNDS):
        if number % _DUTIES_ROUNDS == 0:
            left = list(_DUTIES)
        cluster.clock.pass_(_SETTLE_SECONDS)
        if number == _MOUNT_ROUND:
            cluster.mount_hdds()
        for node in cluster.nodes.values():
            # The daemons hear of unreadable versions.
            audit(node)
        _, moved = cluster.expirer.one_pass(cluster)
        if moved:
            left = list(_DUTIES)
        is_late = number % _DUTIES_ROUNDS >= _DUTIES_ROUNDS - len(_DUTIES)
        duty = left.pop(0) if left and (quiet or is_late) else ''
        for name, node in cluster.nodes.items():
            node.work(sweep=duty == 'sweep')
            if duty == 'sweep':
                node.scrub()
            if duty == 'collect':
                node.collect()
            moved += cluster.replicate(name) + node.backlog()
        cluster.check()
        quiet = 0 if moved or duty else quiet + 1
        if quiet >= _QUIET_ROUNDS and not left and number > _MOUNT_ROUND:
            break
    _judge(cluster)


def _judge(cluster: Cluster) -> None:
    rest.check(cluster)
    try:
        cluster.check_bucket()
    except Violation:
        if 'state lost' not in cluster.coverage.faults:
            raise
        _wait_for_books(cluster)
        rest.check(cluster)
        cluster.check_bucket()


def _wait_for_books(cluster: Cluster) -> None:
    """A node regains the bundles of which it is the first primary; nobody
    takes over others whose book was lost before they are a day old, and their
    dead members are told of after that."""
    for _ in range(_DAYS):
        cluster.clock.pass_(_DAY_SECONDS)
        cluster.expirer.one_pass(cluster)
        for name, node in cluster.nodes.items():
            node.work()
            node.collect()
            cluster.replicate(name)
        cluster.check()


def shrink(steps: Sequence[Step], nodes: int, seed: int,
           tries: int = 2000) -> List[Step]:
    """The fewest steps that still fail, as far as leaving steps out one
    after the other, in halves and smaller parts, can find them."""
    left = list(steps)
    part = max(1, len(left) // 2)
    while part and tries > 0:
        at = 0
        while at < len(left) and tries > 0:
            without = left[:at] + left[at + part:]
            tries -= 1
            if run(without, nodes, seed).violation:
                left = without
            else:
                at += part
        part //= 2
    return left


# -- faults that destroy copies ------------------------------------------


def _harmless(cluster: Cluster, harm: Callable[[], None],
              undo: Callable[[], None]) -> bool:
    """Do a fault that destroys copies, unless it would destroy a last one."""
    harm()
    try:
        cluster.check_all()
    except Violation:
        undo()
        return False
    return True


def _forget(cluster: Cluster, step: Step,
            dice: random.Random) -> Optional[str]:
    keys = cluster.bucket.keys
    if not keys:
        return None
    key = dice.choice(sorted(keys))
    if any(node.believes(key) for node in cluster.nodes.values()):
        # S3 has just said that it has it, and bytes may leave on that.
        return None
    stored, is_read = keys[key], key in cluster.read_keys()
    if not _harmless(cluster, lambda: keys.__delitem__(key),
                     lambda: keys.__setitem__(key, stored)):
        return None
    cluster.bucket.forgotten.add(key)
    cluster.coverage.fault('key%s forgotten' % (' of a stub' * is_read))
    return key


def _spoil(cluster: Cluster, step: Step,
           dice: random.Random) -> Optional[str]:
    node = cluster.nodes[step.node]
    spoilt = spoil(node, dice)
    if spoilt is None:
        return None
    # Replicas that cannot be read keep a handoff from bringing its own.
    if not _harmless(cluster, lambda: None, lambda: None) or \
            not _primaries_have(cluster, spoilt):
        node.worn.mend(spoilt.path)
        return None
    node.lost_with_hdd |= {(spoilt.object_hash, spoilt.timestamp)}
    cluster.coverage.fault('file unreadable')
    return os.path.relpath(spoilt.path, node.root)


def _primaries_have(cluster: Cluster, spoilt: Spoilt) -> bool:
    policy = policy_of(spoilt.object_hash)
    nodes = [cluster.nodes[one] for one in cluster.ring.of(
        spoilt.object_hash, policy)]
    if policy == CODED:
        return pieces.can_be_made(cluster, cluster.name_of(
            spoilt.object_hash), spoilt.timestamp, nodes)
    return any(seen is not None and seen.body is not None
               and seen.timestamp == spoilt.timestamp
               for seen in (one.look(spoilt.object_hash) for one in nodes))


def _lose_state(cluster: Cluster, step: Step,
                dice: random.Random) -> str:
    which = dice.choice(('index', 'gateway', 'bundles', ''))
    cluster.nodes[step.node].lose(lambda name: name.startswith(which)
                                  and '.db' in name)
    cluster.coverage.fault('state lost')
    return which or 'all of it'


def _new_disk(folder: str,
              renew: Callable[[Cluster, str], None]) -> Verb:
    def verb(cluster: Cluster, step: Step,
             dice: random.Random) -> Optional[str]:
        node = cluster.nodes[step.node]
        node.kill()
        path = os.path.join(node.root, folder)
        node.is_written(path)
        os.rename(path, path + '.old')
        shutil.copytree(path + '.old', path, symlinks=True)
        spool, lost = node.spool, node.lost_with_hdd

        def undo() -> None:
            shutil.rmtree(path)
            os.rename(path + '.old', path)
            node.spool, node.lost_with_hdd = spool, lost

        # Destroy the copy; its attributes do not matter.
        if not _harmless(cluster, lambda: renew(cluster, step.node), undo):
            return None
        shutil.rmtree(path + '.old')
        cluster.coverage.fault('%s lost' % folder.upper())
        return ''
    return verb



#: All there are.
_VERBS: Dict[str, Verb] = dict(
    VERBS, **{
        'forget': _forget, 'lose-state': _lose_state, 'spoil': _spoil,
        'new-ssd': _new_disk('ssd', lambda cluster, name:
                             cluster.nodes[name].new_ssd()),
        'new-hdd': _new_disk('hdd', lambda cluster, name:
                             cluster.nodes[name].new_hdd())})
