"""``swift-dss block``: devices of the kernel target dm-dss.

``create`` to ``remove`` talk to the kernel; ``check``, ``dump`` and
``repair`` read an SSD that no kernel uses. ``watch`` keeps devices at the
class table of a file, where no tier daemon does.
"""

# long: one short function and its options for each of ten verbs.

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import signal
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from swift_dss.block import (
    control, control_life, control_status, engine, tools_device,
    tools_repair)
from swift_dss.block.control_classes import ClassFeed, read_rows
from swift_dss.block.format import CHUNK_MAX, CHUNK_MIN, Geometry
from swift_dss.block.table import MODES, STRATEGIES
from swift_dss.block.tools import Examined, NotACache, examine
from swift_dss.cli import dssfiles
from swift_dss.cli.block import tables
from swift_dss.cli.table import Progress
from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadConfig, DssError
from swift_dss.wire.settings import classtable

HELP = 'make, watch and mend dm-dss devices'
_TABLE = '/etc/swift/dss-classes.conf'
#: Between two statuses that watch leaves: as often as the tier daemon looks.
_STATE_SECONDS = 10.0
_UNITS = {'': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every verb."""
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', required=True)

    def add(name: str, line: str, json_too: bool = True
            ) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=line, description=line)
        if json_too:
            verb.add_argument('--json', action='store_true',
                              help='print JSON instead of tables')
        return verb

    _configure_create(add('create', 'make a device of an SSD and an HDD'))
    found = add('status', 'show what devices hold and do')
    found.add_argument('name', nargs='*', metavar='NAME',
                       help='of a device (all of them)')
    found.add_argument('--class-table', default=_TABLE, metavar='FILE',
                       help='to name the classes with (%(default)s)')
    said = add('message', 'send the kernel a message', False)
    said.add_argument('name', metavar='NAME')
    said.add_argument('words', nargs='+', metavar='WORD',
                      help='"classes FILE" loads a dss-classes.conf; all '
                      'else goes to the kernel as it is')
    sized = add('resize', 'take the present sizes of SSD and HDD')
    sized.add_argument('name', metavar='NAME')
    sized.add_argument('--shrink', action='store_true',
                       help='also if that cuts the end off')
    sized.add_argument('--ssd-size', metavar='SIZE',
                       help='give up what the SSD has from there on; then '
                       'the SSD may be made smaller')
    gone = add('remove', 'write everything back and take a device away')
    gone.add_argument('name', metavar='NAME')
    gone.add_argument('--wipe', action='store_true',
                      help='also forget the cache on the SSD')
    gone.add_argument('--keep-dirty', action='store_true',
                      help='only stop: the SSD keeps all that it has')
    _configure_watch(add('watch', 'keep a class table loaded on devices',
                         False))
    _configure_tools(add)


def _configure_watch(watch: argparse.ArgumentParser) -> None:
    watch.add_argument('--class-table', default=_TABLE, metavar='FILE')
    watch.add_argument('--state-dir', metavar='FOLDER',
                       help='also leave the status of each device here, for '
                       'a tier daemon that is not root: <run_dir>/block')
    watch.add_argument('--seconds', type=float, default=1.0,
                       help='between two looks (%(default)s)')
    watch.add_argument('name', nargs='*', metavar='NAME')


def _configure_create(made: argparse.ArgumentParser) -> None:
    made.add_argument('name', metavar='NAME', help='/dev/mapper/NAME')
    made.add_argument('--ssd', required=True, metavar='DEVICE')
    made.add_argument('--origin', required=True, metavar='DEVICE',
                      help='the HDD')
    made.add_argument('--chunk', metavar='SIZE', default='',
                      help='unit of caching, 4k..1m (256k)')
    made.add_argument('--grain', metavar='SIZE', default='',
                      help='part of a chunk that moves by itself (4k)')
    made.add_argument('--mode', choices=MODES, default=MODES[0])
    made.add_argument('--strategy', choices=STRATEGIES,
                      default=STRATEGIES[0])
    made.add_argument('--meta-class', type=int, default=1, metavar='ID',
                      help='class of file system metadata; 255: none (1)')
    made.add_argument('--high', type=int, default=50, metavar='PERCENT',
                      help='dirty, where cleaning begins (50)')
    made.add_argument('--low', type=int, default=25, metavar='PERCENT',
                      help='where it ends (25)')
    made.add_argument('--idle-ms', type=int, default=1000,
                      help='idle time after which all is cleaned (1000)')
    made.add_argument('--class-table', metavar='FILE',
                      help='dss-classes.conf to load; none: that of a warm '
                      'cache')
    made.add_argument('--format', action='store_true',
                      help='make a new cache even if the SSD has one')
    made.add_argument('--adopt', action='store_true',
                      help='keep the file system that the HDD has')
    made.add_argument('--force', action='store_true',
                      help='write over what the SSD has')


def _configure_tools(
        add: Callable[..., argparse.ArgumentParser]) -> None:
    check = add('check', 'is the cache on an SSD sound? 0: yes, 1: repair '
                'mends it, 4: something to decide, 8: no cache')
    dump = add('dump', 'what the cache on an SSD holds')
    dump.add_argument('--chunks', action='store_true',
                      help='also every chunk')
    repair = add('repair', 'mend the cache on an SSD, in a copy or in place')
    for verb in (check, dump, repair):
        verb.add_argument('ssd', metavar='SSD', help='a device or a copy')
    repair.add_argument('--output', metavar='FILE',
                        help='write a mended copy')
    repair.add_argument('--yes', action='store_true',
                        help='mend the SSD itself')
    repair.add_argument('--undo-file', metavar='FILE',
                        help='keeps what is written over '
                        '(dss-undo-UUID.json)')
    repair.add_argument('--undo', metavar='FILE',
                        help='write back what such a file kept')
    repair.add_argument('--doubtful', choices=tools_repair.DECISIONS,
                        default='', help='the fate of chunks in doubt')
    repair.add_argument('--salvage', metavar='FOLDER',
                        help='where bytes of dropped dirty chunks are kept')
    repair.add_argument('--chunk', default='256k', metavar='SIZE')
    repair.add_argument('--grain', default='4k', metavar='SIZE')
    repair.add_argument('--origin-sectors', type=int, default=0,
                        help='with --chunk and --grain: rebuild superblocks '
                        'that are both gone')


def run(args: argparse.Namespace) -> int:
    """Do what ``args`` ask; returns the exit code."""
    verbs: Dict[str, Callable[[argparse.Namespace], int]] = {
        'create': _create, 'status': _status, 'message': _message,
        'resize': _resize, 'remove': _remove, 'watch': _watch,
        'check': _check, 'dump': _dump, 'repair': _repair}
    return verbs[args.verb](args)


# -- devices -----------------------------------------------------------------

def _create(args: argparse.Namespace) -> int:
    rows = read_rows(args.class_table) if args.class_table else None
    kind = control_life.create(control_life.Wanted(
        args.name, args.ssd, args.origin, _sectors('--chunk', args.chunk),
        _sectors('--grain', args.grain), args.mode, args.strategy,
        args.meta_class, args.high, args.low, args.idle_ms, rows,
        args.format, args.force, args.adopt))
    status = control.status(args.name)
    if args.json:
        print(_json({'name': args.name, 'cache': kind, 'slots': status.slots,
                     'used_slots': status.used}))
    else:
        print('/dev/mapper/%s: %s cache, %d of %d chunks used' % (
            args.name, kind, status.used, status.slots))
    return 0


def _status(args: argparse.Namespace) -> int:
    for name in args.name:
        control.need(name)
    table = _table(args.class_table)
    found = [control_status.gather(name, table)
             for name in args.name or control.names()]
    if args.json:
        print(_json(found))
    elif found:
        print(tables.status(found))
    else:
        print('no dm-dss devices')
    return 0


def _message(args: argparse.Namespace) -> int:
    control.need(args.name)
    words: List[str] = args.words
    if words[0] == 'classes' and len(words) == 2 and ',' not in words[1]:
        changed = control.send_classes(args.name, read_rows(words[1]))
        print('%s: %s' % (args.name, 'loaded' if changed
                          else 'was in force already'))
        return 0
    if words[0] == 'mode' and words[1:] and words[1] not in MODES:
        raise BadConfig('no mode %r; there are %s' % (
            words[1], ', '.join(MODES)))
    answer = control.message(args.name, words)
    if answer.strip():
        print(answer.rstrip('\n'))
    return 0


def _resize(args: argparse.Namespace) -> int:
    control.need(args.name)
    before = control.status(args.name)
    if args.ssd_size is not None:
        table = control_life.shrink_ssd(args.name,
                                        _size('--ssd-size', args.ssd_size))
    else:
        table = control_life.resize(args.name, args.shrink)
    after = control.status(args.name)
    if args.json:
        print(_json({'name': args.name, 'sectors': table.sectors,
                     'slots_before': before.slots, 'slots': after.slots}))
    else:
        print('%s: %d sectors; %d chunks fit the SSD, %d before' % (
            args.name, table.sectors, after.slots, before.slots))
    return 0


def _remove(args: argparse.Namespace) -> int:
    with Progress('writing back', quiet=args.json) as progress:
        written = control_life.remove(
            args.name, args.wipe, args.keep_dirty,
            lambda done, of: progress.show(done, of, 'chunks'))
    if args.json:
        print(_json({'name': args.name, 'written_back': written}))
    else:
        print('%s: removed; %d chunks were written back'
              % (args.name, written))
    return 0


def _watch(args: argparse.Namespace) -> int:
    if args.seconds <= 0:
        raise BadConfig('--seconds %g: not above 0' % args.seconds)
    logger = logging.getLogger('swift-dss-block')
    logger.addHandler(logging.StreamHandler())
    logger.setLevel(logging.INFO)
    # A file that is wrong at the start is an error of the command.
    read_rows(args.class_table)
    feed = ClassFeed(args.class_table, logger)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_args: stopping.set())
    signal.signal(signal.SIGHUP, lambda *_args: feed.forget())
    due = 0.0
    while not stopping.is_set():
        try:
            names = args.name or control.names()
            feed.look(names)
            if args.state_dir and time.monotonic() >= due:
                due = time.monotonic() + _STATE_SECONDS
                _save_states(args.state_dir, names, feed.table)
        except (DssError, OSError) as err:
            logger.error('%s', err)
        stopping.wait(args.seconds)
    return 0


def _save_states(folder: str, names: List[str],
                 table: Optional[ClassTable]) -> None:
    os.makedirs(folder, exist_ok=True)
    for name in names:
        engine.save_state(folder, control_status.gather(name, table))


# -- an SSD that no kernel uses ----------------------------------------------

def _check(args: argparse.Namespace) -> int:
    with tools_device.SsdDevice(args.ssd) as device:
        found = _examine(args, device)
    print(_json(tables.verdict(found)) if args.json
          else tables.verdict_text(args.ssd, found))
    return found.exit_code


def _dump(args: argparse.Namespace) -> int:
    with tools_device.SsdDevice(args.ssd) as device:
        found = _examine(args, device)
    print(_json(tables.examined(found, args.chunks)) if args.json
          else tables.dump_text(found, args.chunks))
    return 0


def _repair(args: argparse.Namespace) -> int:
    if sum(map(bool, (args.output, args.yes, args.undo))) > 1:
        raise BadConfig('one of --output, --yes and --undo')
    with tools_device.SsdDevice(
            args.ssd, write=bool(args.yes or args.undo)) as device:
        if args.undo:
            print('%s: %d blocks written back' % (
                args.ssd, tools_device.undo(device, args.undo)))
            return 0
        found = _examine_or_rebuild(args, device)
        made = tools_repair.plan(found, device.read, args.doubtful)
        after = examine(made.over(device.read), device.sectors)
        if after.exit_code or after.refusals:
            raise NotACache('no repair of this damage is known: %s'
                            % '; '.join(after.refusals or [
                                one.text for one in after.findings]))
        return _carry_out(args, device, found, made)


def _carry_out(args: argparse.Namespace, device: tools_device.SsdDevice,
               found: Examined, made: tools_repair.Plan) -> int:
    said: Dict[str, Any] = {
        'writes': [place.sector for place in made.writes],
        'dropped_chunks': made.dropped_chunks,
        'salvaged_chunks': len(made.salvage), 'done': False}
    if made.salvage and not args.salvage:
        raise tools_repair.NeedsDecision(
            '%d dirty chunks would be dropped: say where their bytes are to '
            'be kept, with --salvage FOLDER' % len(made.salvage))
    if made.writes and (args.yes or args.output):
        if made.salvage:
            tools_device.salvage(device, found.superblock, made.salvage,
                                 args.salvage)
        if args.output:
            with Progress('copying', quiet=args.json) as progress:
                tools_device.copy_to(device, args.output, made.writes,
                                     progress.show)
        else:
            said['undo_file'] = args.undo_file or os.path.abspath(
                'dss-undo-%s.json' % found.superblock.uuid.hex())
            tools_device.save_undo(said['undo_file'], args.ssd, made.writes)
            tools_device.apply(device, made.writes)
        said['done'] = True
    print(_json(said) if args.json else _repaired(args, said))
    return 0 if said['done'] or not made.writes else 1


def _repaired(args: argparse.Namespace, said: Dict[str, Any]) -> str:
    count = len(said['writes'])
    if not count:
        return '%s: sound; nothing to do' % args.ssd
    text = '%s: %d blocks %s' % (
        args.ssd, count, 'written' if said['done'] else
        'to write; say --yes, or --output FILE for a copy')
    if said['dropped_chunks']:
        text += '; %d chunks dropped, bytes of %d kept in %s' % (
            said['dropped_chunks'], said['salvaged_chunks'], args.salvage)
    if 'undo_file' in said:
        text += '; undo with --undo %s' % said['undo_file']
    return text


def _examine(args: argparse.Namespace,
             device: tools_device.SsdDevice) -> Examined:
    with Progress('reading', quiet=args.json) as progress:
        return examine(device.read, device.sectors, progress.show)


def _examine_or_rebuild(args: argparse.Namespace,
                        device: tools_device.SsdDevice) -> Examined:
    try:
        return _examine(args, device)
    except NotACache as err:
        if not args.origin_sectors:
            raise NotACache('%s (rebuild with --origin-sectors, --chunk and '
                            '--grain)' % err) from err
    return tools_repair.rebuild(
        device.read, device.sectors, Geometry(
            _sectors('--chunk', args.chunk),
            _sectors('--grain', args.grain)), args.origin_sectors)


# -- arguments ---------------------------------------------------------------

def _size(option: str, text: str) -> int:
    found = re.match(r'([0-9]{1,15})([kmgt]?)\Z', text.lower())
    if not found:
        raise BadConfig('%s %s: not a size as 100g' % (option, text))
    return int(found.group(1)) * _UNITS[found.group(2)]


def _sectors(option: str, text: str) -> int:
    """``64k`` in sectors; 0 for an empty text."""
    if not text:
        return 0
    found = re.match(r'([0-9]{1,9})([kmgt]?)\Z', text.lower())
    count = int(found.group(1)) * _UNITS[found.group(2)] if found else 0
    if not found or count % 512 or not 0 < count <= CHUNK_MAX * 512:
        raise BadConfig('%s %s: not a size of 512..%d bytes in whole sectors '
                        '(chunks: %d and more)' % (
                            option, text, CHUNK_MAX * 512, CHUNK_MIN * 512))
    return count // 512


def _table(path: str) -> Optional[ClassTable]:
    """To name classes with; a table that cannot be read names none."""
    try:
        return classtable.parse(dssfiles.read_text(path), path)
    except FileNotFoundError:
        return None
    except (OSError, DssError) as err:
        print('swift-dss block: %s' % err, file=sys.stderr)
        return None


def _json(found: Any) -> str:
    return json.dumps(found, indent=2, sort_keys=True)
