"""``swift-dss trace``: record, make and look at traces."""

from __future__ import annotations

import argparse
import glob
import gzip
import heapq
import json
import lzma
import os
import shutil
import tempfile
import time
from typing import IO, Any, Dict, Iterable, Iterator, List

from swift_dss.bench import figures
from swift_dss.cli.ask import CONFIG, read_conf
from swift_dss.cli.progress import bytes_text
from swift_dss.cli.table import Progress
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, DssError
from swift_dss.replay import classing
from swift_dss.replay.traces import model, named, native
from swift_dss.wire import tracing

HELP = 'record, make and look at traces'

#: Object servers look for the order once a second, and keep what they
#: noted no longer than that.
_SETTLE_SECONDS = 3.0
_POLL_SECONDS = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', required=True)
    record = verbs.add_parser(
        'record', help='have the object servers of this node write down '
        'requests of clients', description='Needs the right to write into '
        'run_dir: root, or Swift\'s user. Ctrl-C ends it early.')
    record.add_argument('--config', default=CONFIG,
                        help='dss.conf of the node (%(default)s)')
    record.add_argument('--seconds', type=float, default=60.0,
                        help='how long (60)')
    record.add_argument('--process-bytes', default='64m', metavar='BYTES',
                        help='of one object-server process, at most; then '
                        'the oldest half goes (64m)')
    record.add_argument('--output', '-o', required=True, metavar='FILE',
                        help='the trace; .gz and .xz are packed')
    make = verbs.add_parser(
        'make', help='write a generated trace, or any trace that can be '
        'read, in the native format')
    make.add_argument('source', metavar='TRACE')
    make.add_argument('--format', default='auto', metavar='NAME')
    make.add_argument('--output', '-o', required=True, metavar='FILE')
    show = verbs.add_parser('show', help='contents of a trace')
    show.add_argument('source', metavar='TRACE')
    show.add_argument('--format', default='auto', metavar='NAME')
    show.add_argument('--json', action='store_true')


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    return {'record': _record, 'make': _make, 'show': _show}[
        args.verb](args)


def _read(args: argparse.Namespace, keep_names: bool) -> model.Trace:
    return named.read(args.source, args.format, keep_names)


def _make(args: argparse.Namespace) -> int:
    trace = _read(args, keep_names=True)
    trace = model.spread(trace, 1000.0)
    with _target(args.output) as out, Progress('write') as progress:
        for done, line in enumerate(native.lines_of(trace)):
            out.write(line.encode('utf-8') + b'\n')
            progress.show(done, len(trace))
    return 0


def _show(args: argparse.Namespace) -> int:
    trace = _read(args, keep_names=False)
    np = model.numpy()
    verbs = np.bincount(trace.verbs, minlength=len(model.Verb))
    said: Dict[str, Any] = {
        'trace': trace.name, 'requests': len(trace),
        'objects': int(len(np.unique(trace.objects))),
        'accounts': int(len(np.unique(trace.accounts))),
        'seconds': float(trace.at_ms[-1] - trace.at_ms[0]) / 1000.0
        if trace.timed else None,
        'asked_bytes': int(trace.lengths.sum()),
        'unit_bytes': trace.unit_bytes, 'part_bytes': trace.part_bytes,
        'verbs': {verb.name.lower(): int(verbs[verb])
                  for verb in model.Verb},
        'classes': {str(class_id): int((trace.class_ids == class_id).sum())
                    for class_id in trace.classes()}}
    if args.json:
        print(json.dumps(said, indent=2, sort_keys=True))
        return 0
    print('%d requests%s, %d objects, %d accounts, %s asked for' % (
        said['requests'], '' if said['seconds'] is None
        else ' in %.0f s' % said['seconds'], said['objects'],
        said['accounts'], bytes_text(float(trace.lengths.sum()))))
    unit_bytes = trace.unit_bytes or trace.part_bytes
    print('kept as %s' % (
        '%s of %s' % ('units' if trace.unit_bytes else 'parts',
                      figures.size_text(unit_bytes))
        if unit_bytes else 'whole objects'))
    rows = [['verb ' + verb.name.lower(), str(int(verbs[verb]))]
            for verb in model.Verb]
    rows += [['class %d' % class_id,
              str(int((trace.class_ids == class_id).sum()))]
             for class_id in trace.classes()]
    print(figures.table(('', 'requests'), rows))
    return 0


def _record(args: argparse.Namespace) -> int:
    conf = read_conf(args.config)
    if args.seconds <= 0:
        raise BadConfig('--seconds: %g is not above 0' % args.seconds)
    limit = classing.size_of('--process-bytes', args.process_bytes)
    with _target(args.output) as out:
        order_path = tracing.path_in(conf.run_dir)
        if os.path.exists(order_path):
            raise BadConfig('%s: another record is running; remove the file '
                            'if none is' % order_path)
        folder = _folder(conf)
        try:
            _order(order_path, tracing.TraceOrder(
                folder, time.time() + args.seconds, limit))
            try:
                _wait(folder, args.seconds)
            finally:
                os.unlink(order_path)
            time.sleep(_SETTLE_SECONDS)
            for text in native.head(part_bytes=conf.gateway.part_bytes):
                out.write(text.encode('ascii') + b'\n')
            count = 0
            for line in heapq.merge(*_parts(folder), key=_at_ms):
                out.write(line)
                count += 1
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print('%d requests in %s' % (count, args.output))
    return 0 if count else 1


def _folder(conf: NodeConf) -> str:
    """A new one beside the order, of the same owner as run_dir."""
    try:
        folder = tempfile.mkdtemp('', 'trace-', conf.run_dir)
        owner = os.stat(conf.run_dir)
        if os.geteuid() == 0:
            os.chown(folder, owner.st_uid, owner.st_gid)
    except OSError as err:
        raise BadConfig('%s: %s' % (conf.run_dir, err.strerror)) from err
    return folder


def _order(path: str, order: tracing.TraceOrder) -> None:
    fresh = path + '.new'
    with open(fresh, 'wb') as target:
        target.write(tracing.encode(order))
    os.chmod(fresh, 0o644)
    os.rename(fresh, path)


def _wait(folder: str, seconds: float) -> None:
    began = time.monotonic()
    with Progress('record') as progress:
        try:
            while time.monotonic() - began < seconds:
                time.sleep(min(_POLL_SECONDS, seconds))
                done = sum(entry.stat().st_size
                           for entry in os.scandir(folder))
                progress.show(int(time.monotonic() - began), int(seconds),
                              'seconds, %s' % bytes_text(done))
        except KeyboardInterrupt:
            return


def _parts(folder: str) -> Iterator[Iterable[bytes]]:
    """The lines of each process, each in the order of their times."""
    for path in sorted(glob.glob(os.path.join(
            folder, '*' + tracing.SUFFIX))):
        lines: List[bytes] = []
        for part in (path + tracing.OLDER, path):
            if os.path.exists(part):
                with open(part, 'rb') as source:
                    lines += source.readlines()
        # Requests that overlap end in any order.
        yield sorted(lines, key=_at_ms)


def _at_ms(line: bytes) -> float:
    return float(line.split(None, 1)[0])


def _target(path: str) -> IO[bytes]:
    openers: Any = {'.gz': gzip.open, '.xz': lzma.open}
    try:
        target: IO[bytes] = openers.get(os.path.splitext(path)[1], open)(
            path, 'wb')
    except OSError as err:
        raise DssError('%s: %s' % (path, err.strerror)) from err
    return target
