"""Verified blocks of a version out of S3: nothing unproven leaves here.

A version of one PUT, or in a bundle, is one unit: all of it is read and
its MD5 compared with the data file's own ETag before the first byte is let
out. A version of several parts is let out block by block as each proves
right against ``<key>.sums``; the last block of a part is held back until
the part's MD5, which the local record's ETag vouches for, is right too. So
the price of safety is a delay of one block (1 MiB), or of one small object.

A body that breaks off is resumed at the first unproven byte; after wrong bytes
the rest is requested once more from there.
"""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Callable, Iterator, List, Optional, Tuple

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import (
    DamagedRecord, RemoteCorrupt, RemoteUnavailable)
from swift_dss.core.residency import RemoteCopy
from swift_dss.gateway.form import digests, encrypt
from swift_dss.gateway.form.metadata import SUMS_SUFFIX
from swift_dss.gateway.link.client import S3Body, S3Client, S3Down, S3Missing
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.link.wan import SLICE_BYTES
from swift_dss.gateway.ports import LocalVersion, Metrics
from swift_dss.strategy.wan import Flow

#: Tries at one block, the first included.
_TRIES = 3
#: Decoded side cars kept: bounded by bytes too, see ``_SUMS_BYTES``.
_SUMS_ENTRIES = 64
_SUMS_BYTES = 16 * 1024 * 1024
#: A version without side car larger than this is not proven in memory.
MAX_UNIT_BYTES = 128 * 1024 * 1024
#: A server that drips bytes is cut after this many read time-outs.
_PATIENCE = 3


@dataclass(frozen=True)
class Plan:
    """How a version is cut into parts that can be proven.

    :param sums: None if only the whole version can be
    :param sealed_part: bytes of a part of a version whose blocks prove
        themselves; 0 if they do not
    """

    content_length: int
    sums: Optional[digests.Sums]
    sealed_part: int = 0

    def part(self, offset: int) -> Tuple[int, int]:
        """(offset, length) of the part that holds byte ``offset``."""
        part_bytes = self.sealed_part
        if not part_bytes:
            if self.sums is None:
                return 0, self.content_length
            part_bytes = self.sums.part_bytes
        start = offset - offset % part_bytes
        return start, min(part_bytes, self.content_length - start)


class Source:
    """Where verified blocks come from. Thread-safe.

    :param pause: waits between tries; returns True to give up (stopping)
    :param dice: decide how long
    """

    def __init__(self, conf: GatewayConf, client: S3Client,
                 metrics: Metrics,
                 pause: Callable[[float], bool],
                 dice: Optional[random.Random] = None) -> None:
        self._conf = conf
        self._client = client
        self._metrics = metrics
        self._pause = pause
        self._keys = encrypt.KeyFile(conf.key_file)
        self._backoff = Backoff(0.2, 2.0, dice or random.Random())
        self._lock = threading.Lock()
        self._sums: OrderedDict[str, digests.Sums] = OrderedDict()
        self._sums_bytes = 0

    def knows(self, local: LocalVersion) -> bool:
        """True if :meth:`plan` will not have to ask S3."""
        remote = _remote(local)
        with self._lock:
            return bool(remote.seal) or remote.etag == local.etag or \
                remote.key in self._sums

    def plan(self, local: LocalVersion) -> Plan:
        """How ``local`` is cut; one answer serves a whole read.

        :raises RemoteUnavailable: S3 did not say
        """
        if _remote(local).seal:
            return Plan(local.content_length, None, digests.part_size(
                local.content_length, self._conf.part_bytes))
        return Plan(local.content_length, self._sums_for(local))

    def blocks(self, local: LocalVersion, plan: Plan, offset: int,
               length: int) -> Iterator[bytes]:
        """The bytes of one part, as blocks that proved right, in order.

        :param offset, length: as ``plan.part`` said
        :raises RemoteUnavailable: S3 failed ``_TRIES`` times in a row
        :raises RemoteCorrupt: S3 gave wrong bytes ``_TRIES`` times
        """
        if plan.sealed_part:
            return self._sealed(local, offset, length)
        if plan.sums is None:
            return self._whole(local)
        return self._part(local, plan.sums, offset, length)

    def too_big_to_hold(self, plan: Plan) -> bool:
        """True if a version without side car must be proven on disk."""
        return plan.sums is None and not plan.sealed_part and \
            plan.content_length > MAX_UNIT_BYTES

    def unproven(self, local: LocalVersion) -> Iterator[bytes]:
        """All bytes, which MUST NOT be read by anyone before the iterator
        ended without an error: only then did the whole prove right.

        :raises RemoteCorrupt: it did not
        """
        whole = digests.md5()
        length = local.content_length
        reader = _Resuming(self._client, _remote(local), length)
        try:
            for offset in range(0, length, digests.BLOCK_BYTES):
                block = self._checked(
                    local, offset,
                    min(digests.BLOCK_BYTES, length - offset),
                    lambda _raw: True, reader)
                whole.update(block)
                yield block
        finally:
            reader.close()
        if whole.hexdigest() != local.etag:
            self._metrics.count('gateway.remote_corrupt')
            raise RemoteCorrupt('%s: the whole has a wrong MD5'
                                % local.version.key)

    def _sealed(self, local: LocalVersion, offset: int,
                length: int) -> Iterator[bytes]:
        """Blocks that open: each proves its bytes and its place."""
        remote = _remote(local)
        seal = self._keys.open(remote.seal)
        total = local.content_length
        last = (offset + length - 1) // digests.BLOCK_BYTES
        reader = _Resuming(self._client, remote, min(
            (last + 1) * encrypt.SEALED_BLOCK_BYTES,
            encrypt.sealed_length(total)))
        opened = [b'']

        def opens(raw: bytes, index: int) -> bool:
            try:
                opened[0] = seal.open_block(seal.number, index, total, raw)
            except encrypt.WrongSeal:
                return False
            return True

        try:
            for index in range(offset // digests.BLOCK_BYTES, last + 1):
                at = index * encrypt.SEALED_BLOCK_BYTES
                self._checked(
                    local, at, min(encrypt.SEALED_BLOCK_BYTES,
                                   encrypt.sealed_length(total) - at),
                    lambda raw, index=index:  # type: ignore[misc]
                    opens(raw, index), reader)
                yield opened[0]
        finally:
            reader.close()

    def _whole(self, local: LocalVersion) -> Iterator[bytes]:
        length = local.content_length
        data = self._checked(
            local, 0, length,
            lambda raw: str(digests.md5(raw).hexdigest()) == local.etag)
        for at in range(0, length, digests.BLOCK_BYTES):
            yield data[at:at + digests.BLOCK_BYTES]

    def _part(self, local: LocalVersion, sums: digests.Sums, offset: int,
              length: int) -> Iterator[bytes]:
        part = digests.md5()
        end = offset + length
        reader = _Resuming(self._client, _remote(local), end)
        held = b''
        try:
            while offset < end:
                wanted = sums.blocks[offset // sums.block_bytes]
                size = min(sums.block_bytes, end - offset)
                block = self._checked(
                    local, offset, size,
                    lambda raw, wanted=wanted:  # type: ignore[misc]
                    digests.block_digest(raw) == wanted, reader)
                if held:
                    yield held
                held = block
                part.update(block)
                offset += size
        finally:
            reader.close()
        if part.digest() != sums.parts[(end - 1) // sums.part_bytes]:
            self._metrics.count('gateway.remote_corrupt')
            raise RemoteCorrupt('%s: part before byte %d has a wrong MD5'
                                % (local.version.key, end))
        yield held

    def _checked(self, local: LocalVersion, offset: int, length: int,
                 right: Callable[[bytes], bool],
                 reader: Optional[_Resuming] = None) -> bytes:
        own = reader or _Resuming(
            self._client, _remote(local), offset + length)
        tries = 0
        try:
            while True:
                tries += 1
                try:
                    data = own.read(offset, length, time.monotonic()
                                    + self._conf.read_timeout_seconds
                                    * _PATIENCE)
                    if right(data):
                        return data
                    own.close()
                    self._metrics.count('gateway.remote_corrupt')
                    if tries >= _TRIES:
                        raise RemoteCorrupt(
                            '%s: wrong bytes at %d from S3'
                            % (local.version.key, offset))
                except RemoteUnavailable as err:
                    own.close()
                    if tries >= _TRIES or isinstance(err, S3Down):
                        raise
                if self._pause(self._backoff.seconds(tries)):
                    raise RemoteUnavailable(
                        'stopping', self._conf.retry_after_seconds)
                self._metrics.count('gateway.read_retries')
        finally:
            if reader is None:
                own.close()

    def _sums_for(self, local: LocalVersion) -> Optional[digests.Sums]:
        remote = _remote(local)
        if remote.etag == local.etag:
            return None
        with self._lock:
            sums = self._sums.get(remote.key)
            if sums is not None:
                self._sums.move_to_end(remote.key)
        if sums is None:
            sums = self._load_sums(local, remote)
            if sums is not None:
                self._remember(remote.key, sums)
        return sums

    def _load_sums(self, local: LocalVersion,
                   remote: RemoteCopy) -> Optional[digests.Sums]:
        """The side car, or None if there is no good one: the version can
        then only be proven whole."""
        for tries in range(1, _TRIES + 1):
            try:
                sums = digests.decode(self._client.get_small(
                    remote.key + SUMS_SUFFIX, digests.MAX_SUMS_BYTES))
                if _fits(sums, local, remote):
                    return sums
            except S3Missing:
                # One PUT on a server whose ETags are no MD5s.
                return None
            except S3Down:
                raise
            except (DamagedRecord, RemoteUnavailable) as err:
                if tries == _TRIES and isinstance(err, RemoteUnavailable):
                    raise
            self._metrics.count('gateway.sums_retries')
            if self._pause(self._backoff.seconds(tries)):
                break
        self._metrics.count('gateway.sums_damaged')
        return None

    def _remember(self, key: str, sums: digests.Sums) -> None:
        with self._lock:
            if key in self._sums:
                return
            self._sums[key] = sums
            self._sums_bytes += _weight(sums)
            while len(self._sums) > 1 and (
                    len(self._sums) > _SUMS_ENTRIES
                    or self._sums_bytes > _SUMS_BYTES):
                _, old = self._sums.popitem(last=False)
                self._sums_bytes -= _weight(old)


class _Resuming:
    """Ranged GETs, begun where bytes are needed, up to ``end``.

    One is enough, unless readers of the top class would wait for it.
    """

    def __init__(self, client: S3Client, remote: RemoteCopy,
                 end: int) -> None:
        self._client = client
        self._key = remote.key
        #: Where the version begins under the key: it may be in a bundle.
        self._start = remote.offset
        self._end = end
        self._body: Optional[S3Body] = None
        self._at = 0
        self._until = 0
        self._has_turn = False
        #: Between two GETs the flow keeps its place on the link.
        self._flow: Optional[Flow] = None

    def read(self, offset: int, length: int, deadline: float) -> bytes:
        pieces: List[bytes] = []
        end = offset + length
        while offset < end:
            body = self._body_at(offset)
            # Short slices, because the top class may begin to read.
            count = min(end, self._until, offset + SLICE_BYTES) - offset
            pieces.append(body.read(count, deadline))
            if offset + count >= self._until:
                self._end_body()  # others may ask
            offset += count
            self._at = offset
        return pieces[0] if len(pieces) == 1 else b''.join(pieces)

    def close(self) -> None:
        self._end_body()
        self._client.down_lane.end(self._flow)
        self._flow = None

    def _body_at(self, offset: int) -> S3Body:
        lane = self._client.down_lane
        most = lane.most_at_once()
        if self._body is not None and self._at == offset < self._until and (
                most is None or self._until - offset <= 2 * most):
            return self._body
        # A long answer under way is given up: readers of the top class
        # would wait for all of it.
        self._end_body()
        if self._flow is None:
            self._flow = lane.begin()
        length = self._end - offset
        if most is not None:
            lane.take_turn()
            self._has_turn = True
            length = min(length, most)
        self._until = offset + length
        self._body = self._client.get(
            self._key, self._start + offset, length)
        return self._body

    def _end_body(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None
        if self._has_turn:
            self._client.down_lane.end_turn()
            self._has_turn = False


def _remote(local: LocalVersion) -> RemoteCopy:
    remote = local.residency.remote
    if remote is None:
        raise DamagedRecord('%s: no remote copy on record'
                            % local.version.key)
    return remote


def _fits(sums: digests.Sums, local: LocalVersion,
          remote: RemoteCopy) -> bool:
    """Whether the sums are this version's; if S3's ETag is the MD5 of part
    MD5s, our own record of the ETag vouches for each of them.
    """
    vouched = '-' not in remote.etag or not digests.is_md5_etag(
        remote.etag) or sums.etag == remote.etag
    return (vouched and sums.content_length == local.content_length
            and sums.md5.hex() == local.etag)


def _weight(sums: digests.Sums) -> int:
    """Bytes of memory, about: a 16-byte object takes 49 and a pointer."""
    return 64 * (len(sums.parts) + len(sums.blocks))
