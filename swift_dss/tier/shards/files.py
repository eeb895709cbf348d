"""The files that say which shard has which device, and moves between them.

``<index_dir>/shards.json`` is what counts, also after a reboot;
``<run_dir>/shards.json`` is its copy for object servers. A device moves
while no shard runs that had it or is to have it, in steps that each may
happen twice: the move is written down, rows of the queue and the book go
over (``gateway.handover``), the move is crossed out.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from typing import Dict, Mapping, Set, Tuple

from swift_dss.core.config import NodeConf, shard_dir
from swift_dss.core.errors import BadConfig, DamagedRecord, TierUnavailable
from swift_dss.core.limits import MAX_SHARDS, RUN_DIR_BYTES, SHARD_DIR_BYTES
from swift_dss.gateway.handover import hand_over
from swift_dss.io import steps
from swift_dss.io.private import make_folder
from swift_dss.strategy import sharding
from swift_dss.tier import space
from swift_dss.tier.devices import device_names
from swift_dss.tier.local.locks import LOCK_FILE, lock_node
from swift_dss.wire.node import shards
from swift_dss.wire.node.shards import Layout

#: Shards of a parent that died have so long to end.
_QUIET_SECONDS = 60.0
_LOOK_SECONDS = 0.1


def read(conf: NodeConf) -> Layout:
    """The layout in force; nothing where the node never had shards.

    :raises BadConfig: the file cannot be read
    """
    path = _durable(conf)
    try:
        with open(path, 'rb') as source:
            return shards.decode(source.read())
    except FileNotFoundError:
        return Layout({})
    except (OSError, DamagedRecord) as err:
        raise BadConfig('%s: %s; to have all devices read again, remove it '
                        'and start the daemon' % (path, err)) from err


def prepare(conf: NodeConf, logger: logging.Logger) -> None:
    """Make the folders that all shards share.

    :raises BadConfig: one cannot be made, or ``run_dir`` has too long a name
    """
    most = RUN_DIR_BYTES - SHARD_DIR_BYTES
    if len(conf.run_dir.encode()) > most:
        raise BadConfig(
            '[dss] run_dir: %r has more than %d bytes; the name of a socket '
            'of a shard in it would be longer than the system takes' % (
                conf.run_dir, most))
    make_folder(conf.run_dir, space.RUN_MODE, '[dss] run_dir')
    space.prepare(conf, logger)


def wanted(conf: NodeConf, count: int, before: Layout) -> Layout:
    """The layout that the configuration and the devices ask for.

    :param count: of shards; 1 is a daemon without
    :param before: the layout in force; without one, the first shard has all
    """
    names = set(device_names(conf.devices)) | set(before.devices)
    was: Mapping[str, int] = before.devices or _one_daemon(conf, names)
    devices = sharding.assign(conf.tier.shards, count, names, was)
    moving: Dict[str, Tuple[int, ...]] = {}
    for name, number in devices.items():
        sources = set(before.moving.get(name, ()))
        if name in was:
            sources.add(was[name])
        if sources - {number}:
            moving[name] = tuple(sorted(sources - {number}))
    return Layout(devices, moving)


def carry_out(conf: NodeConf, layout: Layout,
              logger: logging.Logger) -> None:
    """Bring a layout into force. No shard of a device that moves may run.

    :raises BadConfig, TierUnavailable: a file cannot be written; doing it
        again goes on
    """
    _write(_durable(conf), layout)
    steps.reached('shards.planned')
    for (source, target), names in sorted(_moves(layout).items()):
        old, new = conf.of_shard(source), conf.of_shard(target)
        space.prepare(new, logger)
        rows = hand_over(old, new, sorted(names))
        logger.info('%s: from shard %d to shard %d, with %d rows of work',
                    ', '.join(sorted(names)), source, target, rows)
        steps.reached('shards.handed_over')
    if layout.moving:
        _write(_durable(conf), Layout(layout.devices))
        steps.reached('shards.settled')
    publish(conf, layout)


def publish(conf: NodeConf, layout: Layout) -> None:
    """Let object servers know."""
    path = os.path.join(conf.run_dir, shards.FILE)
    _write(path, Layout(layout.devices))
    with contextlib.suppress(PermissionError):
        os.chown(path, -1, os.stat(conf.run_dir).st_gid)
    os.chmod(path, 0o640)
    steps.reached('shards.published')


def take_back(conf: NodeConf, logger: logging.Logger) -> None:
    """One daemon has all devices again: what shards left is brought in.

    :raises BadConfig, TierUnavailable: as :func:`carry_out`
    """
    before = read(conf)
    if before.devices:
        prepare(conf, logger)
        lock = lock_node(conf.run_dir)
        try:
            carry_out(conf, wanted(conf, 1, before), logger)
            os.unlink(_durable(conf))
        finally:
            os.close(lock)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(conf.run_dir, shards.FILE))


def await_quiet(conf: NodeConf, logger: logging.Logger) -> None:
    """Wait until no shard of a parent that died is at work.

    :raises TierUnavailable: one still is, after a minute
    """
    until = time.monotonic() + _QUIET_SECONDS
    said = False
    for number in range(MAX_SHARDS):
        path = os.path.join(shard_dir(conf.run_dir, number), LOCK_FILE)
        while _is_held(path):
            if not said:
                said = True
                logger.warning('shard %d of a daemon that died is ending',
                               number)
            if time.monotonic() > until:
                raise TierUnavailable(
                    'shard %d of a daemon that died still runs: %s names '
                    'its process' % (number, path))
            time.sleep(_LOOK_SECONDS)


def _is_held(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(fd)


def _one_daemon(conf: NodeConf, names: Set[str]) -> Mapping[str, int]:
    """The layout of a node that has none yet: the index of a daemon without
    shards, if there is one, becomes the first shard's."""
    if os.path.exists(os.path.join(conf.index_dir, space.INDEX_FILE)):
        return dict.fromkeys(names, 0)
    return {}


def _moves(layout: Layout) -> Dict[Tuple[int, int], Set[str]]:
    made: Dict[Tuple[int, int], Set[str]] = {}
    for name, sources in layout.moving.items():
        for source in sources:
            made.setdefault((source, layout.devices[name]), set()).add(name)
    return made


def _durable(conf: NodeConf) -> str:
    return os.path.join(conf.index_dir, shards.FILE)


def _write(path: str, layout: Layout) -> None:
    """Replace a file whole; it survives a power cut."""
    try:
        fresh = path + '.new'
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                     | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, 'wb') as target:
            target.write(shards.encode(layout))
            target.flush()
            os.fsync(fd)
        os.replace(fresh, path)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as err:
        raise TierUnavailable('%s: %s' % (path, err.strerror)) from err
