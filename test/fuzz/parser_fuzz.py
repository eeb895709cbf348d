"""Random and mutated input for every parser of ours.

A target is a function of bytes with good examples. Only our own errors may
come out of it, and what it accepts must survive being written and read
again. Same seed, same run.
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Tuple

import evil_dss
from support.ranges import parse_range_class

from swift_dss.client import classlist, info
from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadClassInput, DssError
from swift_dss.core.globs import Glob
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.rules import RequestFacts
from swift_dss.core.spans import ClassMap, Span
from swift_dss.core.version import VersionId
from swift_dss.strategy.classify import classify
from swift_dss.wire import bundle, classmap, control, headers, layout
from swift_dss.wire.node import pressure, summary
from swift_dss.wire.dssfile import Decoder
from swift_dss.wire.dsssection import encode_section
from swift_dss.wire.records import residency
from swift_dss.wire.settings import classtable, nodeconf, regexes, rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
TABLE = ClassTable.of([ClassSpec(0, 'unclassified', 0),
                       ClassSpec(25, 'gold', 10)])
VERSION = VersionId('d1', 0, 'a' * 32, '1700000000.00000', 2)
#: Input longer than this adds time and no new ways through the code.
MAX_INPUT_BYTES = 8192
#: One input may not take longer, seconds of CPU: others use the machine too.
SLOW_SECONDS = 2.0
_WORDS = (b'-1', b'0', b'1', b'25', b'31', b'32', b'255', b'2048', b'2049',
          b'9223372036854775807', b'9223372036854775808', b'1e400', b'nan',
          b'inf', b'-', b',', b'=', b'[', b']', b'{', b'}', b'"', b'\\',
          b'\0', b'\n', b'\xff', b'\xc3\xa9', b'%', b'*', b'gold', b'm1:',
          b'[DEFAULT]\n', b'null', b'true', b'NaN', b'Infinity',
          b'[' * 4000, b'9' * 5000, b'__class__')


@dataclass(frozen=True)
class Target:
    """One parser.

    :param run: takes any bytes; raises only DssError
    :param seeds: good input
    """

    name: str
    run: Callable[[bytes], None]
    seeds: Tuple[bytes, ...]


def _ignore(_: object) -> None:
    """The value does not matter: no error came."""


def _text(raw: bytes) -> str:
    return raw.decode('latin-1')


def _headers(raw: bytes) -> None:
    class_map = parse_range_class(_text(raw), TABLE, 3)
    size = class_map.end + 1
    again = headers.format_range_class(class_map, size, 1 << 20)
    if again is not None:
        assert parse_range_class(again, TABLE, 3, size) == class_map


def _dss(raw: bytes) -> None:
    """The first byte says how the stream is cut and what is known."""
    how = raw[0] if raw else 0
    stream = raw[1:]
    decoder = Decoder(
        content_length=len(stream) if how & 1 else None,
        object_bytes=how if how & 2 else None)
    step = 1 + how // 4
    data = b''.join(decoder.feed(stream[at:at + step])
                    for at in range(0, len(stream), step))
    decoder.finish()
    assert decoder.class_map is not None
    if how & 2:
        return
    section = encode_section(decoder.class_map, len(data))
    again = Decoder(len(section) + len(data))
    assert again.feed(section + data) == data
    again.finish()
    assert again.class_map is not None
    assert (list(again.class_map.split(0, len(data)))
            == list(decoder.class_map.split(0, len(data))))


def _classmap(raw: bytes) -> None:
    text = _text(raw)
    name = 'X-Map'
    decoded = classmap.decode(text)
    assert classmap.decode(classmap.encode(decoded)) == decoded
    assert classmap.from_headers(
        name, classmap.to_headers(name, decoded)) == decoded


def _residency(raw: bytes) -> None:
    decoded = residency.decode(raw)
    assert residency.encode(decoded) == raw


def _residency_body(raw: bytes) -> None:
    """Behind a right checksum, so that the meaning is what is tested."""
    import struct
    import zlib
    _residency(b'DSR1' + struct.pack('>I', zlib.crc32(raw)) + raw)


def _control(raw: bytes) -> None:
    decoded = control.decode_event(raw)
    # A map that makes an event too long is left out of it.
    if len(raw) < 2048:
        assert control.decode_event(control.encode_event(decoded)) == decoded


def _written_again(decode: Callable[[bytes], Any],
                   encode: Callable[[Any], bytes]) -> Callable[[bytes], None]:
    def run(raw: bytes) -> None:
        decoded = decode(raw)
        assert repr(decode(encode(decoded))) == repr(decoded)
    return run


def _pressure_answer(raw: bytes) -> None:
    devices = pressure.Devices(raw)
    devices.get('sda')
    dict(devices)
    pressure.decode_rooms(raw)


def _nodeconf(raw: bytes) -> None:
    conf = nodeconf.parse(_text(raw))
    nodeconf.capacity_path(conf, 'sda')


def _classtable(raw: bytes) -> None:
    table = classtable.parse(_text(raw))
    assert table.specs
    assert sum(spec.floor for spec in table.specs.values()) <= 1.001


def _rules(raw: bytes) -> None:
    parsed = rules.parse(_text(raw), TABLE)
    for obj in ('', 'a' * 1024, 'IMG_1.jpg', _text(raw)[:1024]):
        classify(RequestFacts('AUTH_a', 'c', obj, 'u', 'image/png', 5,
                              {'x-a': obj}), parsed)


def _patterns(raw: bytes) -> None:
    text = _text(raw)[:256]
    glob = Glob.of(text)
    glob.matches(text * 4)
    try:
        pattern = regexes.compile_bounded(text)
    except ValueError as err:
        raise BadClassInput('regex', str(err)) from None
    for name in ('a' * 1024, 'a' * 1023 + '!', (text * 1024)[:1024]):
        pattern.fullmatch(name)


def _good_bundle() -> bytes:
    builder = bundle.Builder({'account': 'a', 'container': 'c'})
    for data in (b'', b'some data', bytes(100)):
        builder.add({'length': len(data), 'etag': 'e'}, data)
    return builder.finish()


def _bundle(raw: bytes) -> None:
    """Both ways in; what either gives lies inside."""
    entries = list(bundle.scan(raw))
    trailer = bundle.read_trailer(raw[-bundle.TRAILER_BYTES:], len(raw))
    entries += bundle.read_index(raw[
        trailer.index_offset:-bundle.TRAILER_BYTES], trailer)
    for entry in entries:
        assert 0 <= entry.offset <= entry.offset + entry.stored_bytes \
            <= len(raw)
        assert entry.record['length'] >= 0


def _bundle_index(raw: bytes) -> None:
    """Behind a right digest, so that the meaning is what is tested."""
    import hashlib
    import zlib
    packed = zlib.compress(raw)
    entries = bundle.read_index(packed, bundle.Trailer(
        500, len(packed), min(2, raw.count(b'etag')),
        hashlib.sha256(packed).digest()))
    assert all(entry.offset + entry.stored_bytes <= 500
               for entry in entries)


def _layout(raw: bytes) -> None:
    text = _text(raw)
    layout.parse_data_file(text)
    layout.version_of_path('d1', text)


def _lists(raw: bytes) -> None:
    text = _text(raw)
    if raw[:1].isalpha() or b'-' in raw:
        classlist.map_of_range_list(classlist.entries_of(text), TABLE, 0)
    else:
        classlist.map_of_block_list(text, TABLE, 4096)


def _sample(name: str) -> bytes:
    with open(os.path.join(ROOT, 'etc', name), 'rb') as opened:
        return opened.read()


def _uncommented(raw: bytes) -> bytes:
    """The options that a sample only mentions, switched on."""
    return b'\n'.join(line[2:] if b' = ' in line or line[2:3] == b'['
                      else line for line in raw.split(b'\n'))


def targets() -> List[Target]:
    """Every parser, with good input."""
    table_map = ClassMap.from_spans(
        [Span(0, 64, 25), Span(1024, 32, 26), Span(1 << 40, 1, 3)], 7)
    copied = Residency.whole(4096).add(0, 1024, Tier.HDD).with_remote(
        RemoteCopy('s3', 'k', 'e', 1.0)).drop(0, 512, Tier.SSD)
    record = residency.encode(copied)
    bundled = residency.encode(Residency.whole(9).with_remote(
        RemoteCopy('s3', 'bundles/k', 'e', 1.0, 4096, 'g1.k.w.7')))
    event = control.Event(control.EventKind.PUT, VERSION, '12', 5, '25')
    fetch = control.FetchRequest(VERSION, '12', 0, 5, 25, 1.5)
    conf = (b'[dss]\nrun_dir = /r\n[capacity]\n* = /h/%(device)s\n[io]\n'
            b'spool_bytes = 16m\n[tier]\nhigh_watermark = 0.8\n'
            b'[gateway]\nenabled = true\npart_bytes = 8m\n')
    rule = (b'[rule:a]\nclass = gold\nname = *.jpg, a?[b-d]*\n'
            b'size = 1k-5m\nheader = X-A: b*\n  X-B: c\n'
            b'name_regex = IMG_[0-9]+\\.(jpg|png)\n[rule:b]\nclass = 3\n')
    assert NodeConf() and copied.is_stub
    return [
        Target('range header', _headers, (
            b'0-64-25,1024-32-26', b' 0-1-gold , 5-5-0', b'7-7-25')),
        Target('class header', lambda raw: _ignore(
            headers.parse_object_class(_text(raw), TABLE)),
            (b'25', b'gold', b'0')),
        Target('flag header', lambda raw: _ignore(
            headers.parse_flag('flag', _text(raw))), (b'True', b'false')),
        Target('dssfile', _dss, tuple(
            bytes((how,)) + raw for how in (0, 1, 4, 2, 255)
            for raw in (evil_dss.GOOD_BLOCK, evil_dss.GOOD_RANGE,
                        evil_dss.GOOD_WIDE))),
        Target('classmap', _classmap, (
            classmap.encode(table_map).encode('ascii'), b'25')),
        Target('residency', _residency, (record, bundled)),
        Target('residency body', _residency_body, (
            record[8:], bundled[8:])),
        Target('bundle', _bundle, (_good_bundle(),)),
        Target('bundle index', _bundle_index, (
            b'[[100,5,{"length":5,"etag":"x"}],'
            b'[105,0,{"length":0,"etag":""}]]',)),
        Target('event', _control, (control.encode_event(event),)),
        Target('fetch', _written_again(
            control.decode_fetch, control.encode_fetch),
            (control.encode_fetch(fetch),)),
        Target('fetch reply', _written_again(
            control.decode_fetch_reply, control.encode_fetch_reply),
            (control.encode_fetch_reply(control.FetchReply(503, 'a', 5)),)),
        Target('admin line', _written_again(
            control.decode_line, control.encode_line),
            (control.encode_line({'op': 'ls', 'n': [1, None, 'x']}),)),
        Target('pressure', _written_again(
            pressure.decode, pressure.encode), (pressure.encode(
                pressure.Pressure(10, 5, 8, None, True, 1.0)),)),
        Target('summary', _written_again(
            summary.decode, summary.encode), (summary.encode(
                summary.Summary(
                    1.5, 'n1', 2.0, 'S3 answers', True, 3, 4, ('note',),
                    {'sda': summary.Device(
                        ('HDD full',), 1, 2, 3, 4, 5, 6, 7.5, 8, 9, 10)},
                    {9: summary.Class(
                        'gold', 20, 1, 2, 3, 4, 5, 6, 7, 8)})),)),
        Target('pressure answer', _pressure_answer, (
            pressure.encode_node({
                name: pressure.Pressure(10, 5, 8, None, True, 1.0)
                for name in ('sda', 'sdb')}, 2.0, {'sda': (1, 2)}),)),
        Target('nodeconf', _nodeconf, (conf,)),
        Target('classtable', _classtable, (
            b'[class:0]\nname = unclassified\nrank = 0\n[class:25]\n'
            b'name = gold\nrank = 900\nfloor = 0.1\ninner = lru\n',
            _sample('dss-classes.conf-sample'),
            b'[DEFAULT]\npin = true\n[class:1]\nname = a\nrank = 1\n'
            b'floor = 5%\ncap = 0.5\nallocate = room\nwrite = through\n')),
        Target('rules', _rules, (
            rule, _uncommented(_sample('dss-rules.conf-sample')))),
        Target('patterns', _patterns, (
            b'IMG_[0-9]+\\.(jpg|png)', b'*.jp[eg]*', b'a?[!b-]*c')),
        Target('layout', _layout, (
            b'1700000000.00000#2#d.data',
            b'objects-1/12/aaa/%s/1700000000.00000.data' % (b'a' * 32))),
        Target('info', lambda raw: _ignore(info.decode(raw, 'url')), (
            b'{"dss": {"classes": {"gold": 25, "Plain": 0}, "max_spans": 9,'
            b' "max_section_bytes": 4096}}',)),
        Target('lists', _lists, (b'0-4k-25, 8k-1-gold # x\n',
                                 b'offset,length,class\n0,5,1\n',
                                 b'25*100 gold 0*3')),
    ]


def mutate(rng: random.Random, seeds: Tuple[bytes, ...]) -> bytes:
    """One input: noise, or good input damaged a few times."""
    if rng.random() < 0.1:
        return bytes(rng.getrandbits(8)
                     for _ in range(rng.randrange(0, 200)))
    raw = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(raw) + 1)
        kind = rng.randrange(7)
        if kind == 0 and raw:
            raw[at % len(raw)] ^= 1 << rng.randrange(8)
        elif kind == 1 and raw:
            raw[at % len(raw)] = rng.choice((0, 1, 0x7f, 0x80, 0xff))
        elif kind == 2:
            raw[at:at] = rng.choice(_WORDS)
        elif kind == 3:
            del raw[at:at + rng.randrange(1, 9)]
        elif kind == 4:
            del raw[at:]
        elif kind == 5:
            stop = at + rng.randrange(1, 64)
            raw[at:at] = raw[at:stop] * rng.randrange(1, 4)
        else:
            other = rng.choice(seeds)
            cut = rng.randrange(len(other) + 1)
            raw[at:] = other[cut:]
    return bytes(raw[:MAX_INPUT_BYTES])


@dataclass
class Score:
    """What became of the inputs of one target."""

    executions: int = 0
    accepted: int = 0
    slowest_seconds: float = 0.0


class Crash(AssertionError):
    """An input that got something else than an error of ours."""


def fuzz(target: Target, seed: int, executions: int) -> Score:
    """Run a target on ``executions`` inputs.

    :raises Crash: with the seed, the run's number and the input
    """
    rng = random.Random('%s/%d' % (target.name, seed))
    score = Score()
    for number in range(executions):
        raw = target.seeds[number] if number < len(target.seeds) \
            else mutate(rng, target.seeds)
        started = time.process_time()
        try:
            target.run(raw)
            score.accepted += 1
        except DssError:
            pass
        except Exception as err:  # AssertionError included
            raise Crash('%s: seed %d, execution %d: %s: %s\n  input %r' % (
                target.name, seed, number, type(err).__name__, err,
                raw[:2000])) from err
        took = time.process_time() - started
        score.slowest_seconds = max(score.slowest_seconds, took)
        if took > SLOW_SECONDS:
            raise Crash('%s: seed %d, execution %d took %.1f s of CPU: %r' % (
                target.name, seed, number, took, raw[:2000]))
        score.executions += 1
    return score


def fuzz_all(seed: int, executions: int) -> Dict[str, Score]:
    """All targets, ``executions`` each."""
    return {target.name: fuzz(target, seed, executions)
            for target in targets()}
