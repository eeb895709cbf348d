"""POSTs of classes to one object, which may be a segment of a large one.

A manifest shows the classes that it gave its segments. So nobody else
changes them while it lives (:ref:`proxy-06`): such a POST is refused with 409
and the manifest's name. Segments know the names of their manifests
(``wire.large.claims``); of manifests that gave no class they do not.

A server that was away knows nothing of a manifest, and a manifest may come
while a POST is on its way. So all primaries are asked, and servers refuse a
POST that follows from older classes than theirs. Servers that took it before
others refused it get the manifest's class back.
"""

from __future__ import annotations

import functools
import time
from typing import Any, Dict, List, Mapping, Optional

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import wsgi_to_str
from swift.common.utils import Timestamp, close_if_possible
from swift.common.wsgi import WSGIContext

from swift_dss.core.errors import BadClassInput, OfLargeObject
from swift_dss.proxy import authorize, reclassify
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.large.reading import Reader
from swift_dss.proxy.large.segments import (
    Change, Segment, Segments, after, inner, segment_of, target_of)
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.target import Target
from swift_dss.proxy.trusted import set_headers
from swift_dss.proxy.work.primaries import Primaries
from swift_dss.proxy.wsgi import App, Body, Env, Start
from swift_dss.wire import names
from swift_dss.wire.registers import NEVER

#: Others may change an object meanwhile.
_ATTEMPTS = 4
#: Segments get their classes before their manifest is stored: for so long it
#: may be on its way.
_YOUNG_SECONDS = 120.0


class Alone:
    """Sends them.

    :param app: what is below the filter
    """

    def __init__(self, app: App, segments: Segments) -> None:
        self._app = app
        self._segments = segments
        self._primaries = Primaries(app)
        self._reader = Reader(app)

    def check(self, env: Env, target: Target,
              *known: Mapping[str, str]) -> str:
        """Look whether an object's class is its own business.

        :param known: headers of the object that were seen just now
        :returns: the time of its newest classes, '' if no POST set any
        :raises OfLargeObject: it is not
        :raises Unreachable: too few of its servers answer
        """
        states = self._states(env, target, *known)
        for state in states:
            for owner, path in state.paths.items():
                if owner in state.claimed and self._holds(
                        env, target, path, state.class_at):
                    raise OfLargeObject(self._refusal(env, path))
        return max((state.class_at for state in states), default='')

    def send(self, request: ProxyRequest, headers: Dict[str, str],
             seen_at: str) -> Body:
        """The client's POST, with the headers that spell its classes.

        :param seen_at: as :meth:`check` returned it
        :raises OfLargeObject, Unreachable: as :meth:`check`; no server keeps
            the classes
        """
        env, target = request.env, request.target
        for attempt in range(_ATTEMPTS):
            context = WSGIContext(functools.partial(
                self._send_to, request, dict(
                    headers, **{names.SEEN_MAP_AT: seen_at or NEVER})))
            # A filter below may change the environment.
            body: Body = context._app_call(dict(env))
            is_over = attempt == _ATTEMPTS - 1 or not _is_overtaken(context)
            try:
                if not context._response_status.startswith('2'):
                    seen_at = self.check(env, target)
            except OfLargeObject:
                close_if_possible(body)
                self._give_back(env, target)
                raise
            if is_over:
                request.start(
                    context._response_status, context._response_headers,
                    context._response_exc_info)
                return body
            close_if_possible(body)
        raise AssertionError('the last attempt has an answer')

    def send_once(self, request: ProxyRequest,
                  headers: Dict[str, str]) -> Body:
        """The client's POST, without a look at what servers make of it."""
        set_headers(request.env, headers)
        if reclassify.sets_metadata(request.env):
            return self._app(request.env, request.start)
        return reclassify.classify(
            request.env, request.start, self._app, request.target,
            headers.get(names.MAP_AT, ''))

    def _send_to(self, request: ProxyRequest, headers: Dict[str, str],
                 env: Env, start: Start) -> Body:
        return self.send_once(request._replace(env=env, start=start), headers)

    def _states(self, env: Env, target: Target,
                *known: Mapping[str, str]) -> List[Segment]:
        """The states of its newest data, as servers have them."""
        heads = list(known) + list(self._primaries.heard(inner(env), target))
        states = [segment_of(target, headers) for headers in heads]
        newest = max((state.data_at for state in states), default='')
        return [state for state in states if state.data_at == newest]

    def _holds(self, env: Env, target: Target, path: str,
               claimed_at: str) -> bool:
        """Whether the manifest at ``path`` has the object as a segment, or
        is about to."""
        if time.time() - float(Timestamp(claimed_at)) < _YOUNG_SECONDS:
            return True
        manifest, inside = target_of(env, path), inner(env)
        headers = reclassify.look(inside, self._app, manifest, newest=True)
        if headers is None or not stored.is_manifest(headers):
            return False
        try:
            whole = self._reader.stored(inside, manifest, headers)
        except BadClassInput:
            return False  # it could not have given a class
        return any(use.path and _is_same(target, target_of(env, use.path))
                   for use in whole.uses)

    def _refusal(self, env: Env, path: str) -> str:
        """The manifest's name is for those who may see it."""
        manifest = target_of(env, path)
        hidden = authorize.refusal(
            dict(env, PATH_INFO=manifest.path, REQUEST_METHOD='HEAD'),
            self._app, manifest)
        named = manifest.user_names(None)
        return '%s: the object is a segment of %s, which says its class: ' \
            'POST the class to that one' % (
                names.OBJECT_CLASS, 'a large object' if hidden is not None
                else '/%s/%s' % named[1:])

    def _give_back(self, env: Env, target: Target) -> None:
        """Some servers took a POST before others refused it."""
        states = self._states(env, target)
        newest = max(state.class_at for state in states)
        claimed: Optional[Segment] = max(
            (state for state in states if state.claimed),
            key=lambda state: state.class_at, default=None)
        if claimed is not None and claimed.class_map is not None \
                and claimed.class_at < newest:
            self._segments.give(env, Change(
                claimed._replace(class_at=newest), claimed.class_map,
                claimed.claimed, after('', newest), claimed.paths))


def _is_overtaken(context: Any) -> bool:
    return bool(context._response_status.startswith('409')
                and names.MAP_AT in HeaderKeyDict(context._response_headers))


def _is_same(target: Target, named: Target) -> bool:
    """Whether a manifest means an object by this name: versions live under
    hidden ones."""
    return target == named or target.user_names(None) == Target(
        *(wsgi_to_str(name) for name in named))
