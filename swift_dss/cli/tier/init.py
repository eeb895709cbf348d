"""``swift-dss tier init``: make HDD folders capacity tiers of devices.

Once for each HDD, after it was mounted. Servers never do it themselves: a
capacity folder that lacks its marker is an HDD that is not mounted, and must
not be written to or taken for an empty one.
"""

from __future__ import annotations

import argparse
import os
from typing import Any, Dict, List

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.io.capacity import Capacity
from swift_dss.wire.layout import capacity_marker
from swift_dss.wire.settings.nodeconf import capacity_path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what only this verb takes."""
    parser.add_argument('--device', help='only this one (all devices)')
    parser.add_argument(
        '--force', action='store_true',
        help='also where the folder is on the file system of "/" or of '
        'its own device, so that an HDD may not be mounted')


def run(args: argparse.Namespace, conf: NodeConf) -> List[Dict[str, Any]]:
    """Mark each folder; idempotent. One row a device.

    :raises BadConfig: no such device, or an HDD that seems not mounted;
        nothing was marked
    """
    folders = []
    for device in devices_of(args, conf):
        path = capacity_path(conf, device)
        if not path:
            if args.device:
                raise BadConfig('[capacity] names no folder for %s' % device)
            continue
        if not args.force:
            require_apart(path, os.path.join(conf.devices, device))
        folders.append(Capacity(path, device))
    return [{'device': folder.device, 'folder': folder.path,
             'is_new': not os.path.exists(capacity_marker(folder.path)),
             'identity': folder.initialise()} for folder in folders]


def devices_of(args: argparse.Namespace, conf: NodeConf) -> List[str]:
    """The device of the arguments, or all.

    :raises BadConfig: there is no such device
    """
    try:
        names = sorted(os.listdir(conf.devices))
    except OSError as err:
        raise BadConfig('[dss] devices: %s' % err) from err
    if not args.device:
        return [name for name in names if not name.startswith('.')]
    if args.device not in names:
        raise BadConfig('%s has no device %s' % (conf.devices, args.device))
    return [args.device]


def require_apart(path: str, device_path: str) -> None:
    """:raises BadConfig: the HDD seems not to be mounted"""
    other = shared_with(path, device_path)
    if other:
        raise BadConfig(
            '%s is on the file system of %s: mount the HDD first, or '
            'say --force' % (path, other))


def shared_with(path: str, device_path: str) -> str:
    """The place on whose file system a capacity folder is and should not be,
    or ''. Judges a folder that does not exist yet by the one above it."""
    there = path
    while not os.path.exists(there) and there != os.path.dirname(there):
        there = os.path.dirname(there)
    number = os.stat(there).st_dev
    return next((other for other in ('/', device_path)
                 if os.stat(other).st_dev == number), '')
