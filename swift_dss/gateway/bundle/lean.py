"""Protect members of this node's bundles on which other nodes lean.

Stubs travel as stubs: a record of another node, or of another drive, may
name a bundle that it does not keep. Before such a key goes, the primaries are
asked for the keys in their records. A member on which another node leans, or
may lean unknown to us, first goes to the version's own key. Every reader that
misses a bundle looks there (``own_record.own_copy``). This needs no message to
a node that may be away, and no forwarding record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, Iterable, Iterator, Tuple

from swift_dss.core.config import GatewayConf
from swift_dss.core.residency import RemoteCopy, Residency
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Member
from swift_dss.gateway.form import metadata
from swift_dss.gateway.peers.primaries import Answers, Primaries, Wanted
from swift_dss.gateway.ports import LocalReader, LocalVersion
from swift_dss.io.workers import Clock
from swift_dss.strategy.agreement import (
    Verdict, of_buried, of_member, of_place)
from swift_dss.wire import bundle, classmap

#: Members of one question.
_AT_ONCE = 1000
#: Sends a version, which may have no file on this node, to its own key.
SendApart = Callable[[LocalVersion, LocalReader], RemoteCopy]


class Leaning:
    """Asks, and sends apart.

    :param send: see :data:`SendApart`
    :param clock: for ages; see ``TrustedClock``
    """

    def __init__(self, conf: GatewayConf, primaries: Primaries,
                 send: SendApart, clock: Clock) -> None:
        self._conf = conf
        self._primaries = primaries
        self._send = send
        self._clock = clock

    def verdicts(self, key: str, members: Iterable[Member]
                 ) -> Dict[str, Verdict]:
        """The verdicts on members of the bundle ``key`` that no device of this
        node has, by version.
        """
        return {version.key: of_member(
            version.timestamp, key, said, self._clock.wall(),
            self._conf.reclaim_age_seconds, version.frag_index is not None)
            for version, said in self._asked(members)}

    def leaned_on(self, key: str, members: Iterable[Member]
                  ) -> Dict[str, Verdict]:
        """Judge the bundle ``key``, whose living members have another place by
        now: NEEDED if a record still names it, OPEN if unknown; by version.
        """
        return {version.key: of_place(version.timestamp, key, said)
                for version, said in self._asked(members)}

    def buried(self, key: str, members: Iterable[Member]
               ) -> Dict[str, Verdict]:
        """The same of members that are dead, or were sent apart."""
        return {version.key: of_buried(version.timestamp, key, said)
                for version, said in self._asked(members)}

    def _asked(self, members: Iterable[Member]
               ) -> Iterator[Tuple[VersionId, Answers]]:
        versions = [member.version for member in members]
        for at in range(0, len(versions), _AT_ONCE):
            page = versions[at:at + _AT_ONCE]
            yield from zip(page, self._primaries.ask(
                [Wanted(version) for version in page], True))

    def is_forgotten(self, since: float) -> bool:
        """True if silence since then counts for nothing."""
        return since + self._conf.reclaim_age_seconds < self._clock.wall()

    def send_apart(self, member: Member, record: bundle.Record,
                   data: bytes) -> None:
        """Have a member under the version's own key, proven.

        :raises DssError: it is not there (yet)
        """
        said = metadata.of_record(record)
        self._send(LocalVersion(
            replace(said.version, device=member.version.device),
            member.partition, said.etag, said.metadata,
            Residency.whole(said.content_length),
            classmap.decode(said.class_map_text)), BytesReader(data))


class BytesReader(LocalReader):
    """A version whose bytes are in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, offset: int, length: int) -> bytes:
        """See :meth:`LocalReader.read`."""
        return self._data[offset:offset + length]

    def close(self) -> None:
        """Nothing is open."""
