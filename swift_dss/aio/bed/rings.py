"""The rings of a bed: built in one place, copied to every member."""

from __future__ import annotations

import logging
import os
import shutil
from typing import Any, Dict, Iterable, Iterator

from swift.common.ring.builder import RingBuilder

from swift_dss.aio.bed.plan import Plan
from swift_dss.aio.layout import AioConf

#: 2**7 partitions: twenty nodes differ, a walk over all is quick.
PART_POWER = 7
REPLICAS = 3
#: Swift's ring builder refuses to move less.
_WORTH_IT = 0.01
#: Rings of objects are one a policy.
RINGS = ('account', 'container', 'object', 'object-1', 'object-2')


def rebalance(plan: Plan, again: bool = False) -> Dict[str, float]:
    """Bring the rings to the nodes of the plan; the same for the same
    history.

    A drive that left the plan gives up its partitions. One replica of a
    partition moves at a time, as Swift's builder has it: call it again
    when the data followed.

    :param again: also where no drive came or went
    :returns: ring to the share of replicas that moved
    """
    os.makedirs(plan.path('etc'), exist_ok=True)
    # The builder logs its balance as a warning, which is no news here.
    logging.getLogger('swift.ring.builder').setLevel(logging.ERROR)
    moved = {}
    for name in RINGS:
        builder = _load(plan, name)
        changed = _follow(plan, name, builder)
        moved[name] = 0.0
        if changed or again:
            builder.pretend_min_part_hours_passed()
            share = builder.rebalance(seed=1)[0] / (
                builder.parts * builder.replicas)
            if not changed and share < _WORTH_IT:
                continue
            moved[name] = share
            builder.get_ring().save(plan.path('etc', name + '.ring.gz'))
            builder.save(plan.path('etc', name + '.builder'))
    return moved


def push(plan: Plan, confs: Iterable[AioConf]) -> None:
    """Give every member the rings as they are."""
    for conf in confs:
        for name in RINGS:
            ring = name + '.ring.gz'
            target = os.path.join(conf.etc, ring)
            shutil.copyfile(plan.path('etc', ring), target + '.new')
            os.replace(target + '.new', target)


def _load(plan: Plan, name: str) -> Any:
    path = plan.path('etc', name + '.builder')
    if os.path.exists(path):
        return RingBuilder.load(path)
    # min_part_hours 1: one replica of a partition moves at a time.
    return RingBuilder(PART_POWER, REPLICAS, 1)


def _follow(plan: Plan, name: str, builder: Any) -> bool:
    """Add and remove devices; those of a node that leaves weigh nothing, so
    that its replicators still send its objects.

    :returns: whether anything changed
    """
    wanted = {(device['ip'], device['device']): device
              for device in _devices(plan, name)}
    present = {(device['ip'], device['device']): device
               for device in builder.devs if device}
    for place, device in present.items():
        if place not in wanted:
            builder.remove_dev(device['id'])
        elif device['weight'] != wanted[place]['weight']:
            builder.set_dev_weight(device['id'], wanted[place]['weight'])
    for place, device in wanted.items():
        if place not in present:
            builder.add_dev(device)
    return bool(builder.devs_changed)


def _devices(plan: Plan, name: str) -> Iterator[Dict[str, Any]]:
    for node in plan.nodes:
        conf = plan.conf(node)
        host = plan.host(node)
        weight = 0 if node in plan.leaving else 100
        for device in conf.device_names:
            port = {'account': conf.account_port,
                    'container': conf.container_port}.get(
                        name) or conf.device_port(device)
            yield {
                'region': 1, 'zone': plan.zone(node), 'weight': weight,
                'ip': host, 'port': port, 'device': device,
                'replication_ip': host, 'replication_port': port,
                'meta': ''}
