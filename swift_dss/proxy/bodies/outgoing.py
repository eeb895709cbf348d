"""Show classes to clients in the answers to GET and HEAD."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import str_to_wsgi, wsgi_to_str

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import MAX_RANGE_HEADER_BYTES, UNCLASSIFIED
from swift_dss.core.spans import ClassMap
from swift_dss.proxy.bodies import stored
from swift_dss.wire import names
from swift_dss.wire.dssfile import encode_section, section_length
from swift_dss.wire.headers import format_range_class, parse_object_class

Headers = List[Tuple[str, str]]

#: Of the answer that holds the data, but not true of its ``.dss`` form.
_NOT_OF_FILE_FORM = frozenset(('etag', 'content-length', 'accept-ranges',
                               'content-range'))


def shown(headers: Headers, table: ClassTable) -> Headers:
    """The same headers with the classes in client's words.

    Costs one look at each name where the object is unclassified.
    """
    if not any('-dss-' in name.lower() for name, _ in headers):
        return headers
    found = HeaderKeyDict(headers)
    ours = _client_headers(found, table)
    return [(name, value) for name, value in stored.without_maps(headers)
            if name.title() not in ours] + sorted(ours.items())


def class_headers(class_map: ClassMap, size: Optional[int],
                  table: ClassTable) -> Mapping[str, str]:
    """``X-DSS-Object-Class`` and its companions for a map.

    :param size: of the object; without it ranges are not shown
    """
    answer = {names.OBJECT_CLASS: str(class_map.rest)}
    if class_map.rest in table.specs:
        answer[names.CLASS_NAME] = table.name_of(class_map.rest)
    if not class_map.is_uniform and size is not None:
        ranges = format_range_class(class_map, size, MAX_RANGE_HEADER_BYTES)
        if ranges:
            answer[names.RANGE_CLASS] = ranges
    return answer


def _client_headers(found: HeaderKeyDict,
                    table: ClassTable) -> Mapping[str, str]:
    answer: Dict[str, str] = {}
    class_map = stored.effective_map(found)
    if class_map is not None:
        answer.update(class_headers(class_map, object_size(found), table))
    if names.S3_CLASS_META in found and not stored.is_symlink(found):
        answer[names.S3_CLASS_META] = _said_class(
            found[names.S3_CLASS_META],
            class_map.rest if class_map is not None else UNCLASSIFIED, table)
    tier = found.get(names.BACKEND_TIER)
    if tier:
        answer[names.TIER] = tier
    return answer


def _said_class(text: str, class_id: int, table: ClassTable) -> str:
    """The metadata's value for the class in force.

    The value of the PUT, until a POST or a header sets another class: a client
    that writes back metadata it has read must not restore the old class.
    """
    try:
        if parse_object_class(wsgi_to_str(text), table) == class_id:
            return text
    except BadClassInput:
        pass  # a name that left the table, or no class at all
    return str(str_to_wsgi(table.name_of(class_id)))


def object_size(found: Mapping[str, str]) -> Optional[int]:
    """Size of the whole object that a GET or HEAD answer is about."""
    content_range = found.get('Content-Range') or ''
    text = content_range.rpartition('/')[2] if content_range else \
        found.get('Content-Length') or ''
    if not text.isdigit() or 'multipart/byteranges' in (
            found.get('Content-Type') or ''):
        return None
    return int(text)


def carried_map(found: Mapping[str, str], status: int) -> Optional[ClassMap]:
    """The map of the object that a copier will PUT from this answer.

    A range of an object takes the classes of that range; several ranges
    in one answer are a text of their own, of the object's class.
    """
    class_map = stored.effective_map(found)
    if class_map is None or status != 206 or class_map.is_uniform:
        return class_map
    content_range = found.get('Content-Range') or ''
    try:
        first, last = content_range.split(' ')[1].split('/')[0].split('-')
        start, length = int(first), int(last) - int(first) + 1
    except (IndexError, ValueError):
        return ClassMap.uniform(class_map.rest)
    return slice_map(class_map, start, length)


def slice_map(class_map: ClassMap, start: int, length: int) -> ClassMap:
    """The map of ``length`` bytes from ``start``, as an object."""
    return ClassMap.from_spans(
        (type(span)(span.offset - start, span.length, span.class_id)
         for span in class_map.split(start, length)), class_map.rest)


def refuse_file_form(found: Mapping[str, str]) -> None:
    """Check that an answer has a ``.dss`` form.

    :raises BadClassInput: says why not
    """
    if stored.is_manifest(found):
        raise BadClassInput(
            names.OBJECT_FILE, 'a large object has no .dss form; ask for '
            'its segments')
    if object_size(found) is None:
        raise BadClassInput(
            names.OBJECT_FILE, 'an object of unknown length has no .dss '
            'form')


def file_form(headers: Headers, found: Mapping[str, str],
              with_section: bool) -> Tuple[Headers, bytes]:
    """Headers and class section of the ``.dss`` form of an answer.

    The ETag would be that of other bytes: it moves to
    ``X-DSS-Data-Etag``.

    :param with_section: False for HEAD, which needs the length only
    """
    class_map = stored.effective_map(found) or ClassMap.uniform(0)
    size = object_size(found) or 0
    section = encode_section(class_map, size) if with_section else b''
    length = len(section) or section_length(class_map, size)
    answer = [(name, value) for name, value in headers
              if name.lower() not in _NOT_OF_FILE_FORM]
    answer.append(('Content-Length', str(length + size)))
    answer.append((names.OBJECT_FILE, 'True'))
    if found.get('Etag'):
        answer.append((names.DATA_ETAG, found['Etag']))
    return answer, section
