"""Lists of classes that a user writes: on a command line, in a file.

Ranges are ``OFFSET-LENGTH-CLASS``, one a line (or with commas), numbers
with units k, m, g, t of 1,024 where wanted. Blocks are one class each,
separated by spaces, commas or lines; ``CLASS*COUNT`` stands for a run.
``#`` starts a comment. The whole list is held as spans: a range or a run
costs one, however long it is.
"""

from __future__ import annotations

import re
from typing import Iterator, List, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.limits import DEFAULT_MAX_SPANS, MAX_OBJECT_BYTES
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire.headers import map_of_ranges, parse_object_class, \
    parse_ranges

#: First line of a list of ranges in CSV.
CSV_HEADER = 'offset,length,class'
_UNITS = {'': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}
_SIZE = re.compile(r'^([0-9]{1,19})\s*([kmgt]?)(?:i?b)?$', re.I | re.ASCII)
_RUN = re.compile(r'^([^*\s]+)(?:\*([0-9]{1,10}))?$', re.ASCII)


def parse_size(text: str, field: str = 'size') -> int:
    """Bytes of ``4096``, ``4k``, ``1 MiB``.

    :raises BadClassInput: not a size, or past 2^63 - 1
    """
    match = _SIZE.match(text.strip())
    if not match:
        raise BadClassInput(field, '%s is not a number of bytes (4096, 4k, '
                            '1m)' % ascii(text[:48]))
    number = int(match.group(1)) * _UNITS[match.group(2).lower()]
    if number > MAX_OBJECT_BYTES:
        raise BadClassInput(field, '%s is more than 2^63 - 1'
                            % ascii(text[:48]))
    return number


def map_of_range_list(entries: List[str], table: ClassTable, rest: int,
                      field: str = '--range') -> ClassMap:
    """The map of ranges as a user writes them.

    :param entries: each ``OFFSET-LENGTH-CLASS``
    :param rest: class of the bytes in no range
    :raises BadClassInput: names the entry (from 1) and the reason
    """
    if not entries:
        return ClassMap.uniform(rest)
    plain = [_plain_range(entry, field, number)
             for number, entry in enumerate(entries, 1)]
    return map_of_ranges(
        parse_ranges(','.join(plain), table, header=field), rest)


def entries_of(text: str) -> List[str]:
    """The entries of a ranges file, comments left out.

    A file that starts with the line ``offset,length,class`` is read as
    CSV: one range a line.
    """
    lines = [line.split('#', 1)[0].strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    if lines and lines[0].replace(' ', '').lower() == CSV_HEADER:
        return ['-'.join(cell.strip() for cell in line.split(','))
                for line in lines[1:]]
    return [entry.strip() for line in lines for entry in line.split(',')
            if entry.strip()]


def map_of_block_list(text: str, table: ClassTable, block_bytes: int,
                      field: str = '--blocks') -> Tuple[ClassMap, int]:
    """The map of a list of block classes, and how many blocks it names.

    :raises BadClassInput: names the entry (from 1) and the reason
    :raises TooManySpans: the classes change too often
    """
    spans: List[Span] = []
    blocks = 0
    for number, (class_id, count) in enumerate(
            _runs(text, table, field), 1):
        if (blocks + count) * block_bytes > MAX_OBJECT_BYTES:
            raise BadClassInput(field, 'the blocks pass 2^63 - 1 bytes',
                                number)
        if spans and spans[-1].class_id == class_id:
            last = spans.pop()
            spans.append(Span(last.offset, last.length
                              + count * block_bytes, class_id))
        else:
            spans.append(Span(blocks * block_bytes, count * block_bytes,
                              class_id))
        blocks += count
        if len(spans) > DEFAULT_MAX_SPANS + 1:
            raise TooManySpans(field, 'classes change more than %d times'
                               % DEFAULT_MAX_SPANS, number)
    rest = spans[-1].class_id if spans else 0
    return ClassMap.from_spans(spans, rest), blocks


def _plain_range(entry: str, field: str, number: int) -> str:
    parts = entry.split('-', 2)
    if len(parts) != 3:
        raise BadClassInput(field, '%s is not OFFSET-LENGTH-CLASS'
                            % ascii(entry[:48]), number)
    try:
        return '%d-%d-%s' % (parse_size(parts[0]), parse_size(parts[1]),
                             parts[2])
    except BadClassInput as err:
        raise BadClassInput(field, err.reason, number) from None


def _runs(text: str, table: ClassTable,
          field: str) -> Iterator[Tuple[int, int]]:
    number = 0
    for line in text.splitlines():
        for entry in line.split('#', 1)[0].replace(',', ' ').split():
            number += 1
            match = _RUN.match(entry)
            count = int(match.group(2) or 1) if match else 0
            if not match or not count:
                raise BadClassInput(
                    field, '%s is not CLASS or CLASS*COUNT'
                    % ascii(entry[:48]), number)
            try:
                class_id = parse_object_class(match.group(1), table)
            except BadClassInput as err:
                raise BadClassInput(field, err.reason, number) from None
            yield class_id, count
