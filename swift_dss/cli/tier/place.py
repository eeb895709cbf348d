"""``swift-dss tier place``: where the files of devices lie on their disks.

Needs no daemon. Reads the folders of the devices and asks the file system for
the extents of the newest files, in the order of their writing: as an arm goes
that writes them, or reads them back in that order.
"""

from __future__ import annotations

import argparse
import glob
import heapq
import os
from typing import Any, Dict, Iterator, List, Tuple

from swift_dss.cli.table import Progress, table
from swift_dss.cli.tier.init import devices_of
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.io.place import arms, groups
from swift_dss.wire import layout
from swift_dss.wire.settings.nodeconf import capacity_path

_FILES = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what only this verb takes."""
    parser.add_argument('device', nargs='?', metavar='DEVICE',
                        help='only this one (all devices)')
    parser.add_argument('--files', type=int, default=_FILES, metavar='N',
                        help='the newest of each device (%(default)s)')
    parser.add_argument('--remove', action='store_true',
                        help='instead: remove the folders in which new files '
                        'begin, before an uninstall')


def run(args: argparse.Namespace, conf: NodeConf) -> List[Dict[str, Any]]:
    """One row a device; see :func:`text`.

    :raises BadConfig: no such device, or a number of files below 1
    :raises TierUnavailable: a device cannot be read, or its file system
        does not say where files lie
    """
    if args.files < 1:
        raise BadConfig('--files %d: at least 1' % args.files)
    looks = []
    for device in devices_of(args, conf):
        path = os.path.join(conf.devices, device)
        try:
            if args.remove:
                groups.remove(path)
                if capacity_path(conf, device):
                    groups.remove(capacity_path(conf, device))
                looks.append({'device': device})
            else:
                looks.append(_look(device, path, args))
        except OSError as err:
            raise TierUnavailable('%s: %s' % (device, err)) from err
    return looks


def _look(device: str, path: str, args: argparse.Namespace
          ) -> Dict[str, Any]:
    newest = sorted(heapq.nlargest(args.files, _files(path)))
    places = []
    with Progress(device, quiet=args.json) as progress:
        for number, (_, name) in enumerate(newest):
            try:
                places.append(arms.extents(name))
            except FileNotFoundError:
                continue  # it was replaced meanwhile
            progress.show(number + 1, len(newest), 'files')
    way = arms.way(places)
    space = os.statvfs(path)
    return {'device': device, 'files': way.files, 'extents': way.extents,
            'arm_moves': way.moves, 'mean_move_bytes': round(way.mean_bytes),
            'disk_bytes': space.f_blocks * space.f_frsize,
            'placed': os.path.isdir(os.path.join(path, groups.FOLDER))}


def _files(path: str) -> Iterator[Tuple[str, str]]:
    """(timestamp, path) of the data files of a device."""
    for name in glob.iglob(os.path.join(
            glob.escape(path), 'objects*', '*', '*', '*', '*.data')):
        parsed = layout.parse_data_file(os.path.basename(name))
        if parsed is not None:
            yield parsed[0], name


def text(rows: List[Dict[str, Any]]) -> str:
    """For people."""
    if not all('files' in row for row in rows):
        return table(('device', 'removed'), [
            (row['device'], groups.FOLDER) for row in rows])
    return table(
        ('device', 'files', 'extents', 'arm moves', 'mean move>',
         'new files begin'), [
            (row['device'], row['files'], row['extents'], row['arm_moves'],
             '%.1f %% of the disk' % (
                 100.0 * row['mean_move_bytes'] / row['disk_bytes'])
             if row['arm_moves'] else '',
             'side by side' if row['placed'] else 'as Swift has them')
            for row in rows])
