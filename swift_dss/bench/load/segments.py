"""Objects that are written in segments: Swift's SLO, S3's multipart uploads.

A write is one operation of several requests, one after the other on the
connection of its user. It begins with the first segment and ends with the
answer to the manifest. Segments of older generations stay until the object is
deleted, as reads that have begun may still be at them.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any, Iterator, List, NamedTuple, Tuple
from xml.sax.saxutils import escape, unescape

from swift_dss.bench.load import fronts
from swift_dss.bench.load.content import Body, Text
from swift_dss.bench.load.link import Answer, Link
from swift_dss.bench.load.scenario import Size

_UPLOAD_ID = re.compile(r'<UploadId>([^<]+)</UploadId>')


class Version(NamedTuple):
    """One generation of an object of many segments.

    :param path: ``container/object``
    """

    path: str
    kind: Size
    generation: int
    size: int

    @property
    def lengths(self) -> List[int]:
        """Bytes of each segment; all but the last have as many."""
        most = self.kind.segment_bytes or self.size
        return [min(most, self.size - offset)
                for offset in range(0, self.size, most)]


def is_large(kind: Size, size: int) -> bool:
    """Is an object of so many bytes written in segments?"""
    return kind.segment_bytes is not None and size > kind.segment_bytes


def put(front: Any, link: Link, version: Version, body: Body) -> Answer:
    """Write it, in the way of its front end.

    :returns: the last answer, or that of the request that failed; it began
        with the first one
    """
    began = time.monotonic()
    way = _put_slo if front.has_slo else _put_parts
    answer = way(front, link, version, body)
    answer.sent = began
    answer.bytes = version.size if answer.status // 100 == 2 else 0
    return answer


def delete(front: Any, link: Link, path: str,
           versions: List[Version]) -> Answer:
    """Delete an object, and the segments of all its generations.

    :returns: the first answer, or that of a segment that did not go; ends
        with the last request
    """
    answer = link.send(front.delete(path))
    if not front.has_slo or (
            answer.status // 100 != 2 and answer.status != 404):
        return answer
    for version in versions:
        for name, _length in _names(version):
            gone = link.send(front.delete(name))
            answer.end = gone.end
            if gone.status // 100 != 2 and gone.status != 404:
                gone.sent = answer.sent
                return gone
    return answer


def _put_slo(front: Any, link: Link, version: Version,
             body: Body) -> Answer:
    """Segments, and then the manifest, which has the class."""
    rows = []
    for path, part in _segments(version, body):
        answer = link.send(front.segment(path), part)
        if answer.status // 100 != 2:
            return answer
        rows.append({'path': '/' + path, 'size_bytes': part.size,
                     'etag': answer.etag.strip('"')})
    return link.send(front.manifest(version.path, version.kind, version.size),
                     Text(json.dumps(rows)))


def _put_parts(front: Any, link: Link, version: Version,
               body: Body) -> Answer:
    begun = link.send(front.begin_parts(version.path, version.kind), Text(''))
    upload_id = _UPLOAD_ID.search(begun.text)
    if begun.status // 100 != 2:
        return begun
    if not upload_id:
        begun.status, begun.error = 0, 'no UploadId in the answer'
        return begun
    upload, parts = unescape(upload_id.group(1)), []
    for number, (_path, part) in enumerate(_segments(version, body), 1):
        answer = link.send(front.part(version.path, upload, number), part)
        if answer.status // 100 != 2:
            return answer
        parts.append('<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>'
                     % (number, escape(answer.etag)))
    answer = link.send(front.complete_parts(version.path, upload), Text(
        '<CompleteMultipartUpload>%s</CompleteMultipartUpload>'
        % ''.join(parts)))
    if answer.status // 100 == 2 and '<Error>' in answer.text:
        # S3 answers before it knows.
        answer.status, answer.error = 0, answer.text[:200]
    return answer


def _names(version: Version) -> Iterator[Tuple[str, int]]:
    container, _, name = version.path.partition('/')
    for number, length in enumerate(version.lengths):
        yield '%s/%s/%d/%08d' % (fronts.beside(container), name,
                                 version.generation, number), length


def _segments(version: Version, body: Body) -> Iterator[Tuple[str, Any]]:
    offset = 0
    for path, length in _names(version):
        yield path, body.part(offset, length)
        offset += length
