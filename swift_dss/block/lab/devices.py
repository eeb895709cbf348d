"""The disks of a laboratory guest: ``NAME=PRESET[,KEY=VALUE...]:SIZE``.

A preset is a set of parameters of the device-mapper target ``dss-disk``
(``kmod/lab/dss_disk_target.c``), every one of which can be set for a device;
``raw`` has no model and answers at once. Where the figures come from is in
``doc/source/howto/lab.rst``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Tuple

from swift_dss.core.errors import BadClassInput

_MIB = 1 << 20
_UNITS = {'M': _MIB, 'G': 1 << 30, 'T': 1 << 40}

#: A model's name in the target, and its parameters: times in nanoseconds,
#: sizes in bytes, rates in bytes a second.
PRESETS: Dict[str, Tuple[str, Dict[str, int]]] = {
    'raw': ('', {}),
    'hdd': ('hdd', {
        'rotation_ns': 8333333,
        'outer_rate': 175000000, 'inner_rate': 83000000, 'zones': 16,
        'seek_base_ns': 1000000, 'seek_sqrt_ns': 12500000,
        'seek_linear_ns': 2500000, 'write_settle_ns': 1000000,
        'switch_ns': 1000000, 'overhead_ns': 100000,
        'interface_rate': 600000000, 'depth': 1,
        'cache_bytes': 64 * _MIB, 'ahead_bytes': 2 * _MIB}),
    'sata-ssd': ('ssd', {
        'channels': 8, 'page_bytes': 16384, 'read_ns': 74000,
        'program_ns': 267000, 'collect_ns': 56000,
        'channel_rate': 400000000,
        'overhead_ns': 18000, 'write_ns': 26000,
        'interface_rate': 530000000, 'depth': 32,
        'cache_bytes': 32 * _MIB, 'volatile': 0, 'flush_ns': 50000}),
    'intel-710': ('ssd', {
        'channels': 10, 'page_bytes': 16384, 'read_ns': 40000,
        'program_ns': 725000, 'collect_ns': 3520000,
        'channel_rate': 400000000,
        'overhead_ns': 10000, 'write_ns': 60000,
        'interface_rate': 275000000, 'depth': 32,
        'cache_bytes': 64 * _MIB, 'volatile': 0, 'flush_ns': 50000}),
    'nvme': ('ssd', {
        'channels': 48, 'page_bytes': 16384, 'read_ns': 68500,
        'program_ns': 749000, 'collect_ns': 1076000,
        'channel_rate': 800000000,
        'overhead_ns': 10000, 'write_ns': 8700,
        'interface_rate': 3200000000, 'depth': 1024,
        'cache_bytes': 64 * _MIB, 'volatile': 0, 'flush_ns': 15000}),
}

_SPEC = re.compile(r'([A-Za-z][A-Za-z0-9_-]{0,15})=([a-z][a-z0-9-]*)'
                   r'((?:,[a-z_]+=[0-9]+)*):([0-9]+)([MGT])\Z')


@dataclass(frozen=True)
class Device:
    """One disk of a guest: ``/dev/mapper/NAME`` there.

    :param size_bytes: a multiple of a MiB
    :param model: arguments of ``dss-disk`` after the device; '' is none
    """

    name: str
    size_bytes: int
    model: str

    def job(self) -> Dict[str, Any]:
        """As the guest is told."""
        return {'name': self.name, 'bytes': self.size_bytes,
                'model': self.model}


def parse_device(text: str) -> Device:
    """``hdd1=hdd,depth=8:4G`` to a device.

    :raises BadClassInput: names the error
    """
    match = _SPEC.match(text)
    if not match:
        raise BadClassInput('--device', '%r is not NAME=PRESET[,KEY=VALUE'
                            '...]:SIZE with a SIZE as 512M or 4G' % text)
    name, preset, changes, number, unit = match.groups()
    if preset not in PRESETS:
        raise BadClassInput('--device', 'no preset %r in %r: there are %s' % (
            preset, text, ', '.join(PRESETS)))
    size = int(number) * _UNITS[unit]
    if not size:
        raise BadClassInput('--device', '%r has no size' % text)
    kind, defaults = PRESETS[preset]
    values = dict(defaults)
    for change in changes.split(',')[1:]:
        key, _, value = change.partition('=')
        if key not in values:
            raise BadClassInput(
                '--device', '%s has no parameter %r: it has %s' % (
                    preset, key, ', '.join(values) or 'none'))
        values[key] = int(value)
    words = [kind] + ['%s=%d' % pair for pair in values.items()]
    return Device(name, size, ' '.join(words).strip())
