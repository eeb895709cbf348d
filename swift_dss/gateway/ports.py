"""The gateway's needs from the rest of the daemon.

The tier daemon implements :class:`LocalVersions` (bytes and residency of
this node's devices) and :class:`Metrics`; the gateway keeps its own durable
queue (``gateway.queue``), so no port is needed for that. Every method may
be called from several threads at once and may block on local disks; none
may call back into the gateway.
"""

from __future__ import annotations

import abc
import logging
from dataclasses import dataclass, field
from types import TracebackType
from typing import (
    TYPE_CHECKING, Callable, Iterator, List, Mapping, NamedTuple, Optional,
    Sequence, Set, Tuple, Type, Union)

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteUnavailable, TierFull, TierUnavailable,
    VersionGone)
from swift_dss.core.residency import RemoteCopy, Residency
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.core.version import VersionId
from swift_dss.wire.control import FetchReply

if TYPE_CHECKING:
    # Swift's LogAdapter is one too; typeshed's is generic.
    Logger = Union[logging.Logger, 'logging.LoggerAdapter[logging.Logger]']
else:
    Logger = object

#: Gives the class table in force now; called per job, never cached.
TableSource = Callable[[], ClassTable]


@dataclass(frozen=True)
class LocalVersion:
    """This node's knowledge of one version.

    :param etag: ``ETag`` of the data file's own metadata: the MD5 of the
        bytes in it (for EC, of the fragment archive), lower-case hex
    :param metadata: the effective Swift metadata as DiskFile returns it
        (``.data`` updated from ``.meta``): ``name``, ``X-Timestamp``,
        ``Content-Type``, ``Content-Length``, sysmeta, user metadata
    :param class_map: the effective map (transient before sysmeta)
    :param residency: where each byte is now
    """

    version: VersionId
    partition: str
    etag: str
    metadata: Mapping[str, str]
    residency: Residency
    class_map: ClassMap = field(default=UNCLASSIFIED_MAP)

    @property
    def content_length(self) -> int:
        """Bytes of the version."""
        return self.residency.content_length

    @property
    def class_ids(self) -> Set[int]:
        """The classes of its bytes; of an empty version, of its name."""
        return self.class_map.class_ids(self.content_length)


class LocalReader(abc.ABC):
    """The local bytes of one version, as they were when it was opened.

    MUST keep reading the same version's bytes even if the daemon demotes,
    evicts or deletes it (it holds the open inodes).
    """

    @abc.abstractmethod
    def read(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``.

        :raises VersionGone: some of them are on neither SSD nor HDD
        :raises TierUnavailable: their tier is not mounted or gave an
            I/O error
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Let the files go. May be called twice."""

    def __enter__(self) -> LocalReader:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()


class LocalFill(abc.ABC):
    """One range of a version on its way back to a local tier.

    Bytes MUST become readable locally only in :meth:`commit`, and only
    after they are durable: residency never says a tier that a power cut
    could empty. Bytes that are never committed count as never written.
    """

    @abc.abstractmethod
    def write(self, offset: int, data: bytes) -> None:
        """Take bytes; they MUST NOT be readable before :meth:`commit`. Calls
        come in order, without gaps.

        :raises TierFull: no room; the gateway aborts and reads on
        """

    @abc.abstractmethod
    def commit(self) -> None:
        """Make all written bytes durable, then let residency say so.

        :raises VersionGone: the version was overwritten or deleted; its
            bytes are dropped and nothing else is harmed
        """

    @abc.abstractmethod
    def abort(self) -> None:
        """Drop the written bytes. Never raises; may be called twice."""


class Arrival(NamedTuple):
    """A version of which S3 has all bytes, proven.

    :param length: its Content-Length, or -1 if its metadata is to say that
    """

    version: VersionId
    partition: str
    remote: RemoteCopy
    length: int = -1


#: A row of the node's index, its version and partition.
Listed = Tuple[int, VersionId, str]


class Upload(NamedTuple):
    """A version that S3 may lack.

    :param partition: '' if the ring knows it
    :param urgent: at once (classes with ``remote = through|only``), not
        when the version is ``remote_after_seconds`` old
    :param class_id: the class that it shares the link with
    """

    version: VersionId
    partition: str = ''
    urgent: bool = False
    class_id: int = 0


class LocalVersions(abc.ABC):
    """This node's devices, as the gateway sees them.

    Every method that takes a version may raise :class:`VersionGone` (not
    on the device any more), :class:`TierUnavailable` (device or HDD not
    mounted, I/O error) or :class:`DamagedRecord`.
    """

    @abc.abstractmethod
    def describe(self, version: VersionId, partition: str) -> LocalVersion:
        """Metadata and residency of exactly this version."""

    @abc.abstractmethod
    def open(self, version: VersionId, partition: str) -> LocalReader:
        """A reader of its SSD and HDD bytes."""

    def read_whole(self, version: VersionId,
                   partition: str) -> Tuple[LocalVersion, bytes]:
        """Metadata and all bytes of a small version.

        May be implemented as one look at its files.
        """
        local = self.describe(version, partition)
        if not local.content_length:
            return local, b''
        with self.open(version, partition) as reader:
            return local, reader.read(0, local.content_length)

    def read_as_parked(
            self, wanted: Sequence[Tuple[VersionId, str, int]]
            ) -> Iterator[Optional[bytes]]:
        """All bytes of each (version, partition, length) of some small
        versions, in order; none is proven.

        Return None for a version whose metadata may have changed since it was
        described; the caller then falls back to :meth:`read_whole`. Returning
        None is always correct.
        """
        return iter([None] * len(wanted))

    @abc.abstractmethod
    def newest(self, version: VersionId, partition: str) -> Optional[str]:
        """Timestamp of the newest data file *or tombstone* of the object.

        Looks at the object's folder on ``version.device`` only; for EC,
        at durable fragments of any index. None when the folder is empty
        or missing (a handoff that was emptied, a reclaimed tombstone).
        Never raises :class:`VersionGone`.
        """

    @abc.abstractmethod
    def newest_record(self, version: VersionId,
                      partition: str) -> Tuple[str, str, bool]:
        """(timestamp, S3 key, whether all bytes are on this node) of the
        newest data file or tombstone of the object on ``version.device``;
        '' where it has none.

        The key is that of the fragment of ``version``, or of the fragment
        that is there if ``version`` names none.
        Never raises :class:`VersionGone`.
        """

    @abc.abstractmethod
    def newest_in_quarantine(self, version: VersionId) -> str:
        """Timestamp of the newest data file of the object that Swift has
        put into the quarantine of ``version.device``, of any fragment; ''
        if there is none. Never raises :class:`VersionGone`.
        """

    def object_name(self, version: VersionId, partition: str) -> str:
        """``/account/container/object`` by the file on ``version.device``,
        data file or tombstone; '' if nothing there says so.
        """
        return ''

    @abc.abstractmethod
    def in_s3(self, after: int) -> List[Listed]:
        """Some versions with a copy in S3, by their rows behind ``after``, in
        order; none at the end."""

    def is_indexed(self) -> bool:
        """False while :meth:`in_s3` does not have all versions yet."""
        return True

    @abc.abstractmethod
    def record_remote(self, version: VersionId, partition: str,
                      remote: RemoteCopy) -> None:
        """Durably note that S3 holds all bytes of the version.

        Called only after the copy was verified. Idempotent. From here on
        the daemon may drop local bytes.
        """

    def record_remotes(self, arrivals: Sequence[Arrival]
                       ) -> List[Optional[DssError]]:
        """:meth:`record_remote` of several, each by itself; durable when
        it returns.

        :returns: for each its exception, or None
        """
        said: List[Optional[DssError]] = []
        for arrival in arrivals:
            try:
                self.record_remote(*arrival[:3])
                said.append(None)
            except (VersionGone, TierFull, TierUnavailable,
                    DamagedRecord) as err:
                said.append(err)
        return said

    @abc.abstractmethod
    def forget_remote(self, version: VersionId, partition: str) -> None:
        """Take a remote copy back that proved missing or wrong.

        Only drops REMOTE from bytes that are also local.

        :raises ValueError: some byte is nowhere else; nothing is changed
        """

    def own_fragment(self, version: VersionId,
                     partition: str) -> VersionId:
        """The fragment that ``version.device`` has of an erasure-coded
        version, if that is its newest; else ``version``."""
        return version

    def is_failing(self, device: str) -> bool:
        """True if a device, SSD or HDD, fails as a whole
        (``strategy.health``)."""
        return False

    def copies_needed(self, version: VersionId) -> int:
        """Number of other devices' data files needed to rebuild this one: 1,
        or the data fragments of an erasure-coded object.
        """
        return 1

    def put_aside(self, version: VersionId, partition: str,
                  residency: Residency) -> None:
        """Put a version that lacks bytes into the device's quarantine,
        durably: replication shall bring the version again.

        Files of a later POST stay in their place. Called by
        :class:`~swift_dss.gateway.peers.aside.Asides` alone, which has asked
        who else has it.

        :param residency: of the version that was asked about
        :raises ValueError: it has another one by now; nothing is changed
        """
        raise ValueError('%s: there is no quarantine' % version.device)

    @abc.abstractmethod
    def begin_fill(self, version: VersionId, partition: str, offset: int,
                   length: int, class_id: int) -> Optional[LocalFill]:
        """Room for bytes that come back from S3.

        The implementation chooses the tier (HDD where the device has one,
        else SSD). None when they should not be kept (no room, class not
        worth it): the reader is still served. MUST NOT block on anything but
        the local disk.
        """


class NotProven(RemoteUnavailable):
    """Local bytes of one version must stay for now, whatever S3 says of
    others: it was missing there and is sent again, for one."""

    counter = 'remote_not_proven'


class Witness(abc.ABC):
    """Asks S3 again for the copy in a record.

    The gateway implements it. A call may wait for S3: it MUST NOT be made
    with a version's lock held.
    """

    @abc.abstractmethod
    def ask_ahead(self, leaving: Sequence[LocalVersion]) -> None:
        """Ask for several at once, so that :meth:`proven` has its answers
        soon. Never raises; after a failure the key is asked for again there.
        """

    @abc.abstractmethod
    def proven(self, local: LocalVersion) -> RemoteCopy:
        """The copy on record, if S3 said a moment ago that it is there.

        A copy that is missing or differs is repaired if all bytes are here:
        the record stops claiming it, and they are sent again.

        :raises NotProven: S3 lacks it or cannot give it now; it is sent again
            if all bytes are here
        :raises RemoteUnavailable: S3 does not answer
        :raises RemoteCorrupt: S3 lacks it, and not all of its bytes are here
        :raises DssError: the answer is unknown
        """


class NoWitness(Witness):
    """Where there is no gateway, nothing can be left to S3 alone."""

    def ask_ahead(self, leaving: Sequence[LocalVersion]) -> None:
        """See :meth:`Witness.ask_ahead`."""

    def proven(self, local: LocalVersion) -> RemoteCopy:
        """See :meth:`Witness.proven`."""
        raise NotProven(
            '%s would be in S3 alone, and [gateway] is not enabled: S3 '
            'cannot be asked if it has it' % local.version.key, 1)


class Metrics(abc.ABC):
    """Counters and gauges; names are dotted and begin with ``gateway.``.

    MUST be cheap and never raise.
    """

    @abc.abstractmethod
    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter."""

    @abc.abstractmethod
    def gauge(self, name: str, value: float) -> None:
        """Set a gauge."""

    @abc.abstractmethod
    def timing(self, name: str, seconds: float) -> None:
        """Note how long something took."""


class Sink(abc.ABC):
    """Where a fetch goes: begin once, then write the bytes in order.

    May raise ``OSError``: its reader left. The fetch ends, the fill goes on.
    """

    @abc.abstractmethod
    def begin(self, reply: FetchReply) -> None:
        """Send the answer; bytes follow only if its status is 200."""

    @abc.abstractmethod
    def write(self, data: bytes) -> None:
        """Send some of the bytes."""
