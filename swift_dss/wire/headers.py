"""Class headers of client requests, exactly CACS's grammar.

::

    X-DSS-Object-Class: <class>
    X-DSS-Range-Class:  <offset>-<len>-<class>[,<offset>-<len>-<class>]...
    X-DSS-Object-File:  True | False

``<offset>`` and ``<len>`` are decimal byte counts without a sign;
``<class>`` is an id 0..31 or a name of the class table (case does not
matter). A class is a handle: any *id* is legal, with or without a row in
the table, and an id without a row is treated like class 0; a *name* must
exist. Spaces around commas and values are ignored; ranges may come in any
order but never overlap. An error names the header, the entry (counted from 1)
and the reason; a bad class never becomes "unclassified".
"""

from __future__ import annotations

from typing import Iterable, List, Optional, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.limits import (
    CLASS_ID_MAX, DEFAULT_MAX_SPANS, MAX_OBJECT_BYTES,
    MAX_RANGE_HEADER_BYTES)
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire import names

#: Digits of 2^63 - 1: a longer number cannot be in range.
_MAX_DIGITS = 19
#: Characters of bad input that an error repeats.
_SHOWN_CHARS = 48


def parse_object_class(text: str, table: ClassTable,
                       header: str = names.OBJECT_CLASS) -> int:
    """The class id that an ``X-DSS-Object-Class`` value asks for.

    :param header: what to call the field in errors
    :raises BadClassInput: neither an id 0..31 nor a name of ``table``
    """
    return _class_id(text.strip(), table, header, None)


def parse_ranges(text: str, table: ClassTable,
                 size: Optional[int] = None,
                 max_spans: int = DEFAULT_MAX_SPANS,
                 header: str = names.RANGE_CLASS) -> Tuple[Span, ...]:
    """The ranges of an ``X-DSS-Range-Class`` value, sorted by offset.

    :param size: the object's size where it is known: no range may pass it
    :param max_spans: entries the value may have
    :raises BadClassInput: malformed, empty, overlapping or too far
    :raises TooManySpans: more entries than ``max_spans``
    """
    count = text.count(',') + 1
    if count > max_spans:
        raise TooManySpans(header, '%d ranges are more than %d'
                           % (count, max_spans))
    numbered: List[Tuple[Span, int]] = []
    for number, entry in enumerate(text.split(','), 1):
        span = _range(entry.strip(), table, header, number)
        if size is not None and span.end > size:
            raise BadClassInput(
                header, '%s ends at byte %d, past the object\'s %d bytes'
                % (_shown(entry.strip()), span.end, size), number)
        numbered.append((span, number))
    numbered.sort(key=lambda item: item[0].offset)
    for (span, number), (later, later_number) in zip(numbered, numbered[1:]):
        if later.offset < span.end:
            raise BadClassInput(
                header, 'range %d-%d overlaps entry %d (%d-%d)' % (
                    later.offset, later.length, number, span.offset,
                    span.length), later_number)
    return tuple(span for span, _ in numbered)


def map_of_ranges(ranges: Tuple[Span, ...], rest: int,
                  max_spans: int = DEFAULT_MAX_SPANS) -> ClassMap:
    """Ranges of :func:`parse_ranges` as a map whose gaps are ``rest``, the
    object's class.

    :raises TooManySpans: ranges and the gaps between them, neighbours of
        one class counted once, are more than ``max_spans``
    """
    class_map = ClassMap.from_spans(ranges, rest)
    if len(class_map.spans) > max_spans:
        raise TooManySpans(
            names.RANGE_CLASS, '%d spans, gaps included, are more than %d'
            % (len(class_map.spans), max_spans))
    return class_map


def range_text(ranges: Iterable[Span]) -> str:
    """Ranges as ``<offset>-<length>-<class>``, with ``,`` between them."""
    return ','.join('%d-%d-%d' % (span.offset, span.length, span.class_id)
                    for span in ranges)


def format_range_class(class_map: ClassMap, size: int,
                       limit: int = MAX_RANGE_HEADER_BYTES
                       ) -> Optional[str]:
    """The ``X-DSS-Range-Class`` value of an object of ``size`` bytes.

    Bytes of class ``class_map.rest`` are left out: parsing the value with
    that ``rest`` gives the same map again.

    :returns: None if no byte differs from ``rest`` or if the value would
        be longer than ``limit`` bytes; never a part of it
    """
    entries: List[str] = []
    length = -1
    for span in class_map.split(0, size):
        if span.class_id == class_map.rest:
            continue
        entry = range_text((span,))
        length += len(entry) + 1
        if length > limit:
            return None
        entries.append(entry)
    return ','.join(entries) or None


def parse_flag(name: str, text: str) -> bool:
    """A ``True`` or ``False`` header value; case does not matter.

    :raises BadClassInput: anything else, the empty value included
    """
    value = text.strip().lower()
    if value not in ('true', 'false'):
        raise BadClassInput(name, '%s is neither True nor False'
                            % _shown(text.strip()))
    return value == 'true'


def _range(entry: str, table: ClassTable, header: str,
           number: int) -> Span:
    parts = entry.split('-', 2)
    if len(parts) != 3 or not all(parts):
        raise BadClassInput(
            header, '%s is not <offset>-<len>-<class>' % _shown(entry),
            number)
    offset = _count(parts[0].strip(), 'offset', header, number)
    length = _count(parts[1].strip(), 'length', header, number)
    if not length:
        raise BadClassInput(header, '%s is an empty range' % _shown(entry),
                            number)
    if offset + length > MAX_OBJECT_BYTES:
        raise BadClassInput(header, '%s ends past 2^63 - 1'
                            % _shown(entry), number)
    return Span(offset, length,
                _class_id(parts[2].strip(), table, header, number))


def _count(text: str, unit: str, header: str, number: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise BadClassInput(header, '%s %s is not a decimal number'
                            % (unit, _shown(text)), number)
    if len(text.lstrip('0')) > _MAX_DIGITS:
        raise BadClassInput(header, '%s %s is more than 2^63 - 1'
                            % (unit, _shown(text)), number)
    # Zeros in front were never counted: int() of them all is linear.
    return int(text.lstrip('0') or '0')


def _class_id(text: str, table: ClassTable, header: str,
              number: Optional[int]) -> int:
    if text.isascii() and text.isdigit():
        if len(text) <= 2 and int(text) <= CLASS_ID_MAX:
            return int(text)
        raise BadClassInput(header, 'class id %s is not in 0..%d'
                            % (_shown(text), CLASS_ID_MAX), number)
    spec = table.by_name(text) if text else None
    if spec is not None:
        return spec.class_id
    known = ', '.join(row.name for row in
                      sorted(table.specs.values(),
                             key=lambda row: -row.rank))
    raise BadClassInput(
        header, '%s is neither a class id 0..%d nor a class name (%s)'
        % (_shown(text), CLASS_ID_MAX, known or 'the table has none'),
        number)


def _shown(text: str) -> str:
    if len(text) > _SHOWN_CHARS:
        text = text[:_SHOWN_CHARS - 3] + '...'
    return ascii(text)
