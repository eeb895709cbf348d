"""How classes reach the kernel, and the kernel's cache of engine ``block``.
"""

from __future__ import annotations

import os
from typing import Iterator, List

from swift_dss.block import control, engine, tab
from swift_dss.cli.check.findings import (
    Finding, Place, error, fine, refused, warning)
from swift_dss.cli.check.node import Node
from swift_dss.core.errors import DssError
from swift_dss.io import carriers
from swift_dss.tier.devices import Device, Devices


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    if node.conf is None:
        return
    choice = carriers.choose(node.conf.io.carrier)
    yield from carrier(choice, node.conf.io.carrier, node.config)
    block = [device for device in Devices(node.conf).discover()
             if device.is_block]
    if block:
        yield from target(block, node)


def carrier(choice: carriers.Choice, wanted: str,
            path: str) -> Iterator[Finding]:
    """The carrier that works here."""
    place = Place(path, '[io] carrier', wanted)
    name = choice.carrier.name
    reasons = '; '.join(choice.refused)
    if wanted not in ('auto', name):
        yield warning('carrier', 'it does not work here (%s), so %s is taken'
                      % (reasons, name), place, 'write "carrier = auto"')
    elif not choice.carrier.carries and wanted == 'auto':
        yield warning('carrier', 'none works here (%s): disks do not see '
                      'classes, all else works' % reasons, place,
                      'use Linux 6.5 or later, or write "carrier = null"')
    else:
        yield fine('carrier', '%s%s' % (
            name, '; not %s' % reasons if reasons else ''))


def target(block: List[Device], node: Node) -> Iterator[Finding]:
    """dm-dss: the table of its devices, the module, and who is on it."""
    path = os.environ.get(tab.VARIABLE, tab.PATH)
    if os.path.exists(path):
        try:
            wrong = tab.read(path)[1]
        except DssError as err:
            wrong = [str(err)]
        for line in wrong:
            yield error('dm-dss', line)
    if os.geteuid():
        yield fine('dm-dss', 'only root may ask the kernel')
        return
    try:
        loaded, known = control.is_loaded(), control.names()
    except DssError as err:
        yield refused('dm-dss', err, Place(
            node.config, '[tier] engine', 'block'))
        return
    if not loaded:
        yield error('dm-dss', 'the kernel does not know the target dss',
                    Place(node.config, '[tier] engine', 'block'),
                    '"modprobe dm-dss"; build it with DKMS (the manual\'s '
                    'page on dm-dss)')
    for device in block:
        yield from under(device, engine.below(device.path), known, node)


def under(device: Device, below: List[str], known: List[str],
          node: Node) -> Iterator[Finding]:
    """The cache under one device.

    :param below: device-mapper devices under its file system
    :param known: those of dm-dss
    """
    if any(name in known for name in below):
        yield fine('dm-dss', '%s is on %s' % (device.name, below[0]))
        return
    yield error('dm-dss', 'no dm-dss device is under %s' % device.path,
                Place(node.config, '[engine] %s' % device.name, 'block'),
                'attach it ("swift-dss block attach"), or write "file"')
