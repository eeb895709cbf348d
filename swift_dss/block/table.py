"""Lines of device-mapper, parsed: the messages to dm-dss and its answers.

Constructor, status line, class rows, counters and histograms, each as
``doc/source/reference/dm-dss.rst`` has them. Pure. A line that is not as it
must be raises :class:`BadLine` with the word at fault, counted from 1.
"""


from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Mapping, Optional, Tuple

from swift_dss.core.classes import Allocate
from swift_dss.core.errors import DssError
from swift_dss.strategy.eviction.chunks import (
    CLASSES, INNER, WRITE_AROUND, WRITE_BACK, WRITE_THROUGH, Bypass, ChunkRow,
    Evict, Flag, Inner, Mode)

TARGET = 'dss'
#: By the number of ``enum dss_global_mode``.
MODES = ('writeback', 'writethrough', 'writearound', 'passthrough')
#: By the number of ``enum dss_mode``.
STRATEGIES = tuple(mode.name.lower() for mode in Mode)
HEALTHS = ('ok', 'given_up', 'refusing')
LATENCY_BUCKETS = 26
FLAG_NAMES = {Flag.EVICT_ON_HIT: 'evict-on-hit',
              Flag.NO_ALLOCATE: 'no-allocate',
              Flag.DIRECT_HDD: 'direct-hdd', Flag.DIRECT_SSD: 'direct-ssd',
              Flag.PIN: 'pin', Flag.PASSING: 'passing'}
WRITE_NAMES = {WRITE_BACK: 'back', WRITE_THROUGH: 'through',
               WRITE_AROUND: 'around'}
INNER_NAMES = {number: name for name, number in INNER.items()}
BYPASS_NAMES = tuple(reason.name.lower() for reason in Bypass)
EVICT_NAMES = tuple(reason.name.lower() for reason in Evict)

#: Of the status line, from its eighth word on.
_STATUS_NUMBERS = (
    'dirty', 'dirty_grains', 'read_hits', 'write_hits', 'misses',
    'promotions', 'bypasses', 'evictions', 'cleaned', 'ssd_errors',
    'hdd_errors')
_NUMBERS = ('grain', 'meta_class', 'high', 'low', 'idle_ms', 'stage',
            'ahead', 'after')
#: Numbers that a line leaves out where they are 0.
_OPTIONAL = ('stage', 'ahead', 'after')


class BadLine(DssError):
    """A line of the kernel's, or a row, that does not parse."""

    exit_code = 76

    def __init__(self, line_name: str, word: int, reason: str) -> None:
        super().__init__('%s, word %d: %s' % (line_name, word, reason))


@dataclass(frozen=True)
class TargetTable:
    """A line of a table with a ``dss`` target.

    :param sectors: length of the device
    :param high, low: percent of slots dirty where cleaning begins, ends
    :param stage: percent of the slots that writes of any class may use
    :param origin_id: 32 hexadecimal digits that only this origin has
    :param rebind: take the origin whatever the SSD was the cache of; the
        kernel does not repeat it
    """

    sectors: int
    ssd: str
    origin: str
    chunk_sectors: int
    mode: str = 'writeback'
    strategy: str = 'strict'
    grain: int = 8
    meta_class: int = 1
    high: int = 50
    low: int = 25
    idle_ms: int = 1000
    stage: int = 0
    ahead: int = 0
    after: int = 0
    origin_id: str = ''
    rebind: bool = False

    def line(self) -> str:
        """The text for ``dmsetup create --table``."""
        words = [self.mode, self.strategy]
        for name in _NUMBERS:
            if name in _OPTIONAL and not getattr(self, name):
                continue
            words += [name, str(getattr(self, name))]
        if self.origin_id:
            words += ['origin_id', self.origin_id]
        if self.rebind:
            words.append('rebind')
        return '0 %d %s %s %s %d %d %s' % (
            self.sectors, TARGET, self.ssd, self.origin, self.chunk_sectors,
            len(words), ' '.join(words))


def parse_table(line: str) -> TargetTable:
    """``0 <sectors> dss <SSD> <origin> <chunk> <#features> ...``.

    :raises BadLine: names the word
    """
    words = line.split()
    line_name = 'table'
    _need(line_name, words, 7)
    if words[0] != '0' or words[2] != TARGET:
        raise BadLine(line_name, 3, 'not one target %s from sector 0' % TARGET)
    values: Dict[str, object] = {}
    count = _whole(line_name, words, 6)
    if count != len(words) - 7:
        raise BadLine(line_name, 7, '%d feature words said, %d there' % (
            count, len(words) - 7))
    at = 7
    while at < len(words):
        word = words[at]
        if word in MODES:
            values['mode'] = word
        elif word in STRATEGIES:
            values['strategy'] = word
        elif word in _NUMBERS:
            at += 1
            values[word] = _whole(line_name, words, at)
        elif word == 'origin_id':
            at += 1
            values[word] = words[at] if at < len(words) else ''
            if not re.match('[0-9a-f]{32}$', str(values[word])):
                raise BadLine(line_name, at + 1, 'not 32 hexadecimal digits')
        else:
            raise BadLine(line_name, at + 1, 'unknown feature %r' % word)
        at += 1
    return TargetTable(
        _whole(line_name, words, 1), words[3], words[4],
        _whole(line_name, words, 5), **values)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Status:
    """The status line.

    :param classes: class id to (slots, of them dirty)
    """

    health: str
    mode: str
    strategy: str
    chunk_sectors: int
    grain_sectors: int
    used: int
    slots: int
    dirty: int
    dirty_grains: int
    read_hits: int
    write_hits: int
    misses: int
    promotions: int
    bypasses: int
    evictions: int
    cleaned: int
    ssd_errors: int
    hdd_errors: int
    classes: Mapping[int, Tuple[int, int]] = field(default_factory=dict)

    @property
    def dirty_bytes(self) -> int:
        """Bytes that only the SSD has."""
        return self.dirty_grains * self.grain_sectors * 512


def parse_status(line: str) -> Status:
    """The status line, with or without ``0 <sectors> dss`` before it.

    :raises BadLine: names the word
    """
    words = line.split()
    line_name = 'status'
    if len(words) > 2 and words[2] == TARGET:
        words = words[3:]
    _need(line_name, words, 18)
    if words[0] != '1':
        raise BadLine(line_name, 1,
                      'version %r of the status line, this reads 1'
                      % words[0])
    for at, choices in ((1, HEALTHS), (2, MODES), (3, STRATEGIES)):
        if words[at] not in choices:
            raise BadLine(line_name, at + 1, '%r is not one of %s' % (
                words[at], ', '.join(choices)))
    used, slash, slots = words[6].partition('/')
    if not slash or not used.isdigit() or not slots.isdigit():
        raise BadLine(line_name, 7, '%r is not USED/SLOTS' % words[6])
    numbers = [_whole(line_name, words, at)
               for at in [4, 5] + list(range(7, 18))]
    classes: Dict[int, Tuple[int, int]] = {}
    for at in range(18, len(words)):
        parts = words[at].split(':')
        if len(parts) != 3 or not all(part.isdigit() for part in parts) \
                or int(parts[0]) >= CLASSES:
            raise BadLine(line_name, at + 1, '%r is not CLASS:SLOTS:DIRTY'
                          % words[at])
        classes[int(parts[0])] = (int(parts[1]), int(parts[2]))
    chunk, grain, *rest = numbers
    values = dict(zip(_STATUS_NUMBERS, rest))
    return Status(words[1], words[2], words[3], chunk, grain, int(used),
                  int(slots), classes=classes, **values)


# -- the class table ---------------------------------------------------------

def row_text(class_id: int, row: ChunkRow) -> str:
    """A row as the message ``classes`` takes it.

    Without the last field if that is ``lru``: an older module knows no
    other.
    """
    flags = '+'.join(name for flag, name in FLAG_NAMES.items()
                     if row.flags & flag)
    return ','.join(str(value) for value in (
        class_id, row.rank, row.allocate.value, WRITE_NAMES[row.write_mode],
        row.floor_parts, row.cap_parts, row.weight, row.cutoff_sectors,
        flags or '-', row.dirty_cap_parts,
        *([INNER_NAMES[row.inner]] if row.inner else [])))


def parse_row(text: str, word: int = 1) -> Tuple[int, ChunkRow]:
    """A row as ``classes`` answers it.

    :raises BadLine: names the error
    """
    fields = text.split(',')
    if len(fields) not in (10, 11):
        raise BadLine('class row', word, '%r has %d fields, not 10 or 11'
                      % (text, len(fields)))
    numbers = [0 if at in (2, 3, 8) else _whole('class row', fields, at)
               for at in range(10)]
    allocate = {choice.value: choice for choice in Allocate}.get(fields[2])
    write = {name: choice
             for choice, name in WRITE_NAMES.items()}.get(fields[3])
    flags = Flag.NONE
    by_name = {name: flag for flag, name in FLAG_NAMES.items()}
    names = [] if fields[8] == '-' else fields[8].split('+')
    for name in names:
        if name not in by_name:
            raise BadLine('class row', word, 'no flag %r' % name)
        flags |= by_name[name]
    inner = INNER.get(fields[10]) if len(fields) > 10 else Inner.LRU
    if allocate is None or write is None or inner is None:
        raise BadLine('class row', word, '%r: no such allocate, write or '
                      'inner' % text)
    row = ChunkRow(numbers[1], numbers[4], numbers[5], numbers[6],
                   numbers[7], allocate, write, flags, numbers[9], inner)
    if numbers[0] >= CLASSES or row.fault():
        raise BadLine('class row', word, '%r: %s' % (
            text, row.fault() or 'no class %d' % numbers[0]))
    return numbers[0], row


def parse_rows(text: str) -> Dict[int, ChunkRow]:
    """The answer to the message ``classes``.

    :raises BadLine: names the error
    """
    return dict(parse_row(line, number) for number, line
                in enumerate(text.split(), 1))


def classes_message(rows: Mapping[int, ChunkRow]) -> str:
    """The message that loads a class table, all of it at once."""
    return ' '.join(['classes'] + [
        row_text(class_id, rows[class_id]) for class_id in sorted(rows)])


# -- counters ----------------------------------------------------------------

@dataclass(frozen=True)
class Counters:
    """The answer to the message ``stats``.

    :param classes: class id to its counters by name
    :param device: those of the whole device
    """

    classes: Mapping[int, Mapping[str, int]]
    device: Mapping[str, int]


def parse_stats(text: str) -> Counters:
    """Lines of ``name=value``.

    :raises BadLine: names the line as the word
    """
    classes: Dict[int, Mapping[str, int]] = {}
    device: Dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        values = _pairs('stats', number, line.split())
        class_id = values.pop('class', None)
        if class_id is None:
            device.update(values)
        else:
            classes[class_id] = values
    return Counters(classes, device)


@dataclass(frozen=True)
class Latency:
    """One class and direction.

    :param buckets: bucket 0 under 1 us, bucket n under 2^n us, the last
        one without end
    """

    class_id: int
    op: str
    count: int
    total_us: int
    max_us: int
    buckets: Tuple[int, ...]

    @property
    def mean_us(self) -> float:
        """The average."""
        return self.total_us / self.count if self.count else 0.0

    def percentile_us(self, percent: float) -> float:
        """At most this long took ``percent`` of all: the bucket's upper
        end, but never more than the longest."""
        wanted = self.count * percent / 100.0
        seen = 0
        for number, count in enumerate(self.buckets):
            seen += count
            if seen >= wanted and seen:
                if number == len(self.buckets) - 1:
                    break
                return float(min(1 << number, max(self.max_us, 1)))
        return float(self.max_us)


def parse_latency(text: str) -> List[Latency]:
    """The answer to the message ``latency``.

    :raises BadLine: names the line as the word
    """
    latencies = []
    for number, line in enumerate(text.splitlines(), 1):
        words = dict(word.partition('=')[::2] for word in line.split())
        op, spelled = words.pop('op', ''), words.pop('buckets', '')
        values = _pairs('latency', number, [
            '%s=%s' % pair for pair in words.items()])
        buckets = spelled.split(',')
        if op not in ('read', 'write') or not all(
                part.isdigit() for part in buckets) or set(values) != {
                    'class', 'count', 'total_us', 'max_us'}:
            raise BadLine('latency', number, 'not class, op, count, '
                          'total_us, max_us and buckets: %r' % line)
        latencies.append(Latency(
            values['class'], op, values['count'], values['total_us'],
            values['max_us'], tuple(int(part) for part in buckets)))
    return latencies


def _pairs(line_name: str, number: int, words: Iterable[str]) -> Dict[str,
                                                                      int]:
    values = {}
    for word in words:
        name, equals, text = word.partition('=')
        if not equals or not text.isdigit():
            raise BadLine(line_name, number, '%r is not NAME=NUMBER' % word)
        values[name] = int(text)
    return values


def _need(line_name: str, words: List[str], count: int) -> None:
    if len(words) < count:
        raise BadLine(line_name, len(words) + 1, 'there are only %d words, %d '
                      'are needed' % (len(words), count))


def _whole(line_name: str, words: List[str], at: int) -> int:
    text: Optional[str] = words[at] if at < len(words) else None
    if text is None or not text.isdigit():
        raise BadLine(line_name, at + 1, '%r is not a whole number' % text)
    return int(text)
