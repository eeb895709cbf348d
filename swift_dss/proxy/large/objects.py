"""PUT and POST of a manifest with classes: they are its data's.

A PUT gives the segments their classes first, so that no manifest is there
whose segments lack them; a client that gets no answer says it again. A POST
is written down first (``proxy.large.records``).
"""

from __future__ import annotations

from typing import (
    Any, Callable, Dict, List, Mapping, NamedTuple, Optional)

from swift.common.swob import HTTPForbidden, Request, WsgiBytesIO
from swift.common.utils import Timestamp

from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import MAX_MANIFEST_BYTES
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.proxy import reclassify
from swift_dss.proxy.bodies import stored, versioned
from swift_dss.proxy.large import asker
from swift_dss.proxy.large.reading import Reader, Whole, read
from swift_dss.proxy.large.records import (
    LEASE_SECONDS, Record, Records)
from swift_dss.proxy.large.segments import Segments, after, post_alone
from swift_dss.proxy.large.spreading import Spreader, Work, shown
from swift_dss.proxy.large.worker import Worker, state_text
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.services import Services
from swift_dss.proxy.trusted import env_key
from swift_dss.proxy.work.clock import Every
from swift_dss.proxy.work.rows import Unreachable
from swift_dss.proxy.wsgi import App, Body, Env
from swift_dss.wire import classmap, names

Send = Callable[[ProxyRequest, Dict[str, str]], Body]

_NOT_ALL = 'Not every segment could be given its class; try again'

#: They move a manifest as it is: its segments know their classes.
_MOVERS = ('VW', 'OV')
_DLO = env_key(stored.DYNAMIC)
#: Seconds until a POST under way makes its lease longer.
_RENEW_SECONDS = LEASE_SECONDS / 3


class Decided(NamedTuple):
    """A decision about a manifest that no client made now.

    :param at: its timestamp; a manifest that is newer stays as it is. '' is
        now
    :param beside: headers that the manifest gets with its classes
    """

    at: str = ''
    beside: Mapping[str, str] = {}


#: A client's POST.
NOW = Decided()


class LargeObjects:
    """The manifest's side of the filter.

    :param app: what is below the filter
    :param most_at_once: segments that a POST waits for
    """

    def __init__(self, app: App, services: Services, segments: Segments,
                 most_at_once: int) -> None:
        self._app = app
        self._services = services
        self._segments = segments
        self._most_at_once = most_at_once
        self._reader = Reader(app)
        self._spreader = Spreader(app, segments, services.count)
        self._records = Records(app)
        self._worker = Worker(app, services, self._records, self._reader,
                              self._spreader)

    def notice(self, request: ProxyRequest,
               headers: Mapping[str, str]) -> None:
        """Swift's SLO, about to PUT a manifest, got this answer to a HEAD of
        a segment."""
        asker.notice(request.env)
        self._segments.notice(request.env, request.target, headers)

    @staticmethod
    def may_return(env: Env) -> None:
        """Auth lets this POST of a client pass, which object versioning may
        send again."""
        asker.notice(env)

    def put(self, request: ProxyRequest, class_map: ClassMap,
            is_named: bool) -> ClassMap:
        """A manifest is about to be stored; auth has been asked.

        :param is_named: the request names the classes; others give way
            where they cannot be given
        :returns: the classes that its bytes have; those that it was to have
            where its client's rights are not known
        :raises BadClassInput: ranges do not fit it
        :raises HTTPException: the segments cannot get the classes
        """
        if request.source in _MOVERS and not versioned.is_upload(
                request.env):
            return class_map
        is_given = is_named or class_map != UNCLASSIFIED_MAP
        client = asker.as_client(request.env)
        if client is None or not is_given and _DLO in request.env:
            return class_map
        try:
            whole = self._of_put(request)
            if not is_given:
                return shown(whole, self._spreader.seen(request.env, whole),
                             class_map, self._services.count)
            self._check(request, client, whole, class_map)
            return self._spread(request, whole, class_map,
                                Timestamp.now().internal)
        except BadClassInput:
            if is_named:
                raise
        except Unreachable as err:
            if is_named:
                raise err.answer(_NOT_ALL) from err
            self._services.logger.warning('dss: %s', err)
        except _Refused as err:
            if is_named:
                raise err.answer from None
        self._services.count('large.not_given')
        return UNCLASSIFIED_MAP

    def look(self, request: ProxyRequest,
             headers: Mapping[str, str]) -> Whole:
        """The large object that a POST is about.

        :param headers: of its manifest
        :raises HTTPException: it cannot be read now
        """
        try:
            return self._reader.stored(request.env, request.target,
                                       headers)
        except Unreachable as err:
            raise err.answer(_NOT_ALL) from err

    def look_for_file_form(self, request: ProxyRequest, given: Any,
                           answer: Any) -> Whole:
        """The large object that a GET or HEAD is about.

        :param given: headers of the answer about its manifest
        :param answer: its body
        :raises HTTPException: it cannot be read now
        """
        try:
            if stored.STATIC in given and request.method == 'GET':
                return self._reader.static(request.env, read(answer))
            return self._reader.stored(request.env, request.target, given)
        except Unreachable as err:
            raise err.answer(_NOT_ALL) from err

    def post(self, request: ProxyRequest, whole: Whole,
             class_map: ClassMap, send: Send,
             decided: Decided = NOW) -> Body:
        """Give the segments other classes, then the manifest.

        First it is written down what is to be done, so that another proxy
        does it if this one dies; until it is done the manifest says so.

        :param send: sends the client's POST, with these headers, and answers
        :raises HTTPException: the client may not, or nothing was begun
        """
        env, target = request.env, request.target
        try:
            self._check(request, asker.as_client(env), whole, class_map)
            record = Record(
                target, class_map, decided.at or Timestamp.now().internal,
                decided.beside)
            total = len({use.path for use in whole.uses if use.path})
            is_short = total <= self._most_at_once
            self._records.put(env, record, LEASE_SECONDS if is_short else 0)
        except Unreachable as err:
            raise err.answer(_NOT_ALL) from err
        except _Refused as err:
            raise err.answer from None
        headers = dict(classmap.to_headers(names.TRANSIENT_MAP, class_map),
                       **{names.STATE: state_text(record, 0, total)},
                       **record.beside)
        if is_short and self._is_marked(env, record, headers):
            shown_map = self._spread_marked(request, record, whole)
            if shown_map is not None:
                headers = dict(classmap.to_headers(
                    names.TRANSIENT_MAP, shown_map), **record.beside)
        # Only just newer than the mark: what a newer POST set stays.
        headers[names.MAP_AT] = after('', record.at)
        said: List[str] = []

        def start(status: str, *rest: Any) -> Any:
            said.append(status)
            return request.start(status, *rest)

        body = send(request._replace(start=start), headers)
        if names.STATE in headers:
            self._worker.begin(record)
        elif said and said[-1].startswith('2'):
            self._records.delete(env, record)
        return body

    def start_worker(self) -> None:
        """Look for work that others began."""
        self._worker.start()

    def _is_marked(self, env: Env, record: Record,
                   headers: Dict[str, str]) -> bool:
        return post_alone(env, self._app, record.target, headers,
                          record.at) == 202

    def _spread_marked(self, request: ProxyRequest, record: Record,
                       whole: Whole) -> Optional[ClassMap]:
        try:
            return self._spread(
                request, whole, record.class_map, record.at,
                lambda: self._worker.waits_for(request.env, record),
                self._renewing(request.env, record))
        except Unreachable as err:
            self._services.count('large.later')
            self._services.logger.warning('dss: %s', err)
            return None

    def _renewing(self, env: Env, record: Record) -> Callable[[int], None]:
        """What keeps the record ours while segments are done."""
        turn = Every(_RENEW_SECONDS)

        def done(_count: int) -> None:
            if turn.has_passed():
                self._records.renew(env, record)
        return done

    def _of_put(self, request: ProxyRequest) -> Whole:
        env = request.env
        if _DLO in env:
            return self._reader.dynamic(env, request.target, env[_DLO])
        raw = env['wsgi.input'].read(MAX_MANIFEST_BYTES)
        env['wsgi.input'] = WsgiBytesIO(raw)
        return self._reader.static(env, raw)

    def _spread(self, request: ProxyRequest, whole: Whole,
                class_map: ClassMap, at: str,
                is_newest: Callable[[], bool] = lambda: True,
                done: Callable[[int], None] = lambda count: None) -> ClassMap:
        maps = self._spreader.spread(request.env, Work.of(
            request.target, whole, class_map, at, is_newest=is_newest),
            request.state.table, done)
        return shown(whole, maps, class_map, self._services.count)

    def _check(self, request: ProxyRequest, client: Optional[Env],
               whole: Whole, class_map: ClassMap) -> None:
        """The map fits, and the client may.

        :param client: the environment that has its rights; None if those
            are not known
        :raises BadClassInput, _Refused: it does not, or the client may not
        """
        reclassify.check_size(class_map, whole.size)
        classmap.to_headers(names.SYSMETA_MAP, class_map)
        if client is None:
            raise _Refused(HTTPForbidden(request=Request(request.env)))
        refusal = self._spreader.refusal(client, request.target, whole)
        if refusal is not None:
            raise _Refused(refusal)


class _Refused(Exception):
    """Auth says no to the segments."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer
