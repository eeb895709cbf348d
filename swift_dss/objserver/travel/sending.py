"""Make sure that ssync's sender can read a version before it sends it.

Swift's sender takes an error before the first byte for an object that is
not there: it goes on, calls the session a success, and lets the replicator
delete the handoff partition with all that is in it. An error after the
first byte ends the session, and with it all objects that come behind. So a
version is made ready before its headers go. A version that cannot be read now
is left out, and a PUT that no server accepts makes the session fail at its
end: the replicator never takes a left-out version for sent, and the next pass
tries it again. The first bytes are read before the headers go. If later bytes
end early, the following sessions leave that version out, so that the versions
behind it get through.

A version with bytes that lie in S3 alone stays there: a peer of ours gets
its record, and proves it itself (``objserver.arriving``). The sender
recognises its peer by the first line of its offer, an object that does not
exist: a stock server wants it, ours does not. A stock server gets whole
objects.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import replace
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional,
    Tuple)

from swift.common.exceptions import DiskFileError
from swift.common.storage_policy import EC_POLICY
from swift.common.utils import Timestamp

from swift_dss.core.errors import (
    RemoteUnavailable, TierUnavailable, VersionGone)
from swift_dss.core.residency import Residency, Tier
from swift_dss.objserver.reader import BytesUnavailable
from swift_dss.wire import names
from swift_dss.wire.records import proof

#: A session: device, partition, policy and fragment index.
Session = Tuple[str, str, int, Optional[int]]
#: A hash and its timestamps, as ``yield_hashes`` has them.
Offer = Tuple[str, Dict[str, Any]]
#: Sessions that are remembered as incomplete; one is forgotten when it is
#: begun again.
_MAX_SESSIONS = 4096
#: Sessions that leave out a broken version: at most two to the power of this.
_MAX_DOUBLINGS = 6
#: Bytes of a version that are read before its headers go.
_READ_AHEAD_BYTES = 65536
#: A version may be switched while it is made ready.
_REOPENS = 3


#: The first offer of a session. No hash of Swift's looks like it.
ANNOUNCEMENT = 'dss-stubs-1'
ANNOUNCED: Tuple[Offer] = ((ANNOUNCEMENT, {'ts_data': Timestamp(1)}),)


#: The first words of hints. The sender has a stub of this version: under a key
#: of its own, or in a bundle. It has bytes of it, and gives them up.
STUB, PACKED, LEAVING = 'dss-stub', 'dss-packed', 'dss-leaving'


class Hint(NamedTuple):
    """A line that says what the sender has of a version.

    :param kind: its first word
    """

    kind: str
    object_hash: str
    timestamp: Timestamp


def hinted(offers: Iterable[Offer],
           where: Callable[[str, Timestamp], str]) -> Iterator[Offer]:
    """Offers, with lines before them that say what the sender has of each.

    :param where: the kind of a version's hint; '' if it needs none
    """
    for object_hash, timestamps in offers:
        timestamp = timestamps['ts_data']
        # Of a replicated object nothing is said: all of it is durable.
        kind = timestamps.get('durable', True) and where(
            object_hash, timestamp)
        if kind:
            yield ('%s,%s,%s' % (kind, object_hash, timestamp.internal),
                   ANNOUNCED[0][1])
        yield object_hash, timestamps


def hint_of(residency: Optional[Residency]) -> str:
    """The first word of a version's hint; '' if all bytes are here."""
    if residency is None or residency.is_local:
        return ''
    remote = residency.remote
    return PACKED if remote is not None and remote.in_bundle else STUB


def read_hint(line: str) -> Optional[Hint]:
    """A line's words about a version; None for any other line."""
    kind, _, rest = line.partition(',')
    if kind not in (STUB, PACKED, LEAVING):
        return None
    object_hash, _, timestamp = rest.partition(',')
    try:
        return Hint(kind, object_hash, Timestamp(timestamp))
    except ValueError:
        return None


class Known:
    """The receiver's state of an object of which it shall not ask for data.

    :param posted: of the newest POST; the receiver asks for a later one
    """

    fragments: Any = None

    def __init__(self, timestamp: Timestamp,
                 posted: Optional[Timestamp] = None) -> None:
        self.data_timestamp = self.durable_timestamp = timestamp
        self.content_type_timestamp = timestamp
        self.timestamp = timestamp if posted is None else posted

    def open(self) -> Known:
        """As a diskfile's."""
        return self


class Skipped(DiskFileError):
    """Left out of a session that is known to be incomplete already."""


class Parcel(NamedTuple):
    """The bytes sent for a version: headers, then exactly ``length`` bytes."""

    length: int
    metadata: Dict[str, str]
    chunks: Any


class _Broken(NamedTuple):
    """A body that broke: how often, and how many sessions are still to
    leave it out."""

    times: int
    left: int


class Sessions:
    """Which sessions of a process have left something out, which are with
    servers that are not ours, and which bodies broke on the way."""

    def __init__(self) -> None:
        self._incomplete: OrderedDict[Session, None] = OrderedDict()
        self._stock: OrderedDict[Session, None] = OrderedDict()
        self._broken: OrderedDict[Tuple[Session, str], _Broken] = \
            OrderedDict()

    def begin(self, session: Session) -> None:
        """A new offer: nothing is left out so far."""
        self._incomplete.pop(session, None)
        self._stock.pop(session, None)

    def wants_whole(self, session: Session) -> None:
        """The peer asked for the announcement, which only a stock server
        wants.
        """
        _keep(self._stock, session, None)

    def broke(self, session: Session, data_file: str) -> None:
        """A body ended early, and its session with it.

        The sender of a session is not known here, only that each peer has
        its turn. So twice as many sessions leave it out each time: whatever
        the number of peers, none of them always gets the broken body.
        """
        before = self._broken.get((session, data_file))
        times = 0 if before is None else min(before.times, _MAX_DOUBLINGS)
        _keep(self._broken, (session, data_file), _Broken(
            times + 1, 1 << times))

    def may_try(self, session: Session, data_file: str) -> bool:
        """False while a body that broke is left out. Call it once for each
        session that would send the body."""
        broken = self._broken.get((session, data_file))
        if broken is None or not broken.left:
            return True
        _keep(self._broken, (session, data_file),
              broken._replace(left=broken.left - 1))
        return False

    def went(self, session: Session, data_file: str) -> None:
        """A body has gone as a whole."""
        self._broken.pop((session, data_file), None)

    def takes_stubs(self, session: Session) -> bool:
        """True if the peer is one of ours."""
        return session not in self._stock

    def leave_out(self, session: Session) -> bool:
        """True for the first object that is left out of a session."""
        if session in self._incomplete:
            return False
        _keep(self._incomplete, session, None)
        return True


def _keep(sessions: OrderedDict[Any, Any], name: Any, value: Any) -> None:
    """The oldest goes where there are too many: it is the least likely to
    be of a session that is under way."""
    sessions[name] = value
    sessions.move_to_end(name)
    if len(sessions) > _MAX_SESSIONS:
        sessions.popitem(last=False)


def session_of(device: str, partition: Any, storage_policy: Any,
               options: Dict[str, Any]) -> Optional[Session]:
    """The session that asks for a diskfile by these options; None if its
    bytes are not what will be sent.

    Only the sender names preferences. Where a fragment is rebuilt, it has
    none, and reads the diskfile's metadata alone.
    """
    if 'frag_prefs' not in options or (
            storage_policy.policy_type == EC_POLICY
            and options['frag_prefs'] is None):
        return None
    return (device, str(partition), int(storage_policy),
            options.get('frag_index'))


def pack(disk_file: Any, session: Session, sessions: Sessions) -> Parcel:
    """Make an open diskfile ready to be sent.

    :returns: its bytes; or, for the first unreadable version of a session, the
        PUT that makes the session fail
    :raises Skipped: it cannot be read, and the session fails already
    """
    try:
        return _ready(disk_file, session, sessions)
    except (BytesUnavailable, TierUnavailable, RemoteUnavailable,
            VersionGone) as err:
        logger = disk_file._logger
        logger.warning('dss: %s is left for the next pass: %s',
                       disk_file._data_file, err)
        logger.increment('dss.ssync.skipped')
        if not sessions.leave_out(session):
            raise Skipped(str(err)) from err
        # Without a timestamp, no object server takes it.
        return Parcel(0, {}, iter(()))


def _ready(disk_file: Any, session: Session,
           sessions: Sessions) -> Parcel:
    as_stub = sessions.takes_stubs(session)
    for attempt in range(_REOPENS + 1):
        data_file = disk_file._data_file
        reader = disk_file.dss_build_reader()
        length = disk_file._content_length
        try:
            if as_stub and disk_file.dss_residency.is_in_s3 and \
                    reader.dss_bytes.needs_remote([(0, length)]):
                reader.close()
                return _stub(disk_file)
            if not sessions.may_try(session, data_file):
                raise RemoteUnavailable('its bytes ended early before', 1)
            reader.dss_prepare([(0, length)])
            return Parcel(length, disk_file._datafile_metadata, _watched(
                reader, _begun(reader), session, data_file, sessions))
        except (BytesUnavailable, TierUnavailable, RemoteUnavailable):
            reader.close()
            raise
        except VersionGone:
            reader.close()
            if not disk_file.dss_has_changed(data_file):
                disk_file.dss_note_lack(reader.dss_bytes)
                raise
            if attempt == _REOPENS:
                raise
            disk_file.open()
    raise AssertionError('not reached')


def _stub(disk_file: Any) -> Parcel:
    """The record alone. The receiver could not check local bytes, because it
    has no digest of them; S3 has those bytes too, and reads prove S3's bytes.
    """
    length = disk_file._content_length
    head = proof.encode_stub(replace(
        Residency.whole(length, Tier.REMOTE),
        remote=disk_file.dss_residency.remote))
    disk_file._logger.increment('dss.ssync.stubs_sent')
    return Parcel(
        len(head), dict(disk_file._datafile_metadata,
                        **{names.BACKEND_STUB: str(length)}), iter((head,)))


def _begun(reader: Any) -> Iterator[bytes]:
    """The bytes of a reader, of which the first are here: a small version
    that cannot be read is known before its headers go.

    :raises BytesUnavailable: they cannot be read
    """
    chunks = iter(reader)
    first: List[bytes] = []
    held = 0
    for chunk in chunks:
        first.append(chunk)
        held += len(chunk)
        if held >= _READ_AHEAD_BYTES:
            break
    return itertools.chain(first, chunks)


def _watched(reader: Any, chunks: Iterator[bytes], session: Session,
             data_file: str, sessions: Sessions) -> Iterator[bytes]:
    try:
        yield from chunks
        sessions.went(session, data_file)
    except BytesUnavailable:
        sessions.broke(session, data_file)
        raise
    finally:
        reader.close()
