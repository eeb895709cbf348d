"""Manifests of large objects, and the classes that go with them."""

from __future__ import annotations

import contextlib
import errno
import json
from typing import Any, Dict, List, Mapping, Optional

from swift_dss.client.fs.store import Request, Store
from swift_dss.core.errors import BadClassInput
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire import names
from swift_dss.wire.dsssection import encode_section
from swift_dss.wire.headers import range_text

#: Swift takes header lines of 8,192 bytes, the name included.
MAX_HEADER_BYTES = 8000
_MANIFEST = (('multipart-manifest', 'put'),)
#: A segment as Swift's PUT of a manifest names it.
Row = Dict[str, Any]


def row_of(container: str, name: str, etag: str, size: int) -> Row:
    """A segment in a manifest."""
    return {'path': '/%s/%s' % (container, name), 'etag': etag,
            'size_bytes': size}


async def put_manifest(store: Store, container: str, name: str,
                       rows: List[Row], headers: Mapping[str, str]) -> str:
    """Store a manifest.

    :returns: its ETag
    """
    answer = await store.send(Request(
        'PUT', container, name, query=_MANIFEST, headers=headers,
        body=(json.dumps(rows).encode('utf-8'),)))
    return answer.headers['Etag'].strip('"')


async def folded(store: Store, container: str, prefix: str,
                 rows: List[Row], made: List[str]) -> List[Row]:
    """Rows that fit one manifest: of parts, if there are too many.

    :param container: where the parts go, under ``prefix``
    :param made: is told the names of the parts, before they are there
    """
    said = (await store.info()).get('slo', {})
    most = int(said.get('max_manifest_segments', 1000))
    while len(rows) > most:
        parts: List[Row] = []
        for at in range(0, len(rows), most):
            cut = rows[at:at + most]
            name = '%s/part-%08d' % (prefix, len(made))
            made.append(name)
            etag = await put_manifest(store, container, name, cut, {})
            parts.append(row_of(container, name, etag, sum(
                row['size_bytes'] for row in cut)))
        rows = parts
    return rows


async def put_classed(store: Store, container: str, name: str,
                      rows: List[Row], headers: Mapping[str, str],
                      class_id: Optional[int], ranges: List[Span]) -> None:
    """Store a manifest whose segments have their classes already.

    Its own only keep a rule, or the container's default, from giving them
    others.

    :param class_id: of the bytes in no range; None: the cluster decides
    :param ranges: of other classes, over the whole
    """
    headers, text = dict(headers), range_text(ranges)
    if class_id is not None:
        headers[names.OBJECT_CLASS] = str(class_id)
    if text and len(text) <= MAX_HEADER_BYTES:
        try:
            await put_manifest(store, container, name, rows, dict(
                headers, **{names.RANGE_CLASS: text}))
            return
        except OSError as err:
            # Older servers take no ranges with a manifest.
            if err.errno != errno.EINVAL:
                raise
    await put_manifest(store, container, name, rows, headers)
    if len(text) > MAX_HEADER_BYTES:
        # Those servers take no section either, nor do any of more ranges
        # than their limit; the segments keep what they have.
        with contextlib.suppress(OSError, ValueError):
            await post_section(store, container, name, ranges, class_id,
                               sum(row['size_bytes'] for row in rows))


async def post_ranges(store: Store, container: str, name: str,
                      ranges: List[Span], size: int) -> None:
    """Give an object that is stored its ranges; other bytes keep what the
    cluster chose for the object.

    The caller guarantees that the object has no more ranges than HEAD shows.
    """
    text = range_text(ranges)
    if len(text) > MAX_HEADER_BYTES:
        await post_section(store, container, name, ranges, None, size)
        return
    await store.send(Request('POST', container, name, headers={
        names.RANGE_CLASS: text}))


async def post_section(store: Store, container: str, name: str,
                       ranges: List[Span], class_id: Optional[int],
                       size: int) -> None:
    """Give an object that is stored its ranges, by a class section.

    :param class_id: of the bytes in no range; None: what the cluster chose
        for the object, which shows only now
    """
    if class_id is None:
        answer = await store.send(Request('HEAD', container, name))
        class_id = int(answer.headers.get(names.OBJECT_CLASS, '0'))
    await store.send(Request(
        'POST', container, name, query=((names.RECLASSIFY_QUERY, ''),),
        body=(section_of(ranges, class_id, size),)))


def section_of(ranges: List[Span], class_id: int, size: int) -> bytes:
    """The class section that says the classes of an object's bytes.

    :raises ValueError: it would be longer than Swift takes
    """
    try:
        return encode_section(ClassMap.from_spans(ranges, class_id), size)
    except BadClassInput as err:
        raise ValueError(str(err)) from err
