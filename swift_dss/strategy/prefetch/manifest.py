"""Prefetch the members of manifests in order: SLO segments, DLO listings.

To object servers the segments of a large object are objects like any other,
and no strategy sees more than one at a time. Told of a manifest, this one
lays its members end to end as one long object, the manifest itself before
the first of them, and lets the strategy inside see reads of that: a stream
goes on over the borders of members, and the read of the manifest makes the
first member part of a stream.

A member of several manifests belongs to the one that was read last. The
manifests not used longest are forgotten first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import Dict, Hashable, Iterator, List, Sequence, Tuple

from swift_dss.strategy.prefetch.base import (
    ITEM_BYTES, Access, Prefetch, Settings, Want)
from swift_dss.strategy.prefetch.relay import Relay

#: Members of one manifest: Swift's own limit of an SLO's is 1,000, and a
#: listing is read in pages.
MAX_MEMBERS = 10000
#: Bytes of one member's state.
MEMBER_BYTES = 400
#: In the id of the object that a manifest's members make.
_PREFIX = 'manifest:'

_Place = Tuple[str, Hashable]
#: Account and the id of the object that a manifest's members make.
_Whole = Tuple[str, str]


class Members:
    """A manifest's members laid end to end.

    :ivar starts: where each begins; the first after one unit, which stands
        for the manifest
    """

    __slots__ = ('ends_at', 'object_ids', 'starts')

    def __init__(self, members: Sequence[Tuple[Hashable, int]],
                 lead_bytes: int) -> None:
        self.object_ids = [object_id for object_id, _ in members]
        self.starts = []
        at = lead_bytes
        for _, length in members:
            self.starts.append(at)
            at += length
        self.ends_at = at

    def pieces(self, offset: int,
               length: int) -> Iterator[Tuple[Hashable, int, int]]:
        """(object, offset, length) of a range; the lead is left out."""
        end = min(offset + length, self.ends_at)
        offset = max(offset, self.starts[0])
        at = bisect_right(self.starts, offset) - 1
        while offset < end:
            stop = self.starts[at + 1] if at + 1 < len(self.starts) \
                else self.ends_at
            if min(end, stop) > offset:
                yield (self.object_ids[at], offset - self.starts[at],
                       min(end, stop) - offset)
            offset = max(offset, min(end, stop))
            at += 1


class Manifests(Relay):
    """See above; the contract is :class:`Prefetch`. Nothing of its own is
    saved: manifests are read again.

    :param inner: sees each manifest as one object
    """

    def __init__(self, settings: Settings, inner: Prefetch) -> None:
        super().__init__(inner)
        self.name = inner.name
        self._inner = inner
        self._unit_bytes = settings.unit_bytes
        self._limit_bytes = settings.state_bytes
        self._by_manifest: OrderedDict[_Whole, Members] = OrderedDict()
        #: Account and member to the object that it is a piece of, and where.
        self._member_of: Dict[_Place, Tuple[str, int]] = {}

    def on_manifest(self, account: str, client: Hashable,
                    object_id: Hashable,
                    members: Sequence[Tuple[Hashable, int]],
                    now: float) -> None:
        """A manifest was read, or a listing that stands for one.

        :param members: object and bytes of each, in the order of reading
        """
        members = [member for member in members[:MAX_MEMBERS]
                   if member[1] > 0]
        if not members:
            return
        whole = _PREFIX + str(object_id)
        self._forget((account, whole))
        parts = Members(members, self._unit_bytes)
        self._by_manifest[account, whole] = parts
        for (member, _), start in zip(members, parts.starts):
            self._member_of[account, member] = (whole, start)
        while self._own_bytes() > self._limit_bytes and self._by_manifest:
            self._forget(next(iter(self._by_manifest)))
        self._inner.on_request(Access(
            account, client, whole, 0, self._unit_bytes,
            parts.ends_at, True, now), 0)

    # -- what it is told -------------------------------------------------

    def on_request(self, access: Access, room_bytes: int) -> List[Want]:
        """See :meth:`Prefetch.on_request`."""
        whole, start = self._member_of.get(
            (access.account, access.object_id), ('', 0))
        if not whole:
            return self._back(self._inner.on_request(access, room_bytes))
        members = self._by_manifest[access.account, whole]
        self._by_manifest.move_to_end((access.account, whole))
        return self._back(self._inner.on_request(access._replace(
            object_id=whole, offset=start + access.offset,
            object_bytes=members.ends_at), room_bytes))

    def on_arrival(self, account: str, object_id: Hashable, offset: int,
                   length: int, waited: bool, now: float) -> None:
        """See :meth:`Prefetch.on_arrival`."""
        object_id, offset = self._there(account, object_id, offset)
        super().on_arrival(account, object_id, offset, length, waited, now)

    def on_dropped(self, account: str, object_id: Hashable, offset: int,
                   length: int, now: float) -> None:
        """See :meth:`Prefetch.on_dropped`."""
        object_id, offset = self._there(account, object_id, offset)
        super().on_dropped(account, object_id, offset, length, now)

    def on_last_chance(self, account: str, object_id: Hashable, offset: int,
                       length: int, now: float) -> bool:
        """See :meth:`Prefetch.on_last_chance`."""
        object_id, offset = self._there(account, object_id, offset)
        return super().on_last_chance(account, object_id, offset, length,
                                      now)

    def on_evict(self, account: str, object_id: Hashable, offset: int,
                 length: int, used: bool, now: float) -> None:
        """See :meth:`Prefetch.on_evict`."""
        object_id, offset = self._there(account, object_id, offset)
        super().on_evict(account, object_id, offset, length, used, now)

    def state_bytes(self) -> int:
        """See :meth:`Prefetch.state_bytes`."""
        return self._own_bytes() + super().state_bytes()

    def counts(self) -> Dict[str, float]:
        """See :meth:`Prefetch.counts`."""
        return dict(super().counts(), manifests=len(self._by_manifest))

    # -- inside ----------------------------------------------------------

    def _own_bytes(self) -> int:
        return (len(self._by_manifest) * ITEM_BYTES
                + len(self._member_of) * MEMBER_BYTES)

    def _there(self, account: str, object_id: Hashable,
               offset: int) -> Tuple[Hashable, int]:
        """Where an object's byte lies for the strategy inside."""
        whole, start = self._member_of.get((account, object_id), ('', 0))
        return (whole, start + offset) if whole else (object_id, offset)

    def _back(self, wants: List[Want]) -> List[Want]:
        """Wants of a manifest's bytes, as wants of its members'."""
        if not self._by_manifest:
            return wants
        back = []
        for want in wants:
            members = self._by_manifest.get(
                (want.account, str(want.object_id)))
            if members is None:
                if not str(want.object_id).startswith(_PREFIX):
                    back.append(want)
                continue
            back += [want._replace(object_id=object_id, offset=offset,
                                   length=length)
                     for object_id, offset, length in members.pieces(
                          want.offset, want.length)]
        return back

    def _forget(self, place: _Whole) -> None:
        account, whole = place
        members = self._by_manifest.pop(place, None)
        for object_id in members.object_ids if members else ():
            known = self._member_of.get((account, object_id))
            if known is not None and known[0] == whole:
                del self._member_of[account, object_id]
