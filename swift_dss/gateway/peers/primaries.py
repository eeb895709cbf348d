"""Ask the primaries for their newest state of an object before bytes go.

Object servers of ours are asked for up to a thousand objects in one request
(``wire.newest``); stock ones for one after the other, by HEAD, which needs
the object's name. Devices of this node are looked at. A server that does
not answer is not asked again for a while: its answers are None, and decisions
by them wait.

Plain sockets, no eventlet; blocks up to a few seconds a server, or for as
long as a server reads a version that it is to prove.
"""

from __future__ import annotations

import abc
import threading
from dataclasses import replace
from typing import (
    Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence)
from urllib.parse import quote

from swift_dss.core.errors import DamagedRecord, TierUnavailable
from swift_dss.core.limits import MAX_ASKED
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.ranks import NoRing, Ranks
from swift_dss.gateway.peers.servers import FAILURES, Server, request
from swift_dss.gateway.ports import LocalVersions
from swift_dss.io.workers import CLOCK, Clock
from swift_dss.strategy.agreement import Answer
from swift_dss.wire import names
from swift_dss.wire import newest as wire

#: A server that did not answer is left alone for so long, and one that did
#: not know our question is asked by HEAD for so long.
_DOWN_SECONDS = 20.0
_STOCK_SECONDS = 600.0
#: A server's answers to a question that it does not know.
_UNKNOWN = frozenset((400, 404, 405, 412, 501))
#: Between two stock answers about one object: Swift's own headers.
_HEAD = {'User-Agent': 'swift-dss-gateway',
         # An expired object exists until the expirer deletes it.
         'X-Backend-Open-Expired': 'true',
         'X-Backend-Allow-Reserved-Names': 'true'}
Answers = List[Optional[Answer]]


#: The newest state of an object on a device of this node, with or without its
#: S3 key; raises TierUnavailable if the device is missing.
Look = Callable[[VersionId, str, bool], Answer]


class Wanted(NamedTuple):
    """An object to ask about.

    :param version: any of it; its device only matters to
        :meth:`Primaries.prove`
    :param name: ``/account/container/object``, or '' if unknown: stock servers
        cannot be asked then
    """

    version: VersionId
    name: str = ''


class Primaries(abc.ABC):
    """Asks. Thread-safe."""

    @abc.abstractmethod
    def ask(self, wanted: Sequence[Wanted],
            records: bool = False) -> List[Answers]:
        """Each primary's state of each object, in ring order; None if unknown,
        and a single None if there is no ring for the object.

        :param records: ask also which S3 key its record names; stock
            servers can not say that
        """

    def prove(self, wanted: Wanted) -> Answers:
        """The same of one object, with records; primaries that say that
        they have all bytes of ``wanted.version`` read them, and say whether
        they are right. Of an erasure-coded object each answers for the
        fragment that it has.

        Stock servers and older ones of ours prove nothing, nor does the
        device of ``wanted.version``.
        """
        return self.ask([wanted], True)[0]


class Peers(NamedTuple):
    """The other nodes of an object, and the ranks of all."""

    ranks: Ranks
    primaries: Primaries


class _Place(NamedTuple):
    """One question to one server, and where its answer belongs."""

    asked: wire.Asked
    name: str
    into: Answers
    at: int


class RingPrimaries(Primaries):
    """The primaries by the rings in force.

    :param look: the state on a device of this node
    :param is_sound: reads a version of a device of this node; True if all of
        its bytes are there and right
    """

    def __init__(self, ranks: Ranks, look: Look,
                 clock: Clock = CLOCK,
                 is_sound: Callable[[VersionId, str], bool]
                 = lambda version, partition: False) -> None:
        self._ranks = ranks
        self._look_at = look
        self._clock = clock
        self._is_sound = is_sound
        self._lock = threading.Lock()
        self._down: Dict[Server, float] = {}
        self._stock: Dict[Server, float] = {}

    def ask(self, wanted: Sequence[Wanted],
            records: bool = False) -> List[Answers]:
        """See :meth:`Primaries.ask`."""
        return self._asked(wanted, records, False)

    def prove(self, wanted: Wanted) -> Answers:
        """See :meth:`Primaries.prove`."""
        return self._asked([wanted], True, True)[0]

    def _asked(self, wanted: Sequence[Wanted], records: bool,
               prove: bool) -> List[Answers]:
        answers: List[Answers] = []
        there: Dict[Server, List[_Place]] = {}
        for version, name in wanted:
            try:
                partition, nodes = self._ranks.primaries(
                    version.policy, version.object_hash)
            except NoRing:
                # The primaries are unknown: decisions must wait.
                answers.append([None])
                continue
            if prove:
                version = replace(version, frag_index=None)
            mine: Answers = [None] * len(nodes)
            answers.append(mine)
            for at, node in enumerate(nodes):
                gathered = self._look(version, partition, node, records)
                if gathered is not None:
                    mine[at] = gathered if not prove else \
                        self._proven(version, partition, node, gathered)
                    continue
                there.setdefault((node['ip'], int(node['port'])), []).append(
                    _Place(wire.Asked(
                        node['device'], version.policy, partition,
                        version.object_hash, version.frag_index),
                        name, mine, at))
        for server, places in there.items():
            for at in range(0, len(places), MAX_ASKED):
                self._ask(server, places[at:at + MAX_ASKED], records, prove)
        return answers

    def _proven(self, version: VersionId, partition: str,
                node: Mapping[str, Any], answer: Answer) -> Answer:
        return answer._replace(is_proven=(
            answer.is_local and answer.timestamp == version.timestamp
            and node['device'] != version.device and self._is_sound(
                replace(version, device=node['device']), partition)))

    def _look(self, version: VersionId, partition: str,
              node: Mapping[str, Any], records: bool) -> Optional[Answer]:
        """The state on a device of this node; None if it is another node's."""
        if not self._ranks.is_here(node):
            return None
        here = VersionId(node['device'], version.policy,
                         version.object_hash, version.timestamp,
                         version.frag_index)
        try:
            return self._look_at(here, partition, records)
        except (TierUnavailable, DamagedRecord):
            # Or another server at this address has it.
            return None

    def _ask(self, server: Server, places: List[_Place],
             records: bool, prove: bool) -> None:
        if self._is_in(self._down, server):
            return
        try:
            if not self._is_in(self._stock, server):
                if self._ask_ours(server, wire.Question(
                        [place.asked for place in places], records, prove),
                        places):
                    return
                self._note(self._stock, server, _STOCK_SECONDS)
            if not records:
                self._ask_stock(server, places)
        except (*FAILURES, DamagedRecord):
            self._note(self._down, server, _DOWN_SECONDS)

    def _ask_ours(self, server: Server, question: wire.Question,
                  places: List[_Place]) -> bool:
        """False if the server does not know our question."""
        status, _, body = request(
            server, 'POST', names.NEWEST_PATH, {},
            wire.encode_question(question))
        if status in _UNKNOWN:
            return False
        if status != 200:
            raise DamagedRecord('status %d' % status)
        for place, said in zip(places, wire.decode_answer(
                body, len(places))):
            place.into[place.at] = None if said is None else Answer(*said)
        return True

    def _ask_stock(self, server: Server, places: List[_Place]) -> None:
        for place in places:
            if place.name:
                place.into[place.at] = _head(server, place)

    def _is_in(self, until: Dict[Server, float], server: Server) -> bool:
        with self._lock:
            return until.get(server, 0.0) > self._clock.monotonic()

    def _note(self, until: Dict[Server, float], server: Server,
              seconds: float) -> None:
        with self._lock:
            until[server] = self._clock.monotonic() + seconds


def looks_at(local: LocalVersions) -> Look:
    """At the devices behind a port."""
    def look(version: VersionId, partition: str, records: bool) -> Answer:
        said = local.newest_record(version, partition) if records \
            else (local.newest(version, partition) or '', '', False)
        # Look here after the object's folder: a version that is quarantined
        # between the two looks is seen in one of them.
        return Answer(*said, local.newest_in_quarantine(version))
    return look


def _head(server: Server, place: _Place) -> Optional[Answer]:
    """A stock server's state of one object."""
    status, headers, _ = request(
        server, 'HEAD', quote('/%s/%s%s' % (
            place.asked.device, place.asked.partition, place.name),
            errors='surrogatepass'), dict(_HEAD, **{
                'X-Backend-Storage-Policy-Index': str(place.asked.policy)}))
    if status == 404:
        # With a timestamp: a tombstone. No other file has one: Swift opens
        # expired objects.
        return Answer(headers.get('x-backend-timestamp', ''), '', False,
                      None)
    if status // 100 == 2:
        # The data file's: a POST has a newer one and changes no bytes.
        said = headers.get('x-backend-data-timestamp', '')
        return Answer(said, '', False, None) if said else None
    return None
