"""Devices and their HDDs: mounted, marked, and on file systems that will do.
"""

from __future__ import annotations

import os
from typing import Dict, Iterator, List, Optional

from swift_dss.cli.check import trials
from swift_dss.cli.check.findings import (
    Finding, Place, error, fine, refused, warning)
from swift_dss.cli.check.node import Account, Node
from swift_dss.cli.check.rings import devices_here
from swift_dss.cli.tier.init import shared_with
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import TierUnavailable
from swift_dss.io.private import filesystem_of
from swift_dss.tier.devices import Device, Devices

#: Of an inode, so that Swift's metadata lies in it.
_INODE_BYTES = 1024


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    conf = node.conf
    if conf is None:
        return
    devices = Devices(conf).discover()
    if not devices:
        yield error('devices', 'no device in it', Place(
            node.config, '[dss] devices', conf.devices),
            'name the folder that Swift\'s devices are mounted in')
    yield from names(conf, [device.name for device in devices], node.config)
    used = devices_here(conf.swift_dir)
    for device in devices:
        yield from ssd(device, node.account,
                       used is not None and device.name not in used)
        if device.has_hdd:
            yield from hdd(device, node.account, node.config)


def names(conf: NodeConf, known: List[str], path: str) -> Iterator[Finding]:
    """Options that name devices."""
    named: Dict[str, List[str]] = {
        '[capacity] %s': [name for name in conf.capacity if name != '*'],
        '[engine] %s': list(conf.engines),
        '[tier] shards': [name for part in conf.tier.shards.lists
                          for name in part]}
    for option, listed in named.items():
        for name in listed:
            if name not in known:
                place = option % name if '%' in option else option
                yield error(
                    'devices', '%s has no device %s' % (conf.devices, name),
                    Place(path, place, conf.capacity.get(name, '')),
                    'there are %s' % ', '.join(known or ('none',)))
    shared = conf.capacity.get('*', '')
    if shared and '%(device)s' not in shared and len(known) > 1:
        yield error('devices', 'all devices would have one folder',
                    Place(path, '[capacity] *', shared),
                    'write %(device)s in it')


def ssd(device: Device, account: Optional[Account],
        is_unused: bool = False) -> Iterator[Finding]:
    """The file system of a device.

    :param is_unused: no ring has it at an address of this node
    """
    try:
        device.require_mounted()
    except TierUnavailable as err:
        if is_unused:
            yield warning('device ' + device.name, 'it is not mounted, and '
                          'no ring has it here', Place(device.path),
                          'remove the folder, or mount its disk and add it '
                          'with swift-ring-builder')
            return
        yield refused('device ' + device.name, err, Place(device.path),
                      'mount its disk ("mount_check = false" is for tests)')
        return
    yield from owner('device ' + device.name, device.path, account)
    yield from can_all('device ' + device.name, device.path)
    size = trials.inode_bytes(device.path)
    if size is not None and size < _INODE_BYTES:
        yield warning(
            'device ' + device.name, 'inodes of %d bytes: the metadata of '
            'each object takes a block more, to write and to read' % size,
            Place(device.path), 'when the disk is next made, "mkfs.xfs -i '
            'size=%d"' % _INODE_BYTES)


def hdd(device: Device, account: Optional[Account],
        config: str) -> Iterator[Finding]:
    """The capacity folder of a device."""
    about, path = 'HDD of ' + device.name, device.capacity.path
    place = Place(config, '[capacity]', path)
    try:
        device.capacity.check()
    except TierUnavailable as err:
        yield refused(about, err, place, 'mount the HDD; if it is new, '
                      '"swift-dss tier init --device %s"' % device.name)
        return
    other = shared_with(path, device.path)
    if other:
        yield warning(about, 'it is on the file system of %s' % other, place,
                      'mount the HDD')
    yield from owner(about, path, account)
    yield from can_all(about, path)
    if trials.is_rotating(device.path) and trials.is_rotating(path) is False:
        yield warning(about, '%s rotates and this does not: SSD and HDD '
                      'seem to be exchanged' % device.path, place,
                      'mount the SSD at %s' % device.path)


def owner(about: str, path: str,
          account: Optional[Account]) -> Iterator[Finding]:
    """The user of the servers writes here."""
    status = os.stat(path)
    if account is not None and account.uid not in (0, status.st_uid) and \
            not os.access(path, os.W_OK):
        yield error(about, 'user %s may not write here' % account.name,
                    Place(path), 'chown %s %s' % (account.name, path))
    elif account is not None and account.uid and \
            status.st_uid != account.uid:
        yield error(about, 'it belongs to user %d, and the servers run as %s'
                    % (status.st_uid, account.name), Place(path),
                    'chown -R %s %s' % (account.name, path))


def can_all(about: str, path: str) -> Iterator[Finding]:
    """The features of its file system, tried for real."""
    kind = filesystem_of(path) or 'its file system'
    try:
        lacking = trials.lacks(path)
    except OSError as err:
        yield error(about, 'nothing can be written here: %s' % err.strerror,
                    Place(path), 'run this as root or as the servers\' user; '
                    'a disk that is read-only has failed')
        return
    yield from lacks(about, path, kind, lacking)


def lacks(about: str, path: str, kind: str,
          lacking: Dict[str, str]) -> Iterator[Finding]:
    """Judge it.

    :param lacking: of :func:`trials.lacks`
    """
    large = lacking.get('large xattrs')
    others = ['%s (%s)' % pair for pair in sorted(lacking.items())
              if pair[0] != 'large xattrs']
    if others:
        yield error(about, '%s lacks %s' % (kind, ', '.join(others)),
                    Place(path), 'use XFS: "mkfs.xfs -i size=%d"'
                    % _INODE_BYTES)
    elif large:
        yield warning(about, '%s holds little metadata of an object (%s): '
                      'long class maps will be refused' % (kind, large),
                      Place(path), 'use XFS: "mkfs.xfs -i size=%d"'
                      % _INODE_BYTES)
    else:
        yield fine(about, '%s on %s has all that is needed' % (path, kind))
