"""``swift-dss inspect``: print the contents of a ``.dss``.

Of a file only the class section is read; of a stream, all of it.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, BinaryIO, Dict, List, Optional

from swift_dss.cli import dssfiles
from swift_dss.cli.progress import bytes_text
from swift_dss.core.classes import ClassTable
from swift_dss.core.limits import IO_WINDOW_BYTES
from swift_dss.wire.dssfile import Decoder
from swift_dss.wire.dsssection import Form

HELP = 'print the contents of a .dss'
#: Enough for the class section of nearly every file in one read.
_SECTION_READ_BYTES = 65536


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument('file', metavar='X.dss', help='- is stdin')
    parser.add_argument('--json', action='store_true',
                        help='for programs')
    dssfiles.add_class_table(parser)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with dssfiles.told_plainly():
        table = dssfiles.load_table(args.class_table)
        with dssfiles.source(args.file) as (stream, size):
            facts = examine(stream, size, args.file, table)
    if args.json:
        print(json.dumps(facts, indent=1))
    else:
        print('\n'.join(_lines(facts)))
    return 0


def examine(stream: BinaryIO, size: Optional[int], field: str,
            table: ClassTable) -> Dict[str, Any]:
    """A description of a ``.dss``.

    :param size: bytes of ``stream`` where they are known
    :param field: name of the stream in errors
    :raises BadClassInput: it is not a whole ``.dss``
    """
    decoder = _read(stream, size, field)
    header, class_map = decoder.header, decoder.class_map
    assert header is not None and class_map is not None
    data_bytes = covered = decoder.data_bytes if size is None else \
        size - header.section_bytes
    if data_bytes:
        decoder.check_size(data_bytes)
    else:
        # A section on its own, for POST ?dss-classes, is as long as it
        # says; a whole .dss of an empty object says nothing.
        covered = max(class_map.end, header.block_bytes * header.entries)
    return {
        'file': field,
        'form': header.form.name.lower(),
        'version': header.form.value,
        'class_bytes': header.class_bytes,
        'block_bytes': header.block_bytes,
        'entries': header.entries,
        'section_bytes': header.section_bytes,
        'data_bytes': data_bytes,
        'section_only': bool(covered and not data_bytes),
        'rest': class_map.rest,
        'spans': [{'offset': span.offset, 'length': span.length,
                   'class': span.class_id,
                   'name': table.name_of(span.class_id)}
                  for span in class_map.split(0, covered)]}


def _read(stream: BinaryIO, size: Optional[int], field: str) -> Decoder:
    """A decoder that has the class section, and all of a stream."""
    decoder = Decoder(field=field)
    while decoder.class_map is None or size is None:
        chunk = stream.read(IO_WINDOW_BYTES if decoder.class_map
                            else _SECTION_READ_BYTES)
        if not chunk:
            break
        decoder.feed(chunk)
    if decoder.class_map is None:
        decoder.finish()  # says where the stream was cut off
    return decoder


def _lines(facts: Dict[str, Any]) -> List[str]:
    block = facts['form'] == Form.BLOCK.name.lower()
    lines = ['%s: %s form' % (facts['file'], facts['form']),
             '  VER_ID          %d' % facts['version'],
             '  CLS_BYTES       %d' % facts['class_bytes']]
    if block:
        lines += ['  BLK_SECTORS     %d (%s)' % (
            facts['block_bytes'] // 512, bytes_text(facts['block_bytes'])),
            '  NUM_BLKS        %d' % facts['entries']]
    else:
        lines += ['  NUM_RANGES      %d' % facts['entries'],
                  '  REST_CLASS      %d' % facts['rest']]
    data = '%d (%s)' % (facts['data_bytes'], bytes_text(facts['data_bytes']))
    if facts['section_only']:
        data = 'none: class section only'
    lines += ['  class section   %d bytes' % facts['section_bytes'],
              '  data            %s' % data]
    if facts['spans']:
        lines.append('%16s %16s %6s  %s' % ('offset', 'length', 'class',
                                            'name'))
    lines += ['%16d %16d %6d  %s' % (
        span['offset'], span['length'], span['class'], span['name'])
        for span in facts['spans']]
    return lines
