"""Make, change and remove dm-dss devices without losing data.

This module refuses:

- devices that are mounted, swap, or part of something: always;
- an SSD that carries something else, or a cache with dirty bytes that is
  to be formatted: unless forced;
- the cache of another origin, or of one that was written to without it:
  unless forced;
- an origin that carries a file system, for a new cache: unless it is to be
  adopted, which keeps it, seen through the device;
- removing a device that is in use, or whose dirty bytes cannot all be written
  back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import subprocess
import uuid
from dataclasses import dataclass
from typing import Callable, Mapping, Optional

from swift_dss.block import control, control_devices, tab
from swift_dss.block.control import ControlFailed
from swift_dss.block.ondisk.blocks import BLOCK_SECTORS
from swift_dss.block.ondisk.device import SsdDevice
from swift_dss.block.ondisk.geometry import Geometry
from swift_dss.block.ondisk.reading import examine, read_superblocks
from swift_dss.block.ondisk.superblock import (
    SUPER_SECTORS, Superblock, build_super, fresh, origin_sum, sample_sectors)
from swift_dss.block.table import MODES, STRATEGIES, TargetTable
from swift_dss.core.errors import BadConfig, DssError
from swift_dss.strategy.eviction.chunks import ChunkRow

Progress = Callable[[int, int], None]

_POLL_SECONDS = 0.2
_WIPED_SECTORS = 2048


class Refused(DssError):
    """The request might lose data; nothing was changed."""

    exit_code = 1


@dataclass(frozen=True)
class Wanted:
    """A device to make.

    :param chunk_sectors, grain_sectors: 0 takes those of a warm cache, or
        the defaults
    :param rows: the class table; None leaves a warm cache its own
    :param format: make a new cache even if the SSD has one
    :param force: also if the SSD has something else, or dirty bytes, or is
        the cache of another origin
    :param adopt: the origin's file system is kept
    :param warm: only with the cache that the SSD has
    :param stage: percent of the SSD that writes of any class may use
    """

    name: str
    ssd: str
    origin: str
    chunk_sectors: int = 0
    grain_sectors: int = 0
    mode: str = MODES[0]
    strategy: str = STRATEGIES[0]
    meta_class: int = 1
    high: int = 50
    low: int = 25
    idle_ms: int = 1000
    rows: Optional[Mapping[int, ChunkRow]] = None
    format: bool = False
    force: bool = False
    adopt: bool = False
    warm: bool = False
    stage: int = 0


#: Of a new cache: 256 KiB chunks cost under a byte of memory for 4 KiB of
#: SSD, and grains keep small misses small.
DEFAULT_CHUNK_SECTORS = 512
DEFAULT_GRAIN_SECTORS = 8


def create(wanted: Wanted) -> str:
    """Make a device, of an empty cache or of the SSD's cache.

    :returns: ``'new'`` or ``'warm'``
    :raises Refused: see the module
    :raises BadConfig: names or sizes that cannot be
    :raises ControlFailed: the kernel refused
    """
    if not tab.NAME.match(wanted.name):
        raise BadConfig('%r is no name for a device' % wanted.name)
    if control.exists(wanted.name):
        raise BadConfig('there is a device %s already' % wanted.name)
    sectors = _check_devices(wanted)
    warm = _warm(wanted, sectors)
    if warm is None and wanted.warm:
        raise Refused('%s has no cache: "swift-dss block create" makes one'
                      % wanted.ssd)
    if warm is None:
        _check_signatures(wanted)
    superblock = warm or _format(wanted, sectors)
    try:
        control.create(wanted.name, TargetTable(
            sectors, wanted.ssd, wanted.origin, superblock.chunk_sectors,
            wanted.mode, wanted.strategy, superblock.grain_sectors,
            wanted.meta_class, wanted.high, wanted.low, wanted.idle_ms,
            origin_id=_id_text(control_devices.identity(wanted.origin)),
            rebind=warm is not None and wanted.force, stage=wanted.stage))
    except ControlFailed as err:
        raise ControlFailed('%s; "swift-dss block check %s" looks at the '
                            'cache' % (err, wanted.ssd)) from err
    if wanted.rows is not None:
        try:
            control.send_classes(wanted.name, wanted.rows)
        except DssError:
            # The device is too new to be in use; no byte was written.
            control.remove(wanted.name)
            raise
    return 'new' if warm is None else 'warm'


def _id_text(identity: bytes) -> str:
    return identity.hex() if any(identity) else ''


def _check_devices(wanted: Wanted) -> int:
    """:returns: sectors of the device to make"""
    for role, path in (('SSD', wanted.ssd), ('origin', wanted.origin)):
        uses = control_devices.uses_of(path)
        if uses:
            raise Refused('%s %s %s' % (role, path, ', '.join(uses)))
        size = control_devices.logical_bytes(path)
        if size > 4096:
            raise BadConfig('%s %s: sectors of %d bytes; 4096 at most'
                            % (role, path, size))
    if control_devices.block_number(wanted.ssd) == \
            control_devices.block_number(wanted.origin):
        raise BadConfig('SSD and origin are one device')
    grain = wanted.grain_sectors or DEFAULT_GRAIN_SECTORS
    for path in (wanted.ssd, wanted.origin):
        if control_devices.logical_bytes(path) > grain * 512:
            raise BadConfig('%s: a grain of %d bytes is less than one of its '
                            'sectors' % (path, grain * 512))
    sectors = control_devices.sectors_of(wanted.origin) // 8 * 8
    if not sectors:
        raise BadConfig('origin %s is empty' % wanted.origin)
    return sectors


def _warm(wanted: Wanted, sectors: int) -> Optional[Superblock]:
    """The superblock of a cache that is to go on."""
    with SsdDevice(wanted.ssd) as device:
        superblock, copies, _blocks = read_superblocks(device.read)
        if superblock is None:
            return None
        if wanted.format:
            if not wanted.force:
                dirty = len(examine(device.read, device.sectors).dirty)
                if dirty:
                    raise Refused('%s has %d dirty chunks: make the device '
                                  'without --format and remove it, or say '
                                  '--force' % (wanted.ssd, dirty))
            return None
    if superblock.has_failed:
        raise Refused('the kernel gave %s up: "swift-dss block repair" or '
                      '--format' % wanted.ssd)
    if not wanted.force:
        _check_origin(wanted, superblock)
    if superblock.origin_sectors > sectors:
        raise Refused('%s was the cache of an origin of %d sectors, %s has '
                      '%d' % (wanted.ssd, superblock.origin_sectors,
                              wanted.origin, sectors))
    for unit, asked, there in (
            ('chunk', wanted.chunk_sectors, superblock.chunk_sectors),
            ('grain', wanted.grain_sectors, superblock.grain_sectors)):
        if asked not in (0, there):
            raise BadConfig('the cache on %s has %ss of %d sectors, not %d; '
                            'only --format changes that' % (
                                wanted.ssd, unit, there, asked))
    return superblock


def _check_origin(wanted: Wanted, superblock: Superblock) -> None:
    """Is the origin the one that this is a cache of, as it was left?"""
    if any(superblock.origin_id) and \
            superblock.origin_id != control_devices.identity(wanted.origin):
        raise Refused('%s is the cache of another origin than %s; --force '
                      'takes it for this one, and its bytes for true'
                      % (wanted.ssd, wanted.origin))
    if not superblock.knows_origin:
        return
    with SsdDevice(wanted.origin) as device:
        if device.sectors < superblock.origin_sectors:
            return
        there = origin_sum([
            device.read(sector, BLOCK_SECTORS)
            for sector in sample_sectors(superblock.origin_sectors)])
    if there != superblock.origin_sum:
        raise Refused('%s does not have the bytes that it had when the cache '
                      'on %s was stopped: it is another one, or was written '
                      'to without its cache; --force uses them together all '
                      'the same' % (wanted.origin, wanted.ssd))


def _check_signatures(wanted: Wanted) -> None:
    there = control_devices.signature(wanted.ssd)
    if there is None and not wanted.format:
        with SsdDevice(wanted.ssd) as device:
            if any(device.read(0, SUPER_SECTORS)):
                there = 'something unknown'
    if there and not wanted.force:
        raise Refused('SSD %s carries %s; --force writes over it'
                      % (wanted.ssd, there))
    there = control_devices.signature(wanted.origin)
    if there and not (wanted.adopt or wanted.force):
        raise Refused('origin %s carries %s; --adopt keeps it, seen through '
                      'the device' % (wanted.origin, there))


def _format(wanted: Wanted, sectors: int) -> Superblock:
    """Write an empty cache; the superblock last, so that half a cache is
    never taken for one."""
    generator = random.SystemRandom()
    with SsdDevice(wanted.ssd, write=True) as device:
        superblock = fresh(
            Geometry(wanted.chunk_sectors or DEFAULT_CHUNK_SECTORS,
                     wanted.grain_sectors or DEFAULT_GRAIN_SECTORS),
            device.sectors, sectors, uuid.uuid4().bytes,
            generator.getrandbits(64), wanted.rows,
            control_devices.identity(wanted.origin))
        device.zero(0, SUPER_SECTORS)
        device.sync()
        device.zero(SUPER_SECTORS, superblock.segments[0].data_sector
                    - SUPER_SECTORS)
        # With a RAID's signature at its end, a boot takes it for a member.
        tail = max(superblock.segments[0].data_sector,
                   device.sectors - _WIPED_SECTORS)
        device.zero(tail, device.sectors - tail)
        device.sync()
        device.write(superblock.sector, build_super(superblock))
        device.sync()
    return superblock


def resize(name: str, shrink: bool = False) -> TargetTable:
    """Take the present sizes of origin and SSD; the device goes on.

    A larger SSD becomes a further segment. A shorter origin needs
    ``shrink``, and everything is written back first.

    :returns: the table that is in force now
    """
    control.need(name)
    before = control.target_table(name)
    sectors = _sectors_below(before.origin)
    if sectors < before.sectors:
        if not shrink:
            raise Refused('the origin has %d sectors, the device %d: --shrink '
                          'cuts its end off' % (sectors, before.sectors))
        control.message(name, ['drain'])
    after = dataclasses.replace(before, sectors=sectors)
    control.replace(name, after)
    return control.target_table(name)


def shrink_ssd(name: str, size_bytes: int) -> TargetTable:
    """Give up the SSD behind so many bytes; the device stays in use.

    Chunks there are written back and leave, in whole regions of the table.
    Then the SSD can be made smaller. Do not call :func:`resize` before that:
    it takes all of the SSD again.

    :returns: the table, which stays as it is
    :raises ControlFailed: nothing of the cache would be left
    """
    control.need(name)
    control.message(name, ['shrink', '%d' % (size_bytes // 512)])
    return control.target_table(name)


def _sectors_below(number: str) -> int:
    """:param number: ``major:minor``, as tables have it"""
    with open('/sys/dev/block/%s/size' % number) as source:
        return int(source.read()) // 8 * 8


def remove(name: str, wipe: bool = False, keep_dirty: bool = False,
           progress: Progress = lambda done, of: None) -> int:
    """Write everything back and take the device away.

    :param wipe: also forget the cache: the SSD is free afterwards
    :param keep_dirty: only stop; the SSD keeps its contents
    :returns: chunks that were written back
    :raises Refused: the device is in use, or not all can be written back
    """
    control.need(name)
    _check_idle(name)
    ssd = control.target_table(name).ssd
    status = control.status(name)
    dirty = status.dirty
    if not keep_dirty and status.health != 'given_up':
        if dirty and status.health == 'refusing':
            raise Refused('%s: the SSD failed and %d chunks are only there; '
                          'the readable ones are being written back: try '
                          'again' % (name, dirty))
        drain(name, progress)
        _stop_clean(name)
    control.remove(name)
    path = '/dev/block/' + ssd
    if keep_dirty or status.health == 'given_up':
        return 0
    if not os.path.exists(path):
        # Without udev there are no such links.
        path = node_of(ssd)
    with SsdDevice(path, write=wipe) as device:
        superblock = read_superblocks(device.read)[0]
        if superblock is None or not superblock.is_clean:
            raise Refused('%s was removed, but not stopped cleanly: make it '
                          'again and look at the kernel log' % name)
        if wipe:
            device.zero(0, _WIPED_SECTORS)
            device.sync()
    return dirty


def _check_idle(name: str) -> None:
    device = control.info(name)
    if not device.opens:
        return
    uses = control_devices.mounts_of(device.number)
    holders = control_devices.holders(device.number)
    raise Refused('%s is in use%s' % (name, ': ' + ', '.join(
        ['mounted on %s' % place for place in uses]
        + ['part of %s' % holder for holder in holders])
        if uses or holders else ''))


def _stop_clean(name: str) -> None:
    """Stop writes, and check that none came before.

    :raises Refused: a write came; the device stays in use
    """
    control.run(['suspend', name])
    status = control.status(name)
    if status.dirty and status.health != 'given_up':
        control.run(['resume', name])
        raise Refused('%s was written to meanwhile: %d chunks are dirty '
                      'again' % (name, status.dirty))


def drain(name: str, progress: Progress = lambda done, of: None) -> None:
    """Wait until the origin has everything, durably.

    :raises ControlFailed: the kernel gave up
    """
    at_first = control.status(name).dirty
    process = control.start_message(name, ['drain'])
    try:
        while process.poll() is None:
            left = control.status(name).dirty
            progress(max(0, at_first - left), at_first)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
        _out, said = process.communicate()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode:
        raise ControlFailed('%s: not everything was written back: %s' % (
            name, ' '.join(said.decode('utf-8', 'replace').split())))
    progress(at_first, at_first)


def node_of(number: str) -> str:
    """A device node for ``major:minor``.

    :raises BadConfig: /dev has none
    """
    with open('/sys/dev/block/%s/uevent' % number) as source:
        values = dict(line.strip().partition('=')[::2] for line in source)
    candidates = ['/dev/' + values.get('DEVNAME', '')]
    dm = '/sys/dev/block/%s/dm/name' % number
    if os.path.exists(dm):
        with open(dm) as source:
            candidates.append('/dev/mapper/' + source.read().strip())
    for path in candidates:
        with contextlib.suppress(BadConfig):
            if control.number_of(path) == number:
                return path
    raise BadConfig('no device node for %s' % number)
