"""The rings against this node's addresses, ports and device folders."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterator, List, Optional, Set

from swift.common.utils import config_true_value

from swift_dss.cli.check.findings import (
    Finding, Place, error, fine, refused, warning)
from swift_dss.cli.check.node import Node, Server
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.gateway.peers.ranks import Ranks, open_ring, ring_name
from swift_dss.tier.devices import device_names

_RING = re.compile(r'^(?:account|container|object(?:-[0-9]+)?)'
                   r'\.ring\.gz\Z')
#: As a ring has them.
_Devices = List[Dict[str, Any]]


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    if node.conf is None or node.policies is None:
        return
    ours = [ring_name(policy.index) for policy in node.ours]
    here: Dict[str, _Devices] = {}
    for name in dict.fromkeys(ours + ring_names(node.swift_dir)):
        try:
            here[name] = _here(node.swift_dir, name)
        except BadConfig as err:
            if name in ours:
                yield refused('ring', err, Place(node.swift_dir), 'copy it '
                              'from the node where rings are built')
    used = {str(device['device'])
            for devices in here.values() for device in devices}
    for name in ours:
        if name in here:
            path = os.path.join(node.swift_dir, name + '.ring.gz')
            yield from of_ring(path, here[name], node.conf, bool(used))
            yield from ports(path, here[name], node.objects)
    if used:
        yield from in_none(node.conf.devices, used)


def ring_names(swift_dir: str) -> List[str]:
    """Rings of all of Swift's servers: they share the devices."""
    names = sorted(os.listdir(swift_dir))
    return [name[:-len('.ring.gz')] for name in names if _RING.match(name)]


def devices_here(swift_dir: str) -> Optional[Set[str]]:
    """Names of the devices that rings have at an address of this node; None:
    a ring cannot be read, or there is no ring."""
    try:
        here = [_here(swift_dir, name) for name in ring_names(swift_dir)]
    except (BadConfig, OSError):
        return None
    return {str(device['device']) for devices in here
            for device in devices} if here else None


def _here(swift_dir: str, name: str) -> _Devices:
    ranks = Ranks(swift_dir)
    return [device for device in open_ring(swift_dir, name).devs
            if device is not None and ranks.is_here(device)]


def in_none(folder: str, used: Set[str]) -> Iterator[Finding]:
    """Devices that no server's ring has here."""
    for name in device_names(folder):
        if name not in used:
            yield warning(
                'ring', 'no ring has it at an address of this node: it gets '
                'no objects, and those that it has are taken for handoffs',
                Place(os.path.join(folder, name)),
                'add it with swift-ring-builder, or take the disk away when '
                'it is empty')


def of_ring(path: str, here: _Devices, conf: NodeConf,
            has_others: bool) -> Iterator[Finding]:
    """The ring's devices of this node, and their folders.

    :param has_others: a ring has devices here: this policy is other nodes'
    """
    if not here and has_others:
        yield fine('ring', '%s has no device here, and others have' % path)
        return
    if not here:
        yield error(
            'ring', 'no device is at an address of this node, so it gets no '
            'requests', Place(path), 'let the ring have an address that "ip '
            'address" shows, or leave the policy to other nodes')
        return
    for device in here:
        folder = os.path.join(conf.devices, str(device['device']))
        if not os.path.isdir(folder):
            yield error('ring', 'the ring has this device here, and there is '
                        'no such folder', Place(path, 'device',
                                                str(device['device'])),
                        'make %s and mount the disk there' % folder)
        elif not device.get('weight', 1):
            yield warning('ring', 'its weight is 0: it is being emptied',
                          Place(path, 'device', str(device['device'])))
    yield fine('ring', '%s has %d devices here' % (path, len(here)))


def ports(path: str, here: _Devices,
          server: Optional[Server]) -> Iterator[Finding]:
    """The ring's ports, and the one that the object server listens on."""
    if server is None or _is_per_port(server):
        return
    port = server.app.options.get('bind_port', '')
    for device in here:
        # A second server may answer replication.
        if str(device['port']) != port:
            yield error(
                'ring', 'the ring sends requests for %s to port %s'
                % (device['device'], device['port']),
                Place(server.path, '[DEFAULT] bind_port', port),
                'write the port of the ring (%s)' % path)
            return


def _is_per_port(server: Server) -> bool:
    """Then the server takes its ports from the ring."""
    text = server.app.options.get('servers_per_port', '0').strip()
    return text != '0' and (text.isdigit() or config_true_value(text))
