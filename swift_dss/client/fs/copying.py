"""Copies on the server, which keep the classes of all bytes."""

from __future__ import annotations

import asyncio
import uuid
from typing import Dict, List, Optional, Tuple
from urllib.parse import quote

from swift_dss.client.fs.classing import Names
from swift_dss.client.fs.large import (
    Large, Piece, is_large, segments_container)
from swift_dss.client.fs.manifest import (
    Row, folded, put_classed, row_of)
from swift_dss.client.fs.reclassify import Classes, Spans
from swift_dss.client.fs.store import Request, Store
from swift_dss.core.spans import Span
from swift_dss.wire import names

#: Copies of segments under way at a time.
_COPIES = 8


async def copy(store: Store, large: Large, source: Tuple[str, str],
               target: Tuple[str, str]) -> None:
    """Copy an object; a large one gets segments of its own.

    :param source: container and object
    :raises FileNotFoundError: there is none, or no container to copy to
    """
    head = await store.send(Request('HEAD', *source))
    pieces: Optional[List[Piece]] = None
    if is_large(head):
        pieces = await large.pieces(*source)
    if source == target:
        return
    old = await large.own_segments(*target)
    if pieces is None:
        await _copy_one(store, source, target)
    else:
        headers = {name: value for name, value in head.headers.items()
                   if name.lower() in ('content-type', 'x-delete-at')
                   or name.lower().startswith('x-object-meta-')}
        spans: Spans = []
        if names.OBJECT_CLASS in head.headers \
                or names.RANGE_CLASS in head.headers:
            spans = await Classes(store, Names(await store.info())).of(
                *source)
        await _copy_pieces(store, large, pieces, target, headers, spans)
    if old:
        await large.remove_segments(target[0], old)


async def _copy_one(store: Store, source: Tuple[str, str],
                    target: Tuple[str, str]) -> None:
    where = '/%s/%s' % (quote(source[0], safe=''), quote(source[1]))
    await store.send(Request('PUT', *target,
                             headers={'X-Copy-From': where}))


async def _copy_pieces(store: Store, large: Large, pieces: List[Piece],
                       target: Tuple[str, str], headers: Dict[str, str],
                       spans: Spans) -> None:
    await large.make_room(target[0])
    container = segments_container(target[0])
    prefix = '%s/dss-%s' % (target[1], uuid.uuid4().hex[:16])
    room = asyncio.Semaphore(_COPIES)
    made = ['%s/%08d' % (prefix, number) for number in range(len(pieces))]
    parts: List[str] = []

    async def copied(name: str, piece: Piece) -> Row:
        async with room:
            await _copy_one(store, (piece.container, piece.name),
                            (container, name))
        return row_of(container, name, piece.etag, piece.length)
    try:
        rows = list(await asyncio.gather(*map(copied, made, pieces)))
        rows = await folded(store, container, prefix, rows, parts)
        await put_classed(
            store, *target, rows, headers, spans[0][2] if spans else None,
            [Span(*span) for span in spans if span[2] != spans[0][2]])
    except BaseException:
        await large.remove_segments(target[0], made + parts)
        raise
