"""The words and options of ``swift-dss block``."""

from __future__ import annotations

import argparse
from typing import Callable

from swift_dss.block.ondisk.repair import DECISIONS
from swift_dss.block.table import MODES, STRATEGIES
from swift_dss.cli.block import attach

_TABLE = '/etc/swift/dss-classes.conf'


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
    attach.configure(add('attach', attach.LINE, False))
    command = add('status', 'show the contents and work of devices')
    command.add_argument('name', nargs='*', metavar='NAME',
                         help='of a device (all of them)')
    command.add_argument('--class-table', default=_TABLE, metavar='FILE',
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
    made.add_argument('--stage', type=int, default=0, metavar='PERCENT',
                      help='of the SSD, that writes of any class may use (0)')
    made.add_argument('--class-table', metavar='FILE',
                      help='dss-classes.conf to load; none: that of a warm '
                      'cache')
    made.add_argument('--format', action='store_true',
                      help='make a new cache even if the SSD has one')
    made.add_argument('--adopt', action='store_true',
                      help='keep the file system that the HDD has')
    made.add_argument('--force', action='store_true',
                      help='write over the contents of the SSD')


def _configure_tools(
        add: Callable[..., argparse.ArgumentParser]) -> None:
    check = add('check', 'is the cache on an SSD sound? 0: yes, 1: repair '
                'mends it, 4: something to decide, 8: no cache')
    dump = add('dump', 'contents of the cache on an SSD')
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
    repair.add_argument('--doubtful', choices=DECISIONS,
                        default='', help='the fate of chunks in doubt')
    repair.add_argument('--salvage', metavar='FOLDER',
                        help='where bytes of dropped dirty chunks are kept')
    repair.add_argument('--chunk', default='256k', metavar='SIZE')
    repair.add_argument('--grain', default='4k', metavar='SIZE')
    repair.add_argument('--origin-sectors', type=int, default=0,
                        help='with --chunk and --grain: rebuild superblocks '
                        'that are both gone')
