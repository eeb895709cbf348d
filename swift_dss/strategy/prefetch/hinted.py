"""The class table's hint on prefetching overrides the strategy.

``prefetch`` in the class table: with ``auto`` the strategy decides; with
``never`` nothing of the class is fetched ahead, and its reads teach the
strategy nothing; with ``whole`` the first read of an object wants all of
it, in the order of use: from the end of the read on, then from the beginning.
Hints also work without a strategy, because the operator set them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Callable, Hashable, List, Tuple

from swift_dss.core.classes import PrefetchHint
from swift_dss.strategy.prefetch.base import (
    ITEM_BYTES, Access, Prefetch, Settings, Urgency, Want)
from swift_dss.strategy.prefetch.relay import Relay

_Place = Tuple[str, Hashable]


class Hinted(Relay):
    """The contract is :class:`Prefetch`.

    :param hint: of a class id; called with each read, because the class table
        may be reloaded
    """

    #: The strategy's name in wants.
    HINT = 'hint'

    def __init__(self, settings: Settings, inner: Prefetch,
                 hint: Callable[[int], PrefetchHint]) -> None:
        super().__init__(inner)
        self.name = inner.name
        self._inner = inner
        self._hint = hint
        self._longest_bytes = settings.max_degree * settings.unit_bytes
        self._limit = max(1, settings.state_bytes // ITEM_BYTES)
        #: Where the next piece of an object begins, and how many bytes of
        #: it are still to be wanted.
        self._left: OrderedDict[_Place, Tuple[int, int]] = OrderedDict()

    def on_request(self, access: Access, room_bytes: int) -> List[Want]:
        """See :meth:`Prefetch.on_request`."""
        hint = self._hint(access.class_id)
        if hint is PrefetchHint.NEVER:
            return []
        if hint is PrefetchHint.WHOLE:
            return self._whole(access, room_bytes)
        return self._inner.on_request(access, room_bytes)

    def on_dropped(self, account: str, object_id: Hashable, offset: int,
                   length: int, now: float) -> None:
        """See :meth:`Prefetch.on_dropped`."""
        self._left.pop((account, object_id), None)
        super().on_dropped(account, object_id, offset, length, now)

    def on_evict(self, account: str, object_id: Hashable, offset: int,
                 length: int, used: bool, now: float) -> None:
        """See :meth:`Prefetch.on_evict`."""
        self._left.pop((account, object_id), None)
        super().on_evict(account, object_id, offset, length, used, now)

    def state_bytes(self) -> int:
        """See :meth:`Prefetch.state_bytes`."""
        return len(self._left) * ITEM_BYTES + super().state_bytes()

    def _whole(self, access: Access, room_bytes: int) -> List[Want]:
        """All of the object that was not wanted yet, round from the end of
        the first read: the rest comes with a later one."""
        place = (access.account, access.object_id)
        end = access.object_bytes
        first = ((access.offset + access.length) % end, end - access.length)
        at, left = self._left.pop(place, first)
        wants = []
        while left > 0 and room_bytes > 0:
            length = min(left, end - at, self._longest_bytes, room_bytes)
            wants.append(Want(access.account, access.object_id, at, length,
                              Urgency.GUESS, 1.0, self.HINT))
            at, left = (at + length) % end, left - length
            room_bytes -= length
        self._left[place] = at, left
        if len(self._left) > self._limit:
            self._left.popitem(last=False)
        return wants
