"""``swift-dss classify``: classes of a file's bytes, by its format."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import Iterator, List, NamedTuple, Optional

from swift_dss.cli import dssfiles
from swift_dss.cli.progress import Bar, bytes_text
from swift_dss.client import dssio
from swift_dss.client.formats import known
from swift_dss.client.formats.contract import Reader, Wish
from swift_dss.client.formats.plan import DEFAULT_SHARE, Limits, Plan
from swift_dss.client.formats.readers import FileReader
from swift_dss.client.formats.stored import SCHEMES, Stored
from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import DEFAULT_MAX_SPANS, UNCLASSIFIED
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire.headers import parse_object_class, range_text

HELP = 'find the bytes that open a file, and class them'
_EPILOG = '''examples:
  swift-dss classify film.mp4
  swift-dss classify sales.parquet --columns id,day --dss sales.dss
  swift-dss classify dss://films/film.mp4 --hot gold --post
'''


class _Subject(NamedTuple):
    """The file that is classified.

    :param cold: None: the class that a stored object has
    """

    reader: Reader
    hot: int
    cold: Optional[int]
    max_spans: int
    stored: Optional[Stored] = None


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument('file', metavar='FILE|URL', help='a file, or an '
                        'object that is stored: dss://container/object, '
                        'https://host/v1/account/container/object')
    parser.add_argument('--format', metavar='NAME', default='auto',
                        help='of the file (default: auto, by its bytes)')
    parser.add_argument('--columns', metavar='A,B', default='',
                        help='columns of a Parquet file that are hot too')
    parser.add_argument('--hot', metavar='CLASS', default='1',
                        help='class of the bytes that open the file '
                        '(default: 1, metadata in the sample table)')
    parser.add_argument('--cold', metavar='CLASS',
                        help='class of all others (default: 0, or what a '
                        'stored object has)')
    parser.add_argument('--share', metavar='PERCENT', type=_share,
                        default=DEFAULT_SHARE, help='of the file that may '
                        'be hot to make it faster than opening it needs, '
                        'by key frames for one (default: %g)'
                        % (100 * DEFAULT_SHARE))
    parser.add_argument('--max-spans', metavar='N', type=int,
                        help='changes of class that the server takes '
                        '(default: %d, or what /info of an URL says)'
                        % DEFAULT_MAX_SPANS)
    parser.add_argument('--dss', metavar='OUT',
                        help='write a .dss: of a FILE with its data, of a '
                        'URL the class section; - is stdout')
    parser.add_argument('--post', action='store_true',
                        help='give the stored object these classes')
    parser.add_argument('--force', action='store_true',
                        help='replace OUT if it is there')
    parser.add_argument('--json', action='store_true', help='for programs')
    dssfiles.add_class_table(parser)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    is_url = args.file.startswith(SCHEMES)
    if args.post and not is_url:
        raise BadClassInput('--post', 'needs the URL of a stored object')
    if args.max_spans is not None and args.max_spans < 3:
        raise BadClassInput('--max-spans', 'is less than 3')
    opened = _stored if is_url else _local
    with dssfiles.told_plainly(), opened(args) as subject:
        made = known.classify(
            subject.reader, args.format,
            Wish(tuple(filter(None, args.columns.split(',')))),
            Limits(args.max_spans or subject.max_spans, args.share))
        if args.dss is not None:
            _write(args, subject, made.plan)
        if args.post:
            assert subject.stored is not None
            subject.stored.post(made.plan.ranges, subject.hot, subject.cold)
    _say(args, made, subject)
    return 0


@contextlib.contextmanager
def _local(args: argparse.Namespace) -> Iterator[_Subject]:
    table = dssfiles.load_table(args.class_table)
    hot = parse_object_class(args.hot, table, '--hot')
    cold = parse_object_class(args.cold or str(UNCLASSIFIED), table,
                              '--cold')
    with dssfiles.source(args.file) as (opened, size):
        if size is None:
            raise BadClassInput(args.file, 'is no file: its index may be at '
                                'its end')
        yield _Subject(FileReader(opened), hot, cold, DEFAULT_MAX_SPANS)


@contextlib.contextmanager
def _stored(args: argparse.Namespace) -> Iterator[_Subject]:
    stored = Stored(args.file)
    cold = None if args.cold is None else stored.class_id(args.cold,
                                                          '--cold')
    yield _Subject(stored.reader, stored.class_id(args.hot, '--hot'), cold,
                   stored.max_spans, stored)


def _write(args: argparse.Namespace, subject: _Subject, plan: Plan) -> None:
    size = subject.reader.size
    class_map = ClassMap.from_spans(_spans(plan, subject),
                                    subject.cold or UNCLASSIFIED)
    with dssfiles.target(args.dss, args.force) as out:
        if subject.stored is not None:
            out.write(dssio.class_section(class_map, size))
            return
        with dssfiles.source(args.file) as (data, _):
            bar = Bar('classify', size)
            try:
                dssio.pack(data, out, class_map, size, progress=bar)
            finally:
                bar.close()


def _spans(plan: Plan, subject: _Subject) -> List[Span]:
    return [Span(offset, length, subject.hot)
            for offset, length in plan.ranges]


def _say(args: argparse.Namespace, made: known.Classified,
         subject: _Subject) -> None:
    """Tell the ranges, and how much they are."""
    plan = made.plan
    spans = _spans(plan, subject)
    # A .dss on stdout is not mixed with words.
    out = sys.stderr if args.dss == dssfiles.STREAM else sys.stdout
    share = plan.hot_bytes / max(1, made.size)
    if args.json:
        print(json.dumps({
            'file': args.file, 'format': made.format_name,
            'size': made.size, 'hot_bytes': plan.hot_bytes, 'share': share,
            'left_out': plan.left_out, 'hot': subject.hot,
            'cold': subject.cold,
            'spans': [{'offset': span.offset, 'length': span.length,
                       'class': span.class_id} for span in spans]},
            indent=1), file=out)
        return
    if args.dss is None and not args.post:
        for span in spans:
            print(range_text((span,)))
    text = '%s: %s, %s of %s hot (%.2g %%)' % (
        args.file, made.format_name, bytes_text(plan.hot_bytes),
        bytes_text(made.size), 100 * share)
    if plan.left_out:
        text += '; no room for %d ranges that would make it faster ' \
            '(--share)' % plan.left_out
    print(text, file=sys.stderr)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise argparse.ArgumentTypeError('%r is no percentage' % text[:48])
    return share / 100
