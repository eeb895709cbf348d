"""Objects in segments: their segments, and what becomes of those.

Only segments under ``<object>/dss-<random>/`` are removed with an object
that is written again: no other object can have them. Those that another
tool made stay.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple
from urllib.parse import unquote

from swift_dss.client.fs.store import Answer, Request, Store
from swift_dss.wire.names import CONTAINER_CLASS

_GET = (('multipart-manifest', 'get'),)
_DELETE = (('multipart-manifest', 'delete'),)
#: For how long an answer holds whether a container has one for segments.
_KNOWN_SECONDS = 10.0
#: Removals under way at a time.
_DELETES = 16
#: Manifests of manifests; Swift's own limit.
_MAX_DEPTH = 10


class Piece(NamedTuple):
    """One segment of an object, in order.

    :param offset: of its first byte in the object
    """

    container: str
    name: str
    offset: int
    length: int
    etag: str


def segments_container(container: str) -> str:
    """Where the segments of a container's objects lie."""
    return container + '_segments'


def is_large(answer: Answer) -> bool:
    """Does a HEAD or GET show a static large object?"""
    return answer.headers.get('X-Static-Large-Object', '').lower() == 'true'


class Rooms:
    """Which containers have one for segments. It spares most writes of
    small objects a look at the object that they replace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        #: Of a container: has it one, and until when that holds.
        self._known: Dict[str, Tuple[bool, float]] = {}
        #: Questions under way, one of a container.
        self._asked: Dict[str, asyncio.Task[bool]] = {}

    async def has(self, container: str) -> bool:
        """Is there one? Many writes at once ask Swift once.

        :raises OSError: Swift does not say
        """
        has, until = self._known.get(container, (False, 0.0))
        if until > asyncio.get_running_loop().time():
            return has
        task = self._asked.get(container)
        if task is None:
            task = asyncio.ensure_future(self._ask(container))
            self._asked[container] = task
        # A write that is given up ends no question of others.
        return await asyncio.shield(task)

    def made(self, container: str) -> None:
        """Note that there is one now."""
        # An answer that is still to come may be of the time before.
        self._asked.pop(container, None)
        self._note(container, True)

    async def _ask(self, container: str) -> bool:
        task = asyncio.current_task()
        try:
            answer = await self._store.send(Request(
                'HEAD', segments_container(container), allow=(404,)))
            if self._asked.get(container) is task:
                self._note(container, answer.status != 404)
        finally:
            if self._asked.get(container) is task:
                del self._asked[container]
        return self._known[container][0]

    def _note(self, container: str, has: bool) -> None:
        self._known[container] = (has, asyncio.get_running_loop().time()
                                  + _KNOWN_SECONDS)


class Large:
    """What an account's large objects consist of."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rooms = Rooms(store)

    async def make_room(self, container: str) -> None:
        """Make the container of the segments, with the storage policy and
        the default class of ``container``.

        :raises FileNotFoundError: there is no ``container``
        """
        head = await self._store.send(Request('HEAD', container))
        headers = {name: head.headers[name] for name in (
            'X-Storage-Policy', CONTAINER_CLASS) if name in head.headers}
        segments = segments_container(container)
        answer = await self._store.send(Request('HEAD', segments,
                                                allow=(404,)))
        if answer.status == 404:
            await self._store.send(Request('PUT', segments, headers=headers,
                                           allow=(409,)))
        self._rooms.made(container)

    async def pieces(self, container: str, name: str,
                     depth: int = 0) -> Optional[List[Piece]]:
        """The segments of a large object, those of its parts in their
        place; None if a part of one is used, or data inside the manifest.

        :raises OSError: it is none, or manifests are nested too deeply
        """
        if depth > _MAX_DEPTH:
            raise OSError('dss://%s/%s: manifests are nested too deeply'
                          % (container, name))
        pieces: List[Piece] = []
        offset = 0
        rows = await self._rows(container, name)
        if rows is None:
            raise OSError('dss://%s/%s: it changed while it was read'
                          % (container, name))
        for row in rows:
            if 'range' in row or 'path' not in row:
                return None
            inner_container, inner = row['path'].lstrip('/').split('/', 1)
            length = int(row['size_bytes'])
            piece = Piece(inner_container, inner, offset, length,
                          row.get('etag') or '')
            if row.get('sub_slo'):
                parts = await self.pieces(inner_container, inner, depth + 1)
                if parts is None:
                    return None
                pieces += [part._replace(offset=offset + part.offset)
                           for part in parts]
            else:
                pieces.append(piece)
            offset += length
        return pieces

    async def own_segments(self, container: str, name: str) -> List[str]:
        """The segments that nothing but this object has, parts included.

        None of them if its older versions are kept, or if it is not there.
        """
        if not await self._rooms.has(container):
            return []
        head = await self._store.send(Request('HEAD', container, name,
                                              allow=(404,)))
        if head.status == 404 or not is_large(head) \
                or await self._keeps_versions(container):
            return []
        own = re.compile(r'%s/dss-[0-9a-f]{16}/[^/]+' % re.escape(name))
        return [segment for segment in await self._all_names(container, name)
                if own.fullmatch(segment)]

    async def remove_segments(self, container: str,
                              names: Iterable[str]) -> None:
        """Remove segments of an object of ``container``, by their names: a
        listing may lack what was written a moment ago."""
        segments = segments_container(container)
        room = asyncio.Semaphore(_DELETES)

        async def remove(name: str) -> None:
            async with room:
                await self._store.send(Request('DELETE', segments, name,
                                               allow=(404,)))
        await asyncio.gather(*(remove(name) for name in names))

    async def remove(self, container: str, name: str,
                     large: Optional[bool] = None) -> None:
        """Remove an object, and with a large one its segments.

        :param large: whether it is a large one; None: not known
        :raises FileNotFoundError: there is none
        """
        if large is None:
            large = is_large(await self._store.send(Request(
                'HEAD', container, name)))
        query: Tuple[Tuple[str, str], ...] = ()
        if large and not await self._keeps_versions(container):
            query = _DELETE
        answer = await self._store.send(Request(
            'DELETE', container, name, query=query, allow=(404,),
            headers={'Accept': 'application/json'}))
        if query and answer.status == 200:
            self._check_removed(container, name, answer)

    def _check_removed(self, container: str, name: str,
                       answer: Answer) -> None:
        said = json.loads(answer.body or b'{}')
        errors = [(unquote(path), status) for path, status in
                  said.get('Errors', ()) if not status.startswith('404')]
        if errors:
            raise OSError('dss://%s/%s: not removed: %s %s' % (
                container, name, errors[0][0], errors[0][1]))

    async def _rows(self, container: str,
                    name: str) -> Optional[List[Dict[str, Any]]]:
        """Of a manifest; None if it is none any more."""
        answer = await self._store.send(Request(
            'GET', container, name, query=_GET, allow=(404,)))
        if answer.status == 404 or not is_large(answer):
            return None
        return [_as_put(row) for row in json.loads(answer.body)]

    async def _all_names(self, container: str, name: str,
                         depth: int = 0) -> List[str]:
        """What a manifest names in the container of segments."""
        top = container if not depth else container[:-len(
            segments_container(''))]
        names: List[str] = []
        for row in await self._rows(container, name) or ():
            inner_container, _, inner = row.get(
                'path', '').lstrip('/').partition('/')
            if inner_container != segments_container(top):
                continue
            names.append(inner)
            if row.get('sub_slo') and depth < _MAX_DEPTH:
                names += await self._all_names(inner_container, inner,
                                               depth + 1)
        return names

    async def _keeps_versions(self, container: str) -> bool:
        head = await self._store.send(Request('HEAD', container))
        return any(head.headers.get(name) not in (None, '', 'False') for name
                   in ('X-Versions-Enabled', 'X-Versions-Location',
                       'X-History-Location'))


def _as_put(row: Dict[str, Any]) -> Dict[str, Any]:
    """A row of a stored manifest under the names that a PUT has."""
    if 'name' in row:
        row = dict(row, path=row['name'], size_bytes=row['bytes'],
                   etag=row.get('hash'))
    return row
