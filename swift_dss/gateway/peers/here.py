"""Which addresses and host names of a ring are this node.

A ring may have host names in place of addresses. Swift's own way to judge
one (``is_local_device``) asks the resolver each time; an upload asks for
every version. So answers are remembered for a while.
"""

from __future__ import annotations

import socket
from typing import Dict, Iterable, Optional, Set, Tuple

from swift.common.ring.utils import is_local_device
from swift.common.utils import is_valid_ip, whataremyips

from swift_dss.io.workers import CLOCK, Clock

#: Addresses of this node and of host names are looked up again after this
#: long: interfaces come up late, and names move.
FRESH_SECONDS = 60.0
#: Names kept at most; a ring has one or two a node.
_MOST = 20000


class Here:
    """Judges hosts of rings. Safe to use from any thread; asks the resolver
    now and then, which may take seconds, without holding a lock.

    :param my_ips: addresses of this node; None asks the system
    """

    def __init__(self, my_ips: Optional[Iterable[str]] = None,
                 clock: Clock = CLOCK) -> None:
        self._fixed = None if my_ips is None else set(my_ips)
        self._clock = clock
        self._mine: Tuple[Set[str], float] = set(), float('-inf')
        self._known: Dict[str, Tuple[bool, float]] = {}

    def is_here(self, host: Optional[str]) -> bool:
        """True if an address is one of this node's, or a host name leads to
        one. A name that cannot be looked up now keeps its last address."""
        if not host:
            return False
        known, due = self._known.get(host, (False, float('-inf')))
        now = self._clock.monotonic()
        if now < due:
            return known
        mine = self._addresses(now)
        # The port is asked for alike and so plays no part.
        known = is_local_device(mine, None, host, None) or (
            known and not is_valid_ip(host) and not _resolves(host))
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[host] = (known, now + FRESH_SECONDS)
        return known

    def _addresses(self, now: float) -> Set[str]:
        if self._fixed is not None:
            return self._fixed
        addresses, due = self._mine
        if now >= due:
            addresses = set(whataremyips())
            self._mine = addresses, now + FRESH_SECONDS
        return addresses


def _resolves(host: str) -> bool:
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False
