"""Readers of trace formats, one function a format.

Each takes a stream and a name and gives a
:class:`~swift_dss.replay.traces.model.Trace`; what it cannot read is a
:class:`~swift_dss.replay.traces.model.BadTrace` that says which line and
field, and why.
"""

from __future__ import annotations

import itertools
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple)

from swift_dss.core.errors import BadConfig
from swift_dss.replay.traces import native, streams
from swift_dss.replay.traces.model import BadTrace, Builder, Trace, Verb, numpy

#: Unit of a cache in front of a block device, bytes.
BLOCK_UNIT_BYTES = 4096
_SECTOR = 512
#: Of one request for blocks; devices split what is longer than a few MiB.
_MOST_REQUEST_BYTES = 1 << 30
_MOST_VOLUME_BYTES = 1 << 44
_MOST_SECTOR = _MOST_VOLUME_BYTES // _SECTOR - 1
#: Of any other field: 64 bits with a sign hold it.
_MOST_NUMBER = 10 ** 18 - 1
#: Windows counts from 1601 in steps of 100 ns.
_TICKS_A_MS = 10000
_ORACLE_RECORD = 24
_INT32_BYTES = 4
_ORACLE_BATCH = 65536
_CLOUDPHYSICS_HEAD = b'version,time,op,size,lbn'
_READ_10, _WRITE_10 = b'28', b'2a'


def _int(name: str, number: int, field: str, raw: bytes,
         least: int = 0, most: int = _MOST_NUMBER) -> int:
    if not raw.isdigit() or len(raw) > 20 or int(raw) < least:
        raise BadTrace(name, 'line %d' % number, field,
                       '%r is not a whole number of at least %d'
                       % (raw[:40].decode('utf-8', 'replace'), least))
    if int(raw) > most:
        raise BadTrace(name, 'line %d' % number, field,
                       '%s is more than %d' % (raw.decode(), most))
    return int(raw)


def _rows(stream: Iterable[bytes], name: str, fields: str,
          separator: Optional[bytes] = None,
          head: bytes = b'') -> Iterator[Tuple[int, List[bytes]]]:
    """Number and fields of each line that is not empty.

    :param fields: names, one a field
    :param separator: None is blanks
    :param head: how a first line begins that is none of the trace
    """
    count = len(fields.split())
    for number, text in enumerate(stream, 1):
        parts = text.strip().split(separator)
        if not any(parts) or \
                number == 1 and head and text.startswith(head):
            continue
        if len(parts) != count:
            raise BadTrace(name, 'line %d' % number, '',
                           '%d fields, not %s' % (len(parts), fields))
        yield number, parts


def arc(stream: Iterable[bytes], name: str) -> Trace:
    """ARC's ``.lis``: ``start_block n_blocks ignored request_number``, in
    blocks of 512 bytes; reads, without times."""
    builder = Builder(name, timed=False, unit_bytes=BLOCK_UNIT_BYTES)
    add = builder.add
    for number, parts in _rows(
            stream, name, 'start_block n_blocks ignored request'):
        start, blocks = parts[0], parts[1]
        add(number, Verb.READ, 0, _SECTOR * _int(
            name, number, 'start_block', start, 0, _MOST_SECTOR),
            _SECTOR * _int(name, number, 'n_blocks', blocks, 1,
                           _MOST_REQUEST_BYTES // _SECTOR), 0)
    trace = builder.build()
    if int(trace.lengths.max()) == _SECTOR:
        # As in the publications that use it: a block is a page.
        trace.unit_bytes = _SECTOR
    return trace


def cloudphysics(stream: Iterable[bytes], name: str) -> Trace:
    """``version,time,op,size,lbn``: SCSI operations with times in seconds,
    sizes in bytes, addresses in blocks of 512 bytes. Operations other than
    READ(10) and WRITE(10) move no data and are left out."""
    builder = Builder(name, unit_bytes=BLOCK_UNIT_BYTES)
    add = builder.add
    for number, parts in _rows(stream, name, 'version time op size lbn',
                               b',', _CLOUDPHYSICS_HEAD):
        if parts[2] not in (_READ_10, _WRITE_10):
            try:
                int(parts[2], 16)
            except ValueError:
                raise BadTrace(name, 'line %d' % number, 'op',
                               '%r is not a hexadecimal SCSI operation'
                               % parts[2][:40].decode('utf-8', 'replace')) \
                    from None
            continue
        add(1000 * _int(name, number, 'time', parts[1]),
            Verb.WRITE if parts[2] == _WRITE_10 else Verb.READ, 0,
            _SECTOR * _int(name, number, 'lbn', parts[4], 0, _MOST_SECTOR),
            _int(name, number, 'size', parts[3], 1, _MOST_REQUEST_BYTES), 0)
    return _within_seconds(builder.build())


def _within_seconds(trace: Trace) -> Trace:
    """Requests of a second are evenly spread over it: all at once they
    would wait for each other as they never did."""
    np = numpy()
    _, first, inverse, count = np.unique(
        trace.at_ms, return_index=True, return_inverse=True,
        return_counts=True)
    inverse = inverse.reshape(-1)
    trace.at_ms = trace.at_ms + 1000.0 * (
        np.arange(len(trace)) - first[inverse]) / count[inverse]
    return trace


def msr(stream: Iterable[bytes], name: str) -> Trace:
    """MSR Cambridge: ``Timestamp,Hostname,DiskNumber,Type,Offset,Size,
    ResponseTime``; a disk of a host is an object, a host an account."""
    builder = Builder(name, unit_bytes=BLOCK_UNIT_BYTES)
    first: Optional[int] = None
    verbs = {b'read': Verb.READ, b'write': Verb.WRITE}
    for number, parts in _rows(
            stream, name, 'Timestamp Hostname DiskNumber Type Offset Size '
            'ResponseTime', b',', b'Timestamp,'):
        ticks = _int(name, number, 'Timestamp', parts[0])
        first = ticks if first is None else first
        verb = verbs.get(parts[3].lower())
        if verb is None:
            raise BadTrace(name, 'line %d' % number, 'Type',
                           '%r is neither Read nor Write'
                           % parts[3][:40].decode('utf-8', 'replace'))
        host = parts[1].decode('utf-8', 'replace')
        builder.add((ticks - first) / _TICKS_A_MS, verb,
                    (host, _int(name, number, 'DiskNumber', parts[2])),
                    _int(name, number, 'Offset', parts[4], 0,
                         _MOST_VOLUME_BYTES),
                    _int(name, number, 'Size', parts[5], 1,
                         _MOST_REQUEST_BYTES), 0, 0, host)
    trace = builder.build()
    # A first line may be later than a second.
    trace.at_ms = trace.at_ms - trace.at_ms[0]
    return trace


def adaptsize(stream: Iterable[bytes], name: str) -> Trace:
    """``time id size``: whole objects; the time is only an order. An
    object keeps the size of its first request, as in libCacheSim."""
    sizes: Dict[bytes, int] = {}
    builder = Builder(name, timed=False)
    add = builder.add
    for number, parts in _rows(stream, name, 'time id size'):
        raw_id, raw_size = parts[1], parts[2]
        if not (raw_id.isdigit() and raw_size.isdigit()
                and raw_size != b'0' and parts[0].isdigit()
                and len(raw_size) < 19):
            _int(name, number, 'time', parts[0])
            _int(name, number, 'id', raw_id)
            _int(name, number, 'size', raw_size, 1)
        size = sizes.setdefault(raw_id, int(raw_size))
        add(number, Verb.READ, raw_id, 0, size, size)
    return builder.build()


def oracle_general(stream: Any, name: str) -> Trace:
    """libCacheSim's oracleGeneral: records of 24 bytes, little endian:
    time in seconds, id, size in bytes, next access (not used). An object
    keeps the size of its first request."""
    np = numpy()
    kind = np.dtype([('time', '<u4'), ('id', '<u8'), ('size', '<u4'),
                     ('next', '<i8')])
    parts = []
    count = 0
    while True:
        raw = stream.read(_ORACLE_RECORD * _ORACLE_BATCH)
        whole = len(raw) // _ORACLE_RECORD
        if len(raw) % _ORACLE_RECORD:
            raise BadTrace(
                name, 'record %d' % (count + whole + 1), '',
                'cut off after %d of %d bytes' % (
                    len(raw) % _ORACLE_RECORD, _ORACLE_RECORD))
        if not raw:
            break
        parts.append(np.frombuffer(raw, dtype=kind))
        count += whole
    if not parts:
        raise BadTrace(name, '', '', 'no requests in it')
    rows = np.concatenate(parts)
    back = np.flatnonzero(np.diff(rows['time'].astype('i8')) < 0)
    if len(back):
        raise BadTrace(name, 'record %d' % (int(back[0]) + 2), 'time',
                       '%d is before the one of the record above'
                       % rows['time'][back[0] + 1])
    # Numbers in the order of first appearance.
    _, first, inverse = np.unique(rows['id'], return_index=True,
                                  return_inverse=True)
    order = np.empty(len(first), dtype='int64')
    order[np.argsort(first, kind='stable')] = np.arange(len(first))
    sizes = np.maximum(1, rows['size'].astype('int64'))[
        first][inverse.reshape(-1)]
    zero = np.zeros(count, dtype='int64')
    return _within_seconds(Trace(
        name, rows['time'] * 1000.0, zero.astype('uint8'),
        order[inverse.reshape(-1)], zero, sizes, sizes,
        zero.astype('uint8'), zero, zero, account_names=['']))


def int32(stream: Any, name: str) -> Trace:
    """Raw numbers of pages of 4 KiB that are read: four bytes each, little
    endian, with a sign and not negative; the order is all that is known."""
    np = numpy()
    raw = stream.read()
    count, rest = divmod(len(raw), _INT32_BYTES)
    if rest:
        raise BadTrace(name, 'record %d' % (count + 1), '',
                       'cut off after %d of %d bytes' % (rest, _INT32_BYTES))
    if not count:
        raise BadTrace(name, '', '', 'no requests in it')
    pages = np.frombuffer(raw, dtype='<i4').astype('int64')
    below = np.flatnonzero(pages < 0)
    if len(below):
        raise BadTrace(name, 'record %d' % (int(below[0]) + 1), 'id',
                       '%d is less than 0' % pages[below[0]])
    zero = np.zeros(count, dtype='int64')
    return Trace(
        name, np.arange(1.0, count + 1), zero.astype('uint8'), zero,
        pages * BLOCK_UNIT_BYTES, zero + BLOCK_UNIT_BYTES,
        zero + (int(pages.max()) + 1) * BLOCK_UNIT_BYTES,
        zero.astype('uint8'), zero, zero, account_names=[''], timed=False,
        unit_bytes=BLOCK_UNIT_BYTES)


class Format(NamedTuple):
    """A format: its reader, and what it is for people."""

    read: Callable[..., Trace]
    line: str


FORMATS: Dict[str, Format] = {
    'native': Format(native.read, 'ms verb object size [start end] '
                     '[class]'),
    'oracle': Format(oracle_general, 'libCacheSim oracleGeneral'),
    'cloudphysics': Format(cloudphysics, 'CloudPhysics csv'),
    'arc': Format(arc, 'ARC .lis'),
    'msr': Format(msr, 'MSR Cambridge csv'),
    'adaptsize': Format(adaptsize, 'AdaptSize: time id size'),
    'int32': Format(int32, 'page numbers of four bytes each')}


def read_file(path: str, kind: str = 'auto',
              keep_names: bool = False) -> Trace:
    """The trace in a file, packed or not; ``-`` is standard input.

    :param kind: a name of ``FORMATS``, or ``auto``
    :raises BadTrace: it is not there, damaged or of no format we know
    """
    if kind != 'auto' and kind not in FORMATS:
        raise BadConfig('--format: %s is not one of auto, %s' % (
            kind, ', '.join(FORMATS)))
    with streams.opened(path) as stream:
        rest: Any = stream
        if kind == 'auto':
            kind, rest = _guess(path, stream)
        if kind == 'native':
            return native.read(rest, path, keep_names)
        return FORMATS[kind].read(rest, path)


def _guess(path: str, stream: Any) -> Any:
    """(format, the stream from its start)."""
    kind = _kind_of_name(path)
    if kind:
        return kind, stream
    head: List[bytes] = []
    for text in itertools.islice(stream, 1000):
        head.append(text)
        if text.strip() and not text.startswith(b'#'):
            break
    rest = itertools.chain(head, stream)
    first = head[-1].strip() if head else b''
    if not first or first.startswith(b'#'):
        raise BadTrace(path, '', '', 'no requests in it')
    kind = _kind_of_line(first)
    if not kind:
        raise BadTrace(path, 'line %d' % len(head), '',
                       '%r is of no format that can be told; say --format' %
                       first[:60].decode('utf-8', 'replace'))
    return kind, rest


def _kind_of_name(path: str) -> str:
    bare = path.lower()
    for suffix in streams.PACKED:
        if bare.endswith(suffix):
            bare = bare[:-len(suffix)]
    if 'oraclegeneral' in bare or bare.endswith('.bin'):
        return 'oracle'
    if bare.endswith('.int32'):
        return 'int32'
    return 'arc' if bare.endswith('.lis') else ''


def _kind_of_line(first: bytes) -> str:
    commas, blanks = len(first.split(b',')), first.split()
    if first == _CLOUDPHYSICS_HEAD or commas == 5:
        return 'cloudphysics'
    if commas == 7:
        return 'msr'
    if len(blanks) == 3:
        return 'adaptsize'
    if len(blanks) in (4, 5, 6, 7, 8) and \
            blanks[1].decode('ascii', 'replace').upper() in native.VERBS:
        return 'native'
    return ''
