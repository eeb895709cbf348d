"""``fetch.sock``: bytes for readers that lack them.

The bytes may have moved since the reader looked: whatever this node has is
read here, under the version's own open files; the rest is the gateway's.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from typing import Callable, Optional, Set

from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteUnavailable, TierUnavailable, VersionGone)
from swift_dss.core.limits import (
    DEFAULT_RETRY_AFTER_SECONDS, IO_WINDOW_BYTES)
from swift_dss.core.residency import Tier
from swift_dss.gateway.mend.arrivals import NotProven
from swift_dss.gateway.ports import LocalReader, Sink
from swift_dss.gateway.service import Gateway
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


class FetchServer:
    """Serves one request a connection, each in a thread of its own.

    :param gateway: None where there is no remote tier
    """

    def __init__(self, path: str, local: Local, gateway: Optional[Gateway],
                 metrics: Metrics, logger: logging.Logger) -> None:
        self._server = StreamServer(
            path, 'fetch', Answers(local, gateway, metrics, logger).serve,
            MAX_FETCHES, logger)

    def start(self) -> None:
        """Bind and begin."""
        self._server.start()

    def stop(self) -> None:
        """Refuse new readers, cut off the others, return."""
        self._server.stop()


class Answers:
    """The daemon's answers to object servers that lack bytes.

    :param gateway: None where there is no remote tier
    """

    def __init__(self, local: Local, gateway: Optional[Gateway],
                 metrics: Metrics, logger: logging.Logger) -> None:
        self._local = local
        self._gateway = gateway
        self._metrics = metrics
        self._logger = logger

    def serve(self, connection: socket.socket) -> None:
        """Answer the one request of a connection; blocks until it has."""
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
        """A stub wants to come here: does S3 have its bytes?"""
        try:
            request = proof.decode_request(line)
            if self._gateway is None:
                return proof.ProofReply(503, 'no gateway is configured')
            return self._gateway.prove_arrival(request)
        except DssError as err:
            self._metrics.count('tier.arrivals_refused')
            self._logger.warning('a stub was refused: %s', err)
            return proof.ProofReply(404 if isinstance(
                err, (NotProven, VersionGone)) else 503, str(err))

    def _from_disk(self, request: FetchRequest, reader: LocalReader,
                   sink: SocketSink) -> bool:
        """The whole range is here. The reply waits for the first bytes, so
        that a disk that fails is still an answer and not a cut.

        :returns: False if it is not here after all, and S3 may have it
        """
        self._local.io.enter(request.class_id)
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
            self._local.io.leave()

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


class StreamServer:
    """A Unix stream socket; one thread a connection, and a bound on them.

    :param serve: gets the connection, which is closed after it
    """

    def __init__(self, path: str, name: str,
                 serve: Callable[[socket.socket], None], limit: int,
                 logger: logging.Logger) -> None:
        self._path = path
        self._name = name
        self._serve = serve
        self._logger = logger
        self._slots = threading.BoundedSemaphore(limit)
        self._guard = threading.Lock()
        self._open: Set[socket.socket] = set()
        self._stopping = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._thread = threading.Thread(
            target=self._accept, name='dss-' + name, daemon=True)

    def start(self) -> None:
        """Bind and begin."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        self._socket.bind(self._path)
        os.chmod(self._path, 0o660)
        self._socket.listen(128)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more and cut off those that are connected."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with self._guard:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)

    def _accept(self) -> None:
        while not self._stopping:
            self._slots.acquire()
            try:
                connection, _ = self._socket.accept()
            except OSError as err:
                self._slots.release()
                if not self._stopping:
                    self._logger.error('%s socket: %s', self._name, err)
                return
            with self._guard:
                self._open.add(connection)
            threading.Thread(target=self._run, args=(connection,),
                             name='dss-%s-one' % self._name,
                             daemon=True).start()

    def _run(self, connection: socket.socket) -> None:
        try:
            self._serve(connection)
        except OSError as err:
            self._logger.debug('%s: reader left: %s', self._name, err)
        except Exception:
            # One bad request must not take the daemon down.
            self._logger.exception('%s request failed', self._name)
        finally:
            with self._guard:
                self._open.discard(connection)
            connection.close()
            self._slots.release()


def read_line(connection: socket.socket, limit: int) -> bytes:
    """One line from a stream socket.

    :raises DamagedRecord: longer than ``limit`` or cut off
    """
    raw = b''
    while not raw.endswith(b'\n'):
        data = connection.recv(4096)
        raw += data
        if not data or len(raw) > limit:
            raise DamagedRecord('request line cut off after %d bytes'
                                % len(raw))
    return raw
