"""Segments of large objects: what they have, and its change.

Many go in few requests (:mod:`.batches`); what is left over goes alone,
through Swift's proxy.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import (
    Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple)

from swift.common.swob import (
    HTTPException, str_to_wsgi, wsgi_quote, wsgi_unquote)
from swift.common.utils import Timestamp, close_if_possible
from swift.common.wsgi import make_pre_authed_request

from swift_dss.core.spans import ClassMap
from swift_dss.proxy import reclassify
from swift_dss.proxy.bodies import outgoing, stored
from swift_dss.proxy.large.batches import Batches
from swift_dss.proxy.target import Target
from swift_dss.proxy.trusted import env_key
from swift_dss.proxy.work.primaries import Primaries
from swift_dss.proxy.work.rows import Unreachable
from swift_dss.proxy.wsgi import App, Env
from swift_dss.wire import classmap, names
from swift_dss.wire.large import claims
from swift_dss.wire.registers import NEVER

#: Segments that one worker remembers from the HEADs of Swift's SLO.
_MAX_SEEN = 20000
#: As Swift's ``symloop_max``.
_MAX_LINKS = 2
_TICK_SECONDS = 0.00001
_LINK_ACCOUNT = 'X-Object-Sysmeta-Symlink-Target-Account'


class Segment(NamedTuple):
    """An object whose bytes a large object uses.

    :param target: where it is; the end of symbolic links
    :param size: bytes; of a large object, of all its segments
    :param class_map: in force; None for an unclassified object
    :param claimed: the classes that manifests gave it
    :param paths: where those manifests are, as far as it is known
    :param data_at: timestamp of its data
    :param class_at: timestamp of the classes a POST set; '' if none did
    :param is_elsewhere: a link led to it out of the container that the
        manifest names, for which alone the client's rights are known
    :param is_settled: a quorum of its servers was seen to have its classes
    """

    target: Target
    size: int
    class_map: Optional[ClassMap]
    claimed: Mapping[str, claims.Spans]
    data_at: str
    class_at: str
    is_elsewhere: bool = False
    is_settled: bool = False
    paths: claims.Paths = {}


class Change(NamedTuple):
    """Classes that a segment is to have.

    :param claimed: by whom
    :param at: when it was decided, as a timestamp
    :param paths: of those manifests, as far as they are known
    """

    segment: Segment
    class_map: ClassMap
    claimed: claims.Claims
    at: str
    paths: claims.Paths = {}

    @property
    def headers(self) -> Dict[str, str]:
        """That spell the map, and say what it follows from: servers with
        newer classes refuse it.

        :raises TooManySpans: it does not fit them
        """
        headers = classmap.to_headers(names.TRANSIENT_MAP, self.class_map)
        headers[names.SEEN_MAP_AT] = self.segment.class_at or NEVER
        text = claims.encode(self.claimed)
        if text:
            headers[names.CLAIMS] = text
            paths = claims.encode_paths(self.claimed, self.paths)
            if paths:
                headers[names.CLAIMANTS] = paths
        return headers

    @property
    def is_needed(self) -> bool:
        """False if the segment surely has them: fewer of its servers than a
        quorum may have got these."""
        return not self.segment.is_settled or self.differs

    @property
    def differs(self) -> bool:
        """True if the newest that its servers have are others."""
        return self.class_map != (
            self.segment.class_map or ClassMap.uniform(0)) or claims.decode(
                claims.encode(self.claimed)) != self.segment.claimed or \
            claims.decode_paths(claims.encode_paths(
                self.claimed, self.paths)) != self.segment.paths


class Segments:
    """Looks at segments and changes their classes.

    :param app: what is below the filter
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._batches = Batches(app)
        self._primaries = Primaries(app)
        self._seen: OrderedDict[str, Mapping[str, str]] = OrderedDict()

    def notice(self, env: Env, target: Target,
               headers: Mapping[str, str]) -> None:
        """Swift's SLO, about to PUT a manifest, got this answer to a HEAD
        of a segment: the PUT is of the same transaction."""
        self._seen[_key(env, target)] = headers
        while len(self._seen) > _MAX_SEEN:
            self._seen.popitem(last=False)

    def seen(self, env: Env, path: str) -> Optional[Segment]:
        """What the PUT of this manifest has seen of a segment; None if it
        did not look."""
        return self._look(env, path, asks=False)

    def look(self, env: Env, path: str) -> Optional[Segment]:
        """The segment, by its primaries; None if there is none.

        :param path: ``/<container>/<object>``
        :raises Unreachable: too few of them answer
        """
        return self._look(env, path, asks=True)

    def look_many(self, env: Env, paths: Iterable[str]
                  ) -> Dict[str, Segment]:
        """Some of these segments, as far as few requests tell."""
        targets = {path: target_of(env, path) for path in paths}
        known = self._batches.look(inner(env), dict.fromkeys(
            targets.values()))
        return {path: segment_of(target, known[target].headers)._replace(
                    is_settled=known[target].is_settled)
                for path, target in targets.items()
                if target in known
                and not stored.is_symlink(known[target].headers)}

    def _look(self, env: Env, path: str, asks: bool) -> Optional[Segment]:
        target = named = target_of(env, path)
        for _hop in range(_MAX_LINKS + 1):
            headers = self._primaries.look(inner(env), target) if asks \
                else self._seen.get(_key(env, target))
            if headers is None:
                return None
            if not stored.is_symlink(headers):
                return segment_of(target, headers)._replace(
                    is_elsewhere=_home(target) != _home(named))
            container, _, obj = wsgi_unquote(
                headers[stored.SYMLINK_TARGET]).partition('/')
            target = Target(wsgi_unquote(headers.get(_LINK_ACCOUNT) or
                                         wsgi_quote(target.account)),
                            container, obj)
        return None

    def give_many(self, env: Env, changes: Iterable[Change]
                  ) -> List[Change]:
        """Change some of these, as far as few requests do; the others.

        Of many that were looked at together some may have got newer classes
        before their turn: they are among the others, as what they are to have
        follows from those.
        """
        left = [change for change in changes if change.is_needed]
        by_target = {change.segment.target: change for change in left}
        done = self._batches.post(inner(env), {
            target: change.headers for target, change in by_target.items()},
            {target: change.at for target, change in by_target.items()})
        return [change for change in left
                if change.segment.target not in done]

    def give(self, env: Env, change: Change) -> bool:
        """Give a segment classes, unless it surely has them.

        :returns: False if its servers have classes that are newer than what
            was seen, or as new as these
        :raises Unreachable: too few of its servers answered
        :raises TooManySpans: the map does not fit its headers
        """
        target, headers = change.segment.target, change.headers
        if not change.is_needed:
            return True
        status = post_alone(inner(env), self._app, target, headers,
                            change.at)
        # 404: the segment went meanwhile.
        if status not in (202, 409, 404):
            raise Unreachable('%s: POST gives %d' % (target.path, status))
        return status != 409


def post_alone(env: Env, app: App, target: Target,
               headers: Mapping[str, str], at: str) -> int:
    """POST classes to an object, and nothing else.

    :param headers: that spell its class map
    :param at: when they were decided, as a timestamp
    :returns: the answer's status; 409 if newer classes are there
    """
    kept = {name: env[env_key(name)] for name in (
        'X-Backend-Storage-Policy-Index', 'X-Backend-Allow-Reserved-Names')
        if env_key(name) in env}
    request = make_pre_authed_request(
        env, method='POST', path=wsgi_quote(target.path),
        headers=dict(headers, **kept), swift_source='DSS')
    request.environ['QUERY_STRING'] = ''
    said = [503]

    def start(status: str, *_rest: object) -> None:
        said.append(int(status[:3]))

    try:
        close_if_possible(reclassify.classify(
            request.environ, start, app, target, at))
    except HTTPException as answer:
        said.append(answer.status_int)
    return said[-1]


def target_of(env: Env, path: str) -> Target:
    """The target of a segment of the request's account.

    :param path: ``/<container>/<object>``, as plain text
    """
    account = env['PATH_INFO'].split('/', 3)[2]
    _, container, obj = path.split('/', 2)
    return Target(account, str_to_wsgi(container), str_to_wsgi(obj))


def after(*timestamps: str) -> str:
    """A timestamp: the newest of these, or just after it if it is not the
    first."""
    newest = max(timestamps)
    if newest == timestamps[0]:
        return newest
    return str(Timestamp(float(Timestamp(newest)) + _TICK_SECONDS).internal)


def _home(target: Target) -> Tuple[str, str]:
    """The container that a user knows: versions live in hidden ones."""
    return target.account, target.user_container(None)


def segment_of(target: Target, headers: Mapping[str, str]) -> Segment:
    """The object, by a HEAD of it.

    :param target: no symbolic link
    """
    posted = stored.transient_map(headers) is not None
    return Segment(
        target, outgoing.object_size(headers) or 0,
        stored.effective_map(headers),
        claims.decode(headers.get(names.CLAIMS) or '') if posted else {},
        Timestamp(headers.get('X-Backend-Data-Timestamp') or headers.get(
            'X-Timestamp') or 0).internal,
        headers.get(names.MAP_AT) or '' if posted else '',
        paths=claims.decode_paths(headers.get(names.CLAIMANTS) or '')
        if posted else {})


def inner(env: Env) -> Env:
    """For requests to other containers, hidden ones of versions too."""
    made: Dict[str, object] = dict(env)
    made['HTTP_X_BACKEND_ALLOW_RESERVED_NAMES'] = 'true'
    made.pop('HTTP_X_BACKEND_STORAGE_POLICY_INDEX', None)
    return made


def _key(env: Env, target: Target) -> str:
    return '%s %s' % (env.get('swift.trans_id') or '', target.path)
