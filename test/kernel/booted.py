"""A node that boots: Debian's kernel, systemd and udev, and our parts.

QEMU emulates it. Its user land is made once of Debian's packages and kept in
the laboratory's cache; each :class:`Node` gets our parts from the checkout, as
the manual has an operator put them there, and disks of its own.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import Any, Iterator, Tuple

import node_guest

from swift_dss.block.lab import cache, stock

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKOUT = os.path.dirname(os.path.dirname(HERE))
KERNEL = '6.12'
#: Of the host, beside those of :mod:`swift_dss.block.lab.stock`.
COMMANDS = ('mmdebstrap', 'mke2fs', 'debugfs', 'chroot')
SUITE = 'bookworm'
PACKAGES = ('base-files', 'base-passwd', 'bash', 'coreutils', 'dash',
            'diffutils', 'dmsetup', 'dpkg', 'fdisk', 'findutils', 'grep',
            'init-system-helpers', 'kmod', 'libc-bin', 'login', 'mawk',
            'mount', 'passwd', 'python3', 'python3-pip', 'sed', 'systemd',
            'systemd-sysv', 'udev', 'util-linux', 'xfsprogs')
#: What the initramfs needs to find the root; udev loads the rest.
_FIRST = ('virtio-pci', 'virtio-scsi', 'sd-mod', 'ext4', 'crc32c_generic')
_INIT = '''\
#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*; do insmod "$module"; done
mkdir /new
until disk=$(findfs LABEL=system); do sleep 1; done
mount -t ext4 "$disk" /new || poweroff -f
exec switch_root /new /sbin/init
'''
#: An emulated machine may be slow to find its disks.
_PATIENCE = '[Manager]\nDefaultDeviceTimeoutSec=1200\n'
_UNIT = '''\
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 /srv/node_guest.py
StandardOutput=journal+console
StandardError=journal+console
[Install]
WantedBy=multi-user.target
'''
_ROOT_SIZE = '1536M'
_SSD_BYTES = 1 << 30
_HDD_BYTES = 512 << 20


def user_land() -> str:
    """The folder of a Debian without a kernel, made if it must be."""
    folder = os.path.join(cache.root(), 'debian-' + cache.digest(
        word.encode() for word in (SUITE,) + PACKAGES))
    with cache.making(folder, print) as ours:
        if ours:
            print('making a Debian of %d packages' % len(PACKAGES))
            cache.call(['mmdebstrap', '--variant=custom', '--include='
                        + ','.join(PACKAGES), '--format=directory', SUITE,
                        os.path.join(folder, 'root')], folder, 'mmdebstrap')
    return os.path.join(folder, 'root')


class Node:
    """A machine with a disk for its system, an SSD and twelve HDDs.

    :param folder: where its disks are
    """

    def __init__(self, folder: str, made: stock.Stock) -> None:
        self._folder = folder
        self._stock = made

    @classmethod
    def installed(cls, folder: str) -> Node:
        """A new one: our parts installed, and no cache made."""
        made = stock.prepare(KERNEL, print)
        node = cls(folder, made)
        root = os.path.join(folder, 'root')
        cache.call(['cp', '--archive', user_land(), root], folder, 'cp')
        _install(root, made)
        cache.call(['mke2fs', '-q', '-t', 'ext4', '-L', 'system', '-d', root,
                    node._disk('system'), _ROOT_SIZE], folder, 'mke2fs')
        shutil.rmtree(root)
        for name, size in [('ssd', _SSD_BYTES)] + [
                ('hdd' + name[1:], _HDD_BYTES) for name in node_guest.NAMES]:
            with open(node._disk(name), 'wb') as out:
                out.truncate(size)
        _pack(folder, made)
        return node

    def copy(self, folder: str) -> Node:
        """Another one that goes on from here."""
        cache.call(['cp', '--archive', '--sparse=always',
                    self._folder + '/.', folder], folder, 'cp')
        return Node(folder, self._stock)

    def forget(self, path: str) -> None:
        """Remove a file of its system, which is shut down."""
        cache.call(['debugfs', '-w', '-R', 'rm ' + path,
                    self._disk('system')], self._folder, 'debugfs')

    def boot(self, verb: str, timeout: float = 1800.0) -> Any:
        """Boot it for a verb of :mod:`node_guest`; what that found."""
        told = os.path.join(self._folder, 'told')
        open(told, 'w').close()
        console = stock.boot(
            self._stock, os.path.join(self._folder, 'initramfs.gz'), timeout,
            print, ['node=' + verb, 'systemd.getty_auto=0'],
            ['-m', '1024', '-serial', 'file:' + told,
             '-device', 'virtio-scsi-pci']
            + [word for name, path in self._disks() for word in (
                '-drive', 'if=none,format=raw,cache=unsafe,id=%s,file=%s' % (
                    name, path),
                '-device', 'scsi-hd,drive=%s,serial=%s' % (name, name))])
        with open(told) as source:
            text = source.read()
        assert text, 'the machine said nothing:\n' + console[-4000:]
        report = json.loads(text)
        assert 'error' not in report, '%s\n%s' % (
            report['error'], report['log'][-4000:])
        return report

    def _disk(self, name: str) -> str:
        return os.path.join(self._folder, name + '.img')

    def _disks(self) -> Iterator[Tuple[str, str]]:
        for name in ['system', 'ssd'] + [
                'hdd' + name[1:] for name in node_guest.NAMES]:
            yield name, self._disk(name)


def _install(root: str, made: stock.Stock) -> None:
    """Our parts, as the manual's pages have them."""
    modules = os.path.join('lib', 'modules', made.release)
    os.makedirs(os.path.join(root, 'lib', 'modules'), exist_ok=True)
    cache.call(['cp', '--archive', os.path.join(made.root, modules),
                os.path.join(root, modules)], root, 'cp')
    ours = os.path.join(root, modules, 'updates', 'dkms')
    os.makedirs(ours)
    shutil.copy(stock.module(made, 'dm-dss', print), ours)
    cache.call(['depmod', '-b', root, made.release], root, 'depmod')
    _checkout(os.path.join(root, 'srv', 'swift-dss'))
    _in(root, 'pip', 'install', '--quiet', '--no-deps', '--no-index',
        '--no-build-isolation', '--break-system-packages', '/srv/swift-dss')
    _in(root, 'sh', '-ec', '''
        mkdir -p /etc/systemd/system-generators /etc/swift
        ln -s "$(command -v swift-dss-block-generator)" %s
        swift-dss-block-probe --rule > %s
        cp /srv/swift-dss/etc/dss-classes.conf-sample %s''' % (
            node_guest.GENERATOR, node_guest.RULE, node_guest.TABLE))
    shutil.copy(os.path.join(HERE, 'node_guest.py'),
                os.path.join(root, 'srv'))
    for name, text in (('system/node-guest.service', _UNIT),
                       ('system.conf.d/patience.conf', _PATIENCE)):
        path = os.path.join(root, 'etc', 'systemd', name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as out:
            out.write(text)
    _in(root, 'systemctl', '--quiet', 'enable', 'node-guest.service')


def _checkout(folder: str) -> None:
    """The files that an installation takes."""
    shutil.copytree(os.path.join(CHECKOUT, 'swift_dss'),
                    os.path.join(folder, 'swift_dss'),
                    ignore=shutil.ignore_patterns('__pycache__', '*.so'))
    for name in ('etc', os.path.join('doc', 'man')):
        shutil.copytree(os.path.join(CHECKOUT, name),
                        os.path.join(folder, name))
    for name in ('setup.py', 'setup.cfg', 'pyproject.toml', 'MANIFEST.in',
                 'README.md', 'LICENSE'):
        shutil.copy(os.path.join(CHECKOUT, name), folder)


def _in(root: str, *words: str) -> None:
    cache.call(['chroot', root, 'env', '-i', 'PATH=/usr/local/sbin:'
                '/usr/local/bin:/usr/sbin:/usr/bin', 'LC_ALL=C.UTF-8',
                *words], root, words[0])


def _pack(folder: str, made: stock.Stock) -> None:
    root = os.path.join(folder, 'first')
    stock.put_busybox(root)
    stock.put_modules(made, _FIRST, (), os.path.join(root, 'modules'))
    with open(os.path.join(root, 'init'), 'w') as out:
        out.write(_INIT)
    stock.pack(root, os.path.join(folder, 'initramfs.gz'))
    shutil.rmtree(root)
