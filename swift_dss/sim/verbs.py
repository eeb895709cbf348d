"""The verbs of a run: requests of clients, work of daemons, and faults that
destroy nothing.

Destructive faults, which are left out where they would take a last copy, are
in ``sim.runs``.
"""

from __future__ import annotations

import contextlib
import os
import random
from dataclasses import dataclass
from typing import Callable, Dict, List, NamedTuple, Optional

from swift.common.exceptions import DiskFileError, ReplicationException
from swift.obj.diskfile import AuditLocation

from swift_dss.core.errors import DssError
from swift_dss.sim.traffic import expiry, posts, races
from swift_dss.sim.cluster import CLASSES, Cluster
from swift_dss.sim.daemon import PARTS
from swift_dss.sim.disks import policy_of
from swift_dss.sim.node import Node
from swift_dss.sim.server import policies
from swift_dss.sim.world.ring import DEVICE, STOCK
from swift_dss.sim.world.s3 import MOODS

#: How often each verb is drawn.
WEIGHTS = {'put': 16, 'delete': 6, 'get': 8, 'work': 30, 'die': 4,
            'pass': 12, 'replicate': 6, 'cut': 3, 'join': 4, 'mood': 4,
            'forget': 3, 'lose-state': 1, 'new-ssd': 1, 'new-hdd': 1,
            'leave-ring': 1, 'enter-ring': 2, 'skew': 1, 'sweep': 3,
            'collect': 1, 'restore': 1, 'post': 6, 'unmount': 3, 'spoil': 3,
            'audit': 2, 'fail-disk': 2,
            'put-until': 4, 'post-until': 3, 'expire': 3, 'power': 1,
            'race': 6, 'take-out': 2, 'put-back': 3, 'get-slowly': 3,
            'interrupt': 6, 'come-back': 8}
#: The text of each in a story.
_PHRASES = {
    'put': 'PUT %(name)s', 'put-until': 'PUT %(name)s with X-Delete-At',
    'post-until': 'POST %(name)s with X-Delete-At, or without it',
    'expire': 'the expirer passes', 'power': '%(node)s loses power',
    'delete': 'DELETE %(name)s',
    'post': 'POST %(name)s',
    'race': 'PUTs and DELETEs of %(name)s at a time',
    'take-out': 'drives of %(node)s are taken out',
    'put-back': 'drives that were taken out are put back',
    'get': 'GET %(name)s',
    'get-slowly': 'a GET of a long version of %(name)s, block by block',
    'come-back': 'a version goes to an HDD and is read there',
    'work': 'the daemon of %(node)s works',
    'interrupt': 'the daemon of %(node)s works, and others in its midst',
    'sweep': 'the daemon of %(node)s sweeps its disks',
    'die': 'the daemon of %(node)s works and is killed',
    'restore': '%(node)s is restored from the bucket',
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
    'spoil': 'a file of %(node)s cannot be read any more',
    'audit': 'the auditor of %(node)s',
    'fail-disk': 'a disk of %(node)s answers nothing for a while',
    'collect': '%(node)s collects keys that nothing needs'}


@dataclass(frozen=True)
class Step:
    """One thing that happens.

    :param seed: decides all that the other fields leave open
    """

    verb: str
    node: str = ''
    name: str = ''
    number: int = 0
    seed: int = 0

    def __str__(self) -> str:
        return _PHRASES[self.verb] % {'node': self.node, 'name': self.name}


class Spoilt(NamedTuple):
    """A file whose bytes are lost, and the version that it is of."""

    path: str
    object_hash: str
    timestamp: str


#: Does a step; returns the outcome, or None if the step is impossible.
Verb = Callable[[Cluster, Step, random.Random], Optional[str]]


def _put(cluster: Cluster, step: Step, dice: random.Random) -> str:
    body = dice.randbytes(dice.choice((0, 700, 1400, 5000, 9000)))
    return cluster.write(step.name, body, CLASSES[step.name],
                         _misses(cluster, step, dice))


def _put_until(cluster: Cluster, step: Step, dice: random.Random) -> str:
    until = cluster.expirer.draw(cluster.clock.now, dice)
    body = dice.randbytes(dice.choice((700, 5000)))
    return 'in %.0f s, %s' % (
        int(until) - cluster.clock.now, cluster.write(
            step.name, body, CLASSES[step.name],
            _misses(cluster, step, dice), until))


def _post_until(cluster: Cluster, step: Step, dice: random.Random) -> str:
    return posts.race(
        cluster, step.name, dice, _misses(cluster, step, dice),
        1 + step.number % 3,
        lambda: cluster.expirer.draw(cluster.clock.now, dice))


def _expire(cluster: Cluster, step: Step, dice: random.Random) -> str:
    deleted, took = expiry.one_pass(
        cluster, _misses(cluster, step, dice))
    if took:
        cluster.coverage.fault('expired')
    return '%d gone, %d took a DELETE' % (deleted, took)


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


def _race(cluster: Cluster, step: Step, dice: random.Random) -> str:
    return races.writes(
        cluster, step.name, CLASSES[step.name], 2 + step.number % 2,
        lambda: _misses(cluster, step, dice))


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
    node = one_of(cluster, step, dice, lambda candidate: candidate.has_work())
    said = node.work(
        crash_after=1 + step.number % 6, sweep=step.number % 5 == 0)
    if node.daemon is None:
        cluster.coverage.fault('daemon killed')
    return instead(node, step) + said


def _power(cluster: Cluster, step: Step,
           dice: random.Random) -> Optional[str]:
    if cluster.mains is None:
        return None
    nodes = [one_of(cluster, step, dice,
                    lambda candidate: candidate.has_work())]
    told = ''
    if step.number % 4 == 0:
        nodes, told = list(cluster.nodes.values()), 'so do all others, '
    wanting = [set(node.hashes()) - {held for held, _ in node.durable()}
               for node in nodes]
    if step.number % 3:
        # In the midst of what their daemons do.
        for node in nodes:
            node.work(crash_after=1 + step.number % 6,
                      sweep=step.number % 5 == 0)
    cluster.coverage.fault('power cut')
    # A file that was being mended may be as bad as before.
    had = [{held: kept for held, kept in node.durable().items()
            if held[0] not in left}
           for node, left in zip(nodes, wanting)]
    lost = sum(node.lose_power(cluster.mains, dice) for node in nodes)
    for node, before in zip(nodes, had):
        node.check_durable(before)
    return (told or instead(nodes[0], step)) + '%d changes are lost' % lost


def _restore(cluster: Cluster, step: Step, dice: random.Random) -> str:
    node = one_of(cluster, step, dice, lambda candidate: candidate.is_wiped)
    said = node.restore(0 if step.number % 3 else 1 + step.number % 7)
    cluster.coverage.fault('restored')
    return instead(node, step) + said


def one_of(cluster: Cluster, step: Step, dice: random.Random,
           wanted: Callable[[Node], bool]) -> Node:
    """The step's node, or one that is wanted, if there is one."""
    node = cluster.nodes[step.node]
    candidates = [candidate for candidate in cluster.nodes.values()
                  if wanted(candidate)]
    if node in candidates or not candidates:
        return node
    return dice.choice(candidates)


def instead(node: Node, step: Step) -> str:
    """How a story says that another node was taken; '' if it was not."""
    return '' if node.name == step.node else '%s instead, ' % node.name


def _pass(cluster: Cluster, step: Step, dice: random.Random) -> str:
    cluster.clock.pass_(dice.choice((1.0, 3.0, 15.0, 40.0, 300.0)))
    return ''


def _replicate(cluster: Cluster, step: Step, dice: random.Random) -> str:
    breaks = step.number % 3 == 0
    return 'pushed %d%s' % (cluster.replicate(step.node, breaks),
                            ', and connections break' * breaks)


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
    cluster.nodes[step.node].recover()
    return ''


def _unmount(cluster: Cluster, step: Step, dice: random.Random) -> str:
    cluster.coverage.fault('HDD not mounted')
    cluster.nodes[step.node].unmount_hdd()
    return ''


def spoil(node: Node, dice: random.Random) -> Optional[Spoilt]:
    """A file of a version cannot be read any more; None if there is none.
    """
    files = {}
    for object_hash in node.hashes():
        if policy_of(object_hash) == STOCK:
            continue
        for seen in node.all_of(object_hash):
            if seen.is_tombstone:
                continue
            for path in node.paths(object_hash, seen):
                if os.path.exists(path) and not node.worn.is_spoilt(path):
                    files[path] = object_hash, seen.timestamp
    if not files:
        return None
    path = dice.choice(sorted(files))
    node.worn.spoil(path)
    return Spoilt(path, *files[path])


def audit(node: Node, only_unreadable: bool = False) -> None:
    """Read all that is on a node, as its auditor does.

    :param only_unreadable: leave out what its disks give
    """
    for object_hash in node.hashes():
        policy = policies()[policy_of(object_hash)]
        if policy == policies()[STOCK] or only_unreadable and \
                not node.is_unreadable(object_hash):
            continue
        with node.at_work(), contextlib.suppress(
                DiskFileError, ReplicationException, DssError):
            disk_file = node.server.managers[
                policy].get_diskfile_from_audit_location(
                AuditLocation(node.folder(object_hash), DEVICE,
                              node.ring.partition(object_hash), policy))
            with disk_file.open():
                reader = disk_file.reader()
            with contextlib.closing(reader):
                for _ in reader:
                    pass


def _audit(cluster: Cluster, step: Step, dice: random.Random) -> str:
    audit(cluster.nodes[step.node])
    return ''


def _fail_disk(cluster: Cluster, step: Step, dice: random.Random) -> str:
    on_hdd = step.number % 2 == 0
    # A rack of drives answers nothing, or one drive.
    failing = [cluster.nodes[step.node]] if step.number % 3 else \
        list(cluster.nodes.values())
    cluster.coverage.fault('disk fails')
    for node in failing:
        node.fail(on_hdd)
        # A task that reads all the time meets it.
        audit(node)
    return ('HDD' if on_hdd else 'SSD') + (
        ', and those of all others' if len(failing) > 1 else '')


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


def _leave_ring(cluster: Cluster, step: Step,
                dice: random.Random) -> Optional[str]:
    if step.node not in cluster.ring.names or \
            len(cluster.ring.names) <= cluster.ring.width:
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


#: Those of this module.
VERBS: Dict[str, Verb] = {
    'put': _put, 'put-until': _put_until, 'post-until': _post_until,
    'expire': _expire, 'power': _power, 'delete': _delete,
    'race': _race, 'post': _post, 'get': _get, 'work': _work,
    'sweep': _sweep, 'die': _die,
    'restore': _restore, 'pass': _pass, 'replicate': _replicate,
    'collect': _collect, 'cut': _cut, 'join': _join, 'mood': _mood,
    'skew': _skew, 'unmount': _unmount, 'audit': _audit,
    'fail-disk': _fail_disk, 'leave-ring': _leave_ring,
    'enter-ring': _enter_ring}
