"""``swift-dss unpack``: take a ``.dss`` apart."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import Optional

from swift_dss.cli import dssfiles
from swift_dss.cli.progress import Bar, bytes_text
from swift_dss.client import dssio
from swift_dss.client.classlist import CSV_HEADER
from swift_dss.core.errors import BadClassInput
from swift_dss.wire.dssfile import Decoder

HELP = 'take a .dss apart'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument('file', metavar='X.dss', help='- is stdin')
    parser.add_argument('-o', '--output', metavar='FILE',
                        help='where the data go; - is stdout')
    parser.add_argument('--classes-out', metavar='FILE',
                        help='where the classes go: .json or .csv')
    parser.add_argument('--force', action='store_true',
                        help='replace files that are there')


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if args.output is None and args.classes_out is None:
        raise BadClassInput('unpack', 'needs -o, --classes-out or both')
    kind = _kind(args.classes_out)
    with dssfiles.told_plainly(), contextlib.ExitStack() as stack:
        stream, size = stack.enter_context(dssfiles.source(args.file))
        decoder = Decoder(size, field=args.file)
        # Entered first and so published last: classes never appear
        # without the data they belong to.
        classes = None
        if args.classes_out is not None:
            classes = stack.enter_context(
                dssfiles.target(args.classes_out, args.force))
        data = None
        if args.output is not None:
            data = stack.enter_context(
                dssfiles.target(args.output, args.force))
        bar = Bar('unpack', size)
        try:
            dssio.unpack(stream, data, decoder, bar)
        finally:
            bar.close()
        if classes is not None:
            classes.write(classes_text(decoder, kind).encode('ascii'))
    print('%s: %s of data, class section of %d bytes' % (
        args.file, bytes_text(decoder.data_bytes),
        decoder.section_bytes or 0), file=sys.stderr)
    return 0


def classes_text(decoder: Decoder, kind: Optional[str]) -> str:
    """The classes of a stream that was read to its end.

    CSV can be given to ``pack --ranges-file``.
    """
    assert decoder.class_map is not None
    spans = list(decoder.class_map.split(0, decoder.data_bytes))
    if kind == 'csv':
        return ''.join(
            [CSV_HEADER + '\n'] + ['%d,%d,%d\n' % (
                span.offset, span.length, span.class_id) for span in spans])
    return json.dumps({
        'size': decoder.data_bytes,
        'spans': [{'offset': span.offset, 'length': span.length,
                   'class': span.class_id} for span in spans]},
        indent=1) + '\n'


def _kind(path: Optional[str]) -> Optional[str]:
    if path is None:
        return None
    for kind in ('json', 'csv'):
        if path.lower().endswith('.' + kind):
            return kind
    raise BadClassInput('--classes-out', '%s ends neither in .json nor in '
                        '.csv' % ascii(path[-48:]))
