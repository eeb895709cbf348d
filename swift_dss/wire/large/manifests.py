"""Manifests of large objects, as Swift stores them.

A static one (SLO) is a JSON list that Swift's middleware has checked and
completed; a dynamic one (DLO) is a listing. Both are a list of
:class:`Entry` here.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, List, NamedTuple

from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import MAX_OBJECT_BYTES

_FIELD = 'manifest'


class Entry(NamedTuple):
    """Bytes of one object in a row, as a part of a large one.

    :param path: ``/<container>/<object>``; '' for bytes that the manifest
        holds itself
    :param start: the first byte of the object that is used
    :param length: bytes that are used
    :param size: of the object, bytes
    :param etag: of the object; '' where any will do
    :param is_manifest: the object is a large one too
    :param data: the bytes themselves, where ``path`` is ''
    """

    path: str
    start: int
    length: int
    size: int
    etag: str = ''
    is_manifest: bool = False
    data: bytes = b''


def parse_static(raw: bytes) -> List[Entry]:
    """The entries of a stored SLO.

    :raises BadClassInput: it is not one
    """
    try:
        rows = json.loads(raw)
        return [_entry(row) for row in rows]
    except (ValueError, TypeError, KeyError, AttributeError,
            binascii.Error) as err:
        raise BadClassInput(_FIELD, 'is not a list of segments: %s'
                            % err) from err


def parse_listing(raw: bytes, container: str) -> List[Entry]:
    """The entries of a listing of objects.

    :param container: that was listed
    :raises BadClassInput: it is not one
    """
    try:
        return [Entry('/%s/%s' % (container, row['name']), 0,
                      _count(row['bytes']), row['bytes'])
                for row in json.loads(raw) if 'name' in row]
    except (ValueError, TypeError, KeyError, AttributeError) as err:
        raise BadClassInput(_FIELD, 'is not a listing: %s' % err) from err


def _entry(row: Any) -> Entry:
    if 'data' in row:
        data = base64.b64decode(row['data'])
        return Entry('', 0, len(data), len(data), data=data)
    start, size = 0, _count(row['bytes'])
    length = size
    if row.get('range'):
        first, _, last = row['range'].partition('-')
        start = _count(int(first))
        length = _count(int(last) + 1) - start
        if length < 0:
            raise ValueError('range %s' % row['range'])
    return Entry('/' + row['name'].lstrip('/'), start, length, size,
                 row['hash'], row.get('sub_slo') in (True, 'True', 'true'))


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= MAX_OBJECT_BYTES:
        raise ValueError('not a number of bytes: %r' % (number,))
    return number
