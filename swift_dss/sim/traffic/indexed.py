"""Compare the index of a daemon with the disks.

A sweep mends an index that is wrong, so no run that has settled shows it. But
until then bytes are counted that are not there, and others take room on the
HDD that nobody needs.
"""

from __future__ import annotations

import os
from typing import Iterable

from swift_dss.sim.disks import policy_of
from swift_dss.sim.model import Violation
from swift_dss.sim.node import Node
from swift_dss.sim.world.ring import OURS
from swift_dss.wire import layout


def check(node: Node, object_hash: str,
          written: Iterable[str] = ()) -> None:
    """Call this when the node's daemon has heard of all that was done to an
    object. Does nothing while the daemon or a disk is away.

    :param written: timestamps of versions that were on their way to the node
    :raises Violation: the index has a version, or the HDD has bytes of one
        of those, that the SSD has not
    """
    if node.daemon is None or node.hdd_is_away or node.worn.is_any() or \
            policy_of(object_hash) != OURS:
        return
    here = node.files(object_hash)
    for row in node.daemon.index.of_object(object_hash):
        if row.version.timestamp + '.data' not in here:
            raise Violation(
                '%s: the index of %s has the version of %s, and its disk has '
                'not' % (object_hash, node.name, row.version.timestamp))
    for timestamp in written:
        if timestamp + '.data' not in here and os.path.exists(
                layout.capacity_file(node.hdd, node.version(
                    object_hash, timestamp))):
            raise Violation('%s: the HDD of %s has bytes of the version of '
                            '%s, which nobody needs' % (
                                object_hash, node.name, timestamp))
