"""``swift-dss pack``: build a ``.dss`` from a file and its classes."""

from __future__ import annotations

import argparse
import sys
from typing import Optional, Tuple

from swift_dss.cli import dssfiles
from swift_dss.cli.progress import Bar, bytes_text
from swift_dss.client import classlist, dssio, info
from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadClassInput
from swift_dss.core.spans import ClassMap
from swift_dss.wire.headers import parse_object_class

HELP = 'build a .dss from a file and classes'
_EPILOG = '''examples:
  swift-dss pack film.mp4 -o film.dss --class 4 --range 0-64k-25
  swift-dss pack disk.img -o disk.dss --blocks classes.txt --block-size 4k
  swift-dss pack x -o x.dss --class gold --server https://swift.example:8080
  tar c . | swift-dss pack - -o - --class 7 | curl -T - ...
'''


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument('file', metavar='FILE', help='the data; - is stdin')
    parser.add_argument('-o', '--output', metavar='OUT.dss', required=True,
                        help='what to write; - is stdout')
    parser.add_argument('--class', dest='rest', metavar='CLASS', default='0',
                        help='class (id or name) of all bytes that nothing '
                        'else classes (default: 0)')
    given = parser.add_mutually_exclusive_group()
    given.add_argument('--range', action='append', dest='ranges',
                       metavar='OFF-LEN-CLASS',
                       help='class of a range; several are allowed, '
                       'numbers may have units (0-64k-25)')
    given.add_argument('--ranges-file', metavar='FILE',
                       help='ranges, one a line, or CSV as unpack writes it')
    given.add_argument('--blocks', metavar='FILE',
                       help='one class a block, CLASS*COUNT for a run')
    parser.add_argument('--block-size', metavar='SIZE',
                        help='bytes of a block, a multiple of 512')
    parser.add_argument('--form', choices=('auto', 'block', 'range'),
                        default='auto',
                        help='form of the class section (default: auto, '
                        'the shorter; block with --blocks)')
    parser.add_argument('--size', metavar='SIZE',
                        help='size of the data, where stdin must be packed '
                        'in block form')
    parser.add_argument('--section-only', action='store_true',
                        help='write the class section without data, for '
                        'POST ?dss-classes')
    parser.add_argument('--force', action='store_true',
                        help='replace OUT.dss if it is there')
    known = parser.add_mutually_exclusive_group()
    known.add_argument(
        info.OPTION, metavar='URL',
        help='take class names and limits from the /info of this Swift')
    dssfiles.add_class_table(known)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with dssfiles.told_plainly():
        server = None if args.server is None else info.read(args.server)
        table = dssfiles.load_table(args.class_table) if server is None \
            else server.table
        block_bytes = None
        if args.block_size is not None:
            block_bytes = classlist.parse_size(args.block_size,
                                               '--block-size')
        with dssfiles.source(args.file) as (data, size):
            if size is None and args.size is not None:
                size = classlist.parse_size(args.size, '--size')
            class_map, form = _classes(args, table, block_bytes, size)
            if server is not None:
                server.check(class_map, len(dssio.class_section(
                    class_map, size, form, block_bytes)))
            with dssfiles.target(args.output, args.force) as out:
                if args.section_only:
                    out.write(dssio.class_section(class_map, size, form,
                                                  block_bytes))
                    return 0
                bar = Bar('pack', size)
                try:
                    done = dssio.pack(data, out, class_map, size, form,
                                      block_bytes, bar)
                finally:
                    bar.close()
        print('%s: %s of data, %d spans' % (
            args.output, bytes_text(done),
            len(list(class_map.split(0, done)))), file=sys.stderr)
    return 0


def _classes(args: argparse.Namespace, table: ClassTable,
             block_bytes: Optional[int],
             size: Optional[int]) -> Tuple[ClassMap, str]:
    """(class map, form) that the options ask for."""
    rest = parse_object_class(args.rest, table, '--class')
    if args.blocks is None:
        entries = args.ranges or []
        field = '--range'
        if args.ranges_file is not None:
            field = args.ranges_file
            entries = classlist.entries_of(
                dssfiles.read_text(args.ranges_file))
        return classlist.map_of_range_list(entries, table, rest,
                                           field), args.form
    if block_bytes is None:
        raise BadClassInput('--blocks', 'needs --block-size')
    class_map, blocks = classlist.map_of_block_list(
        dssfiles.read_text(args.blocks), table, block_bytes, args.blocks)
    if size is not None:
        wanted = -(-size // block_bytes)
        if blocks != wanted:
            raise BadClassInput(
                args.blocks, 'has %d classes, but %d bytes are %d blocks '
                'of %d' % (blocks, size, wanted, block_bytes))
        class_map = class_map.clip(size)
    return class_map, 'block' if args.form == 'auto' else args.form
