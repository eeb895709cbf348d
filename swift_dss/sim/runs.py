"""Runs: steps drawn from a seed, judged after each, shrunk when one fails.

A run is a list of steps. Each step carries its own seed, so that leaving
others out does not change what it does.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import traceback
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence

from swift_dss.sim import posts, server
from swift_dss.sim.cluster import CLASSES, NAMES, Cluster
from swift_dss.sim.coverage import Coverage
from swift_dss.sim.daemon import PARTS
from swift_dss.sim.model import Violation
from swift_dss.sim.world import clock as clocks, databases
from swift_dss.sim.world.clock import START, Clock
from swift_dss.sim.world.s3 import MOODS

#: Where the disks of a simulation lie: memory, where there is some.
_MEMORY = '/dev/shm'
#: Rounds in which everything has to settle at the end of a run.
_SETTLE_ROUNDS = 40
_SETTLE_SECONDS = 60.0
#: What daemons do at their own pace, each once nothing moves any more: disks
#: are walked and S3 is proven; what nothing needs is collected.
_DUTIES = ('sweep', 'collect')
#: In so many rounds they are done at the latest, and then again.
_DUTIES_ROUNDS = 12
#: So many in a row in which nothing moved are the end of it.
_QUIET_ROUNDS = 2
#: Replicators have passed by then, without the HDDs that are away.
_MOUNT_ROUND = 3


@dataclass(frozen=True)
class Step:
    """One thing that happens.

    :param seed: decides what is left open
    """

    verb: str
    node: str = ''
    name: str = ''
    number: int = 0
    seed: int = 0

    def __str__(self) -> str:
        return _PHRASES[self.verb] % {'node': self.node, 'name': self.name}


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


#: How often each verb is drawn.
_WEIGHTS = {'put': 16, 'delete': 6, 'get': 6, 'work': 30, 'die': 4,
            'pass': 12, 'replicate': 6, 'cut': 3, 'join': 4, 'mood': 4,
            'forget': 3, 'lose-state': 1, 'new-ssd': 1, 'new-hdd': 1,
            'leave-ring': 1, 'enter-ring': 2, 'skew': 1, 'sweep': 3,
            'collect': 1, 'post': 6, 'unmount': 3}
#: How a story tells of each.
_PHRASES = {
    'put': 'PUT %(name)s', 'delete': 'DELETE %(name)s',
    'post': 'POST %(name)s',
    'get': 'GET %(name)s', 'work': 'the daemon of %(node)s works',
    'sweep': 'the daemon of %(node)s sweeps its disks',
    'die': 'the daemon of %(node)s works and is killed',
    'pass': 'time passes', 'replicate': 'the replicator of %(node)s',
    'cut': '%(node)s is cut off', 'join': '%(node)s is connected',
    'mood': 'S3 changes', 'forget': 'S3 forgets a key',
    'lose-state': '%(node)s loses state of its daemon',
    'new-ssd': 'the SSD of %(node)s is replaced by an empty one',
    'new-hdd': 'the HDD of %(node)s is replaced by an empty one',
    'leave-ring': '%(node)s leaves the ring',
    'enter-ring': '%(node)s enters the ring',
    'skew': 'the clock of %(node)s is set',
    'unmount': 'the HDD of %(node)s is not mounted for a while',
    'collect': '%(node)s collects what nothing needs'}


def plan(seed: int, nodes: int, steps: int) -> List[Step]:
    """The steps of a seed."""
    dice = random.Random(seed)
    names = ['n%d' % number for number in range(1, nodes + 1)]
    verbs = list(_WEIGHTS)
    weights = list(_WEIGHTS.values())
    return [Step(dice.choices(verbs, weights)[0], dice.choice(names),
                 dice.choice(NAMES), dice.randrange(1, 1000),
                 dice.getrandbits(32)) for _ in range(steps)]


def run(steps: Sequence[Step], nodes: int, seed: int) -> Outcome:
    """Do the steps on a new cluster, then let it settle."""
    folder = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    root = tempfile.mkdtemp(prefix='dss-sim-', dir=folder)
    dice = random.Random(seed)
    clock = Clock(dice)
    trace: List[str] = []
    with clocks.installed(clock), databases.installed(), \
            server.installed():
        cluster = Cluster(root, nodes, dice, clock)
        try:
            for step in steps:
                dice.seed(step.seed)
                said = _VERBS[step.verb](cluster, step, dice)
                if said is not None:
                    trace.append('%9.1f s  %s%s' % (
                        clock.now - START, step, said and ': ' + said))
                cluster.check()
            dice.seed(seed)
            _settle(cluster, trace)
        except Violation as err:
            # The folder has another name in each run.
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


def _settle(cluster: Cluster, trace: List[str]) -> None:
    cluster.coverage.closed = True
    cluster.cut.clear()
    cluster.bucket.cut_off.clear()
    cluster.bucket.mood = 'well'
    for node in cluster.nodes.values():
        node.skew = 0.0
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
        cluster.look_at_all()
        is_late = number % _DUTIES_ROUNDS >= _DUTIES_ROUNDS - len(_DUTIES)
        duty = left.pop(0) if left and (quiet or is_late) else ''
        moved = 0
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
    cluster.check_at_rest()
    cluster.check_bucket()


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


# -- verbs ---------------------------------------------------------------


def _put(cluster: Cluster, step: Step, dice: random.Random) -> str:
    body = dice.randbytes(dice.choice((0, 700, 1400, 5000, 9000)))
    return cluster.write(step.name, body, CLASSES[step.name],
                         _misses(cluster, step, dice))


def _delete(cluster: Cluster, step: Step, dice: random.Random) -> str:
    return cluster.write(step.name, None, 0, _misses(cluster, step, dice))


def _post(cluster: Cluster, step: Step, dice: random.Random) -> str:
    return posts.race(cluster, step.name, dice,
                      _misses(cluster, step, dice), 1 + step.number % 3)


def _misses(cluster: Cluster, step: Step,
            dice: random.Random) -> List[str]:
    if step.number % 3:
        return []
    return [name for name in cluster.nodes if dice.random() < 0.6]


def _get(cluster: Cluster, step: Step, dice: random.Random) -> str:
    return cluster.read(step.name)


def _work(cluster: Cluster, step: Step, dice: random.Random) -> str:
    parts = dice.choice((PARTS, PARTS[:1], PARTS[1:]))
    said = '' if parts == PARTS else 'only its %s' % parts[0]
    if step.number % 3:
        said = (said + ' ' + cluster.nodes[step.node].work(
            parts=parts)).strip()
        return said
    for node in cluster.nodes.values():
        node.work(parts=parts)
    return ', '.join(['so do all others'] + [said] * bool(said))


def _sweep(cluster: Cluster, step: Step, dice: random.Random) -> str:
    return cluster.nodes[step.node].work(sweep=True)


def _collect(cluster: Cluster, step: Step, dice: random.Random) -> str:
    cluster.nodes[step.node].collect()
    return ''


def _die(cluster: Cluster, step: Step, dice: random.Random) -> str:
    said = cluster.nodes[step.node].work(
        crash_after=1 + step.number % 12, sweep=step.number % 5 == 0)
    if cluster.nodes[step.node].daemon is None:
        cluster.coverage.fault('daemon killed')
    return said


def _pass(cluster: Cluster, step: Step, dice: random.Random) -> str:
    cluster.clock.pass_(dice.choice((1.0, 3.0, 15.0, 40.0, 300.0)))
    return ''


def _replicate(cluster: Cluster, step: Step, dice: random.Random) -> str:
    return 'pushed %d' % cluster.replicate(step.node)


def _cut(cluster: Cluster, step: Step, dice: random.Random) -> str:
    if step.number % 2:
        cluster.bucket.cut_off[step.node] = True
        cluster.coverage.fault('cut off from S3')
        return 'from S3'
    cluster.cut.add(step.node)
    cluster.coverage.fault('cut off from nodes')
    return 'from all others'


def _join(cluster: Cluster, step: Step, dice: random.Random) -> str:
    cluster.bucket.cut_off.pop(step.node, None)
    cluster.cut.discard(step.node)
    cluster.nodes[step.node].mount_hdd()
    return ''


def _unmount(cluster: Cluster, step: Step, dice: random.Random) -> str:
    cluster.coverage.fault('HDD not mounted')
    cluster.nodes[step.node].unmount_hdd()
    return ''


def _mood(cluster: Cluster, step: Step, dice: random.Random) -> str:
    # As often well as not.
    cluster.bucket.mood = 'well' if step.number % 2 else \
        dice.choice(MOODS)
    if cluster.bucket.mood != 'well':
        cluster.coverage.fault('S3 ' + cluster.bucket.mood)
    return cluster.bucket.mood


def _skew(cluster: Cluster, step: Step, dice: random.Random) -> str:
    cluster.nodes[step.node].skew = dice.choice((0.0, -300.0, 300.0))
    if cluster.nodes[step.node].skew:
        cluster.coverage.fault('clock off')
    return '%+.0f s' % cluster.nodes[step.node].skew


def _harmless(cluster: Cluster, harm: Callable[[], None],
              undo: Callable[[], None]) -> bool:
    """Do what destroys copies, unless it would destroy a last one."""
    harm()
    try:
        cluster.check_all()
    except Violation:
        undo()
        return False
    return True


def _forget(cluster: Cluster, step: Step,
            dice: random.Random) -> Optional[str]:
    keys = cluster.spare_keys()
    if not keys:
        return None
    key = dice.choice(keys)
    stored = cluster.bucket.keys[key]
    if not _harmless(
            cluster, lambda: cluster.bucket.keys.__delitem__(key),
            lambda: cluster.bucket.keys.__setitem__(key, stored)):
        return None
    cluster.coverage.fault('key forgotten')
    return key


def _lose_state(cluster: Cluster, step: Step,
                dice: random.Random) -> str:
    which = dice.choice(('index', 'gateway', 'bundles', ''))
    cluster.nodes[step.node].lose(lambda name: name.startswith(which)
                                  and '.db' in name)
    cluster.coverage.fault('state lost')
    return which or 'all of it'


def _new_disk(folder: str, renew: Callable[[Cluster, str], None]
              ) -> Callable[[Cluster, Step, random.Random], Optional[str]]:
    def verb(cluster: Cluster, step: Step,
             dice: random.Random) -> Optional[str]:
        node = cluster.nodes[step.node]
        node.kill()
        path = os.path.join(node.root, folder)
        os.rename(path, path + '.old')
        shutil.copytree(path + '.old', path, symlinks=True)
        spool = node.spool

        def undo() -> None:
            shutil.rmtree(path)
            os.rename(path + '.old', path)
            node.spool = spool

        # The copy is what is destroyed; its attributes do not matter.
        if not _harmless(cluster, lambda: renew(cluster, step.node), undo):
            return None
        shutil.rmtree(path + '.old')
        cluster.coverage.fault('%s lost' % folder.upper())
        return ''
    return verb


def _leave_ring(cluster: Cluster, step: Step,
                dice: random.Random) -> Optional[str]:
    if step.node not in cluster.ring.names or len(cluster.ring.names) <= 3:
        return None
    cluster.ring.names.remove(step.node)
    cluster.returned.add(step.node)
    cluster.coverage.fault('left the ring')
    return ''


def _enter_ring(cluster: Cluster, step: Step,
                dice: random.Random) -> Optional[str]:
    if step.node in cluster.ring.names:
        return None
    cluster.ring.names.append(step.node)
    return ''


_VERBS: Dict[str, Callable[[Cluster, Step, random.Random],
                           Optional[str]]] = {
    'put': _put, 'delete': _delete, 'post': _post, 'get': _get, 'work': _work,
    'sweep': _sweep, 'die': _die, 'pass': _pass, 'replicate': _replicate,
    'collect': _collect, 'cut': _cut, 'join': _join, 'mood': _mood,
    'skew': _skew, 'unmount': _unmount, 'forget': _forget,
    'lose-state': _lose_state,
    'new-ssd': _new_disk('ssd', lambda cluster, name:
                         cluster.nodes[name].new_ssd()),
    'new-hdd': _new_disk('hdd', lambda cluster, name:
                         cluster.nodes[name].new_hdd()),
    'leave-ring': _leave_ring, 'enter-ring': _enter_ring}
