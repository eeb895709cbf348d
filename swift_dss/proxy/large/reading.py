"""Read manifests: which bytes of which objects a large object is."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Mapping, NamedTuple, Sequence

from swift.common import constraints
from swift.common.swob import (
    str_to_wsgi, wsgi_quote, wsgi_to_str, wsgi_unquote)
from swift.common.utils import close_if_possible, quote
from swift.common.wsgi import make_pre_authed_request

from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.limits import (
    MAX_LARGE_DEPTH, MAX_LARGE_SEGMENTS, MAX_MANIFEST_BYTES,
    MAX_OBJECT_BYTES)
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.large.segments import target_of
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.rows import Unreachable
from swift_dss.proxy.wsgi import App, Env
from swift_dss.strategy.large.shares import Use
from swift_dss.wire.large import manifests
from swift_dss.wire.large.manifests import Entry

_FIELD = 'manifest'


class Piece(NamedTuple):
    """A use of a segment, with the manifest's words about the segment."""

    use: Use
    entry: Entry


class Whole(NamedTuple):
    """A large object.

    :param pieces: in order; a nested manifest before its own segments
    """

    pieces: Sequence[Piece]

    @property
    def uses(self) -> List[Use]:
        """All of its uses, with those of nested manifests."""
        return [piece.use for piece in self.pieces]

    @property
    def leaves(self) -> List[Use]:
        """The uses that its bytes come from."""
        return [piece.use for piece in self.pieces
                if not piece.use.is_manifest]

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(use.length for use in self.leaves)


class Reader:
    """Reads manifests and all that they nest.

    :param app: what is below the filter
    """

    def __init__(self, app: App) -> None:
        self._app = app

    def static(self, env: Env, raw: bytes) -> Whole:
        """An SLO by its stored manifest.

        :raises BadClassInput: it, or a nested one, is not one
        :raises TooManySpans: it has too many segments
        :raises Unreachable: a nested one cannot be read
        """
        pieces: List[Piece] = []
        for piece in self._walk(env, manifests.parse_static(raw), 0,
                                MAX_OBJECT_BYTES, 0, 1):
            pieces.append(piece)
            if len(pieces) > MAX_LARGE_SEGMENTS:
                raise TooManySpans(_FIELD, 'more than %d segments'
                                   % MAX_LARGE_SEGMENTS)
        return Whole(pieces)

    def stored(self, env: Env, target: Target,
               headers: Mapping[str, str]) -> Whole:
        """A large object that is there.

        :param headers: of a HEAD of its manifest
        :raises BadClassInput, TooManySpans, Unreachable: as :meth:`static`
        """
        if headers.get(stored.STATIC):
            return self.static(env, self._get(env, target))
        return self.dynamic(env, target, headers[stored.DYNAMIC])

    def dynamic(self, env: Env, target: Target, named: str) -> Whole:
        """A DLO.

        :param named: value of its ``X-Object-Manifest``
        """
        container, _, prefix = wsgi_to_str(
            wsgi_unquote(named)).partition('/')
        entries: List[Entry] = []
        while True:
            page = self._list(env, target.account, container, prefix,
                              entries[-1].path.split('/', 2)[2]
                              if entries else '')
            entries += page
            if len(entries) > MAX_LARGE_SEGMENTS:
                raise TooManySpans(_FIELD, 'more than %d segments'
                                   % MAX_LARGE_SEGMENTS)
            if len(page) < constraints.CONTAINER_LISTING_LIMIT:
                break
        return Whole(list(self._walk(env, entries, 0, MAX_OBJECT_BYTES,
                                     0, 1)))

    def _walk(self, env: Env, entries: Sequence[Entry], start: int,
              length: int, offset: int, depth: int) -> Iterator[Piece]:
        """The bytes from ``start`` of a manifest, at ``offset`` of the
        whole."""
        if depth > MAX_LARGE_DEPTH:
            raise BadClassInput(_FIELD, 'nests more than %d manifests'
                                % MAX_LARGE_DEPTH)
        cursor = 0
        for entry in entries:
            first = max(start - cursor, 0)
            last = min(start + length - cursor, entry.length)
            cursor += entry.length
            if first >= last:
                continue
            use = Use(entry.path, entry.start + first, last - first, offset,
                      entry.is_manifest)
            yield Piece(use, entry)
            if entry.is_manifest:
                nested = manifests.parse_static(
                    self._get(env, target_of(env, entry.path)))
                yield from self._walk(env, nested, use.start, use.length,
                                      offset, depth + 1)
            offset += use.length

    def _get(self, env: Env, target: Target) -> bytes:
        return self._read(env, wsgi_quote(target.path), '')

    def _list(self, env: Env, account: str, container: str, prefix: str,
              marker: str) -> List[Entry]:
        return manifests.parse_listing(self._read(
            env, wsgi_quote(Target(account, str_to_wsgi(container)).path),
            'format=json&prefix=%s&marker=%s' % (
                quote(prefix), quote(marker))), container)

    def _read(self, env: Env, path: str, query: str) -> bytes:
        request = make_pre_authed_request(
            env, method='GET', path=path, swift_source='DSS',
            headers={'X-Backend-Allow-Reserved-Names': 'true'})
        request.environ['QUERY_STRING'] = query
        response = request.get_response(self._app)
        try:
            if not response.is_success:
                raise Unreachable('%s: GET gives %d' % (
                    path, response.status_int))
            return read(response.app_iter)
        finally:
            close_if_possible(response.app_iter)


def read(chunks: Iterable[bytes]) -> bytes:
    """A whole manifest.

    :raises TooManySpans: it is too long
    """
    raw = bytearray()
    for chunk in chunks:
        raw += chunk
        if len(raw) > MAX_MANIFEST_BYTES:
            raise TooManySpans(_FIELD, 'more than %d bytes'
                               % MAX_MANIFEST_BYTES)
    return bytes(raw)
