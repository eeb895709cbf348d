"""The rings against this node's addresses, ports and device folders."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Optional

from swift.common.utils import config_true_value

from swift_dss.cli.check.findings import (
    Finding, Place, error, fine, refused, warning)
from swift_dss.cli.check.node import Node, Server
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.gateway.peers.ranks import Ranks, open_ring, ring_name
from swift_dss.tier.devices import device_names


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    if node.conf is None or node.policies is None:
        return
    ranks = Ranks(node.swift_dir)
    used = set()
    for policy in node.ours:
        name = ring_name(policy.index)
        try:
            devices = open_ring(node.swift_dir, name).devs
        except BadConfig as err:
            yield refused('ring', err, Place(node.swift_dir), 'copy it from '
                          'the node where rings are built')
            continue
        here = [device for device in devices
                if device is not None and ranks.is_here(device)]
        used |= {str(device['device']) for device in here}
        path = os.path.join(node.swift_dir, name + '.ring.gz')
        yield from of_ring(path, here, node.conf)
        yield from ports(path, here, node.objects)
    for name in device_names(node.conf.devices):
        if used and name not in used:
            yield warning(
                'ring', 'no ring has it at an address of this node: it gets '
                'no objects, and those that it has are taken for handoffs',
                Place(os.path.join(node.conf.devices, name)),
                'add it with swift-ring-builder, or remove the folder')


def of_ring(path: str, here: List[Dict[str, Any]],
            conf: NodeConf) -> Iterator[Finding]:
    """The ring's devices of this node, and their folders."""
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


def ports(path: str, here: List[Dict[str, Any]],
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
