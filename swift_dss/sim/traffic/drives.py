"""Drives that are exchanged: by empty ones, and by themselves as they were
once.

A drive that was taken out and comes back has old versions, stubs of keys that
S3 has not any more, and no later write or delete. Its node
MUST NOT bring any of that back to life.
"""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING, Callable, Dict, Optional

from swift_dss.sim.model import Violation
from swift_dss.sim.traffic import indexed

if TYPE_CHECKING:
    from swift_dss.sim.cluster import Cluster
    from swift_dss.sim.verbs import Step, Verb


def harmless(cluster: Cluster, harm: Callable[[], None],
              undo: Callable[[], None]) -> bool:
    """Do a fault that destroys copies, unless it would destroy a last one."""
    harm()
    try:
        cluster.check_all()
    except Violation:
        undo()
        return False
    return True


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
            node.memory.forget()
            node.spool, node.lost_with_hdd = spool, lost

        # Destroy the copy; its attributes do not matter.
        if not harmless(cluster, lambda: renew(cluster, step.node), undo):
            return None
        shutil.rmtree(path + '.old')
        node.memory.forget()
        cluster.coverage.fault('%s lost' % folder.upper())
        return ''
    return verb


def _take_out(cluster: Cluster, step: Step,
              dice: random.Random) -> Optional[str]:
    """An SSD, or its HDD with it."""
    node = cluster.nodes[step.node]
    if node.shelf or cluster.mains is not None:
        return None
    folders = ('ssd', 'hdd') if step.number % 2 else ('ssd',)
    spool, lost = node.spool, node.lost_with_hdd

    def harm() -> None:
        node.kill()
        node.mount_hdd()
        node.take_out(folders)
        node.new_ssd()
        if 'hdd' in folders:
            node.new_hdd()

    def undo() -> None:
        node.exchange_taken(folders)
        node.drop_taken(folders)
        node.spool, node.lost_with_hdd = spool, lost

    if not harmless(cluster, harm, undo):
        return None
    node.shelf = folders
    cluster.coverage.fault('drive taken out')
    return ' and '.join(folders)


def _put_back(cluster: Cluster, step: Step,
              dice: random.Random) -> Optional[str]:
    """The versions of a node are as old as its drives.

    :raises Violation: its index has others after a sweep
    """
    waiting = [candidate for candidate in cluster.nodes.values()
               if candidate.shelf]
    if not waiting or cluster.mains is not None:
        return None
    node = dice.choice(waiting)
    spool, lost, stale, folders = \
        node.spool, node.lost_with_hdd, node.stale, node.shelf
    returned = set(cluster.returned)

    def harm() -> None:
        node.back_in_place(folders)
        cluster.returned.add(node.name)
        node.stale |= {
            (object_hash, at) for object_hash, at in node.without_bytes()
            if at <
            cluster.model.name(cluster.name_of(object_hash)).acknowledged}

    def undo() -> None:
        node.exchange_taken(folders)
        node.spool, node.lost_with_hdd, node.stale = spool, lost, stale
        cluster.returned = returned

    if not harmless(cluster, harm, undo):
        return None
    node.drop_taken(folders)
    node.shelf = ()
    node.is_wiped = False
    cluster.coverage.fault('stale drive')
    if step.number % 2:
        return node.name
    said = node.work(sweep=True)
    if not said:
        for object_hash in node.hashes():
            indexed.check(node, object_hash)
    return '%s, which sweeps its disks %s' % (node.name, said)


#: Those of this module.
VERBS: Dict[str, Verb] = {
    'take-out': _take_out, 'put-back': _put_back,
    'new-ssd': _new_disk('ssd', lambda cluster, name:
                         cluster.nodes[name].new_ssd()),
    'new-hdd': _new_disk('hdd', lambda cluster, name:
                         cluster.nodes[name].new_hdd())}
