"""Where data, metadata and log lie, and whether they are in each other's way.

*Data* are the devices and their capacity folders, *metadata* is the index
(``index_dir``), *log* the gateway's queue (``queue_dir``). Two of them on
one disk compete for its head and for its room: that is said, once, and the
page shows it.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.gateway.bundle.pack import BOOK_FILE
from swift_dss.gateway.queue import FILE as QUEUE_FILE
from swift_dss.gateway.service import Gateway
from swift_dss.io.private import (
    adopt, make_folder, require_disk, tighten_folder)
from swift_dss.tier.inforce import InForce
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.prefetch.service import FILE as PREFETCH_FILE
from swift_dss.wire.settings import nodeconf

INDEX_FILE = 'index.db'
#: Object servers of the same group use the sockets in it.
RUN_MODE = 0o750
#: Where earlier versions had ``run_dir`` by default.
_OLD_PLACE = '/var/run/swift-dss'


@dataclass(frozen=True)
class Area:
    """One folder.

    :param kind: ``data``, ``capacity``, ``metadata`` or ``log``
    :param disk: number of the file system it is on
    :param used_bytes: of our files; 0 where the index counts them
    :param budget_bytes: what they may have; 0 is no budget
    """

    kind: str
    path: str
    disk: int
    used_bytes: int
    budget_bytes: int
    free_bytes: int
    total_bytes: int


class SpaceWatch:
    """Warns of what an operator should know; once of each.

    :param gateway: None where there is no remote tier
    :ivar warnings: the sentences of the last look
    """

    def __init__(self, in_force: InForce, gateway: Optional[Gateway],
                 metrics: Metrics) -> None:
        self._in_force = in_force
        self._gateway = gateway
        self._logger = metrics.logger
        self.warnings: List[str] = []

    def look(self, devices: List[str]) -> None:
        """Look again."""
        said = warnings(areas(self._in_force.conf, devices))
        if self._gateway is not None:
            said += ['%s is in no ring at an address of this node: its '
                     'versions go to S3 as late as those of handoffs' % name
                     for name in self._gateway.not_in_rings(devices)]
        for text in said:
            if text not in self.warnings:
                self._logger.warning('%s', text)
        self.warnings = said


def index_path(conf: NodeConf) -> str:
    """Where the index of a daemon lies."""
    return os.path.join(conf.state_dir, INDEX_FILE)


def prepare(conf: NodeConf, logger: logging.Logger) -> None:
    """Prepare the folders of index, book and queue, and move in the files that
    an older version kept in ``run_dir``. No process may have these open.

    :raises BadConfig: a folder cannot be made, is open to others, or a
        reboot would empty it; says what to do
    """
    wanted = ((conf.state_dir, '[tier] index_dir',
               (INDEX_FILE, BOOK_FILE, PREFETCH_FILE)),
              (conf.queue_dir, '[gateway] queue_dir', (QUEUE_FILE,)))
    for path, option, names in wanted:
        make_folder(path, 0o700, option)
        # Where run_dir is named for both, object servers must get in; the
        # files are their owner's alone.
        if not os.path.exists(conf.sockets_dir) or \
                not os.path.samefile(path, conf.sockets_dir):
            tighten_folder(path)
        require_disk(path, option, conf.allow_tmpfs)
        if conf.shard is not None and conf.shard.number:
            continue  # what an older version kept is the first shard's
        for old in {conf.run_dir, _OLD_PLACE if
                    conf.run_dir == NodeConf.run_dir else conf.run_dir}:
            try:
                moved = adopt(old, path, names)
            except OSError as err:
                raise BadConfig(
                    '%s: the files of %s cannot be moved to %s: %s' % (
                        option, old, path, err)) from err
            for name in moved:
                logger.info('moved %s from %s to %s', name, old, path)


def areas(conf: NodeConf, devices: List[str]) -> List[Area]:
    """All areas that are there."""
    areas: List[Area] = []
    _add(areas, 'metadata', conf.state_dir, conf.tier.index_bytes,
         (INDEX_FILE, INDEX_FILE + '-wal'))
    if conf.gateway.enabled:
        _add(areas, 'log', conf.queue_dir, conf.gateway.queue_bytes,
             (QUEUE_FILE, QUEUE_FILE + '-wal'))
    for device in devices:
        _add(areas, 'data', os.path.join(conf.devices, device),
             conf.tier.ssd_bytes, ())
        capacity = nodeconf.capacity_path(conf, device)
        if capacity:
            _add(areas, 'capacity', capacity, 0, ())
    return areas


def warnings(areas: List[Area]) -> List[str]:
    """One sentence for each thing that an operator should know."""
    said: List[str] = []
    by_disk: Dict[int, List[Area]] = {}
    for area in areas:
        by_disk.setdefault(area.disk, []).append(area)
    for together in by_disk.values():
        kinds = sorted({area.kind for area in together})
        if len(kinds) > 1:
            said.append('%s share one file system (%s): they compete for '
                        'its room and its disk' % (
                            ' and '.join(kinds), together[0].path))
    for area in areas:
        if area.budget_bytes and area.used_bytes > area.budget_bytes:
            said.append('%s in %s has %d bytes, more than its budget of %d'
                        % (area.kind, area.path, area.used_bytes,
                           area.budget_bytes))
        elif area.budget_bytes > area.total_bytes:
            said.append('%s in %s has a budget of %d bytes, more than its '
                        'file system has (%d)' % (
                            area.kind, area.path, area.budget_bytes,
                            area.total_bytes))
    return said


def _add(areas: List[Area], kind: str, path: str, budget_bytes: int,
         files: Tuple[str, ...]) -> None:
    try:
        stat = os.statvfs(path)
        disk = os.stat(path).st_dev
    except OSError:
        return  # not mounted: its keeper says so
    areas.append(Area(
        kind, path, disk, sum(map(_size, (
            os.path.join(path, name) for name in files))), budget_bytes,
        stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
