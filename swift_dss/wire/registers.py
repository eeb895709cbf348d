"""The metadata of POSTs, as registers that merge in any order.

A stock ``.meta`` file is one register: the newer POST replaces all of the
older one. With classes it holds two more, each with the timestamp of the
POST that set it:

- the metadata (``X-Object-Meta-*``, ``X-Delete-At`` and so on);
- the class map that a POST set, if one did;
- the content type, which Swift itself keeps this way.

Replicas see POSTs in different orders, and some miss one. They converge,
because the newer side of each register wins (:func:`join`) and because the
``.meta`` file's name, which is all that ssync compares, follows from the
registers (:func:`file_timestamp`): the same registers have the same name, and
the replica that knows more has the newer name. Two decisions may follow from
one look at an object, and so have one time: of their classes one wins, the
same everywhere, and the name tells them apart.

Timestamps are Swift's internal form: their order is that of the strings.
"""

from __future__ import annotations

import re
import zlib
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from swift_dss.wire import names

#: Older than everything.
NEVER = '0000000000.00000'
#: Older than any object: stock object servers refuse such a POST.
_TOO_OLD = '0000000001.00000'
_TIMESTAMP = re.compile(r'\d{10}\.\d{5}(_[0-9a-f]{16})?')
_TYPE_AT = 'Content-Type-Timestamp'
_CLASS = names.TRANSIENT_MAP.lower()
_META_AT = names.META_AT.lower()
_NO_METADATA = frozenset((
    'name', 'x-timestamp', 'content-type', 'content-type-timestamp',
    _META_AT))
#: A data file's own: no POST changes these.
_DATA_ONLY = frozenset((
    'content-length', 'deleted', 'etag', 'x-static-large-object'))
_SYSMETA = 'x-object-sysmeta-'
#: Of an offset's 64, those that a timestamp and a bit leave.
_MARK_BITS = 13


class Registers(NamedTuple):
    """Three values and when each was set; '' and {} where there is none.

    :param class_map: the headers that spell the map
    """

    meta_at: str
    meta: Mapping[str, str]
    class_at: str = ''
    class_map: Mapping[str, str] = {}
    type_at: str = ''
    content_type: str = ''


def class_alone(at: str) -> Dict[str, str]:
    """Headers of a POST that sets the class map and nothing else.

    :param at: when it was decided
    """
    return {'X-Timestamp': _TOO_OLD, names.META_AT: NEVER, names.MAP_AT: at}


def is_timestamp(text: str) -> bool:
    """True for the internal form of a timestamp."""
    return _TIMESTAMP.fullmatch(text) is not None


def of_post(metadata: Mapping[str, str]) -> Registers:
    """The registers of a ``.meta`` file, or of a POST about to be one.

    A register without a timestamp has that of the file: stock Swift and older
    versions write such files.

    :raises KeyError: there is no X-Timestamp
    """
    at = metadata['X-Timestamp']
    meta_at = metadata.get(names.META_AT, '')
    class_map = _class_map(metadata)
    return Registers(
        meta_at if is_timestamp(meta_at) else at,
        {name: value for name, value in metadata.items()
         if _is_metadata(name.lower())},
        _class_at(metadata, class_map, at), class_map,
        metadata.get(_TYPE_AT, ''),
        metadata.get('Content-Type', ''))


def of_data(metadata: Mapping[str, str]) -> Registers:
    """The registers that the PUT of a data file set.

    Its class map is no register: it is sysmeta and stays in the data file.
    One that a copy tool brought along from a POST is.

    :raises KeyError: there is no X-Timestamp
    """
    at = metadata['X-Timestamp']
    class_map = _class_map(metadata)
    return Registers(
        at, {name: value for name, value in metadata.items()
             if _is_metadata(name.lower())
             and name.lower() not in _DATA_ONLY
             and not name.lower().startswith(_SYSMETA)},
        _class_at(metadata, class_map, at), class_map)


def join(left: Registers, other: Registers) -> Registers:
    """Of each register the newer side; of two of one age, ``left``'s, but
    for classes, where both orders give the same."""
    newer_meta = other if other.meta_at > left.meta_at else left
    newer_class = other if has_newer_class(other, left) else left
    newer_type = other if other.type_at > left.type_at else left
    return Registers(
        newer_meta.meta_at, newer_meta.meta, newer_class.class_at,
        newer_class.class_map, newer_type.type_at, newer_type.content_type)


def classes_said(headers: Mapping[str, str]) -> List[Tuple[str, str]]:
    """The headers of classes that a POST set, and their time: to compare."""
    return sorted((name.lower(), value) for name, value in headers.items()
                  if name.lower().startswith(_CLASS))


def has_newer_class(registers: Registers, other: Registers) -> bool:
    """True if its classes win over the other's."""
    if registers.class_at != other.class_at:
        return registers.class_at > other.class_at
    return registers.class_map != other.class_map and \
        _class_order(registers) > _class_order(other)


def file_timestamp(registers: Registers) -> str:
    """X-Timestamp of the ``.meta`` file, which begins its name.

    The newer of both timestamps; in its offset the older one, which of both
    that is, and a checksum of the classes. So the name grows whenever a
    register does, and no two states share one, but for one in thousands of
    two classes of one time. Without a class it is stock Swift's value.
    """
    if not registers.class_at:
        return registers.meta_at
    first, last = sorted((registers.meta_at, registers.class_at))
    return '%s_%016x' % (
        last.partition('_')[0],
        (_raw(first) << 1 | (registers.class_at >= registers.meta_at))
        << _MARK_BITS | _mark(registers.class_map))


def to_metadata(registers: Registers) -> Dict[str, str]:
    """The contents of the ``.meta`` file; :func:`of_post` reads them back."""
    metadata = dict(registers.meta)
    metadata['X-Timestamp'] = file_timestamp(registers)
    if registers.class_at:
        metadata.update(registers.class_map)
        metadata[names.MAP_AT] = registers.class_at
        metadata[names.META_AT] = registers.meta_at
    if registers.type_at:
        metadata[_TYPE_AT] = registers.type_at
        metadata['Content-Type'] = registers.content_type
    return metadata


def current(metadata: Mapping[str, str],
            data: Mapping[str, str]) -> Mapping[str, str]:
    """The part of a ``.meta`` file that is newer than its data file.

    A PUT between two POSTs is newer than one register and older than the
    other; the file stays for the newer one, and the older one is void. Swift
    itself passes over a content type that is older than the data, and leaves
    it in the file.

    :param metadata: of the ``.meta`` file
    :param data: of the data file
    :returns: ``metadata`` itself if all of it counts
    """
    at = data['X-Timestamp']
    if '' < metadata.get(_TYPE_AT, '') < at:
        metadata = {name: value for name, value in metadata.items()
                    if name not in (_TYPE_AT, 'Content-Type')}
    if names.MAP_AT not in metadata:
        return metadata
    posted = of_post(metadata)
    if min(posted.meta_at, posted.class_at or at) >= at:
        return metadata
    put = of_data(data)
    if posted.class_at < at:
        posted = posted._replace(class_at=put.class_at,
                                 class_map=put.class_map)
    return dict(to_metadata(join(posted, put)),
                **{'X-Timestamp': metadata['X-Timestamp']})


def _is_metadata(lowered: str) -> bool:
    return not lowered.startswith(_CLASS) and lowered not in _NO_METADATA


def _class_map(metadata: Mapping[str, str]) -> Dict[str, str]:
    return {name: value for name, value in metadata.items()
            if name.lower().startswith(_CLASS) and name != names.MAP_AT}


def _class_at(metadata: Mapping[str, str], class_map: Mapping[str, str],
              otherwise: str) -> str:
    if not class_map:
        return ''
    class_at = metadata.get(names.MAP_AT, '')
    return class_at if is_timestamp(class_at) else otherwise


def _class_order(registers: Registers) -> Tuple[int, Any]:
    """Of classes of one time."""
    return _mark(registers.class_map), _plain(registers.class_map)


def _mark(class_map: Mapping[str, str]) -> int:
    return zlib.crc32(repr(_plain(class_map)).encode(
        'utf-8', 'surrogateescape')) & (1 << _MARK_BITS) - 1


def _plain(class_map: Mapping[str, str]) -> Any:
    return sorted((name.lower(), value)
                  for name, value in class_map.items())


def _raw(timestamp: str) -> int:
    """Units of 10 microseconds since the epoch, offset left out."""
    return int(timestamp.partition('_')[0].replace('.', ''))
