"""The classes of stored objects: every byte's, and how to change them."""

from __future__ import annotations

import asyncio
from typing import List, Tuple

from swift_dss.client.fs.classing import Names
from swift_dss.client.fs.large import Large, is_large
from swift_dss.client.fs.store import Request, Store
from swift_dss.core.limits import DEFAULT_MAX_DSS_SECTION_BYTES
from swift_dss.wire import names
from swift_dss.wire.dssfile import Decoder

#: (offset, length, class id), in order and without gaps.
Spans = List[Tuple[int, int, int]]
#: Segments that are asked at a time.
_SEGMENTS = 16


class Classes:
    """Reads and sets the classes of one account's objects."""

    def __init__(self, store: Store, known: Names) -> None:
        self._store = store
        self._large = Large(store)
        self._max_spans = known.max_spans

    async def of(self, container: str, name: str) -> Spans:
        """The class of every byte of an object, as it is stored.

        :raises OSError: it is a large object that uses parts of others
        """
        head = await self._store.send(Request('HEAD', container, name))
        if not is_large(head):
            return await self._of_one(container, name)
        pieces = await self._large.pieces(container, name)
        if pieces is None:
            raise OSError('dss://%s/%s: uses parts of other objects'
                          % (container, name))
        room = asyncio.Semaphore(_SEGMENTS)

        async def asked(part_container: str, part: str) -> Spans:
            async with room:
                return await self._of_one(part_container, part)
        parts = await asyncio.gather(*(
            asked(piece.container, piece.name) for piece in pieces))
        joined: Spans = []
        for piece, spans in zip(pieces, parts):
            for offset, length, class_id in spans:
                _append(joined, piece.offset + offset, length, class_id)
        return joined

    async def set(self, container: str, name: str, class_id: int) -> None:
        """Give all bytes of an object one class. Those of segments get it by
        the cluster, which refuses a class for a segment alone."""
        await self._store.send(Request(
            'POST', container, name,
            headers={names.OBJECT_CLASS: str(class_id)}))

    async def _of_one(self, container: str, name: str) -> Spans:
        """By the class section of its ``.dss`` form, which is never cut."""
        request = Request('GET', container, name,
                          headers={names.OBJECT_FILE: 'True'})
        for most in (65536, 2 * DEFAULT_MAX_DSS_SECTION_BYTES):
            answer = await self._store.head_of(request, most)
            decoder = Decoder(
                content_length=int(answer.headers['Content-Length']),
                max_spans=self._max_spans)
            decoder.feed(answer.body)
            if decoder.class_map is not None:
                return [(span.offset, span.length, span.class_id) for span
                        in decoder.class_map.split(0,
                                                   decoder.data_length or 0)]
        raise OSError('dss://%s/%s: the class section has no end'
                      % (container, name))


def _append(spans: Spans, offset: int, length: int, class_id: int) -> None:
    if spans and spans[-1][2] == class_id:
        last = spans.pop()
        offset, length = last[0], last[1] + length
    spans.append((offset, length, class_id))
