"""Engine ``block``, seen from the tier daemon: the devices under a device.

Which dm-dss device is below a mounted file system is asked of sysfs: the file
system's device, or a device below it. The kernel itself is asked through
``dmsetup``, which only root may. A daemon that runs as another user reads what
``swift-dss block watch --state-dir`` leaves for it.
"""

from __future__ import annotations

import json
import logging
import os
import time
from typing import Any, Dict, Iterable, List, Optional

from swift_dss.block import control, control_status
from swift_dss.block.control_classes import ClassFeed
from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import DssError

#: Older than this, what ``watch`` has left says nothing any more.
_STALE_SECONDS = 120.0
_SYS = '/sys/dev/block'


def state_dir(run_dir: str) -> str:
    """Where ``watch`` leaves a file for each device."""
    return os.path.join(run_dir, 'block')


def below(path: str, sys: str = _SYS) -> List[str]:
    """Names of device-mapper devices under a file system, top down.

    :param path: anything on it
    """
    try:
        number = os.stat(path).st_dev
    except OSError:
        return []
    devices: List[str] = []
    wave = [os.path.realpath(os.path.join(sys, '%d:%d' % (
        os.major(number), os.minor(number))))]
    while wave:
        folder = wave.pop(0)
        try:
            with open(os.path.join(folder, 'dm', 'name')) as source:
                devices.append(source.read().strip())
        except OSError:
            pass
        if os.path.exists(os.path.join(folder, 'partition')):
            wave.append(os.path.dirname(folder))
        slaves = os.path.join(folder, 'slaves')
        if os.path.isdir(slaves):
            wave += [os.path.realpath(os.path.join(slaves, name))
                     for name in sorted(os.listdir(slaves))]
    return devices


def save_state(folder: str, status: Dict[str, Any]) -> None:
    """Write the kernel's status of one device, whole or not at all, readable
    for all users that may enter the folder.
    """
    path = os.path.join(folder, status['name'] + '.json')
    with open(path + '.tmp', 'w', encoding='utf-8') as target:
        json.dump(dict(status, at=time.time()), target)
    os.rename(path + '.tmp', path)


class BlockView:
    """The dm-dss devices under a node's devices.

    :param run_dir: of the node; has what ``watch`` leaves
    :param direct: ask the kernel; None: if we are root
    """

    def __init__(self, run_dir: str, class_table: str,
                 logger: logging.Logger,
                 direct: Optional[bool] = None) -> None:
        self._state_dir = state_dir(run_dir)
        self._logger = logger
        self._direct = os.geteuid() == 0 if direct is None else direct
        self._feed = ClassFeed(class_table, logger)
        self._said: Dict[str, str] = {}

    def gather(self, device: str, path: str,
               table: Optional[ClassTable]) -> Optional[Dict[str, Any]]:
        """The kernel's status of the cache under a device, as
        :func:`control_status.describe` has it.

        :returns: None if unknown; the log says why, once
        """
        try:
            name = self._name(path)
            if name is None:
                self._silent(device, 'engine block, but no dm-dss device '
                             'is seen under %s' % path)
                return None
            status = control_status.gather(name, table) if self._direct \
                else self._left(name)
        except (DssError, OSError, ValueError) as err:
            self._silent(device, str(err))
            return None
        self._said.pop(device, None)
        return status

    def feed_classes(self, paths: Iterable[str]) -> List[str]:
        """Bring the class table's file to every cache below these paths,
        if it changed; nothing where ``watch`` does that."""
        if not self._direct:
            return []
        names = [self._name(path) for path in paths]
        return self._feed.look(sorted({name for name in names if name}))

    def _name(self, path: str) -> Optional[str]:
        candidates = below(path)
        if not candidates:
            return None
        known = control.names() if self._direct else [
            name for name in candidates if os.path.exists(self._file(name))]
        return next((candidate for candidate in candidates
                     if candidate in known), None)

    def _file(self, name: str) -> str:
        return os.path.join(self._state_dir, name + '.json')

    def _left(self, name: str) -> Dict[str, Any]:
        with open(self._file(name), encoding='utf-8') as source:
            status = json.load(source)
        if not isinstance(status, dict) or not isinstance(
                status.get('at'), (int, float)):
            raise ValueError('%s: not a state file' % self._file(name))
        age = time.time() - status.pop('at')
        if age > _STALE_SECONDS:
            raise ValueError('%s is %d s old: "swift-dss block watch" does '
                             'not run' % (self._file(name), age))
        status['classes'] = {int(class_id): row for class_id, row
                             in status['classes'].items()}
        return status

    def _silent(self, device: str, why: str) -> None:
        if self._said.get(device) != why:
            self._logger.error('%s: %s', device, why)
        self._said[device] = why
