"""Our own trace format: a line a request.

::

   ms verb object size [start end] [class]

A first line ``# swift-dss trace 2`` allows lines that say how the requests
are meant, before the first of them:

- ``# unit BYTES``: volumes, whose blocks are written in place; a cache of
  them keeps units of so many bytes.
- ``# parts BYTES``: objects that come from the cloud in such parts, as the
  gateway fetches them.
- ``# untimed``: times are only the order of the requests.
- ``# ranked CLASS ...``: classes from the lowest to the highest.
- ``# clients``: each line has all seven fields and, as an eighth, a whole
  number that says which client asks.

Without ``parts`` a trace of objects in which ranges are read is taken to
come in parts of the gateway's default, and any other as whole objects.

- ``ms``: milliseconds, whole or with a fraction; never negative. Lines may
  be a little out of order.
- ``verb``: ``GET``, ``PUT``, ``DELETE``, ``HEAD`` or ``POST``; the names of
  the IBM COS traces (``REST.GET.OBJECT``) mean the same. HEAD and POST move
  no bytes, and are left out of a replay.
- ``object``: anything without blanks. The part before a first ``/`` is its
  account: accounts share nothing in a prefetch graph.
- ``size``: bytes of the whole object.
- ``start end``: first and last byte, the last one included; without them
  the whole object is meant.
- ``class``: 0..31; without it 0.

Lines that begin with ``#`` and empty lines count for nothing.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import (
    Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union)

from swift_dss.core.limits import (
    CLASS_ID_MAX, DEFAULT_PART_BYTES, MAX_OBJECT_BYTES)
from swift_dss.replay.traces import spool
from swift_dss.replay.traces.model import (
    MAX_VOLUME_BYTES, BadTrace, Builder, Trace, Verb, numpy)

try:
    from swift_dss.replay.traces import lines as lines_in_c
except ImportError:  # There was no compiler.
    lines_in_c = None  # type: ignore[assignment]
#: Whether :func:`slices` can be called.
HAS_SLICES = lines_in_c is not None

_BLOCK_BYTES = 1 << 22
_SLICE_ROWS = 1 << 18
_MAGIC = b'# swift-dss trace '
HEADER = _MAGIC.decode() + '2: ms verb object size start end class'
_VERSION = 2

#: None: moves no bytes.
_VERBS = {'GET': Verb.READ, 'PUT': Verb.WRITE, 'DELETE': Verb.DELETE,
          'COPY': Verb.READ, 'HEAD': None, 'POST': None}
VERBS = dict(_VERBS)
VERBS.update(('REST.%s.OBJECT' % name, verb) for name, verb in
             _VERBS.items())
_FIELDS = (4, 5, 6, 7)
_MOST_FIELDS = 7
_Clients = Union['array[int]', spool.Column]
_Row = Tuple[float, int, str, int, int, int, int, str]


@dataclass
class Meaning:
    """The head of a trace: the lines before its first request."""

    unit_bytes: int = 0
    part_bytes: int = 0
    timed: bool = True
    ranked: List[int] = field(default_factory=list)
    clients: bool = False
    #: Whether the file says that it has such lines.
    told: bool = False

    @property
    def most_bytes(self) -> int:
        """The last byte that a line may name, and one more."""
        return MAX_VOLUME_BYTES if self.unit_bytes else MAX_OBJECT_BYTES

    def hear(self, parts: List[bytes]) -> None:
        """Take over a line of the head."""
        word, values = b''.join(parts[1:2]), parts[2:]
        if word in (b'unit', b'parts'):
            if len(values) != 1:
                raise _Wrong(word.decode(), 'takes one number of bytes')
            number = _whole(word.decode(), values[0], MAX_OBJECT_BYTES, 1)
            if word == b'unit':
                self.unit_bytes = number
            else:
                self.part_bytes = number
        elif word == b'untimed':
            self.timed = False
        elif word == b'clients':
            self.clients = True
        elif word == b'ranked':
            self.ranked = [_whole('ranked', value, CLASS_ID_MAX)
                           for value in values]
            if len(set(self.ranked)) != len(values):
                raise _Wrong('ranked', 'names a class twice')


def _version(line: bytes) -> int:
    """Of a first line; 0 if it names none."""
    digits = line[len(_MAGIC):].split(b':')[0].strip()
    if not line.startswith(_MAGIC) or not digits.isdigit():
        return 0
    if int(digits) > _VERSION:
        raise _Wrong('', 'version %d of the format; this program reads up '
                     'to %d' % (int(digits), _VERSION))
    return int(digits)


def is_marked(beginning: bytes) -> bool:
    """Whether a file begins as a native trace that says so does."""
    return beginning.startswith(_MAGIC)


def read(lines: Iterable[bytes], name: str,
         keep_names: bool = False) -> Trace:
    """The trace of these lines.

    :raises BadTrace: names the line, the field and the reason
    """
    meaning = Meaning()
    builder = Builder(name, keep_names=keep_names)
    clients = spool.Column('q')
    for number, line in enumerate(lines, 1):
        _take_or_say(name, number, line, meaning, builder, clients)
    trace = builder.build(clients if meaning.clients else None)
    trace.unit_bytes, trace.timed = meaning.unit_bytes, meaning.timed
    trace.ranked = meaning.ranked
    trace.part_bytes = 0 if meaning.unit_bytes else \
        meaning.part_bytes or _parts_of(trace)
    return trace


def _take_or_say(name: str, number: int, line: bytes, meaning: Meaning,
                 builder: Union[Builder, _Slice],
                 clients: _Clients) -> None:
    """:raises BadTrace: it is wrong; names the line, the field, the reason"""
    try:
        _take(number, line, meaning, builder, clients)
    except _Wrong as err:
        raise BadTrace(name, 'line %d' % number, err.args[0],
                       err.args[1]) from None


def _take(number: int, line: bytes, meaning: Meaning,
          builder: Union[Builder, _Slice], clients: _Clients) -> None:
    """One line into the builder."""
    if number == 1:
        meaning.told = _version(line) >= _VERSION
    parts = line.split()
    if not parts or parts[0].startswith(b'#'):
        if meaning.told and not len(builder):
            meaning.hear(parts)
        return
    if meaning.clients:
        if len(parts) != _MOST_FIELDS + 1:
            raise _Wrong('', '%d fields, not ms verb object size start end '
                         'class client' % len(parts))
        client = _whole('client', parts.pop(), MAX_OBJECT_BYTES)
    row = _row(parts, meaning.most_bytes)
    if row is not None:
        builder.add(*row)
        if meaning.clients:
            clients.append(client)


def _parts_of(trace: Trace) -> int:
    """The gateway never fetches a whole object for a range of it."""
    ranges = any(((trace.verbs[rows] == int(Verb.READ)) & (
        trace.lengths[rows] < trace.sizes[rows])).any()
        for rows in spool.slices(len(trace)))
    return DEFAULT_PART_BYTES if ranges else 0


_TYPES = {'at_ms': 'f8', 'verbs': 'u1', 'objects': 'u8', 'starts': 'i8',
          'lengths': 'i8', 'sizes': 'i8', 'class_ids': 'u1',
          'accounts': 'u8', 'clients': 'i8'}


class _Slice:
    """Some rows of a trace, as a :class:`Builder` takes them."""

    def __init__(self, seen: int) -> None:
        self.columns = {name: numpy().empty(_SLICE_ROWS, dtype=kind)
                        for name, kind in _TYPES.items()}
        self.row = 0
        self._seen = seen

    def __len__(self) -> int:
        """Of all rows so far."""
        return self._seen + self.row

    def add(self, at_ms: float, verb: int, key: str, *numbers: Any) -> None:
        """One request more."""
        *others, account = numbers
        for column, value in zip(self.columns.values(), (
                at_ms, verb, lines_in_c.hashed(key.encode()), *others,
                lines_in_c.hashed(account.encode()), 0)):
            column[self.row] = value
        self.row += 1

    def rows(self) -> Dict[str, Any]:
        """The columns, as long as there are rows."""
        return {name: column[:self.row]
                for name, column in self.columns.items()}


# long: one state, of the block and the line.
def slices(stream: Any, name: str) -> Iterator[Tuple[Meaning, Dict[
        str, Any]]]:
    """The columns of a trace some hundred thousand rows at a time, with what
    its head says. Objects and accounts are hashes of their names.

    MUST NOT be called without ``HAS_SLICES``.

    :param stream: of bytes, with ``read``
    :raises BadTrace: as :func:`read`
    """
    meaning = Meaning()
    part, number, text, begin = _Slice(0), 0, b'', 0
    while True:
        block = stream.read(_BLOCK_BYTES)
        text, begin = text[begin:] + block, 0
        if not block and text:
            text += b'\n'
        while begin < len(text):
            before = part.row
            begin, part.row = lines_in_c.read_lines(
                text, begin, meaning.clients, meaning.most_bytes, before,
                *part.columns.values())
            number += part.row - before
            if part.row == _SLICE_ROWS:
                yield meaning, part.rows()
                part = _Slice(len(part))
                continue
            end = text.find(b'\n', begin)
            if end < 0:
                break
            number += 1
            # A line that is not as most lines are.
            clients = array('q')
            _take_or_say(name, number, text[begin:end], meaning, part,
                         clients)
            if clients:
                part.columns['clients'][part.row - 1] = clients[0]
            begin = end + 1
        if not block:
            break
    if part.row:
        yield meaning, part.rows()


class _Wrong(Exception):
    """(field, reason)."""


def _range(parts: List[bytes], size: int, most: int) -> Tuple[int, int]:
    """(start, length) of the bytes that a line names."""
    start = _whole('start', parts[4], most)
    end = _whole('end', parts[5], most)
    if end < start:
        raise _Wrong('end', '%d is before the start, %d' % (end, start))
    if end >= size:
        raise _Wrong('end', '%d is not inside the object of %d bytes'
                     % (end, size))
    return start, end - start + 1


# long: one field after the other, in the order of the line.
def _row(parts: List[bytes], most: int) -> Optional[_Row]:
    """Arguments for the builder; None: moves no bytes.

    :param most: bytes of an object
    """
    count = len(parts)
    if count not in _FIELDS:
        raise _Wrong('', '%d fields, not ms verb object size [start end] '
                     '[class]' % count)
    try:
        at_ms = float(parts[0])
    except ValueError:
        at_ms = -1.0
    if not 0 <= at_ms < 1e15:
        raise _Wrong('ms', '%s is not a number of milliseconds'
                     % _shown(parts[0]))
    text = parts[1].decode('ascii', 'replace').upper()
    if text not in VERBS:
        raise _Wrong('verb', '%s is not one of %s' % (
            _shown(parts[1]), ', '.join(_VERBS)))
    verb = VERBS[text]
    if verb is None:
        return None
    class_id = 0
    if count in (5, 7):
        class_id = _whole('class', parts[-1], CLASS_ID_MAX)
    size = _whole('size', parts[3], most)
    start, length = _range(parts, size, most) if count > 5 else (0, size)
    try:
        key = parts[2].decode('utf-8')
    except UnicodeDecodeError:
        raise _Wrong('object', '%s is not UTF-8' % _shown(parts[2])) \
            from None
    account, slash, _ = key.partition('/')
    # An empty object moves no bytes, but has a place in a cache.
    return (at_ms, verb, key, start, max(1, length), max(1, size), class_id,
            account if slash else '')


def _whole(field: str, raw: bytes, most: int, least: int = 0) -> int:
    if not raw.isdigit() or len(raw) > 19 or not least <= int(raw) <= most:
        raise _Wrong(field, '%s is not a whole number of %d..%d'
                     % (_shown(raw), least, most))
    return int(raw)


def _shown(raw: bytes) -> str:
    return repr(raw[:40].decode('utf-8', 'replace'))


_WRITTEN = ('GET', 'PUT', 'DELETE')


def head(unit_bytes: int = 0, part_bytes: int = 0, timed: bool = True,
         ranked: Iterable[int] = (), clients: bool = False) -> List[str]:
    """The lines before the first request, without their ends."""
    said = [HEADER]
    if unit_bytes:
        said.append('# unit %d' % unit_bytes)
    if part_bytes:
        said.append('# parts %d' % part_bytes)
    if not timed:
        said.append('# untimed')
    if ranked:
        said.append('# ranked ' + ' '.join(map(str, ranked)))
    if clients:
        said.append('# clients')
    return said


def lines_of(trace: Trace) -> Iterable[str]:
    """All of a trace, with its head; a replay of the lines gives the
    figures of a replay of the trace."""
    clients = bool((trace.clients != trace.accounts).any())
    yield from head(trace.unit_bytes, trace.part_bytes, trace.timed,
                    trace.ranked, clients)
    names = trace.object_names
    for at_ms, verb, number, size, start, length, class_id, owner, client \
            in zip(*(numpy().asarray(column).tolist() for column in (
                trace.at_ms, trace.verbs, trace.objects, trace.sizes,
                trace.starts, trace.lengths, trace.class_ids,
                trace.accounts, trace.clients))):
        key = names[number] if names else 'a%d/o%d' % (owner, number)
        # All digits of a time: latencies depend on the last one.
        yield '%r %s %s %d %d %d %d%s' % (
            at_ms, _WRITTEN[verb], key, max(1, size), start,
            start + length - 1, class_id,
            ' %d' % client if clients else '')
