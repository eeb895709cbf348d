"""Which copy of an object a device of this node has, by Swift's ring.

The ring is the one that Swift's storage policy loads, which looks for a newer
file now and then.
"""

from __future__ import annotations

import time
import zlib
from typing import Any, Callable, Dict, Optional, Set, Tuple

from swift.common.exceptions import SwiftException
from swift.common.ring.utils import is_local_device
from swift.common.storage_policy import EC_POLICY
from swift.common.utils import whataremyips

from swift_dss.strategy.eviction.warmth import rank_of

#: A place is looked up again after so long; a policy without a ring is asked
#: for one.
FRESH_SECONDS = 60.0
#: Places that are kept: about as many partitions as a node has.
_MOST = 20000
_UNREADABLE = (OSError, EOFError, ValueError, SwiftException, zlib.error)

#: (index among the primaries, their number); None: there is no ring.
Where = Optional[Tuple[int, int]]


class Copies:
    """Ranks of this node's copies. May wait for a ring file, and for a
    resolver where the ring has host names.

    :param swift_dir: the folder of the rings
    :param bind_ip: address of the server; '' or 0.0.0.0: all of the node
    """

    def __init__(self, swift_dir: str, bind_ip: str = '',
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._swift_dir = swift_dir
        self._bind_ip = bind_ip
        self._clock = clock
        self._places: Dict[Tuple[int, str, str], Tuple[float, Where]] = {}

    def rank(self, policy: Any, device: str, partition: str,
             object_hash: str) -> Optional[int]:
        """0 for the copy that is read first, after the last primary for a
        handoff; None for what has none: fragments, and objects of a policy
        without a ring here.

        :param policy: Swift's storage policy
        """
        if policy.policy_type == EC_POLICY:
            return None
        key = int(policy), device, partition
        due, place = self._places.get(key, (0.0, None))
        now = self._clock()
        if now >= due:
            if len(self._places) >= _MOST:
                self._places.clear()
            place = self._look(policy, device, int(partition))
            self._places[key] = now + FRESH_SECONDS, place
        if place is None:
            return None
        index, replicas = place
        return index if index >= replicas else rank_of(
            object_hash, index, replicas)

    def _look(self, policy: Any, device: str, partition: int) -> Where:
        try:
            policy.load_ring(self._swift_dir)
            nodes = policy.object_ring.get_part_nodes(partition)
        except _UNREADABLE:
            return None
        except IndexError:
            # Another ring than that of the partition's number.
            return None
        mine: Set[str] = set(whataremyips(self._bind_ip or None))
        for index, node in enumerate(nodes):
            if node['device'] == device and any(
                    is_local_device(mine, None, node.get(key), None)
                    for key in ('ip', 'replication_ip') if node.get(key)):
                return index, len(nodes)
        return len(nodes), len(nodes)
