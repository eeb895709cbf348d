"""Run replicators and reconstructors until nothing moves any more."""

from __future__ import annotations

import collections
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Counter, Dict, List, Sequence, Set, Tuple

from swift_dss.aio import processes
from swift_dss.aio.bed import plan, rings
from swift_dss.aio.bed.plan import Plan
from swift_dss.core.errors import DssError

if TYPE_CHECKING:
    from swift_dss.aio.bed.frame import Frame

#: Daemon to the folders of a drive that it moves, in the order of a pass.
MOVERS: Dict[str, Tuple[str, ...]] = {
    'container-replicator': ('containers',),
    'account-replicator': ('accounts',),
    'object-replicator': ('objects', 'objects-2'),
    'object-reconstructor': ('objects-1',)}
#: Files that move: of objects, and databases.
_KINDS = ('.data', '.ts', '.meta', '.db')
_MAX_ROUNDS = 20
_MAX_PASSES = 20
#: Daemons at a time: they wait for each other's servers.
_AT_ONCE = 4

#: (node, path below its drives)
_File = Tuple[str, str]


@dataclass(frozen=True)
class Pass:
    """The files that one pass of a daemon on every node moved.

    :param arrived: node to files that are new there
    :param left: node to files that are gone there
    """

    daemon: str
    arrived: Dict[str, int]
    left: Dict[str, int]

    @property
    def files(self) -> int:
        """How many came or went."""
        return sum(self.arrived.values()) + sum(self.left.values())

    def __str__(self) -> str:
        return '%s: %d files arrived%s, %d left%s' % (
            self.daemon, sum(self.arrived.values()), _by(self.arrived),
            sum(self.left.values()), _by(self.left))


def _by(counts: Dict[str, int]) -> str:
    text = ', '.join('%s %d' % pair for pair in sorted(counts.items()))
    return ' (%s)' % text if text else ''


def settle(bed: Frame, say: processes.Say) -> List[Pass]:
    """Rebalance the rings, and move files, until neither changes.

    :raises DssError: it goes on for too long
    """
    passes: List[Pass] = []
    for number in range(_MAX_ROUNDS):
        moved = rings.rebalance(bed.plan, again=number > 0)
        bed.plan.waiting.clear()
        plan.save(bed.plan)
        bed.push_rings()
        share = sum(moved.values())
        if number and not share:
            return passes
        say('rings: %s' % ', '.join(
            '%s %.0f %%' % (name, 100 * part)
            for name, part in moved.items()))
        alive = _alive(bed)
        bed.await_all(alive)
        passes += _move(bed, alive, say)
    raise DssError('the rings do not come to rest in %d rounds'
                   % _MAX_ROUNDS)


def _alive(bed: Frame) -> List[str]:
    return [node.name for node in bed.nodes
            if 'object-server' in node.running()]


def _move(bed: Frame, alive: List[str], say: processes.Say) -> List[Pass]:
    """Passes of each daemon, until one of its passes moves nothing."""
    passes: List[Pass] = []
    before = {daemon: _files(bed.plan, folders)
              for daemon, folders in MOVERS.items()}
    moving = [daemon for daemon in MOVERS if before[daemon]]
    for _number in range(_MAX_PASSES):
        if not moving:
            return passes
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda name, moving=tuple(moving): bed.node(
                name).run_once(*moving), alive))
        for daemon in list(moving):
            after = _files(bed.plan, MOVERS[daemon])
            done = Pass(daemon, _count(after - before[daemon]),
                        _count(before[daemon] - after))
            before[daemon] = after
            passes.append(done)
            say('  %s' % done)
            if not done.files:
                moving.remove(daemon)
    raise DssError('%s still move files after %d passes' % (
        ', '.join(moving), _MAX_PASSES))


def held(plan: Plan, node: str) -> int:
    """Files of objects and databases on a node's drives."""
    folders = [folder for group in MOVERS.values() for folder in group]
    return sum(name == node for name, _path in _files(plan, folders))


def _count(files: Set[_File]) -> Dict[str, int]:
    counts: Counter[str] = collections.Counter(
        node for node, _path in files)
    return dict(counts)


def _files(plan: Plan, folders: Sequence[str]) -> Set[_File]:
    files: Set[_File] = set()
    for node in plan.nodes:
        conf = plan.conf(node)
        for device in conf.device_names:
            for folder in folders:
                top = conf.path('devices', device, folder)
                for where, _folders, names in os.walk(top):
                    files.update(
                        (node, os.path.join(where, name)) for name in names
                        if os.path.splitext(name)[1] in _KINDS)
    return files
