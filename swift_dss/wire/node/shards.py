"""Shards of the tier daemon: the option, and the file that tells of them.

A shard is one of several processes that share the devices of a node.
``[tier] shards`` says how many there are. ``<run_dir>/shards.json`` says
which device has which: it is replaced whole by rename,
and object servers find the sockets of a device's shard by it. Without the
file the node has one process, whose sockets are in ``run_dir`` itself.
"""

from __future__ import annotations

import json
from typing import Dict, Mapping, NamedTuple, Tuple, Union

from swift_dss.core.config import Division
from swift_dss.core.errors import BadConfig, DamagedRecord
from swift_dss.core.limits import MAX_SHARDS

FILE = 'shards.json'
#: By the number of devices and processors.
AUTO = 'auto'
_VERSION = 1


def parse(text: str) -> Division:
    """Read the option ``[tier] shards``.

    :param text: ``auto``, a number, or lists of devices such as
        ``sda sdb; sdc sdd``
    :raises BadConfig: names the word that is wrong, and the reason
    """
    text = text.strip()
    if text == AUTO:
        return Division()
    # Not isdigit(): it takes digits that int() does not.
    if text.isdecimal() and text.isascii():
        return Division(_in_range(int(text)))
    lists = tuple(tuple(part.replace(',', ' ').split())
                  for part in text.split(';'))
    seen: Dict[str, int] = {}
    for number, names in enumerate(lists):
        if not names:
            raise BadConfig(
                '%r: list %d names no device; wanted is auto, a number, or '
                'lists of devices such as "sda sdb; sdc sdd"' % (
                    text, number + 1))
        for name in names:
            if name in seen:
                raise BadConfig('%r: device %s is in list %d and in list %d'
                                % (text, name, seen[name] + 1, number + 1))
            if '/' in name or name.startswith('.'):
                raise BadConfig('%r: %r cannot be the name of a device'
                                % (text, name))
            seen[name] = number
    if len(lists) == 1:
        raise BadConfig(
            '%r: one list is no division; wanted is auto, a number, or '
            'lists of devices such as "sda sdb; sdc sdd"' % text)
    return Division(_in_range(len(lists)), lists)


def _in_range(count: int) -> int:
    if not 1 <= count <= MAX_SHARDS:
        raise BadConfig('%d shards: 1 to %d are possible'
                        % (count, MAX_SHARDS))
    return count


class Layout(NamedTuple):
    """Which shard has which device.

    :param devices: device to the number of its shard
    :param moving: device to the shards that may still have rows of it, while
        it goes to another one
    """

    devices: Mapping[str, int]
    moving: Mapping[str, Tuple[int, ...]] = {}


def encode(layout: Layout) -> bytes:
    """The file's bytes."""
    return json.dumps({
        'version': _VERSION, 'devices': dict(layout.devices),
        'moving': {name: list(shards) for name, shards
                   in layout.moving.items()}},
        indent=1, sort_keys=True).encode('utf-8') + b'\n'


def decode(raw: Union[bytes, str]) -> Layout:
    """The layout of a file.

    :raises DamagedRecord: not one of ours, or of a later version
    """
    try:
        said = json.loads(raw)
    except ValueError as err:
        raise DamagedRecord('%s: %s' % (FILE, err)) from err
    if not isinstance(said, dict) or said.get('version') != _VERSION:
        raise DamagedRecord('%s: not of version %d' % (FILE, _VERSION))
    devices, moving = said.get('devices'), said.get('moving', {})
    if not isinstance(devices, dict) or not isinstance(moving, dict):
        raise DamagedRecord('%s: no devices' % FILE)
    for name, number in devices.items():
        _check(name, number)
    for name, shards in moving.items():
        if not isinstance(shards, list):
            raise DamagedRecord('%s: device %r moves from %r'
                                % (FILE, name, shards))
        for number in shards:
            _check(name, number)
    return Layout(devices, {name: tuple(shards)
                            for name, shards in moving.items()})


def _check(name: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or \
            not 0 <= number < MAX_SHARDS:
        raise DamagedRecord('%s: device %r has the shard %r'
                            % (FILE, name, number))
