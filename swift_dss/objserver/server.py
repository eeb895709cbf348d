"""The object server: ``use = egg:swift_dss#object``.

A subclass of Swift's controller, because ssync's subrequests go straight
to the controller and pass no filter. It does some things more:

- the class map of a PUT reaches the diskfile before its writer exists;
- a GET that needs a tier that is not there is refused before its first
  byte: 507 for an HDD, 409 with ``X-Backend-Dss-Unavailable: <seconds>``
  for S3 (not a 5xx, or the proxy would shun this whole node);
- a GET whose first block is on no tier as it was written, or cannot be read,
  is answered 409 as above: the daemon sees to it; of an erasure-coded
  object another fragment is given, if one is beside it;
- the reconstructor gets fragments of the write that it rebuilds alone;
- a GET that would need S3, or an HDD that is busy (``wire.backlog``), is
  answered 404, with ``X-Backend-Dss-Elsewhere``, if the proxy asks for that;
- GET and HEAD say which tiers hold the version: ``X-Backend-Dss-Tier``;
- POSTs of metadata and of classes merge (``objserver.posts``);
- containers hear the class of each object (``objserver.listed``);
- ``GET /dss/pressure`` tells proxies how full the node's devices are, ``GET
  /dss/status`` tells operators how its daemon is, and ``POST /dss/newest``
  gives gateways the newest states of many objects;
- ``POST /dss/many`` does the HEADs and POSTs of many segments at once;
- a PUT of ssync may be a stub (``wire.proof``), taken once S3 proves it.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Dict, List, Optional, Tuple

from swift.common.storage_policy import POLICIES
from swift.common.swob import (
    HTTPConflict, HTTPException, HTTPInsufficientStorage, HTTPNotFound,
    HTTPUnprocessableEntity, Request)
from swift.common.utils import config_true_value, public, replication
from swift.obj.server import ObjectController

from swift_dss.core.errors import (
    BadConfig, RemoteUnavailable, TierUnavailable, VersionGone)
from swift_dss.core.limits import MAX_READER_CHARS
from swift_dss.io import native
from swift_dss.io.start import syncing
from swift_dss.objserver import posts, tags
from swift_dss.objserver.ec import another_fragment, is_of_another_write
from swift_dss.objserver.extents import REPLICATE
from swift_dss.objserver.listed import updates
from swift_dss.objserver.listed.updates import Updates
from swift_dss.objserver.manager import DssManagerBase
from swift_dss.objserver.many import requests
from swift_dss.objserver.many.rows import Rows
from swift_dss.objserver.figures.pressures import Pressures
from swift_dss.objserver.figures.summaries import Summaries
from swift_dss.objserver.reader import HELD_BYTES, RottenBlock, begun
from swift_dss.objserver.stock import logline
from swift_dss.objserver.stock.borrowed import with_functions
from swift_dss.objserver.travel import arriving
from swift_dss.objserver.travel.newest import Newest
from swift_dss.wire import backlog, names
from swift_dss.wire.settings import policies

#: A version may be switched under a GET; past this many times it is not
#: bad luck but a record that names a capacity file that is not there.
_REOPENS = 3
#: In the environment of a GET: no need to hold its answer back, as so many of
#: its bytes are here and right.
_IS_BEGUN = 'swift_dss.begun'
#: ``X-Backend-Replication`` without the search for its name.
_REPLICATION = 'HTTP_X_BACKEND_REPLICATION'
_STUB = 'HTTP_' + names.BACKEND_STUB.upper().replace('-', '_')
_READER = 'HTTP_' + names.BACKEND_READER.upper().replace('-', '_')
_IF_LOCAL = 'HTTP_' + names.BACKEND_IF_LOCAL.upper().replace('-', '_')
#: Swift's ``__call__``, with our line for the log.
_answer = with_functions(ObjectController.__call__,
                         get_log_line=logline.line)


class DssObjectController(ObjectController):
    """Swift's object server with classes and tiers."""

    #: The diskfile that a GET or HEAD opened; on per-request copies only.
    dss_opened: Any = None
    #: The registers of a POST; on per-request copies only.
    dss_post: Optional[posts.Post] = None
    #: The range that a GET will read first, if that is certain.
    dss_range: Optional[Tuple[int, int]] = None
    #: A copy for the subrequests of one session of ssync.
    dss_syncs = False
    #: Updates of containers, of a copy for many requests in one.
    dss_rows: Optional[Rows] = None

    def setup(self, conf: Any) -> None:
        super().setup(conf)
        native.keep_freed_memory()
        self._dss_listed = Updates(conf, self.logger)
        self._dss_own: Dict[str, Any] = {
            names.PRESSURE_PATH: Pressures(conf, self.logger),
            names.STATUS_PATH: Summaries(conf, self.logger),
            names.NEWEST_PATH: Newest(conf, self.logger,
                                      self._diskfile_router)}

    def __call__(self, env: Any, start_response: Any) -> Any:
        own = self._dss_own.get(env['PATH_INFO'])
        if own is not None:
            return own(env, start_response)
        if env['PATH_INFO'] == names.MANY_PATH:
            copy = self._copy()
            copy.dss_rows = Rows(self.logger, self.node_timeout,
                                 self.conn_timeout)
            # One line tells of all.
            copy.log_requests = False
            return requests.answer(env, start_response, copy.dss_rows, copy,
                                   self.logger)
        while True:
            body = _answer(self, env, start_response)
            if env['REQUEST_METHOD'] != 'GET' or isinstance(body, list) \
                    or env.pop(_IS_BEGUN, False):
                return body
            try:
                return begun(body)
            except RottenBlock as err:
                start_response = functools.partial(
                    start_response, exc_info=sys.exc_info())
                again = another_fragment(env, err.data_file)
                if again is None:
                    return HTTPConflict(headers=err.headers)(
                        env, start_response)
                env = again

    def _pre_create_checks(self, request: Any, *args: Any,
                           **kwargs: Any) -> Any:
        checked = super()._pre_create_checks(request, *args, **kwargs)
        tag = getattr(checked[0], 'dss_tag', None)
        if tag is not None:
            tag(tags.of_request(request, self.logger))
        if _STUB not in request.environ:
            return checked
        disk_file, _, original = checked
        if tag is None or not self.dss_syncs:
            raise HTTPUnprocessableEntity(request=request)
        try:
            disk_file.dss_arriving = arriving.receive(request, disk_file)
        except HTTPException:
            # Of this object alone: Swift hangs up after so many failures.
            self.replication_failure_threshold += 1
            raise
        return disk_file, disk_file.dss_arriving.content_length, original

    @public
    @replication
    def SSYNC(self, request: Any) -> Any:
        """Handle SSYNC requests for the Swift Object Server."""
        copy = self._copy()
        copy.dss_syncs = True
        return super(DssObjectController, copy).SSYNC(request)

    def get_diskfile(self, *args: Any, **kwargs: Any) -> Any:
        disk_file = super().get_diskfile(*args, **kwargs)
        self.dss_opened = disk_file
        disk_file.dss_range = self.dss_range
        disk_file.dss_post = self.dss_post
        return disk_file

    def container_update(self, op: Any, account: Any, container: Any,
                         obj: Any, request: Any, headers_out: Any,
                         objdevice: Any, policy: Any) -> Any:
        if op == 'PUT':
            self._dss_listed.add_class(
                headers_out, request, self.dss_post, self.dss_opened,
                self._diskfile_router[policy])
        send = functools.partial(
            super().container_update, op, account, container, obj, request,
            headers_out, objdevice, policy)
        if self.dss_rows is None or not self.dss_rows.hold(
                account, container, obj, request, headers_out, policy, send):
            send()

    def _copy(self) -> DssObjectController:
        """This controller, with the state of one request."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    @public
    def GET(self, request: Any) -> Any:
        """Handle HTTP GET requests for the Swift Object Server."""
        for attempt in range(_REOPENS + 1):
            # A copy of our own: which diskfile this request opened must
            # not be looked up in what other green threads write too.
            copy = self._copy()
            copy.dss_range = _first_range(request)
            response = super(DssObjectController, copy).GET(request)
            opened = copy.dss_opened
            reader = getattr(opened, 'dss_reader', None)
            if reader is None or response.status_int not in (200, 206):
                return tags.with_tier(response, opened)
            if not _is_for(request, opened, reader):
                reader.close()
                # Not a 404: the version may go where all have none.
                return HTTPConflict(request=request)
            if not reader.dss_bytes.is_stub:
                request.environ[_IS_BEGUN] = _has_begun(
                    response, opened, copy.dss_range, reader.dss_bytes)
                return tags.with_tier(response, opened)
            try:
                ranges = _ranges(request, response, opened)
                why = self._why_elsewhere(request, opened, ranges)
                if why:
                    reader.close()
                    return _elsewhere(request, opened, why)
                reader.dss_prepare(ranges)
                return tags.with_tier(response, opened)
            except VersionGone as err:
                reader.close()
                if attempt == _REOPENS and \
                        not opened.dss_has_changed(opened._data_file):
                    opened.dss_note_lack(reader.dss_bytes)
                    return self._unavailable(request, opened, err)
            except (TierUnavailable, RemoteUnavailable) as err:
                reader.close()
                return self._unavailable(request, opened, err)
        return self._unavailable(request, opened, RemoteUnavailable(
            'version keeps moving', 1))

    @public
    def HEAD(self, request: Any) -> Any:
        """Handle HTTP HEAD requests for the Swift Object Server."""
        copy = self._copy()
        response = super(DssObjectController, copy).HEAD(request)
        return tags.with_at_hand(tags.with_tier(response, copy.dss_opened),
                                 copy.dss_opened)

    @public
    def POST(self, request: Any) -> Any:
        """Handle HTTP POST requests for the Swift Object Server."""
        copy = self._copy()
        policy = POLICIES.get_by_index(
            request.headers.get('X-Backend-Storage-Policy-Index'))
        if policy is not None and isinstance(
                self._diskfile_router[policy], DssManagerBase):
            copy.dss_post = posts.Post.of(request)
        response = super(DssObjectController, copy).POST(request)
        if copy.dss_post is not None and response.status_int == 409:
            # The proxy takes a 409 without it for one of a stock server,
            # which knows nothing of class maps.
            response.headers[names.MAP_AT] = copy.dss_post.class_at
        return response

    def _why_elsewhere(self, request: Any, opened: Any,
                       ranges: List[Tuple[int, int]]) -> str:
        """Why a GET is to go to another node first; '' if it is not.

        :raises TierUnavailable, RemoteUnavailable, VersionGone: as
            ``VersionBytes.prepare``
        """
        source = opened.dss_reader.dss_bytes
        limit_ms = backlog.limit_of(request.environ)
        if limit_ms is not None and source.needs_hdd(ranges) and \
                opened.dss_backlog_ms > limit_ms:
            return names.BUSY
        if source.needs_remote(ranges):
            if _wants_local(request):
                return names.IN_S3
            self._check_remote(opened)
        return ''

    def _check_remote(self, opened: Any) -> None:
        """Do not wait for an S3 that the daemon knows to be silent: it asks
        again by itself.

        :raises RemoteUnavailable: it is
        """
        node = opened.manager.dss_node
        pressure = node.pressure(opened.dss_device)
        waiting = pressure.backlog if pressure is not None else None
        if waiting is not None and not waiting.remote_up:
            raise RemoteUnavailable(
                'S3 does not answer, the tier daemon says', max(
                    int(waiting.probe_seconds) + 1,
                    node.conf.gateway.retry_after_seconds))

    def _unavailable(self, request: Any, opened: Any, err: Any) -> Any:
        again = another_fragment(request.environ, opened._data_file)
        if again is not None:
            return self.GET(Request(again))
        self.logger.increment('dss.errors.%s' % err.counter)
        self.logger.warning('dss: %s %s: %s', request.method, request.path,
                            err)
        if isinstance(err, TierUnavailable):
            return HTTPInsufficientStorage(
                drive=opened.dss_device, request=request)
        headers = opened.dss_later_headers()
        if isinstance(err, RemoteUnavailable):
            headers[names.BACKEND_UNAVAILABLE] = str(err.retry_after_seconds)
        return HTTPConflict(request=request, headers=headers)


def _is_for(request: Any, opened: Any, reader: Any) -> bool:
    """Tell a reader who reads; False if replication does, and is not to get
    these bytes."""
    env = request.environ
    reader.dss_bytes.client = env.get(_READER, '')[:MAX_READER_CHARS]
    if _REPLICATION in env and config_true_value(env[_REPLICATION]):
        opened.dss_purpose = reader.dss_bytes.purpose = REPLICATE
        return not is_of_another_write(env, opened.data_timestamp.internal)
    return True


def _first_range(request: Any) -> Optional[Tuple[int, int]]:
    """The range that a GET will read without errors: (start, stop), -1 for the
    end; None if it depends on the stored object.
    """
    env = request.environ
    if 'HTTP_IF_NONE_MATCH' in env or 'HTTP_IF_MODIFIED_SINCE' in env:
        return None
    if 'HTTP_RANGE' not in env:
        return 0, -1
    if request.range is None or len(request.range.ranges) != 1:
        return None
    first, last = request.range.ranges[0]
    if first is None:
        return None
    return first, -1 if last is None else last + 1


def _has_begun(response: Any, opened: Any,
               wanted: Optional[Tuple[int, int]], source: Any) -> bool:
    """True if the bytes that an answer would be held back for are here and
    right.

    :param wanted: of :func:`_first_range`; some objects are given whole
        whatever range was asked for
    """
    start, stop = (0, -1) if wanted is None or \
        response.status_int == 200 else wanted
    size = opened.content_length
    return bool(source.has_begun(
        start, size if stop < 0 else min(stop, size), HELD_BYTES))


def _wants_local(request: Any) -> bool:
    """True if the proxy asks others before this node asks S3. The rest of a
    body after a failure, which has another range, comes from anywhere."""
    env = request.environ
    wanted = env.get(_IF_LOCAL)
    return wanted is not None and wanted == env.get('HTTP_RANGE', '-')


def _elsewhere(request: Any, opened: Any, why: str) -> Any:
    """A 404 that only means "not here": older versions on other nodes must
    not pass for the newest, so it has the data's timestamp."""
    return HTTPNotFound(request=request, headers={
        names.BACKEND_ELSEWHERE: why,
        names.BACKEND_BACKLOG: str(opened.dss_backlog_ms),
        'X-Backend-Timestamp': opened.data_timestamp.internal})


def _ranges(request: Any, response: Any,
            opened: Any) -> List[Tuple[int, int]]:
    """The ranges that the body of a response to a GET will read."""
    size = opened.content_length
    if response.status_int == 206 and request.range is not None:
        pairs: Optional[List[Tuple[int, int]]] = \
            request.range.ranges_for_length(size)
        if pairs:
            return pairs
    return [(0, size)]


def app_factory(global_conf: Any, **local_conf: Any) -> Any:
    """paste.deploy app factory: ``egg:swift_dss#object``."""
    conf = dict(global_conf)
    conf.update(local_conf)
    try:
        updates.which_of(conf)
        if conf.get('__file__') and any(
                policies.is_replicated(policy.diskfile_module)
                for policy in POLICIES):
            syncing.check_file(conf['__file__'])
    except BadConfig as err:
        # Swift prints that and no traceback.
        raise SystemExit('swift-dss: %s' % err) from err
    return DssObjectController(conf)
