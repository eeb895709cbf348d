"""Show classes to clients in the answers to GET and HEAD."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple

from swift.common.swob import Range, Request, str_to_wsgi, wsgi_to_str

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import MAX_RANGE_HEADER_BYTES, UNCLASSIFIED
from swift_dss.core.spans import ClassMap
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.wsgi import Env
from swift_dss.wire import names
from swift_dss.wire.dssfile import encode_section, section_length
from swift_dss.wire.headers import format_range_class, parse_object_class
from swift_dss.wire.s3 import restores

Headers = List[Tuple[str, str]]

SLO_SIZE = 'X-Object-Sysmeta-Slo-Size'
_SLO_ETAG = 'X-Object-Sysmeta-Slo-Etag'

#: Of the answer that holds the data, but not true of its ``.dss`` form.
_NOT_OF_FILE_FORM = frozenset((
    'etag', 'content-length', 'accept-ranges', 'content-range',
    'x-static-large-object', 'x-object-manifest'))


def shown(headers: Headers, table: ClassTable) -> Headers:
    """The same headers with the classes in client's words.

    Costs one look at each name where the object is unclassified.
    """
    lowered = [name.lower() for name, _ in headers]
    if '-dss-' not in ' '.join(lowered):
        return headers
    given = stored.Given(zip(lowered, [value for _, value in headers]))
    ours = _client_headers(given, table)
    hidden = {name.lower() for name in ours}
    return [header for name, header in zip(lowered, headers)
            if name not in hidden and not name.startswith(stored.OURS)
            ] + sorted(ours.items())


def class_headers(class_map: ClassMap, size: Optional[int],
                  table: ClassTable) -> Mapping[str, str]:
    """``X-DSS-Object-Class`` and its companions for a map.

    Of a map that is too long for a header, the object's class may be that of
    no byte: the class of most bytes stands in its stead.

    :param size: of the object; without it ranges are not shown
    """
    answer = {}
    class_id = class_map.rest
    # The one that S3's listings show.
    storage_class = table.storage_class_of(class_id)
    if storage_class:
        answer[names.STORAGE_CLASS] = storage_class
    if not class_map.is_uniform and size is not None:
        ranges = format_range_class(class_map, size, MAX_RANGE_HEADER_BYTES)
        if ranges:
            answer[names.RANGE_CLASS] = ranges
        else:
            class_id, count = _most(class_map, size)
            if count > 1:
                answer[names.RANGE_COUNT] = str(count)
    answer[names.OBJECT_CLASS] = str(class_id)
    if class_id in table.specs:
        answer[names.CLASS_NAME] = table.name_of(class_id)
    return answer


def _most(class_map: ClassMap, size: int) -> Tuple[int, int]:
    """(class of most bytes, ranges of one class) of an object.

    Of classes with as many bytes it is the greatest id.
    """
    totals: Dict[int, int] = {class_map.rest: 0}
    count = 0
    for span in class_map.split(0, size):
        totals[span.class_id] = totals.get(span.class_id, 0) + span.length
        count += 1
    return max(totals, key=lambda class_id: (
        totals[class_id], class_id)), count


def _client_headers(given: Mapping[str, str],
                    table: ClassTable) -> Mapping[str, str]:
    answer: Dict[str, str] = {}
    class_map = stored.effective_map(given)
    if class_map is not None:
        size = object_size(given)
        if size is None and given.get(stored.DYNAMIC):
            size = class_map.end
        answer.update(class_headers(class_map, size, table))
    if names.S3_CLASS_META in given and not stored.is_symlink(given):
        answer[names.S3_CLASS_META] = _said_class(
            given[names.S3_CLASS_META],
            class_map.rest if class_map is not None else UNCLASSIFIED, table)
    state = (given.get(names.STATE) or '').partition(' ')[2]
    if state:
        answer[names.CLASS_STATE] = 'being applied, %s segments' % state
    restored = restores.shown(given)
    if restored:
        answer[names.RESTORE] = restored
    tier = given.get(names.BACKEND_TIER)
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


def object_size(headers: Mapping[str, str]) -> Optional[int]:
    """Size of the whole object that a GET or HEAD answer is about.

    Of an SLO its data's; None for a DLO: nobody has counted it. A copy of an
    SLO's bytes has its sysmeta, and is none.
    """
    if headers.get(stored.STATIC) and headers.get(SLO_SIZE, '').isdigit():
        return int(headers[SLO_SIZE])
    if headers.get(stored.DYNAMIC):
        return None
    content_range = headers.get('Content-Range') or ''
    text = content_range.rpartition('/')[2] if content_range else \
        headers.get('Content-Length') or ''
    if not text.isdigit() or 'multipart/byteranges' in (
            headers.get('Content-Type') or ''):
        return None
    return int(text)


def carried_map(headers: Mapping[str, str], status: int,
                wanted: str) -> Optional[ClassMap]:
    """The map of the object that a copier will PUT from this answer.

    A range of an object takes the classes of that range; several ranges
    in one answer are a text of their own, of the object's class. Of a large
    object Swift gives us all, and takes the range out above.

    :param wanted: the request's ``Range``; '' without one
    """
    class_map = stored.lasting_map(headers)
    if class_map is None or class_map.is_uniform:
        return class_map
    if status == 200 and wanted and stored.is_manifest(headers):
        return _cut(class_map, wanted, object_size(headers))
    if status != 206:
        return class_map
    content_range = headers.get('Content-Range') or ''
    try:
        first, last = content_range.split(' ')[1].split('/')[0].split('-')
        start, length = int(first), int(last) - int(first) + 1
    except (IndexError, ValueError):
        return ClassMap.uniform(class_map.rest)
    return slice_map(class_map, start, length)


def _cut(class_map: ClassMap, wanted: str,
         size: Optional[int]) -> ClassMap:
    """:param size: None: nobody has counted it"""
    # A map says nothing of what is behind its last span.
    most = class_map.spans[-1].end if size is None else size
    try:
        ranges = Range(wanted)
        pairs = ranges.ranges_for_length(most) or []
    except ValueError:
        return class_map  # Swift gives all of it
    if len(pairs) != 1 or size is None and ranges.ranges[0][0] is None:
        return ClassMap.uniform(class_map.rest)
    (start, stop), = pairs
    return slice_map(class_map, start, stop - start)


def slice_map(class_map: ClassMap, start: int, length: int) -> ClassMap:
    """The map of ``length`` bytes from ``start``, as an object."""
    return ClassMap.from_spans(
        (type(span)(span.offset - start, span.length, span.class_id)
         for span in class_map.split(start, length)), class_map.rest)


def refuse_file_form(given: Mapping[str, str], env: Env) -> None:
    """Check that an answer has a ``.dss`` form.

    :raises BadClassInput: says why not
    """
    if stored.is_manifest(given):
        if _wants_manifest(env):
            raise BadClassInput(
                names.OBJECT_FILE, 'a manifest has no .dss form; its large '
                'object has')
    elif object_size(given) is None:
        raise BadClassInput(
            names.OBJECT_FILE, 'an object of unknown length has no .dss '
            'form')


def _wants_manifest(env: Env) -> bool:
    return bool(Request(env).params.get('multipart-manifest') == 'get')


def file_form(headers: Headers, given: Mapping[str, str], size: int,
              with_section: bool) -> Tuple[Headers, bytes]:
    """Headers and class section of the ``.dss`` form of an answer.

    The ETag would be that of other bytes: it moves to
    ``X-DSS-Data-Etag``. Nothing says that a large object is one, or Swift's
    middleware would take it for a manifest.

    :param size: of the data
    :param with_section: False for HEAD, which needs the length only
    """
    class_map = stored.effective_map(given) or ClassMap.uniform(0)
    section = encode_section(class_map, size) if with_section else b''
    length = len(section) or section_length(class_map, size)
    answer = [(name, value) for name, value in headers
              if name.lower() not in _NOT_OF_FILE_FORM]
    answer.append(('Content-Length', str(length + size)))
    answer.append((names.OBJECT_FILE, 'True'))
    etag = given.get('Etag')
    if stored.is_manifest(given):
        etag = given.get(_SLO_ETAG)
        etag = etag and '"%s"' % etag
    if etag:
        answer.append((names.DATA_ETAG, etag))
    return answer, section
