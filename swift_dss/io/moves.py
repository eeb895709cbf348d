"""Moves of one version between SSD and HDD, each safe at every instant.

Order of all of them: a copy is durable before a record says that it is
there, and a record no longer says that a copy is there before it is
removed. So after a kill or a power cut at any step, every byte that the
record names can be read, and doing the move again completes it.

No move leaves a byte to S3 alone on the word of a record: a lifecycle rule or
an administrator may have removed the key since. To drop the last local bytes,
the caller MUST pass the remote copy that it has just found in S3 *again*
(``proven``). Without it, or if the record names another copy by now, these
bytes stay.

The caller MUST hold the version's lock: two moves of one version at once
would overwrite one another's record. All moves block on both tiers.

A move checks the bytes that it copies: a whole block that is not as it was
written, or bytes that cannot be read, raise ``RottenBytes`` and nothing has
changed (``io.mending``). A version without checksums gets them
(``io.sums.copying``).
"""

from __future__ import annotations

import os
from typing import Callable, Iterable, List, Optional, Tuple

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.residency import Extent, RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap, UNCLASSIFIED_MAP
from swift_dss.io import residency_store, steps
from swift_dss.io.carriers import Carrier
from swift_dss.io.sums.copying import Copier
from swift_dss.io.switch import (
    LiveVersion, Place, switch, translated)

Range = Tuple[int, int]
#: The tiers of this node itself.
LOCAL = Tier.SSD | Tier.HDD


#: Reads and writes without telling the kernel a class.
PLAIN_IO = Carrier()


def copy_to_capacity(place: Place, ranges: Iterable[Range] = (),
                     class_map: ClassMap = UNCLASSIFIED_MAP,
                     io: Carrier = PLAIN_IO) -> Residency:
    """Clean: copy the SSD's bytes to the HDD.

    :param ranges: (offset, length) pieces; none means everything
    :returns: the residency after it
    :raises TierUnavailable: the HDD is not mounted
    :raises TierFull: no room there; nothing has changed
    :raises VersionGone: the version was removed during the move
    """
    place.capacity.check()
    with LiveVersion(place) as live:
        missing = [extent for extent in _pieces(live.residency, ranges)
                   if extent.tiers & Tier.SSD
                   and not extent.tiers & Tier.HDD]
        if not missing:
            return live.residency

        copier = _copier(live, class_map, io)

        def fill(fd: int) -> None:
            for extent in missing:
                copier.copy(live.fd, fd, extent.offset, extent.length)

        write_capacity(place, live.residency, fill, 'clean')
        copier.store(live.fd)
        residency = live.residency
        for extent in missing:
            residency = residency.add(extent.offset, extent.length, Tier.HDD)
        # The HDD copy is durable; only now may a record lean on it.
        live.mark(residency)
        steps.reached('clean.marked')
        return residency


def write_capacity(place: Place, residency: Residency,
                   fill: Callable[[int], None], label: str) -> None:
    """Write into the version's HDD file; durable on return.

    A file that already holds bytes is written in place: ``fill`` MUST only
    write ranges that the record does not place on the HDD, because readers do
    not read these. A new file is written without a name first.
    """
    capacity = place.capacity
    on_hdd = bool(residency.tiers & Tier.HDD)
    fd = capacity.open_update(place.version) if on_hdd else \
        capacity.create()
    try:
        steps.reached(label + '.opened')
        fill(fd)
        steps.reached(label + '.filled')
        if os.fstat(fd).st_size != residency.content_length:
            os.ftruncate(fd, residency.content_length)
        # The bytes survive a power cut; no record names them yet.
        os.fsync(fd)
        steps.reached(label + '.synced')
        if not on_hdd:
            capacity.publish(fd, place.version)
    except OSError as err:
        raise translated(err, 'capacity file of ' + place.version.key) \
            from err
    finally:
        os.close(fd)
    steps.reached(label + '.published')


def leaves_to_s3(residency: Residency, tier: Tier) -> bool:
    """True if some byte would be in S3 alone once no tier of ``tier`` had
    it."""
    return any(extent.tiers & tier and extent.tiers & Tier.REMOTE
               and not extent.tiers & LOCAL & ~tier
               for extent in residency.extents)


def _may_drop(residency: Residency, extent: Extent, tier: Tier,
              proven: Optional[RemoteCopy]) -> bool:
    """True if another tier of this node has the extent, or S3 was asked
    for the very copy that the record names."""
    if not extent.tiers & tier:
        return False
    return bool(extent.tiers & LOCAL & ~tier) or (
        bool(extent.tiers & Tier.REMOTE) and proven is not None
        and proven == residency.remote)


def evict_ssd(place: Place, ranges: Iterable[Range] = (),
              class_map: ClassMap = UNCLASSIFIED_MAP,
              io: Carrier = PLAIN_IO,
              proven: Optional[RemoteCopy] = None) -> Residency:
    """Drop SSD bytes that another tier holds; the file becomes a stub.

    Bytes that lie on no other tier stay, and so do those that only S3 would
    have without ``proven``: this can never lose one.

    :param ranges: (offset, length) pieces; none means everything
    :param proven: the copy that S3 was asked for again just now
    :returns: the residency after it
    :raises TierUnavailable: bytes would be left only on an HDD that is
        not mounted
    :raises VersionGone: the version was removed during the move
    """
    with LiveVersion(place) as live:
        residency = live.residency
        for extent in _pieces(residency, ranges):
            if _may_drop(live.residency, extent, Tier.SSD, proven):
                residency = residency.drop(extent.offset, extent.length,
                                           Tier.SSD)
        if residency == live.residency:
            return residency
        if any(extent.tiers & Tier.HDD and not (
                extent.tiers & Tier.REMOTE and proven is not None
                and proven == live.residency.remote)
                for extent in residency.extents
                if not extent.tiers & Tier.SSD):
            _check_capacity_file(place, residency)

        copier = _copier(live, class_map, io)

        def fill(fd: int) -> None:
            for extent in residency.extents:
                if extent.tiers & Tier.SSD:
                    copier.copy(live.fd, fd, extent.offset, extent.length)

        switch(live, residency, fill, 'evict')
        return residency


def _check_capacity_file(place: Place, residency: Residency) -> None:
    """The last look before SSD bytes go: is the HDD's file really there?"""
    capacity_fd = place.capacity.open_read(place.version)
    try:
        size = os.fstat(capacity_fd).st_size
    finally:
        os.close(capacity_fd)
    if size != residency.content_length:
        raise DamagedRecord('capacity file of %s has %d bytes instead of %d:'
                            ' the SSD keeps its bytes' % (
                                place.version.key, size,
                                residency.content_length))


def promote(place: Place, ranges: Iterable[Range] = (),
            class_map: ClassMap = UNCLASSIFIED_MAP,
            io: Carrier = PLAIN_IO) -> Residency:
    """Bring bytes that the HDD holds back to the SSD; both keep them.

    :param ranges: (offset, length) pieces; none means everything
    :raises TierUnavailable: the HDD is not mounted
    :raises TierFull: no room on the SSD; nothing has changed
    :raises VersionGone: the version was removed during the move
    """
    with LiveVersion(place) as live:
        residency = live.residency
        for extent in _pieces(residency, ranges):
            if extent.tiers & Tier.HDD:
                residency = residency.add(extent.offset, extent.length,
                                          Tier.SSD)
        if residency == live.residency:
            return residency
        source = place.capacity.open_read(place.version)
        copier = _copier(live, class_map, io)
        try:
            def fill(fd: int) -> None:
                for extent in residency.extents:
                    if extent.tiers & Tier.SSD:
                        _gather(copier, live, source, fd, extent)
                copier.store(fd)

            switch(live, residency, fill, 'promote')
        finally:
            os.close(source)
        return residency


def _gather(copier: Copier, live: LiveVersion, capacity_fd: int, fd: int,
            wanted: Extent) -> None:
    """Copy ``wanted`` from the SSD where it is there, else from the HDD."""
    for piece in live.residency.split(wanted.offset, wanted.length):
        source = live.fd if piece.tiers & Tier.SSD else capacity_fd
        copier.copy(source, fd, piece.offset, piece.length)


def drop_capacity(place: Place, ranges: Iterable[Range] = (),
                  proven: Optional[RemoteCopy] = None) -> Residency:
    """Drop HDD bytes that another tier holds as well.

    :param proven: as :func:`evict_ssd` has it
    :raises TierUnavailable: the HDD is not mounted
    :raises VersionGone: the version was removed during the move
    """
    place.capacity.check()
    with LiveVersion(place) as live:
        residency = live.residency
        for extent in _pieces(residency, ranges):
            if _may_drop(live.residency, extent, Tier.HDD, proven):
                residency = residency.drop(extent.offset, extent.length,
                                           Tier.HDD)
        if residency != live.residency or live.says_foreign:
            # No record names the HDD bytes after this; not before it may
            # they go.
            live.mark(residency)
            steps.reached('drop.marked')
        if not residency.tiers & Tier.HDD and live.is_linked_once:
            # A power cut before the folder is durable brings the file
            # back as an orphan, which the sweep removes.
            place.capacity.remove(place.version)
            steps.reached('drop.unlinked')
        return residency


def fill_capacity(place: Place, source: int, offset: int,
                  length: int, io: Carrier = PLAIN_IO) -> Residency:
    """Keep bytes that came back from S3, on the HDD.

    :param source: file that has them at the object's offsets, verified
    """
    place.capacity.check()
    with LiveVersion(place) as live:
        missing = [extent for extent in live.residency.split(offset, length)
                   if not extent.tiers & Tier.HDD]
        if not missing:
            return live.residency

        copier = _copier(live, UNCLASSIFIED_MAP, io)

        def fill(fd: int) -> None:
            for extent in missing:
                copier.copy(source, fd, extent.offset, extent.length, True)

        write_capacity(place, live.residency, fill, 'fill')
        copier.store(live.fd)
        residency = live.residency.add(offset, length, Tier.HDD)
        # The HDD copy is durable; only now may a record lean on it.
        live.mark(residency)
        steps.reached('fill.marked')
        return residency


def fill_ssd(place: Place, source: int, offset: int, length: int,
             class_map: ClassMap = UNCLASSIFIED_MAP,
             io: Carrier = PLAIN_IO) -> Residency:
    """Keep bytes that came back from S3, on the SSD.

    :param source: file that has them at the object's offsets, verified
    """
    with LiveVersion(place) as live:
        residency = live.residency.add(offset, length, Tier.SSD)
        if residency == live.residency:
            return residency

        copier = _copier(live, class_map, io)

        def fill(fd: int) -> None:
            for extent in live.residency.split(0, place.content_length):
                if extent.tiers & Tier.SSD:
                    copier.copy(live.fd, fd, extent.offset, extent.length)
            for extent in live.residency.split(offset, length):
                if not extent.tiers & Tier.SSD:
                    copier.copy(source, fd, extent.offset, extent.length,
                                True)
            copier.store(fd)

        switch(live, residency, fill, 'fillssd')
        return residency


def mark_remote(live: LiveVersion, remote: RemoteCopy,
                synced: bool = True) -> Residency:
    """Record a copy in S3 that MUST have been verified already.

    :param synced: False leaves it to the caller to make it durable
    """
    residency = live.residency.with_remote(remote)
    # S3 has the bytes; from here on local ones may be dropped.
    live.mark(residency, synced)
    steps.reached('remote.marked')
    return residency


def mark_remote_of_whole(path: str, content_length: int,
                         remote: RemoteCopy) -> Optional[int]:
    """The same of the data file at ``path``; not durable on return.

    :returns: its descriptor, the caller's to close; None if there is no
        such file, it has a record already, is not whole by its size, or
        has no byte that could be anywhere: nothing was done then
    """
    if not content_length:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if os.fstat(fd).st_size == content_length and \
                residency_store.store_first(fd, content_length, remote):
            steps.reached('remote.marked')
            return fd
    except OSError as err:
        os.close(fd)
        raise translated(err, 'residency of ' + path) from err
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def forget_remote(place: Place) -> Residency:
    """Record that S3 has no copy any more.

    :raises ValueError: bytes lie nowhere else; nothing has changed
    """
    with LiveVersion(place) as live:
        residency = live.residency.drop(
            0, live.residency.content_length, Tier.REMOTE)
        if residency != live.residency:
            live.mark(residency)
        return residency


def _pieces(residency: Residency,
            ranges: Iterable[Range]) -> List[Extent]:
    wanted = list(ranges) or [(0, residency.content_length)]
    return [extent for offset, length in wanted
            for extent in residency.split(offset, length)]


def _copier(live: LiveVersion, class_map: ClassMap, io: Carrier) -> Copier:
    return Copier(io, class_map, live.fd, live.place.content_length,
                  live.place.etag)
