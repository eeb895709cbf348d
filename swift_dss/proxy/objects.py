"""Requests for objects: PUT, GET, HEAD and POST."""

from __future__ import annotations

from typing import Any, Callable, Optional, Set, Tuple

from swift.common import constraints
from swift.common.exceptions import ChunkReadTimeout
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import (
    HTTPClientDisconnect, HTTPException, HTTPRequestEntityTooLarge,
    HTTPRequestTimeout, HTTPServiceUnavailable, Request)
from swift.common.utils import close_if_possible
from swift.common.wsgi import WSGIContext

from swift_dss.core.errors import BadClassInput, ClassNotAllowed
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.proxy import authorize, reclassify
from swift_dss.proxy.admit import unavailable
from swift_dss.proxy.bodies import incoming, outgoing, stored, versioned
from swift_dss.proxy.bodies.dssbody import (
    BoundedRanges, CheckedInput, DssInput, Prefixed)
from swift_dss.proxy.bodies.incoming import Asked
from swift_dss.proxy.bodies.readers import reader_of
from swift_dss.proxy.containers import default_class
from swift_dss.proxy.large.alone import Alone
from swift_dss.proxy.large.body import body_of
from swift_dss.proxy.large.objects import LargeObjects
from swift_dss.proxy.large.segments import Segments
from swift_dss.proxy.lifecycle.options import Options
from swift_dss.proxy.lifecycle.service import Lifecycles
from swift_dss.proxy.reads.local_first import LocalFirst
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.services import Services
from swift_dss.proxy.trusted import COPIERS, Carried, env_key, set_headers
from swift_dss.proxy.work.rows import Unreachable
from swift_dss.proxy.wsgi import App, Body, Start
from swift_dss.strategy.classify import auto_class, check_allowed, classify
from swift_dss.wire import classmap, names

_SYMLINK = env_key(stored.SYMLINK_TARGET)
_READER = env_key(names.BACKEND_READER)


class Objects:
    """The object side of the filter.

    Every handler raises a DssError for errors of the client.
    """

    def __init__(self, app: App, services: Services,
                 least_loaded: bool, most_at_once: int,
                 options: Options) -> None:
        """
        :param least_loaded: read from the HDD that is the least busy
        :param most_at_once: segments whose classes a POST waits for
        """
        self._app = app
        self._services = services
        self._reads = LocalFirst(
            app, services.replicas, services.count,
            lambda: services.settings.current().table.has_cold_copies,
            least_loaded=least_loaded)
        self._segments = Segments(app)
        self._alone = Alone(app, self._segments)
        self._large = LargeObjects(app, services, self._segments,
                                   most_at_once)
        self.lifecycles = Lifecycles(app, self._reads, services, self._large,
                                     self._alone, options)

    def start_workers(self) -> None:
        """Look for work that no request waits for."""
        self._large.start_worker()
        self.lifecycles.start()

    def put(self, request: ProxyRequest) -> Body:
        """Give the object its class map; the body is untouched, except
        that a ``.dss`` body loses its class section."""
        env = request.env
        carried = None
        if request.source in COPIERS:
            carried = self._services.sealer.open(env)
        if versioned.is_copy(env, carried):
            incoming.without_file_form(env)
        self._services.strip(env)
        if _SYMLINK in env:
            return self._app(env, request.start)
        size = incoming.body_size(env)
        is_manifest = incoming.is_manifest_put(env)
        # Ranges of these count over data that comes by other requests.
        is_of_others = is_manifest or request.target.is_upload_marker(
            request.source)
        asked = incoming.asked(env, request.state.table,
                               None if is_of_others else size,
                               self._services.max_spans, carried)
        if is_manifest:
            incoming.check_manifest(asked)
        incoming.consume(env)
        if asked.file_form:
            return self._put_file_form(request, size)
        class_map = self._class_map(request, size, asked,
                                    None if asked.as_new else carried)
        if is_manifest:
            self._authorize(request)
            class_map = self._large.put(request, class_map, asked.anything)
        elif asked.ranges and size is None:
            env['wsgi.input'] = BoundedRanges(env['wsgi.input'], asked.ranges)
        return self._store(request, class_map, size)

    def get(self, request: ProxyRequest) -> Body:
        """Show the classes of a GET or HEAD, or give the ``.dss`` form."""
        env = request.env
        self._services.strip(env)
        if request.source in COPIERS:
            return self._get_for_copier(request)
        if incoming.wants_file_form(env):
            return self._get_file_form(request)
        if request.method == 'GET':
            env[_READER] = reader_of(env)
        notices = request.method == 'HEAD' and request.source in (
            'S3', 'SLO')

        def shown(status: str, headers: Any) -> Any:
            if notices and status.startswith('200'):
                self._notice(request, HeaderKeyDict(headers))
            return outgoing.shown(headers, request.state.table)

        return unavailable.call(self._reads, env, request.start, shown)

    def _notice(self, request: ProxyRequest,
                headers: HeaderKeyDict) -> None:
        if request.source == 'SLO':
            self._large.notice(request, headers)
        else:
            self._services.uploads.notice(request.env, request.target,
                                          stored.effective_map(headers))

    def post(self, request: ProxyRequest) -> Body:
        """Reclassify, or keep the class that an earlier POST set."""
        env = request.env
        self._services.strip(env)
        by_body = reclassify.is_by_body(env)
        asked = incoming.asked(
            env, request.state.table, None, self._services.max_spans,
            reclassify.repeated(env))
        incoming.consume(env)
        reclassify.check_form(asked.file_form, by_body and asked.anything)
        self._authorize(request)
        self._large.may_return(env)
        if names.ENV_RESTORE_DAYS in env:
            return self.lifecycles.restores.begin(
                request, env[names.ENV_RESTORE_DAYS])
        request = request._replace(start=_without_maps(request.start))
        changes = by_body or asked.anything
        head = reclassify.head(env, self._app, request.target)
        if head.status_int == 404:
            return self._app(env, request.start)
        if not head.is_success:
            if changes:
                raise HTTPServiceUnavailable(
                    body=b'The object cannot be looked at now.')
            self._services.count('post.class_unknown')
            return self._app(env, request.start)
        if not changes or reclassify.sets_metadata(env):
            reclassify.keep_tags(env, head.headers)
        if not changes or stored.is_symlink(head.headers):
            # Only stock object servers need to be told again.
            set_headers(env, stored.posted(head.headers))
            return self._app(env, request.start)
        try:
            return self._classify(request, asked, head)
        except Unreachable as err:
            raise err.answer('The object cannot be looked at now') from err

    def _classify(self, request: ProxyRequest, asked: Asked,
                  head: Any) -> Body:
        seen_at = self._alone.check(request.env, request.target,
                                    head.headers)
        if stored.is_manifest(head.headers):
            whole = self._large.look(request, head.headers)
            return self._large.post(request, whole, self._new_map(
                request, asked, head, whole.size), self._alone.send_once)
        return self._alone.send(request, classmap.to_headers(
            names.TRANSIENT_MAP, self._new_map(
                request, asked, head, outgoing.object_size(head.headers))),
            seen_at)

    def _new_map(self, request: ProxyRequest, asked: Asked,
                 head: Any, size: Optional[int]) -> ClassMap:
        env = request.env
        if reclassify.is_by_body(env):
            class_map = self._reading(
                request, lambda: reclassify.read_section(
                    env, size or 0, self._services.max_spans,
                    self._services.max_section_bytes))
            # The proxy server has no use for the body, and no more of it.
            env['CONTENT_LENGTH'] = '0'
            env.pop('HTTP_TRANSFER_ENCODING', None)
            env.pop('CONTENT_TYPE', None)
        else:
            before = stored.effective_map(head.headers) or UNCLASSIFIED_MAP
            rest = before.rest if asked.object_class is None \
                else asked.object_class
            class_map = ClassMap.from_spans(asked.ranges, rest)
            reclassify.check_size(ClassMap(asked.ranges, rest), size)
        self._check_allowed(request, class_map.class_ids(size), asked.field)
        self._services.note(env, request.state, 'reclass', class_map)
        return class_map

    def _class_map(self, request: ProxyRequest, size: Optional[int],
                   asked: Asked, carried: Optional[Carried]) -> ClassMap:
        wanted = {span.class_id for span in asked.ranges}
        default = None
        if asked.object_class is not None:
            wanted.add(asked.object_class)
        if wanted:
            self._check_allowed(request, wanted, asked.field
                                if asked.object_class is not None
                                else names.RANGE_CLASS)
        if asked.object_class is None:
            inherited = self._inherited(request, carried)
            if inherited is not None and not asked.ranges:
                return inherited
            if inherited is not None:
                asked = asked._replace(object_class=inherited.rest)
            else:
                default = default_class(self._app, request)
        env, _, target, state = request
        facts = incoming.facts(env, target, state, size, asked, default)
        hot = auto_class(facts, state.rules)
        if hot is not None and not incoming.is_manifest_put(env):
            set_headers(env, {names.SYSMETA_AUTO: str(hot)})
        return classify(facts, state.rules)

    def _inherited(self, request: ProxyRequest,
                   carried: Optional[Carried]) -> Optional[ClassMap]:
        """The class of a part's upload or of a copy's source."""
        marker = request.target.upload_marker(request.env)
        if marker:
            marked = self._services.uploads.class_of(request.env, marker)
            if marked is not None:
                # Ranges count over the whole: the manifest cuts them.
                return ClassMap.uniform(marked.rest) if marker.container == \
                    request.target.container else marked
        if carried is None or carried.class_map is None:
            return None
        try:
            self._check_allowed(request, carried.class_map.class_ids(), 'copy')
        except ClassNotAllowed:
            # The client did not name this class: treat the copy as a new
            # object, because the account's list also binds copies from other
            # accounts.
            self._services.count('put.not_carried')
            return None
        return carried.class_map

    def _put_file_form(self, request: ProxyRequest,
                       size: Optional[int]) -> Body:
        env = request.env
        self._authorize(request)
        if size is not None and size > constraints.MAX_FILE_SIZE + \
                self._services.max_section_bytes:
            raise HTTPRequestEntityTooLarge(
                body=b'Your request is too large.', request=Request(env))
        body = DssInput(env['wsgi.input'], size, self._services.max_spans,
                        versioned.take_digest(env))
        class_map = self._reading(request, body.read_section)
        versioned.leave_out(env, body.section_bytes)
        data_size = None
        if size is not None:
            data_size = size - body.section_bytes
            env['CONTENT_LENGTH'] = str(data_size)
        self._check_allowed(request, class_map.class_ids(data_size),
                            names.OBJECT_FILE)
        env['wsgi.input'] = body
        return self._store(request, class_map, data_size)

    def _store(self, request: ProxyRequest, class_map: ClassMap,
               size: Optional[int]) -> Body:
        env, start, target, state = request
        with self._services.admission.judged(
                env, target, state, class_map, size):
            return self._store_now(request._replace(
                start=self._services.full_devices.watching(
                    env, target, size, start)), class_map)

    def _store_now(self, request: ProxyRequest,
                   class_map: ClassMap) -> Body:
        env = request.env
        if class_map != UNCLASSIFIED_MAP:
            set_headers(env, classmap.to_headers(names.SYSMETA_MAP,
                                                 class_map))
            self._services.note(env, request.state, 'put', class_map)
        body = env['wsgi.input']
        if not isinstance(body, CheckedInput):
            return self._app(env, request.start)
        context = WSGIContext(self._app)
        answer: Body = context._app_call(env)
        if body.failure is not None:
            # Swift saw a client that went away; we know better.
            close_if_possible(answer)
            raise body.failure
        request.start(context._response_status, context._response_headers,
              context._response_exc_info)
        return answer

    def _get_for_copier(self, request: ProxyRequest) -> Body:
        """The answer with the map under seal instead of shown."""
        incoming.without_file_form(request.env)

        def carried(status: str, headers: Any) -> Any:
            given = HeaderKeyDict(headers)
            headers = stored.without_maps(headers)
            if status.startswith('20'):
                headers += self._services.sealer.seal(
                    outgoing.carried_map(given, int(status[:3]),
                                         request.env.get('HTTP_RANGE', '')),
                    given.get(names.S3_CLASS_META, '')).items()
            return headers

        return unavailable.call(self._reads, request.env, request.start,
                                carried)

    def _get_file_form(self, request: ProxyRequest) -> Body:
        if 'HTTP_RANGE' in request.env:
            raise BadClassInput(
                names.OBJECT_FILE, 'the .dss form is given whole, so Range '
                'cannot be given too')
        context = WSGIContext(self._reads)
        answer: Body = context._app_call(request.env)
        status, headers = context._response_status, context._response_headers
        given = HeaderKeyDict(headers)
        is_get = request.method == 'GET'
        seconds = unavailable.retry_after(status, headers)
        if seconds is not None:
            close_if_possible(answer)
            request.start('503 Service Unavailable',
                  unavailable.own_headers(seconds))
            return [unavailable.TEXT]
        if status.startswith('200') and not stored.is_symlink(given):
            try:
                outgoing.refuse_file_form(given, request.env)
                size = outgoing.object_size(given) or 0
                if stored.is_manifest(given):
                    size, answer = self._large_file(request, given, answer)
                headers, section = outgoing.file_form(headers, given, size,
                                                      is_get)
            except (BadClassInput, HTTPException):
                close_if_possible(answer)
                raise
            if is_get:
                answer = Prefixed(section, answer)
        request.start(status, outgoing.shown(headers, request.state.table),
              context._response_exc_info)
        return answer

    def _large_file(self, request: ProxyRequest, given: HeaderKeyDict,
                    answer: Body) -> Tuple[int, Body]:
        """Bytes of a large object and, for a GET, the bytes."""
        whole = self._large.look_for_file_form(request, given, answer)
        close_if_possible(answer)
        return whole.size, body_of(
            request, self._app, whole, self._services.logger
            ) if request.method == 'GET' else []

    def _check_allowed(self, request: ProxyRequest, class_ids: Set[int],
                       field: str) -> None:
        check_allowed(class_ids, self._services.accounts.allowed(
            request.env, request.target.account, request.state.table), field)

    def _authorize(self, request: ProxyRequest) -> None:
        """Let auth decide before we do work.

        :raises HTTPException: auth's own answer, if it is no
        """
        refusal = authorize.refusal(request.env, self._app, request.target)
        if refusal is not None:
            raise refusal

    def _reading(self, request: ProxyRequest,
                 read: Callable[[], ClassMap]) -> ClassMap:
        """Read from the client with the proxy server's patience.

        :raises HTTPException: the client was too slow or went away
        """
        try:
            with ChunkReadTimeout(self._services.client_timeout):
                return read()
        except ChunkReadTimeout:
            raise HTTPRequestTimeout(request=Request(request.env)) from None
        except (ValueError, OSError):
            raise HTTPClientDisconnect(request=Request(request.env)) from None


def _without_maps(start: Start) -> Start:
    def answer(status: str, headers: Any, exc_info: Any = None) -> Any:
        return start(status, stored.without_maps(headers), exc_info)
    return answer

