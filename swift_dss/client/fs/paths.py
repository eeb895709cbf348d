"""Paths of ``dss://`` and what Swift's rows and headers say of them."""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Dict, List, Mapping, Optional, Tuple

from swift_dss.wire import names

#: The type of objects that stand for directories.
_DIRECTORY = 'application/directory'


def split(path: str) -> Tuple[str, str]:
    """(container, object) of a path without protocol; either may be ''."""
    container, _, name = path.partition('/')
    return container, name


def directory(name: str) -> Dict[str, Any]:
    """What fsspec is told of a directory."""
    return {'name': name, 'size': 0, 'type': 'directory'}


def of_row(container: str, row: Mapping[str, Any]) -> Dict[str, Any]:
    """What fsspec is told of a row of a container's listing."""
    if 'subdir' in row:
        return directory('%s/%s' % (container, row['subdir'].rstrip('/')))
    name = '%s/%s' % (container, row['name'])
    if row['name'].endswith('/') or (
            row['content_type'] == _DIRECTORY and not row['bytes']):
        return directory(name.rstrip('/'))
    return {'name': name, 'size': row['bytes'], 'type': 'file',
            'etag': row.get('slo_etag', row['hash']).strip('"'),
            'content_type': row['content_type'],
            'last_modified': datetime.fromisoformat(
                row['last_modified']).replace(tzinfo=timezone.utc)}


def of_head(path: str, headers: Mapping[str, str]) -> Dict[str, Any]:
    """What fsspec is told of an object whose HEAD answered this."""
    size = int(headers.get('Content-Length', 0))
    kind = headers.get('Content-Type', '')
    if kind.split(';')[0] == _DIRECTORY and not size:
        return directory(path)
    return {'name': path, 'size': size, 'type': 'file',
            'etag': headers.get('Etag', '').strip('"'), 'content_type': kind,
            'last_modified': parsedate_to_datetime(
                headers['Last-Modified']).replace(tzinfo=timezone.utc),
            'metadata': {name[len('x-object-meta-'):].lower(): value
                         for name, value in headers.items()
                         if name.lower().startswith('x-object-meta-')},
            'dss': of_classes(headers)}


def of_classes(headers: Mapping[str, str]) -> Dict[str, Any]:
    """What a HEAD says of classes.

    ``class_id`` and ``class`` (its name) of the object; ``ranges`` of other
    classes, each (offset, length, class id); ``tier``.
    """
    class_id = int(headers.get(names.OBJECT_CLASS, '0'))
    return {'class_id': class_id,
            'class': headers.get(names.CLASS_NAME, str(class_id)),
            'ranges': _ranges(headers.get(names.RANGE_CLASS)),
            'tier': headers.get(names.TIER)}


def _ranges(text: Optional[str]) -> List[Tuple[int, int, int]]:
    if not text:
        return []
    ranges = []
    for entry in text.split(','):
        offset, length, class_id = entry.strip().split('-')
        ranges.append((int(offset), int(length), int(class_id)))
    return ranges
