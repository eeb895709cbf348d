"""Our own trace format: a line a request.

::

   ms verb object size [start end] [class]

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

from typing import Iterable, List, Optional, Tuple

from swift_dss.core.limits import CLASS_ID_MAX, MAX_OBJECT_BYTES
from swift_dss.replay.traces.model import BadTrace, Builder, Trace, Verb

HEADER = '# swift-dss trace 1: ms verb object size start end class'

#: None: moves no bytes.
_VERBS = {'GET': Verb.READ, 'PUT': Verb.WRITE, 'DELETE': Verb.DELETE,
          'COPY': Verb.READ, 'HEAD': None, 'POST': None}
VERBS = dict(_VERBS)
VERBS.update(('REST.%s.OBJECT' % name, verb) for name, verb in
             _VERBS.items())
_FIELDS = (4, 5, 6, 7)
_Row = Tuple[float, int, str, int, int, int, int, str]


def read(lines: Iterable[bytes], name: str,
         keep_names: bool = False) -> Trace:
    """The trace of these lines.

    :raises BadTrace: names the line, the field and the reason
    """
    builder = Builder(name, keep_names=keep_names)
    add = builder.add
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if not parts or parts[0].startswith(b'#'):
            continue
        try:
            row = _row(parts)
        except _Wrong as err:
            raise BadTrace(name, 'line %d' % number, err.args[0],
                           err.args[1]) from None
        if row is not None:
            add(*row)
    return builder.build()


class _Wrong(Exception):
    """(field, reason)."""


def _range(parts: List[bytes], size: int) -> Tuple[int, int]:
    """(start, length) of the bytes that a line names."""
    start = _whole('start', parts[4], MAX_OBJECT_BYTES)
    end = _whole('end', parts[5], MAX_OBJECT_BYTES)
    if end < start:
        raise _Wrong('end', '%d is before the start, %d' % (end, start))
    if end >= size:
        raise _Wrong('end', '%d is not inside the object of %d bytes'
                     % (end, size))
    return start, end - start + 1


# long: one field after the other, in the order of the line.
def _row(parts: List[bytes]) -> Optional[_Row]:
    """Arguments for the builder; None: moves no bytes."""
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
    size = _whole('size', parts[3], MAX_OBJECT_BYTES)
    start, length = _range(parts, size) if count > 5 else (0, size)
    try:
        key = parts[2].decode('utf-8')
    except UnicodeDecodeError:
        raise _Wrong('object', '%s is not UTF-8' % _shown(parts[2])) \
            from None
    account, slash, _ = key.partition('/')
    # An empty object moves no bytes, but has a place in a cache.
    return (at_ms, verb, key, start, max(1, length), max(1, size), class_id,
            account if slash else '')


def _whole(field: str, raw: bytes, most: int) -> int:
    if not raw.isdigit() or len(raw) > 19 or int(raw) > most:
        raise _Wrong(field, '%s is not a whole number of 0..%d'
                     % (_shown(raw), most))
    return int(raw)


def _shown(raw: bytes) -> str:
    return repr(raw[:40].decode('utf-8', 'replace'))


_WRITTEN = ('GET', 'PUT', 'DELETE')


def line(at_ms: float, verb: int, key: str, size: int, start: int,
         length: int, class_id: int) -> str:
    """One request as a line, without its end."""
    return '%.3f %s %s %d %d %d %d' % (
        at_ms, _WRITTEN[verb], key, max(1, size), start,
        start + length - 1, class_id)


def lines_of(trace: Trace) -> Iterable[str]:
    """All of a trace, with the header."""
    yield HEADER
    names = trace.object_names
    for at_ms, verb, number, size, start, length, class_id, owner in zip(
            trace.at_ms.tolist(), trace.verbs.tolist(),
            trace.objects.tolist(), trace.sizes.tolist(),
            trace.starts.tolist(), trace.lengths.tolist(),
            trace.class_ids.tolist(), trace.accounts.tolist()):
        key = names[number] if names else 'a%d/o%d' % (owner, number)
        yield line(at_ms, verb, key, size, start, length, class_id)
