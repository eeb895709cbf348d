"""An object that is about to be changed on behalf of nobody.

Every change has the time of the version that was looked at, and so loses
against all that came later. Two that follow from one look, by two proxies,
reach servers in any order: whose decision it is (:class:`By`) is a part of
the time, so that all servers end with the same one.
"""

from __future__ import annotations

import enum
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from swift.common.swob import HTTPException, wsgi_quote
from swift.common.utils import Timestamp, close_if_possible
from swift.common.wsgi import make_pre_authed_request

from swift_dss.core.errors import BadClassInput
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.proxy import reclassify
from swift_dss.proxy.bodies import outgoing, stored
from swift_dss.proxy.large.alone import Alone
from swift_dss.proxy.large.objects import Decided, LargeObjects
from swift_dss.proxy.large.reading import Whole
from swift_dss.proxy.large.segments import after, post_alone, target_of
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.services import Services
from swift_dss.proxy.target import SEGMENTS_SUFFIX, Target
from swift_dss.proxy.trusted import set_headers
from swift_dss.proxy.work.clock import Clock
from swift_dss.proxy.work.primaries import Primaries
from swift_dss.proxy.work.rows import Unreachable
from swift_dss.proxy.wsgi import App, Env
from swift_dss.wire import classmap, names

#: Of a deletion's age: a version that no primary has heard of for so long is
#: not there. Less than any ``reclaim_age``, so that servers that are away get
#: the tombstone.
_UNHEARD_SECONDS = 86400.0
#: Between decisions of two: a large object takes some, one behind the other.
_TICKS = 8
#: Beside its own container: of ``swift upload -S``, and of parts in S3.
_SEGMENTS = '', SEGMENTS_SUFFIX, '_segments'


class By(enum.IntEnum):
    """Who decides; of two decisions the later one here stands."""

    RULE = 0
    RESTORATION = 1
    CLIENT = 2


class Subject(NamedTuple):
    """An object, as the newest of its servers has it.

    :param headers: of the HEAD
    :param data_at: timestamp of its data
    :param class_at: of the classes that a POST set; '' if none did
    :param looked_at: when it was asked for; seconds since the epoch
    :param is_alike: no server was seen to have other classes
    """

    target: Target
    headers: Mapping[str, str]
    data_at: str
    class_at: str
    looked_at: float
    is_alike: bool = True

    @property
    def size(self) -> Optional[int]:
        """Bytes; None for a DLO, which nobody has counted."""
        return outgoing.object_size(self.headers)

    @property
    def class_map(self) -> ClassMap:
        """In force."""
        return stored.effective_map(self.headers) or UNCLASSIFIED_MAP

    @property
    def given_by(self) -> str:
        """``lifecycle``; '' if a client gave the classes, or nobody."""
        return self.headers.get(names.GIVEN_BY) or ''

    def next_at(self, by: By) -> str:
        """A timestamp: just after all of it that may be changed."""
        at = after('', self.data_at, self.class_at)
        for _tick in range(by * _TICKS):
            at = after('', at)
        return at


class Subjects:
    """Looks at objects and changes them.

    :param app: what is below the filter
    """

    def __init__(self, app: App, services: Services,
                 large: LargeObjects, alone: Alone, primaries: Primaries,
                 clock: Clock) -> None:
        self._app = app
        self._services = services
        self._large = large
        self._alone = alone
        self.primaries = primaries
        self.clock = clock

    def look(self, env: Env, target: Target) -> Optional[Subject]:
        """The object; None if there is none, or a symbolic link.

        :raises Unreachable: it cannot be looked at
        """
        looked_at = self.clock.now()
        looked = self.primaries.look_closely(env, target)
        if looked is None or stored.is_symlink(looked.headers):
            return None
        headers = looked.headers
        return Subject(
            target, headers, _data_at(headers),
            stored.posted(headers).get(names.MAP_AT, ''), looked_at,
            looked.is_alike)

    def give(self, env: Env, subject: Subject, class_map: ClassMap,
             beside: Mapping[str, str], by: By) -> bool:
        """Give it, and all its segments, other classes.

        :param beside: headers that go with them
        :param by: of two who saw the same, the higher one's stay
        :returns: False if it has changed since the look
        :raises Unreachable: too few of its servers answered
        :raises TooManySpans: the map does not fit its headers
        :raises BadClassInput: segments lie in containers of others
        :raises OfLargeObject: it is a segment, and its manifest lives
        """
        if subject.headers.get(names.CLAIMS):
            self._alone.check(dict(env, PATH_INFO=subject.target.path),
                              subject.target, subject.headers)
        at = subject.next_at(by)
        if stored.is_manifest(subject.headers):
            status = self._give_large(env, subject, class_map, Decided(
                at, beside))
        else:
            status = post_alone(env, self._app, subject.target, dict(
                classmap.to_headers(names.TRANSIENT_MAP, class_map),
                **beside), at)
        return self._is_done(subject, status)

    def expire(self, env: Env, subject: Subject) -> bool:
        """Delete it, if all its primaries know of no newer version.

        Swift's expirer deletes at the time that an object's end names, and
        a server that missed an upload of after the look would spread that
        over the upload. At the time of the data a tombstone would be old
        enough to be reclaimed before all servers have it; so it is from
        before the look, by more than uploads stay unheard of.

        :returns: False if it has changed since the look
        :raises Unreachable: not all of its servers answered
        """
        heads = self.primaries.agree(env, subject.target)
        if heads and max(_data_at(headers) for headers in heads) \
                > subject.data_at:
            return False
        request = make_pre_authed_request(
            env, method='DELETE', path=wsgi_quote(subject.target.path),
            headers={'X-Timestamp': max(
                after('', subject.data_at),
                Timestamp(subject.looked_at - _UNHEARD_SECONDS).internal)},
            swift_source='DSS')
        request.environ['QUERY_STRING'] = ''
        response = request.get_response(self._app)
        close_if_possible(response.app_iter)
        return self._is_done(subject, response.status_int, 204)

    def _is_done(self, subject: Subject, status: int,
                 wanted: int = 202) -> bool:
        if status in (404, 409):
            return False
        if status != wanted:
            raise Unreachable('%s: its servers say %d' % (
                subject.target.path, status))
        return True

    def _give_large(self, env: Env, subject: Subject, class_map: ClassMap,
                    decided: Decided) -> int:
        request = make_pre_authed_request(
            env, method='POST', path=wsgi_quote(subject.target.path),
            swift_source='DSS')
        request.environ['QUERY_STRING'] = ''
        said: List[int] = [503]

        def start(status: str, *_rest: Any) -> None:
            said.append(int(status[:3]))

        asked = ProxyRequest(request.environ, start, subject.target,
                             self._services.settings.current())

        def send(sent: ProxyRequest, headers: Dict[str, str]) -> Any:
            set_headers(sent.env, headers)
            return reclassify.classify(sent.env, sent.start, self._app,
                                       sent.target, after('', decided.at))

        try:
            whole = self._large.look(asked, subject.headers)
            self._check_segments(env, subject.target, whole)
            close_if_possible(self._large.post(
                asked, whole, class_map, send, decided))
        except HTTPException as answer:
            said.append(answer.status_int)
        return said[-1]

    def _check_segments(self, env: Env, target: Target, whole: Whole) -> None:
        """Nobody is asked whether the owner of a manifest may write its
        segments: so those of containers that others may own are left alone.

        :raises BadClassInput: some lie there
        """
        inside = dict(env, PATH_INFO=target.path)
        ours = {target.container + suffix for suffix in _SEGMENTS}
        for use in whole.uses:
            container = target_of(inside, use.path).container \
                if use.path else target.container
            if container not in ours:
                raise BadClassInput(
                    target.path, 'segments lie in the container %s: POST a '
                    'class to the object instead' % container)


def _data_at(headers: Mapping[str, str]) -> str:
    return str(Timestamp(
        headers.get('X-Backend-Data-Timestamp')
        or headers.get('X-Timestamp') or 0).internal)
