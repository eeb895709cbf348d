"""Bytes that this node does not have, streamed from the tier daemon.

One connection to the daemon's ``fetch.sock`` a range (``wire.control``).
Blocks only the green thread that asked. The first answer has a deadline,
and so has every later chunk: a daemon that hangs cuts one response short
and stalls nothing else.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import Any, Iterator, Optional

from swift_dss.core.errors import (
    DamagedRecord, RemoteUnavailable, TierUnavailable, VersionGone)
from swift_dss.core.limits import DEFAULT_RETRY_AFTER_SECONDS
from swift_dss.wire.control import (
    FetchReply, FetchRequest, decode_fetch_reply, encode_fetch)
from swift_dss.wire.records import proof

_SOCKET = 'fetch.sock'
#: Of a node's daemon, or of the parent of its shards.
_PARENT_SOCKET = 'admin.sock'
#: A shard that died is back within seconds: so long a reader waits for it.
_RESTART_SECONDS = 5.0
_LOOK_SECONDS = 0.1
_CHUNK_BYTES = 262144
#: Over the daemon's own deadline, so that its answer, which knows the
#: reason, comes before our time-out, which does not.
_GRACE_SECONDS = 1.0
_MAX_REPLY_BYTES = 4096
#: With all metadata of a version.
_MAX_PROOF_BYTES = 4 * 1024 * 1024


class FetchStream:
    """The bytes of one range; open it with :func:`open_fetch`."""

    def __init__(self, connection: Any, rest: bytes, length: int) -> None:
        self._connection = connection
        self._rest = rest
        self._left = length

    def chunks(self) -> Iterator[bytes]:
        """Exactly the bytes asked for.

        :raises RemoteUnavailable: the daemon gave up on the way
        """
        while self._left:
            data = self._rest or self._receive()
            self._rest = b''
            if not data:
                raise RemoteUnavailable(
                    '%d bytes short of a remote range' % self._left,
                    DEFAULT_RETRY_AFTER_SECONDS)
            if len(data) > self._left:
                data = data[:self._left]
            self._left -= len(data)
            yield data
        self.close()

    def _receive(self) -> bytes:
        try:
            data: bytes = self._connection.recv(_CHUNK_BYTES)
        except OSError as err:
            raise RemoteUnavailable('remote range: %s' % err,
                                    DEFAULT_RETRY_AFTER_SECONDS) from err
        return data

    def close(self) -> None:
        """Tell the daemon that no more is wanted; idempotent."""
        self._connection.close()


def dial(sockets: str, patience: float) -> Any:
    """A connection to the tier daemon. The simulation puts one without a
    socket in its place.

    :param sockets: folder of the daemon's sockets (``Node.sockets``)
    :param patience: seconds that each step may take
    :raises OSError: there is no daemon
    """
    path = os.path.join(sockets, _SOCKET)
    until = time.monotonic() + min(patience, _RESTART_SECONDS)
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(patience)
            connection.connect(path)
            return connection
        except (ConnectionRefusedError, FileNotFoundError):
            connection.close()
            if not _is_watched(sockets) or time.monotonic() > until:
                raise
            time.sleep(_LOOK_SECONDS)
        except BaseException:
            connection.close()
            raise


def _is_watched(sockets: str) -> bool:
    """True for a shard whose parent lives, and starts it again."""
    if not os.path.basename(sockets).startswith('shard-'):
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as parent:
            parent.connect(os.path.join(os.path.dirname(sockets),
                                        _PARENT_SOCKET))
    except OSError:
        return False
    return True


def open_fetch(sockets: str, request: FetchRequest) -> FetchStream:
    """Ask for a range and wait for the daemon's word on it.

    :raises RemoteUnavailable: no daemon, or S3 did not answer in time
    :raises VersionGone: the daemon knows no such version any more
    :raises TierUnavailable: the bytes are on an HDD that is not there
    """
    connection = None
    try:
        connection = dial(sockets, request.deadline_seconds + _GRACE_SECONDS)
        connection.sendall(encode_fetch(request))
        line, rest = _read_line(connection, _MAX_REPLY_BYTES)
        reply = decode_fetch_reply(line)
        _raise_unless_ok(reply)
    except BaseException as err:
        if connection is not None:
            connection.close()
        if isinstance(err, (OSError, DamagedRecord)):
            raise RemoteUnavailable('tier daemon: %s' % err,
                                    DEFAULT_RETRY_AFTER_SECONDS) from err
        raise
    return FetchStream(connection, rest, request.length)


def ask_for_proof(sockets: str, request: proof.ProofRequest,
                  deadline_seconds: float) -> proof.ProofReply:
    """Have the daemon ask S3 for a version, and wait for its word.

    :raises RemoteUnavailable: no daemon, or S3 did not answer in time
    :raises VersionGone: S3 has it not, or has something else
    """
    try:
        with contextlib.closing(dial(
                sockets, deadline_seconds + _GRACE_SECONDS)) as connection:
            connection.sendall(proof.encode_request(request))
            reply = proof.decode_reply(
                _read_line(connection, _MAX_PROOF_BYTES)[0])
    except (OSError, DamagedRecord) as err:
        raise RemoteUnavailable('tier daemon: %s' % err,
                                DEFAULT_RETRY_AFTER_SECONDS) from err
    _raise_unless_ok(FetchReply(reply.status, reply.reason))
    if reply.residency is None:
        raise RemoteUnavailable('tier daemon: the proof has no record',
                                DEFAULT_RETRY_AFTER_SECONDS)
    return reply


def _read_line(connection: Any, limit: int) -> Any:
    raw = b''
    while b'\n' not in raw:
        data = connection.recv(_CHUNK_BYTES)
        if not data or len(raw) > limit:
            raise DamagedRecord('fetch reply: cut off after %d bytes'
                                % len(raw))
        raw += data
    line, _, rest = raw.partition(b'\n')
    return line, rest


def _raise_unless_ok(reply: FetchReply) -> None:
    if reply.status == 200:
        return
    if reply.status == 404:
        raise VersionGone(reply.reason or 'version is gone')
    if reply.status == 507:
        raise TierUnavailable(reply.reason or 'tier is unavailable')
    seconds: Optional[int] = reply.retry_after_seconds
    raise RemoteUnavailable(
        reply.reason or 'remote tier answered %d' % reply.status,
        DEFAULT_RETRY_AFTER_SECONDS if seconds is None else seconds)
