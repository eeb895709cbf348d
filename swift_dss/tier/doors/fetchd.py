"""``fetch.sock``: bytes for readers that lack them.

The bytes may have moved since the reader looked: whatever this node has is
read here, under the version's own open files; the rest is the gateway's.
"""

from __future__ import annotations

import socket
from typing import Optional

from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteUnavailable, TierUnavailable, VersionGone)
from swift_dss.core.limits import (
    DEFAULT_RETRY_AFTER_SECONDS, IO_WINDOW_BYTES)
from swift_dss.core.residency import Tier
from swift_dss.gateway.restore.arrivals import NotProven
from swift_dss.gateway.ports import LocalReader, Sink
from swift_dss.gateway.service import Gateway
from swift_dss.tier.doors.door import StreamServer, read_line
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.wire.control import (
    FetchReply, FetchRequest, decode_fetch, encode_fetch_reply)
from swift_dss.wire.records import proof

#: Fetches at a time; more wait in the socket's queue.
MAX_FETCHES = 128
_MAX_LINE_BYTES = 16384
#: A reader that takes nothing for this long is gone.
_STALL_SECONDS = 60.0


class SocketSink(Sink):
    """A reader at the other end of a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.began = False

    def begin(self, reply: FetchReply) -> None:
        """See :meth:`Sink.begin`."""
        self.began = True
        self._connection.sendall(encode_fetch_reply(reply))

    def write(self, data: bytes) -> None:
        """See :meth:`Sink.write`."""
        self._connection.sendall(data)


class FetchServer(StreamServer):
    """Answers object servers that lack bytes.

    :param gateway: None where there is no remote tier
    """

    def __init__(self, path: str, local: Local, gateway: Optional[Gateway],
                 metrics: Metrics) -> None:
        super().__init__(path, 'fetch', MAX_FETCHES, metrics.logger)
        self._local = local
        self._gateway = gateway
        self._metrics = metrics

    def serve(self, connection: socket.socket) -> None:
        """See :meth:`StreamServer.serve`."""
        connection.settimeout(_STALL_SECONDS)
        sink = SocketSink(connection)
        try:
            line = read_line(connection, _MAX_LINE_BYTES)
            if line.startswith(proof.PREFIX):
                connection.sendall(proof.encode_reply(self._prove(line)))
                return
            request = decode_fetch(line)
        except DamagedRecord as err:
            sink.begin(FetchReply(503, str(err)))
            return
        self._metrics.count('tier.fetches')
        try:
            with self._local.open(request.version,
                                  request.partition) as reader:
                if not _is_local(reader, request) or \
                        not self._from_disk(request, reader, sink):
                    self._from_gateway(request, sink)
        except (DssError, OSError) as err:
            self._metrics.count('tier.fetches_failed')
            self._logger.warning('fetch %s on %s: %s', request.version.key,
                                 request.version.device, err)
            # An HDD that is not there is an answer (507) and not a cut,
            # which the reader would have to take for an S3 that is down.
            if not sink.began and isinstance(err, DssError):
                sink.begin(refusal(err))

    def _prove(self, line: bytes) -> proof.ProofReply:
        """A stub wants to come here, or a version leaves to where its stubs
        are: does S3 have its bytes?"""
        try:
            request = proof.decode_request(line)
            if self._gateway is None:
                return proof.ProofReply(503, 'no gateway is configured')
            if request.leaves:
                return self._gateway.prove_leaving(self._local.describe(
                    request.version, request.partition))
            return self._gateway.prove_arrival(request)
        except DssError as err:
            self._metrics.count('tier.proofs_refused')
            self._logger.warning('no proof for object servers: %s', err)
            return proof.ProofReply(404 if isinstance(
                err, (NotProven, VersionGone)) else 503, str(err))

    def _from_disk(self, request: FetchRequest, reader: LocalReader,
                   sink: SocketSink) -> bool:
        """The whole range is here. The reply waits for the first bytes, so
        that a disk that fails is still an answer and not a cut.

        :returns: False if it is not here after all, and S3 may have it
        """
        self._local.mover.io.enter(request.class_id)
        try:
            end = request.offset + request.length
            for offset in range(request.offset, end, IO_WINDOW_BYTES):
                data = reader.read(offset,
                                   min(IO_WINDOW_BYTES, end - offset))
                if not sink.began:
                    sink.begin(FetchReply(200))
                sink.write(data)
            return True
        except (VersionGone, TierUnavailable):
            if sink.began or self._gateway is None:
                raise
            return False
        finally:
            self._local.mover.io.leave()

    def _from_gateway(self, request: FetchRequest,
                      sink: SocketSink) -> None:
        if self._gateway is None:
            sink.begin(FetchReply(503, 'no gateway is configured',
                                  DEFAULT_RETRY_AFTER_SECONDS))
            return
        self._gateway.fetch(
            request, self._local.watcher.on_fetch(request, sink))


def refusal(err: DssError) -> FetchReply:
    """An error before the first byte, as the reader is told."""
    if isinstance(err, VersionGone):
        return FetchReply(404, str(err))
    if isinstance(err, TierUnavailable):
        return FetchReply(507, str(err))
    if isinstance(err, RemoteUnavailable):
        return FetchReply(503, str(err), err.retry_after_seconds)
    return FetchReply(503, str(err), DEFAULT_RETRY_AFTER_SECONDS)


def _is_local(reader: LocalReader, request: FetchRequest) -> bool:
    residency = reader.residency  # type: ignore[attr-defined]
    return all(extent.tiers & (Tier.SSD | Tier.HDD) for extent
               in residency.split(request.offset, request.length))
