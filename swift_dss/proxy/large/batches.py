"""HEADs and class POSTs of many segments, in few requests to object servers.

One request carries up to a hundred of those that one object server would get
(``wire.large.many``), whatever their devices. This asks the primaries only,
and believes what is plain: a HEAD that succeeds, a POST that a quorum took.
All else is left to the caller and goes through Swift's proxy: objects
that are on handoffs, containers that are sharded, servers that do not know
such requests. A class POST may be sent twice.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from typing import (
    Any, Callable, DefaultDict, Dict, Iterable, List, Mapping, NamedTuple,
    Optional, Sequence, Set, Tuple)

from swift.common.request_helpers import get_ip_port
from swift.common.storage_policy import POLICIES
from swift.common.swob import str_to_wsgi, wsgi_to_str
from swift.common.utils import quorum_size
from swift.proxy.controllers.base import get_container_info
from swift.proxy.controllers.obj import num_container_updates

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import LARGE_CONCURRENCY, MAX_QUESTION_BYTES
from swift_dss.io import waiting
from swift_dss.proxy.pipeline import below_of
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.primaries import enough_of
from swift_dss.proxy.wsgi import App, Env
from swift_dss.wire import names, registers
from swift_dss.wire.large import many

#: Objects of one request: a tenth of a second of an object server's work.
_AT_ONCE = 100
#: A server that gave no answer to such a request is asked again after this.
_AGAIN_SECONDS = 60.0
_TIMEOUT_SECONDS = 20.0
#: Of an answer: a hundred objects with all metadata that Swift lets them have.
_MOST_BYTES = 8 * MAX_QUESTION_BYTES
_EC_SIZE = 'X-Object-Sysmeta-Ec-Content-Length'

Server = Tuple[str, int]
Headers = Mapping[str, str]


class _Home(NamedTuple):
    """What objects of one container have in common.

    :param updates: of each request to the primaries of an object, the
        headers that name databases of the container
    """

    ring: Any
    policy: int
    updates: Sequence[Dict[str, str]]


class _Place(NamedTuple):
    server: Server
    ask: many.Ask
    target: Target


class Looked(NamedTuple):
    """An object, by the newest of its primaries.

    :param is_settled: a quorum of all its primaries has these classes
    """

    headers: Headers
    is_settled: bool


class Batches:
    """Of one process.

    :param app: what is below the filter; it knows the rings
    """

    def __init__(self, app: App,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock
        #: Servers that are not asked, until then; True if they answer, but
        #: not this.
        self._silent: Dict[Server, Tuple[float, bool]] = {}

    def look(self, env: Env, targets: Iterable[Target]
             ) -> Dict[Target, Looked]:
        """Those of which :func:`~.primaries.enough_of` primaries tell: what
        a segment is to have follows from all that it was given before. More
        are asked where these do not answer.
        """
        homes = self._homes(env)
        places: Dict[Target, List[_Place]] = {}
        enough: Dict[Target, int] = {}
        for target in targets:
            home = homes(target)
            if home is not None:
                partition, nodes = home.ring.get_nodes(*_plain(target))
                policy = POLICIES.get_by_index(home.policy)
                enough[target] = enough_of(len(nodes), policy)
                places[target] = sorted((
                    _place('HEAD', node, partition, target,
                           self._common(env, home))
                    for node in below_of(self._app)[-1].sort_nodes(
                        nodes, policy=policy)), key=self._is_silent)
        heads: DefaultDict[Target, List[Headers]] = defaultdict(list)
        heard: DefaultDict[Target, int] = defaultdict(int)

        def hear(asked: Sequence[_Place]) -> None:
            for target, said in self._ask_all(asked):
                if said is not None and said.status in (200, 404):
                    heard[target] += 1
                    if said.status == 200:
                        heads[target].append(_sized(said.headers))

        hear([place for target, mine in places.items()
              for place in mine[:enough[target]]])
        hear([place for target, mine in places.items()
              if heard[target] < enough[target]
              for place in mine[enough[target]:]])
        return {target: _newest(told, quorum_size(len(places[target])))
                for target, told in heads.items()
                if heard[target] >= enough[target]}

    def post(self, env: Env, maps: Mapping[Target, Headers],
             at: Mapping[Target, str]) -> Set[Target]:
        """POST class maps, and nothing else.

        :param maps: the headers that spell them
        :param at: when they were decided, as timestamps
        :returns: those that a quorum of the primaries took, and none refused:
            one that did may have newer classes
        """
        homes = self._homes(env)
        places: List[_Place] = []
        wanted: Dict[Target, int] = {}
        for target, headers in maps.items():
            home = homes(target)
            if home is None:
                continue
            partition, nodes = home.ring.get_nodes(*_plain(target))
            if len(nodes) != len(home.updates):
                continue
            wanted[target] = quorum_size(len(nodes))
            places += [_place('POST', node, partition, target, dict(
                self._common(env, home), **headers, **update,
                **registers.class_alone(at[target])))
                for node, update in zip(nodes, home.updates)]
        accepted: DefaultDict[Target, int] = defaultdict(int)
        for target, said in self._ask_all(places):
            if said is None or said.status == 409:
                wanted.pop(target, None)
            else:
                accepted[target] += said.status == 202
        return {target for target, count in wanted.items()
                if accepted[target] >= count}

    def _is_silent(self, place: _Place) -> bool:
        return self._clock() < self._silent.get(place.server, (0.0,))[0]

    def _common(self, env: Env, home: _Home) -> Dict[str, str]:
        headers = {
            'X-Backend-Storage-Policy-Index': str(home.policy),
            'X-Trans-Id': str(env.get('swift.trans_id') or '-')}
        power = getattr(home.ring, 'next_part_power', None)
        if power:
            headers['X-Backend-Next-Part-Power'] = str(power)
        return headers

    def _homes(self, env: Env) -> Callable[[Target], Optional[_Home]]:
        """Looks homes up; each container once."""
        known: Dict[Tuple[str, str], Optional[_Home]] = {}
        proxy = below_of(self._app)[-1]

        def find(target: Target) -> Optional[_Home]:
            key = target.account, target.container
            if key not in known:
                known[key] = self._home(env, proxy, target)
            return known[key]

        return find

    def _home(self, env: Env, proxy: Any, target: Target) -> Optional[_Home]:
        if not hasattr(proxy, 'get_object_ring'):
            return None
        asked = dict(env, PATH_INFO='/v1/%s/%s' % target[:2])
        info = get_container_info(asked, self._app, swift_source='DSS')
        if info['status'] // 100 != 2 or \
                info.get('sharding_state', 'unsharded') != 'unsharded':
            return None
        index = int(info['storage_policy'])
        ring = proxy.get_object_ring(index)
        partition, databases = proxy.container_ring.get_nodes(
            *_plain(target)[:2])
        return _Home(ring, index, dealt(
            partition, databases, int(ring.replica_count),
            POLICIES.get_by_index(index)))

    def _ask_all(self, places: Sequence[_Place]
                 ) -> Iterable[Tuple[Target, Optional[many.Said]]]:
        """What servers say of each. A place is left out if its server cannot
        be reached; None if it can, and does not know such requests."""
        by_server: DefaultDict[Server, List[_Place]] = defaultdict(list)
        for place in places:
            by_server[place.server].append(place)
        parts = [row[start:start + _AT_ONCE] for row in by_server.values()
                 for start in range(0, len(row), _AT_ONCE)]
        # The servers' parts in turn, so that all are at work.
        todo = iter(sorted(parts, key=lambda part: part[0].target))

        def work(_number: int) -> List[Tuple[Target, Optional[many.Said]]]:
            said: List[Tuple[Target, Optional[many.Said]]] = []
            for part in todo:
                said += self._ask(part)
            return said

        for answers in waiting.together(
                work, range(min(LARGE_CONCURRENCY, len(parts)))):
            yield from answers

    def _ask(self, part: Sequence[_Place]
             ) -> List[Tuple[Target, Optional[many.Said]]]:
        server = part[0].server
        until, answers = self._silent.get(server, (0.0, False))
        if self._clock() >= until:
            self._silent.pop(server, None)
            try:
                status, _, raw = waiting.fetch(
                    *server, names.MANY_PATH, {
                        'X-Trans-Id': part[0].ask.headers['X-Trans-Id']},
                    _MOST_BYTES,
                    _TIMEOUT_SECONDS, 'POST', many.encode_question(
                        [place.ask for place in part]),
                    float(below_of(self._app)[-1].conn_timeout))
                if status == 200:
                    said = many.decode_answer(raw, len(part))
                    return [(place.target, each)
                            for place, each in zip(part, said)]
                if status == 413:
                    # Of these maps alone: they are long.
                    return [(place.target, None) for place in part]
                answers = True
            except OSError:
                answers = False
            except DamagedRecord:
                answers = True
            self._silent[server] = self._clock() + _AGAIN_SECONDS, answers
        return [(place.target, None) for place in part] if answers else []


def _newest(heads: Sequence[Headers], needed: int) -> Looked:
    """
    :param needed: primaries that have its classes if it is settled
    """
    newest = max(heads, key=_age)
    return Looked(newest, needed <= sum(
        _age(headers) == _age(newest) for headers in heads))


def _age(headers: Headers) -> Tuple[str, str, List[Tuple[str, str]]]:
    """Of its classes; two of one time may differ."""
    return (headers.get('X-Backend-Data-Timestamp') or '',
            headers.get(names.MAP_AT) or '',
            registers.classes_said(headers))


def _place(method: str, node: Mapping[str, Any], partition: int,
           target: Target, headers: Dict[str, str]) -> _Place:
    host, port = get_ip_port(node, headers)
    path = '/%s/%d/%s/%s/%s' % (
        str_to_wsgi(node['device']), partition, *target)
    return _Place((host, int(port)), many.Ask(method, path, headers), target)


def _plain(target: Target) -> Tuple[str, str, str]:
    account, container, obj = target
    return wsgi_to_str(account), wsgi_to_str(container), wsgi_to_str(obj)


def _sized(headers: Headers) -> Headers:
    """A fragment's headers, with the object's size, as Swift's proxy gives
    them."""
    sized = {name.title(): value for name, value in headers.items()}
    if _EC_SIZE in sized:
        sized['Content-Length'] = sized[_EC_SIZE]
    return sized


def dealt(partition: int, databases: Sequence[Mapping[str, Any]],
             replicas: int, policy: Any) -> List[Dict[str, str]]:
    """Which replica's request names which databases, as Swift's proxy deals
    them."""
    told: List[List[Mapping[str, Any]]] = [[] for _ in range(replicas)]
    # Rings count replicas in floats.
    needed = math.ceil(num_container_updates(
        len(databases), quorum_size(len(databases)), replicas,
        policy.quorum))
    for number in range(needed):
        told[number % replicas].append(databases[number % len(databases)])
    return [{
        'X-Container-Partition': str(partition),
        'X-Container-Host': ','.join(
            '%s:%s' % get_ip_port(node, {}) for node in nodes),
        'X-Container-Device': ','.join(node['device'] for node in nodes),
        'X-Container-Root-Db-State': 'unsharded'} if nodes else {}
        for nodes in told]
