"""Ask the warm copy of an object first.

:mod:`swift_dss.strategy.eviction.warmth` says which that is.
Swift's proxy sorts the primaries of each request; this goes between. Its own
order stays the first key: a region that ``affinity`` prefers, nodes that
``timing`` does not find much slower than others. Errors, timeouts and
concurrent GETs are Swift's. Erasure-coded objects need several nodes, and keep
Swift's order.

An object that is read very often keeps Swift's order as well: each of its
copies then gets reads, and a copy that is read again and again becomes warm.
A device that answers much later than others is passed over for a while, so
that its role goes on to the next rank.

The warm copy's bytes may have left the SSD. If its HDD is known to be busier
than that of another copy, the read has a limit (``wire.backlog``): a server
that would have to wait for longer says so, and Swift's getter goes on to the
next. If all do, :class:`~swift_dss.proxy.reads.local_first.LocalFirst` asks
again without a limit, and the least busy copy reads.
"""

from __future__ import annotations

import contextvars
import time
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.utils import hash_path

from swift_dss.proxy.reads.backlogs import Backlogs, Key, Node, key_of
from swift_dss.strategy.eviction.warmth import (
    Copy, detour, least_busy_first, rank_of, reading_order)
from swift_dss.wire import backlog, names

#: An object is hot after so many GETs by one worker in one period.
HOT_READS = 100
HOT_SECONDS = 10.0
#: Objects that are counted in one period.
_MAX_COUNTED = 8192
#: A device is slow that takes longer than this, and so many times as long as
#: the fastest other primary; and after so long without an answer it is asked
#: again.
_SLOW_SECONDS = 1.0
_SLOW_TIMES = 4.0
_FORGET_SECONDS = 30.0
#: Share of the newest answer in the mean.
_NEWEST = 0.3
_MAX_DEVICES = 20000
#: Under ``timing``, connects up to this long are all fast.
_NEAR_SECONDS = 0.01

#: In a node of the ring: the read that it is asked for.
_MARK = 'dss_asking'

Clock = Callable[[], float]


class Asking:
    """A GET or HEAD under way, inside of a ``with``.

    :param path: ``/account/container/object``; Swift may refuse it yet
    :param is_hot: read it from all of its copies
    :ivar env: of a GET that may have a limit
    :ivar first: the device that is asked first, if the read has a limit
    :ivar is_refused: no copy gave the bytes within the limit
    :ivar asked: devices that have not answered, and when they were asked
    """

    __slots__ = ('path', 'is_hot', 'env', 'first', 'is_refused', 'asked',
                 '_token')

    def __init__(self, path: str, is_hot: bool) -> None:
        self.path = path
        self.is_hot = is_hot
        self.env: Optional[Dict[str, Any]] = None
        self.first: Optional[Key] = None
        self.is_refused = False
        self.asked: Dict[Key, float] = {}

    def __enter__(self) -> Asking:
        self._token = _asking.set(self)
        return self

    def __exit__(self, *_error: Any) -> None:
        _asking.reset(self._token)


#: Of this greenthread: Swift sorts in the one that called its application.
_asking: contextvars.ContextVar[Optional[Asking]] = contextvars.ContextVar(
    'dss_asking', default=None)


class Heat:
    """Counts the reads of objects, to tell the hot ones."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = 0.0
        self._counts: Dict[str, int] = {}
        self._hot: Set[str] = set()

    def read(self, path: str) -> bool:
        """Count a read; True if its object is hot, now or in the period
        before."""
        now = self._clock()
        if now >= self._until:
            self._hot = {hot for hot, count in self._counts.items()
                         if count >= HOT_READS}
            self._counts = {}
            self._until = now + HOT_SECONDS
        count = self._counts.get(path, 0) + 1
        if count > 1 or len(self._counts) < _MAX_COUNTED:
            self._counts[path] = count
        return count >= HOT_READS or path in self._hot


class Speeds:
    """How long devices take to answer a GET, as a moving mean."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._means: OrderedDict[Key, Tuple[float, float]] = OrderedDict()

    def note(self, device: Key, seconds: float) -> None:
        """It took so long, at least."""
        mean, _ = self._means.pop(device, (seconds, 0.0))
        self._means[device] = (
            mean + _NEWEST * (seconds - mean), self._clock())
        if len(self._means) > _MAX_DEVICES:
            self._means.popitem(last=False)

    def slow(self, nodes: List[Node]) -> List[bool]:
        """Which of an object's primaries are slow."""
        known = [self._mean(key_of(node)) for node in nodes]
        if max(known, default=0.0) <= _SLOW_SECONDS:
            return [False] * len(nodes)
        fastest = min(known)
        return [mean > max(_SLOW_SECONDS, _SLOW_TIMES * fastest)
                for mean in known]

    def _mean(self, device: Key) -> float:
        mean, at = self._means.get(device, (0.0, 0.0))
        return mean if self._clock() - at < _FORGET_SECONDS else 0.0


class WarmFirst:
    """Sorts the primaries of reads for one proxy application.

    :param clock: monotonic seconds
    :param least_loaded: reads of cold bytes go to the least busy HDD
    """

    def __init__(self, clock: Clock = time.monotonic,
                 least_loaded: bool = False) -> None:
        self._clock = clock
        self._heat = Heat(clock)
        self._speeds = Speeds(clock)
        self._backlogs = Backlogs(clock) if least_loaded else None

    def listen(self, proxy: Any) -> None:
        """Go between Swift's proxy application and its order of nodes, and
        hear which of them it asks. Call it once for each.

        It calls ``set_node_timing`` for each node that it asks, and
        ``check_response`` for each that gives no object. It does so in other
        green threads, so the node itself has to say for which read that is.
        """
        sort = getattr(proxy, 'sort_nodes', None)
        if sort is None:
            return
        set_timing, check = proxy.set_node_timing, proxy.check_response

        def sort_nodes(nodes: List[Node], policy: Any = None) -> List[Node]:
            order: List[Node] = sort(nodes, policy=policy)
            asking = _asking.get()
            if asking is not None and _is_replicated(policy):
                self._sort(asking, order, _groups(proxy, order, policy))
            return order

        def set_node_timing(node: Node, timing: float) -> None:
            set_timing(node, timing)
            if _MARK in node:
                self._asks(node[_MARK], key_of(node))

        def check_response(node: Node, server_type: str, response: Any,
                           *args: Any, **kwargs: Any) -> Any:
            if _MARK in node:
                self._refused(node[_MARK], key_of(node), response.getheader(
                    names.BACKEND_BACKLOG))
            return check(node, server_type, response, *args, **kwargs)

        proxy.sort_nodes = sort_nodes
        proxy.set_node_timing = set_node_timing
        proxy.check_response = check_response

    def asking(self, path: str, has_cold: bool = True) -> Asking:
        """A read of ``/account/container/object`` is under way: have it
        sorted.

        :param has_cold: a class has cold copies; else all are alike
        """
        return Asking(path, not has_cold or self._heat.read(path))

    def given(self, asking: Asking, status: str,
              headers: List[Tuple[str, str]]) -> None:
        """The application answers, with the headers of the node that gives
        the object. All others that were asked took as long at least.
        """
        now = self._clock()
        for device, since in asking.asked.items():
            self._speeds.note(device, now - since)
        if len(asking.asked) == 1 and self._backlogs is not None and \
                status[0] == '2':
            device, = asking.asked
            self._backlogs.heard(device, HeaderKeyDict(headers).get(
                names.BACKEND_BACKLOG))
        asking.asked.clear()

    def _asks(self, asking: Asking, device: Key) -> None:
        asking.asked[device] = self._clock()
        if self._backlogs is not None and asking.first is not None and \
                asking.first != device:
            self._backlogs.sent(device)

    def _refused(self, asking: Asking, device: Key,
                 said: Optional[str]) -> None:
        since = asking.asked.pop(device, None)
        if since is not None:
            self._speeds.note(device, self._clock() - since)
        if said is not None and self._backlogs is not None:
            self._backlogs.heard(device, said)

    def _sort(self, asking: Asking, nodes: List[Node],
              groups: List[float]) -> None:
        slow = self._speeds.slow(nodes)
        object_hash = hash_path(*asking.path[1:].split('/', 2))
        copies = [Copy(
            0 if asking.is_hot else rank_of(
                object_hash, node['index'], len(nodes)), group, is_slow,
            self._backlogs.of(key_of(node)) if self._backlogs else None)
            for node, group, is_slow in zip(nodes, groups, slow)]
        way = None if asking.env is None else detour(copies)
        order = least_busy_first(copies) if asking.is_refused else \
            reading_order(copies) if way is None else way.order
        asking.first = None
        asking.asked.clear()
        if way is not None and asking.env is not None:
            # Swift makes the headers of its requests after this.
            backlog.set_limit(asking.env, way.limit_ms)
            asking.first = key_of(nodes[order[0]])
        # In place, as Swift's own.
        nodes[:] = [dict(nodes[at], **{_MARK: asking}) for at in order]


def _is_replicated(policy: Any) -> bool:
    return policy is not None and not hasattr(policy, 'ec_ndata')


def _groups(proxy: Any, nodes: List[Node], policy: Any) -> List[float]:
    """A number for each node by ``sorting_method``: lower ones go first."""
    options = proxy.get_policy_options(policy)
    if options.sorting_method == 'affinity':
        return [float(options.read_affinity_sort_key(node))
                for node in nodes]
    if options.sorting_method != 'timing':
        return [0.0] * len(nodes)
    now = time.time()
    known = [timing if expires > now else 0.0 for timing, expires in (
        proxy.node_timings.get(node['ip'], (0.0, 0)) for node in nodes)]
    near = max(_NEAR_SECONDS, _SLOW_TIMES * min(known, default=0.0))
    return [timing if timing > near else 0.0 for timing in known]
