"""Write one object: as it is, or in segments behind a manifest.

Nothing shows under the object's name before :meth:`Upload.finish`, and
nothing stays of an upload that is aborted. Segments lie in the container
``<container>_segments`` under ``<object>/dss-<random>/``; each is sent with
the classes of its bytes. Where the file's format says which (:mod:`auto`),
that is known at the end, and earlier segments get them then.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Dict, List, Mapping, NamedTuple, Optional, Set

from swift_dss.client.formats.contract import Reader
from swift_dss.client.fs.errors import is_unsure
from swift_dss.client.fs.large import Large, segments_container
from swift_dss.client.fs.manifest import (
    MAX_HEADER_BYTES, Row, folded, post_ranges, post_section, put_classed,
    row_of, section_of)
from swift_dss.client.fs.store import Bytes, Request, Store
from swift_dss.client.fs.writing.auto import (
    Auto, Written, hot_spans, merged, within)
from swift_dss.client.fs.writing.segments import Segment
from swift_dss.core.spans import Span
from swift_dss.wire import names
from swift_dss.wire.headers import range_text

_LOGGER = logging.getLogger(__name__)
#: Up to here a trip to another thread costs as much.
_HASHED_AT_ONCE_BYTES = 256 * 1024


class Target(NamedTuple):
    """What is written.

    :param class_id: of the bytes in no range; None: the cluster decides
    :param headers: metadata and the like, for the object itself
    :param exclusive: refuse if the object exists
    :param auto: None: the file's format says nothing
    """

    container: str
    name: str
    class_id: Optional[int] = None
    headers: Mapping[str, str] = {}
    exclusive: bool = False
    auto: Optional[Auto] = None


class Upload:
    """One object on its way.

    :param uploads: segments sent at a time; one more is being filled, so
        memory holds ``uploads + 1`` of them
    """

    def __init__(self, store: Store, large: Large, target: Target,
                 uploads: int = 2, keep_old: bool = False) -> None:
        self._store = store
        self._target = target
        self._auto = target.auto
        self._large = large
        self._room = asyncio.Semaphore(uploads)
        self._keep_old = keep_old
        self._prefix = '%s/dss-%s' % (target.name, uuid.uuid4().hex[:16])
        self._rows: Dict[int, Row] = {}
        self._parts: List[str] = []
        self._spans: List[Span] = []
        self._size = self._sent = 0
        self._tasks: Set[asyncio.Task[None]] = set()
        self._failure: Optional[BaseException] = None
        self._is_published = False

    async def look(self, reader: Reader) -> List[Span]:
        """The ranges that the format of a file gives a class, before its
        first byte is added; :meth:`finish` looks for no others.

        :param reader: of all bytes that will be added
        """
        auto, self._auto = self._auto, None
        return [] if auto is None else await hot_spans(
            reader, auto, (), self._path)

    async def add(self, segment: Segment) -> None:
        """Send a segment; returns when there is room for the next.

        :raises OSError: this or an earlier segment was refused
        """
        if not self._size:
            await self._large.make_room(self._target.container)
        number = self._sent
        self._sent += 1
        self._note(segment)
        await self._room.acquire()
        if self._failure is not None:
            self._room.release()
            raise self._failure
        task = asyncio.ensure_future(self._send(number, segment))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, last: Segment) -> None:
        """Send the last segment, and publish the object.

        :raises OSError: it was not published
        """
        target = self._target
        old: List[str] = []
        if not target.exclusive and not self._keep_old:
            old = await self._large.own_segments(target.container,
                                                 target.name)
        if self._auto is not None:
            await self._classify(last, self._auto)
        headers = dict(target.headers)
        if target.exclusive:
            headers['If-None-Match'] = '*'
        if not self._size:
            await put_segment(self._store, target.container, target.name,
                              last, target.class_id, headers)
        else:
            await self.add(last)
            await self._all_sent()
            await self._publish(headers)
        if old:
            await self._remove_old(old)

    async def _classify(self, last: Segment, auto: Auto) -> None:
        """Give the bytes that open the file their class: those of the last
        segment with its PUT, others by POSTs.

        :raises OSError: a server refused the class
        """
        await self._all_sent()
        rows = [self._rows[number] for number in sorted(self._rows)]
        spans = await hot_spans(
            Written(self._store, rows, last), auto,
            self._spans + _placed(last),
            self._path)
        if spans:
            last.ranges = merged(last.ranges, within(
                spans, last.offset, len(last)))
            self._spans = merged(self._spans, within(spans, 0, last.offset))
            await self._post(rows, spans)

    async def _post(self, rows: List[Row], hot: List[Span]) -> None:
        offset, posts = 0, []
        for row in rows:
            if within(hot, offset, row['size_bytes']):
                posts.append(self._post_one(row, within(
                    self._spans, offset, row['size_bytes'])))
            offset += row['size_bytes']
        await asyncio.gather(*posts)

    async def _post_one(self, row: Row, ranges: List[Span]) -> None:
        container, _, name = row['path'].lstrip('/').partition('/')
        async with self._room:
            await post_ranges(self._store, container, name, ranges,
                              row['size_bytes'])

    async def _remove_old(self, segments: List[str]) -> None:
        try:
            await self._large.remove_segments(self._target.container,
                                              segments)
        except OSError as err:
            # The new object is stored, whatever is left of the old.
            _LOGGER.warning('dss: segments of the object that dss://%s/%s '
                            'replaced are left: %s', self._target.container,
                            self._target.name, err)

    async def abort(self) -> None:
        """Take back what was sent. May be called twice, and after a
        failure; does nothing once the object may have been published."""
        # Not cancelled: Swift might store a segment whose sender is gone.
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not self._is_published:
            segments = [self._name(number) for number in range(self._sent)]
            await self._large.remove_segments(self._target.container,
                                              segments + self._parts)
            self._sent = 0

    @property
    def _path(self) -> str:
        return '%s/%s' % (self._target.container, self._target.name)

    def _name(self, number: int) -> str:
        return '%s/%08d' % (self._prefix, number)

    def _note(self, segment: Segment) -> None:
        self._spans += _placed(segment)
        self._size = segment.offset + len(segment)

    async def _send(self, number: int, segment: Segment) -> None:
        name = self._name(number)
        container = segments_container(self._target.container)
        try:
            await put_segment(self._store, container, name, segment,
                              self._target.class_id, {})
            self._rows[number] = row_of(container, name, segment.etag,
                                        len(segment))
            segment.free()
        except OSError as err:
            self._failure = err
        finally:
            self._room.release()

    async def _all_sent(self) -> None:
        await asyncio.gather(*self._tasks)
        if self._failure is not None:
            raise self._failure

    async def _publish(self, headers: Dict[str, str]) -> None:
        rows = [self._rows[number] for number in sorted(self._rows)]
        rows = await folded(
            self._store, segments_container(self._target.container),
            self._prefix, rows, self._parts)
        # From here on the manifest may be stored, on one server at least,
        # unless all of them refuse: only then the segments are taken back.
        self._is_published = True
        try:
            await put_classed(
                self._store, self._target.container, self._target.name,
                rows, headers, self._target.class_id, self._spans)
        except OSError as err:
            self._is_published = is_unsure(err)
            raise


def _placed(segment: Segment) -> List[Span]:
    """A segment's ranges, in the object."""
    return [Span(segment.offset + span.offset, span.length, span.class_id)
            for span in segment.ranges]


async def put_segment(store: Store, container: str, name: str,
                      segment: Segment, class_id: Optional[int],
                      headers: Mapping[str, str]) -> None:
    """Store bytes with their classes; Swift compares their MD5.

    :param class_id: of the bytes in no range; None: the cluster decides
    """
    if len(segment) > _HASHED_AT_ONCE_BYTES:
        # The loop goes on sending meanwhile.
        await asyncio.get_running_loop().run_in_executor(None, segment.hash)
    own = dict(headers, ETag=segment.etag)
    ranges = segment.ranges
    if len(ranges) == 1 and ranges[0].length == len(segment):
        class_id, ranges = ranges[0].class_id, []
    body: List[Bytes] = list(segment.pieces)
    text = range_text(ranges)
    if class_id is not None:
        own[names.OBJECT_CLASS] = str(class_id)
    if text and len(text) <= MAX_HEADER_BYTES:
        own[names.RANGE_CLASS] = text
    elif text and class_id is not None:
        # Too many for a header: the .dss form says them.
        del own[names.OBJECT_CLASS]
        own[names.OBJECT_FILE] = 'True'
        body.insert(0, section_of(ranges, class_id, len(segment)))
    await store.send(Request('PUT', container, name, headers=own, body=body))
    # Whoever still holds the request holds no segment: memory is counted.
    body.clear()
    if len(text) > MAX_HEADER_BYTES and class_id is None:
        await post_section(store, container, name, ranges, None,
                           len(segment))
