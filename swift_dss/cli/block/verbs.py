"""``swift-dss block``: devices of the kernel target dm-dss.

``create`` to ``remove`` talk to the kernel; ``check``, ``dump`` and
``repair`` read an SSD that no kernel uses. ``watch`` keeps devices at the
class table of a file, where no tier daemon does.
"""

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

from swift_dss.block import control, control_life, control_status, engine
from swift_dss.block.control_classes import ClassFeed, read_rows
from swift_dss.block.ondisk.device import (
    SsdDevice, apply, copy_to, salvage, save_undo, undo)
from swift_dss.block.ondisk.findings import Examined, NotACache
from swift_dss.block.ondisk.geometry import CHUNK_MAX, CHUNK_MIN, Geometry
from swift_dss.block.ondisk.reading import examine
from swift_dss.block.ondisk.repair import (
    NeedsDecision, Plan, plan, rebuild)
from swift_dss.block.table import MODES
from swift_dss.cli import dssfiles
from swift_dss.cli.block import attach, options, tables
from swift_dss.cli.table import Progress
from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadConfig, DssError
from swift_dss.wire.settings import classtable

HELP = 'make, watch and mend dm-dss devices'
#: Between two statuses that watch leaves: as often as the tier daemon looks.
_STATE_SECONDS = 10.0
configure = options.configure

_UNITS = {'': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}


def run(args: argparse.Namespace) -> int:
    """Do what ``args`` ask; returns the exit code."""
    verbs: Dict[str, Callable[[argparse.Namespace], int]] = {
        'create': _create, 'attach': attach.run, 'status': _status,
        'message': _message, 'resize': _resize, 'remove': _remove,
        'watch': _watch, 'check': _check, 'dump': _dump, 'repair': _repair}
    return verbs[args.verb](args)


# -- devices -----------------------------------------------------------------

def _create(args: argparse.Namespace) -> int:
    rows = read_rows(args.class_table) if args.class_table else None
    kind = control_life.create(control_life.Wanted(
        args.name, args.ssd, args.origin, _sectors('--chunk', args.chunk),
        _sectors('--grain', args.grain), args.mode, args.strategy,
        args.meta_class, args.high, args.low, args.idle_ms, rows,
        args.format, args.force, args.adopt, stage=args.stage))
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
    devices = [control_status.gather(name, table)
               for name in args.name or control.names()]
    if args.json:
        print(_json(devices))
    elif devices:
        print(tables.status(devices))
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
    with SsdDevice(args.ssd) as device:
        state = _examine(args, device)
    print(_json(tables.verdict(state)) if args.json
          else tables.verdict_text(args.ssd, state))
    return state.exit_code


def _dump(args: argparse.Namespace) -> int:
    with SsdDevice(args.ssd) as device:
        state = _examine(args, device)
    print(_json(tables.examined(state, args.chunks)) if args.json
          else tables.dump_text(state, args.chunks))
    return 0


def _repair(args: argparse.Namespace) -> int:
    if sum(map(bool, (args.output, args.yes, args.undo))) > 1:
        raise BadConfig('one of --output, --yes and --undo')
    with SsdDevice(args.ssd, write=bool(args.yes or args.undo)) as device:
        if args.undo:
            print('%s: %d blocks written back' % (
                args.ssd, undo(device, args.undo)))
            return 0
        state = _examine_or_rebuild(args, device)
        made = plan(state, device.read, args.doubtful)
        after = examine(made.over(device.read), device.sectors)
        if after.exit_code or after.refusals:
            raise NotACache('no repair of this damage is known: %s'
                            % '; '.join(after.refusals or [
                                finding.text for finding in after.findings]))
        return _carry_out(args, device, state, made)


def _carry_out(args: argparse.Namespace, device: SsdDevice,
               state: Examined, made: Plan) -> int:
    said: Dict[str, Any] = {
        'writes': [place.sector for place in made.writes],
        'dropped_chunks': made.dropped_chunks,
        'salvaged_chunks': len(made.salvage), 'done': False}
    if made.salvage and not args.salvage:
        raise NeedsDecision(
            '%d dirty chunks would be dropped: say where their bytes are to '
            'be kept, with --salvage FOLDER' % len(made.salvage))
    if made.writes and (args.yes or args.output):
        if made.salvage:
            salvage(device, state.superblock, made.salvage, args.salvage)
        if args.output:
            with Progress('copying', quiet=args.json) as progress:
                copy_to(device, args.output, made.writes, progress.show)
        else:
            said['undo_file'] = args.undo_file or os.path.abspath(
                'dss-undo-%s.json' % state.superblock.uuid.hex())
            save_undo(said['undo_file'], args.ssd, made.writes)
            apply(device, made.writes)
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


def _examine(args: argparse.Namespace, device: SsdDevice) -> Examined:
    with Progress('reading', quiet=args.json) as progress:
        return examine(device.read, device.sectors, progress.show)


def _examine_or_rebuild(args: argparse.Namespace,
                        device: SsdDevice) -> Examined:
    try:
        return _examine(args, device)
    except NotACache as err:
        if not args.origin_sectors:
            raise NotACache('%s (rebuild with --origin-sectors, --chunk and '
                            '--grain)' % err) from err
    return rebuild(
        device.read, device.sectors, Geometry(
            _sectors('--chunk', args.chunk),
            _sectors('--grain', args.grain)), args.origin_sectors)


# -- arguments ---------------------------------------------------------------

def _size(option: str, text: str) -> int:
    match = re.match(r'([0-9]{1,15})([kmgt]?)\Z', text.lower())
    if not match:
        raise BadConfig('%s %s: not a size as 100g' % (option, text))
    return int(match.group(1)) * _UNITS[match.group(2)]


def _sectors(option: str, text: str) -> int:
    """``64k`` in sectors; 0 for an empty text."""
    if not text:
        return 0
    match = re.match(r'([0-9]{1,9})([kmgt]?)\Z', text.lower())
    count = int(match.group(1)) * _UNITS[match.group(2)] if match else 0
    if not match or count % 512 or not 0 < count <= CHUNK_MAX * 512:
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


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True)
