"""The word of each primary of an object or a container, and its clock.

A look at the newest of the replicas that answer is no proof: the only ones
that know better may be away. Steps that cannot be taken back (a deletion, the
end of a row that leads to unfinished work) need the word of all primaries.
"""

from __future__ import annotations

import email.utils
from types import MappingProxyType
from typing import Any, List, Mapping, NamedTuple, Optional

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.request_helpers import get_ip_port
from swift.common.swob import wsgi_quote, wsgi_to_str
from swift.common.utils import quorum_size

from swift_dss.io import waiting
from swift_dss.proxy import reclassify
from swift_dss.proxy.replicas import Node, Replicas
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.rows import Unreachable
from swift_dss.proxy.wsgi import App, Env
from swift_dss.wire import registers

_TIMEOUT_SECONDS = 5.0
_MOST_BYTES = 1024
_AT = 'X-Backend-Timestamp'
_DATA_AT = 'X-Backend-Data-Timestamp'
#: Headers that POSTs set, of those that matter here.
_POSTED = 'x-object-transient-sysmeta-'


class Looked(NamedTuple):
    """An object.

    :param is_alike: all primaries that answered and have its data have the
        same classes
    """

    headers: Mapping[str, str]
    is_alike: bool = True


class _Word(NamedTuple):
    """A primary's answer to a HEAD.

    :param at: its clock, to the second; None if it does not say
    """

    status: int
    headers: Mapping[str, str]
    at: Optional[float]

    @property
    def is_success(self) -> bool:
        """It has what was asked for."""
        return self.status // 100 == 2


class _Placed(NamedTuple):
    """The servers of an object or a container.

    :param policy: Swift's storage policy of an object
    """

    partition: int
    nodes: List[Node]
    policy: Any = None


class Primaries:
    """Asks them.

    :param app: what is below the filter; it knows the rings
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._replicas = Replicas(app)

    def look(self, env: Env, target: Target) -> Optional[Mapping[str, str]]:
        """The headers of an object; None if there is none: see
        :meth:`look_closely`."""
        looked = self.look_closely(env, target)
        return looked and looked.headers

    def look_closely(self, env: Env, target: Target) -> Optional[Looked]:
        """The object; None if there is none.

        Swift's ``X-Newest`` tells the newest data from others, but no POST
        from the one before. So what POSTs set is that of the newest primary,
        of so many that one of them took part in each write.

        :raises Unreachable: too few answer, or they are not at one
        """
        headers = reclassify.look(env, self._app, target, newest=True)
        placed = None if headers is None else self._placed(env, target)
        if headers is None:
            return None
        if placed is None:
            return Looked(headers)
        heard = self._heard(env, target, placed)
        data_at = headers.get(_DATA_AT) or ''
        if any((word.headers.get(_DATA_AT if word.is_success else _AT) or ''
                ) > data_at for word in heard):
            raise Unreachable('%s: its servers are not at one' % target.path)
        told = [word.headers for word in heard if word.is_success
                and word.headers.get(_DATA_AT) == data_at]
        newest = max(told, key=lambda said: said.get(_AT) or '', default=None)
        if newest is None or not newest.get(_AT):
            return Looked(headers)
        return Looked(dict(
            {name: value for name, value in headers.items()
             if not name.lower().startswith(_POSTED)},
            **{name: value for name, value in newest.items()
               if name.lower().startswith(_POSTED)}),
            all(registers.classes_said(said) == registers.classes_said(newest)
                for said in told))

    def heard(self, env: Env, target: Target) -> List[Mapping[str, str]]:
        """The headers of so many primaries of an object that one of them took
        part in each write; those that have none are left out. Of the newest
        where the pipeline ends in something without rings.

        :raises Unreachable: too few answer
        """
        placed = self._placed(env, target)
        if placed is None:
            headers = reclassify.look(env, self._app, target, newest=True)
            return [] if headers is None else [headers]
        return [word.headers for word in self._heard(env, target, placed)
                if word.is_success]

    def agree(self, env: Env, target: Target,
              also: Mapping[str, str] = MappingProxyType({})
              ) -> Optional[List[Mapping[str, str]]]:
        """The headers of all primaries that have it.

        :param target: an object, or a container (no ``obj``)
        :param also: more headers of the question
        :returns: None where the pipeline ends in something without rings
        :raises Unreachable: one of them does not answer
        """
        placed = self._placed(env, target)
        if placed is None:
            return None
        words = self._words(env, target, placed, also)
        for word in words:
            if not word.is_success and word.status != 404:
                raise Unreachable('%s: a primary server gives %s' % (
                    target.path, word.status or 'no answer'))
        return [word.headers for word in words if word.is_success]

    def clocks(self, env: Env, target: Target) -> Optional[List[float]]:
        """Clocks of the servers, in seconds since the epoch; [] if most of
        them do not tell theirs, and None as in :meth:`agree`."""
        placed = self._placed(env, target)
        if placed is None:
            return None
        words = self._words(env, target, placed, {})
        told = [word.at for word in words if word.at is not None]
        return told if 2 * len(told) > len(words) else []

    def _heard(self, env: Env, target: Target,
               placed: _Placed) -> List[_Word]:
        """Of those that answer, if they are enough for :meth:`heard`."""
        words = self._words(env, target, placed, {})
        heard = [word for word in words if word.is_success
                 or word.status == 404]
        if len(heard) < enough_of(len(words), placed.policy):
            raise Unreachable('%s: only %d of %d primary servers answer' % (
                target.path, len(heard), len(words)))
        return heard

    def _placed(self, env: Env, target: Target) -> Optional[_Placed]:
        """None where the pipeline ends in something without rings."""
        proxy = self._replicas.proxy
        if not hasattr(proxy, 'get_object_ring'):
            return None
        if not target.obj:
            return _Placed(*proxy.container_ring.get_nodes(
                *map(wsgi_to_str, target[:2])))
        placed = self._replicas.of(dict(env, PATH_INFO=target.path), target)
        if placed is None:
            raise Unreachable('%s: its storage policy is unknown'
                              % target.path)
        return _Placed(placed.partition, placed.nodes, placed.policy)

    def _words(self, env: Env, target: Target, placed: _Placed,
               also: Mapping[str, str]) -> List[_Word]:
        """Their answers; a status of 0 is none."""
        headers = dict(also, **{'X-Trans-Id': str(
            env.get('swift.trans_id') or '-')})
        if placed.policy is not None:
            headers['X-Backend-Storage-Policy-Index'] = str(
                int(placed.policy))
        path = '/%d%s' % (placed.partition, target.path[len('/v1'):])
        return list(waiting.together(
            lambda node: self._ask(node, path, headers), placed.nodes))

    def _ask(self, node: Mapping[str, Any], path: str,
             headers: Mapping[str, str]) -> _Word:
        host, port = get_ip_port(node, dict(headers))
        try:
            status, said, _body = waiting.fetch(
                host, int(port), wsgi_quote('/' + node['device']) + wsgi_quote(
                    path), headers, _MOST_BYTES, _TIMEOUT_SECONDS, 'HEAD',
                None, float(self._replicas.proxy.conn_timeout))
        except OSError:
            return _Word(0, {}, None)
        return _Word(status, HeaderKeyDict(said.items()),
                     _date(said.get('Date') or ''))


def enough_of(servers: int, policy: Any) -> int:
    """So many of an object's primaries that one of them took part in each PUT
    and in each POST: of an erasure-coded object fewer have to take a POST.

    :param policy: Swift's storage policy
    """
    return 1 + servers - min(int(policy.quorum), int(quorum_size(servers)))


def _date(text: str) -> Optional[float]:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None
