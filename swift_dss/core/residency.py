"""Where each byte of an object version is right now.

Invariant that every writer keeps and every reader leans on: **a data file
whose size equals Content-Length holds every byte itself.** A stub (a data
file that lacks bytes) is always exactly ``STUB_SURPLUS`` bytes longer, so
that a stock Swift server refuses it before the first byte.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from enum import IntFlag
from typing import Iterator, List, Optional, Tuple

#: A stub's size is Content-Length plus this.
STUB_SURPLUS = 1


class Tier(IntFlag):
    """A place bytes can be in; several at once form a set."""

    NONE = 0
    SSD = 1
    HDD = 2
    REMOTE = 4


_SSD_BIT = Tier.SSD.value
_LOCAL_BITS = (Tier.SSD | Tier.HDD).value
#: Each set of tiers with REMOTE in it: a flag's "|" takes a microsecond.
_AND_REMOTE = tuple(Tier(number) | Tier.REMOTE for number in range(8))
TIER_NAMES = ((Tier.SSD, 'ssd'), (Tier.HDD, 'hdd'), (Tier.REMOTE, 'remote'))


def tier_text(tiers: Tier) -> str:
    """``ssd+hdd`` for a set of tiers, fastest first; ``none`` if empty."""
    names = [name for tier, name in TIER_NAMES if tiers & tier]
    return '+'.join(names) or 'none'


@dataclass(frozen=True)
class Extent:
    """``length`` bytes from ``offset`` that lie on all of ``tiers``."""

    offset: int
    length: int
    tiers: Tier

    @property
    def end(self) -> int:
        """First byte after the extent."""
        return self.offset + self.length


@dataclass(frozen=True)
class RemoteCopy:
    """A copy of a whole version in S3, verified by digest.

    :param endpoint: name of the gateway endpoint, not its address
    :param key: S3 key of the data
    :param etag: S3's ETag, without quotes; of a bundle's member, its MD5
    :param verified_at: seconds since the epoch
    :param offset: where the data begins under the key; 0 unless the key
        is a bundle
    :param seal: how the data is encrypted; '' if it is not
    """

    endpoint: str
    key: str
    etag: str
    verified_at: float
    offset: int = 0
    seal: str = ''

    @property
    def in_bundle(self) -> bool:
        """True if other versions share the key."""
        # A bundle begins with its head: no member lies at 0.
        return self.offset > 0


@dataclass(frozen=True)
class Residency:
    """Sorted, gap-free extents of one version, and its remote copy.

    :param content_length: bytes of the version
    :param extents: cover 0..content_length exactly; each on >= 1 tier
    :param remote: set if and only if some extent lies on REMOTE
    """

    content_length: int
    extents: Tuple[Extent, ...]
    remote: Optional[RemoteCopy] = None

    @classmethod
    def whole(cls, content_length: int,
              tiers: Tier = Tier.SSD) -> Residency:
        """All bytes on the same tiers."""
        return _whole(content_length, tiers)

    @property
    def is_stub(self) -> bool:
        """True if the SSD file lacks bytes."""
        # As numbers: every GET asks, and a flag's "&" takes a microsecond, its
        # ``value`` half of that.
        for extent in self.extents:
            bits = int(extent.tiers)
            if not bits & _SSD_BIT:
                return True
        return False

    @property
    def is_local(self) -> bool:
        """True if every byte lies on SSD or HDD."""
        return all(int(extent.tiers) & _LOCAL_BITS
                   for extent in self.extents)

    @property
    def is_in_s3(self) -> bool:
        """True if S3 has every byte."""
        return self.remote is not None and all(
            extent.tiers & Tier.REMOTE for extent in self.extents)

    @property
    def tiers(self) -> Tier:
        """Every tier that holds some byte."""
        if len(self.extents) == 1:
            return self.extents[0].tiers
        tiers = Tier.NONE
        for extent in self.extents:
            tiers |= extent.tiers
        return tiers

    @property
    def file_size(self) -> int:
        """The size that the data file must have."""
        return self.content_length + (STUB_SURPLUS if self.is_stub else 0)

    def bytes_on(self, tier: Tier) -> int:
        """How many bytes lie on ``tier``."""
        return sum(extent.length for extent in self.extents
                   if extent.tiers & tier)

    def split(self, offset: int, length: int) -> Iterator[Extent]:
        """Cut a range on extent borders, in order."""
        end = offset + length
        for extent in self.extents:
            start, stop = max(offset, extent.offset), min(end, extent.end)
            if start < stop:
                yield Extent(start, stop - start, extent.tiers)

    def add(self, offset: int, length: int, tier: Tier) -> Residency:
        """The same with ``tier`` added to every byte of a range."""
        return self._change(offset, length, tier, Tier.NONE)

    def drop(self, offset: int, length: int, tier: Tier) -> Residency:
        """The same with ``tier`` taken from every byte of a range.

        :raises ValueError: a byte would be left on no tier at all
        """
        return self._change(offset, length, Tier.NONE, tier)

    def _change(self, offset: int, length: int, plus: Tier,
                minus: Tier) -> Residency:
        end = offset + length
        pieces: List[Extent] = []
        for extent in self.extents:
            for start, stop in ((extent.offset, min(extent.end, offset)),
                                (max(extent.offset, offset),
                                 min(extent.end, end)),
                                (max(extent.offset, end), extent.end)):
                if start >= stop:
                    continue
                tiers = extent.tiers
                if offset <= start and stop <= end:
                    tiers = (tiers | plus) & ~minus
                if not tiers:
                    raise ValueError('bytes %d-%d would be on no tier'
                                     % (start, stop))
                _append(pieces, start, stop - start, tiers)
        changed = replace(self, extents=tuple(pieces))
        if not changed.tiers & Tier.REMOTE:
            changed = replace(changed, remote=None)
        return changed

    def with_remote(self, remote: RemoteCopy) -> Residency:
        """The same with a verified remote copy of every byte."""
        if len(self.extents) == 1:
            # Nearly all there are, at a third of the cost.
            extent = self.extents[0]
            return Residency(self.content_length, (Extent(
                extent.offset, extent.length,
                _AND_REMOTE[extent.tiers.value]),), remote)
        added = self.add(0, self.content_length, Tier.REMOTE)
        return replace(added, remote=remote)


@functools.lru_cache(maxsize=1024)
def _whole(content_length: int, tiers: Tier) -> Residency:
    """Small versions of one workload have few lengths."""
    if not content_length:
        return Residency(0, ())
    return Residency(content_length, (Extent(0, content_length, tiers),))


def _append(pieces: List[Extent], offset: int, length: int,
            tiers: Tier) -> None:
    if pieces and pieces[-1].tiers == tiers and pieces[-1].end == offset:
        last = pieces.pop()
        offset, length = last.offset, last.length + length
    pieces.append(Extent(offset, length, tiers))
