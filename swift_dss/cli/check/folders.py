"""The daemon's folders: on a disk, and for Swift's user alone."""

from __future__ import annotations

import os
import stat
from typing import Iterator, Optional, Tuple

from swift_dss.cli.check.findings import (
    Finding, Place, error, fine, refused, warning)
from swift_dss.cli.check.node import Account, Node
from swift_dss.core.errors import BadConfig
from swift_dss.io.private import require_disk
from swift_dss.tier.space import RUN_MODE

_STATE_MODE = 0o700


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    conf = node.conf
    if conf is None:
        return
    yield from folder('[dss] run_dir', conf.run_dir, RUN_MODE, node)
    wanted = [('[tier] index_dir', conf.index_dir)]
    if conf.gateway.enabled and conf.queue_dir != conf.index_dir:
        wanted.append(('[gateway] queue_dir', conf.queue_dir))
    for option, path in wanted:
        if not os.path.isdir(path) or not os.path.isdir(conf.run_dir) or \
                not os.path.samefile(path, conf.run_dir):
            # A folder that is both has been judged as run_dir.
            yield from folder(option, path, _STATE_MODE, node)
        if os.path.isdir(path):
            try:
                require_disk(path, option, conf.allow_tmpfs)
            except BadConfig as err:
                yield refused('folders', BadConfig(
                    '%s: %s' % (node.config, err)))
            yield from files(path, node.account)
    if conf.allow_tmpfs:
        yield warning(
            'folders', 'a reboot may forget deletes that S3 still has to '
            'get; this is for tests',
            Place(node.config, '[dss] allow_tmpfs', 'true'),
            'write "allow_tmpfs = false"')


def folder(option: str, path: str, mode: int,
           node: Node) -> Iterator[Finding]:
    """One folder, or the one in which it is to be made."""
    place = Place(node.config, option, path)
    account = node.account
    if account is None:
        return  # said before
    remedy = '"install -d -o %s -g %d -m %04o %s"' % (
        account.name, account.gid, mode, path)
    if path.startswith(('/run/', '/var/run/')):
        remedy += '; /run is empty after a boot, so do it with ' \
            'systemd-tmpfiles (etc/swift-dss-tmpfiles.conf-sample)'
    if os.path.lexists(path) and not os.path.isdir(path):
        yield error('folders', 'it is no folder', place, 'remove it, and '
                    + remedy)
    elif os.path.isdir(path):
        yield from rights(os.stat(path), mode, account, place, remedy)
    elif not _can_make(path, account):
        yield error('folders', 'it is not there, and user %s cannot make it'
                    % account.name, place, 'as root: ' + remedy)
    else:
        yield fine('folders', '%s: the daemon makes it' % path)


def rights(status: os.stat_result, mode: int, account: Account,
           place: Place, remedy: str) -> Iterator[Finding]:
    """Owner and mode of a folder that is there.

    :param mode: that it is made with
    """
    has = stat.S_IMODE(status.st_mode)
    if account.uid not in (0, status.st_uid):
        yield error('folders', 'it belongs to user %d, and the daemon runs '
                    'as %s' % (status.st_uid, account.name), place,
                    'chown %s %s' % (account.name, place.value))
    elif has & ~mode & 0o077:
        yield warning(
            'folders', 'mode %04o lets others look at the names of all '
            'objects' % has, place, 'chmod %04o %s' % (mode, place.value))
    elif has & 0o700 != 0o700:
        yield error('folders', 'mode %04o keeps its owner out' % has, place,
                    remedy)
    else:
        yield fine('folders', '%s: mode %04o' % (place.value, has))


def files(path: str, account: Optional[Account]) -> Iterator[Finding]:
    """The databases in a folder of state."""
    for name, status in _databases(path):
        where = Place(os.path.join(path, name))
        if account is not None and account.uid not in (0, status.st_uid):
            yield error('folders', 'it belongs to user %d, and the daemon '
                        'runs as %s' % (status.st_uid, account.name), where,
                        'chown %s %s' % (account.name, where.file))
        elif stat.S_IMODE(status.st_mode) & 0o077:
            yield warning('folders', 'mode %04o: it has the names of all '
                          'objects' % stat.S_IMODE(status.st_mode), where,
                          'chmod 0600 %s' % where.file)


def _databases(path: str) -> Iterator[Tuple[str, os.stat_result]]:
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return
    for name in names:
        if name.endswith(('.db', '.db-wal', '.db-shm')):
            try:
                yield name, os.stat(os.path.join(path, name))
            except OSError:
                continue  # the daemon has just closed it


def _can_make(path: str, account: Account) -> bool:
    """May the user make the folder, and those above it that are missing?"""
    above = os.path.dirname(path)
    while above != os.path.dirname(above) and not os.path.exists(above):
        above = os.path.dirname(above)
    status = os.stat(above)
    mode = stat.S_IMODE(status.st_mode)
    if not account.uid:
        return True
    if account.uid == status.st_uid:
        return bool(mode & 0o200)
    return bool(mode & (0o020 if account.gid == status.st_gid else 0o002))
