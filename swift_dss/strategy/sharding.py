"""Which process of the tier daemon looks after which device. Pure.

A shard is one process with an index, a queue, a bundle book and sockets of
its own. Moving a device to another shard makes that one read the whole
device, so the contract is:

- every device has exactly one shard;
- a device keeps its shard as long as the shard exists, whatever comes or
  goes beside it, unless an operator's list says otherwise;
- a device without one goes to the shard that has the fewest.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping

from swift_dss.core.config import Division
from swift_dss.core.limits import MAX_SHARDS

#: A process for so many devices, where no number is configured: up to seven
#: devices one process does the work of the node.
DEVICES_OF_A_SHARD = 4


def count(wish: Division, devices: int, processors: int) -> int:
    """How many shards a node has: 1 or more.

    :param devices: number of devices of the node
    :param processors: number of processors of the node
    """
    return wish.count or max(1, min(
        processors, devices // DEVICES_OF_A_SHARD, MAX_SHARDS))


def assign(wish: Division, shards: int, devices: Iterable[str],
           before: Mapping[str, int]) -> Dict[str, int]:
    """The shard of each device.

    :param shards: how many there are (:func:`count`)
    :param before: shards of devices as they were; may name others too
    """
    names = sorted(set(devices))
    made = {name: number for number, listed in enumerate(wish.lists)
            for name in listed if name in names}
    for name in names:
        if before.get(name, shards) < shards:
            made.setdefault(name, before[name])
    load = [0] * shards
    for number in made.values():
        load[number] += 1
    for name in names:
        if name not in made:
            made[name] = load.index(min(load))
            load[made[name]] += 1
    return made if wish.lists else _filled(made, shards)


def _filled(made: Mapping[str, int], shards: int) -> Dict[str, int]:
    """Give each empty shard its part of what the fullest ones have: there
    are more shards than before."""
    devices: List[List[str]] = [[] for _ in range(shards)]
    for name in sorted(made):
        devices[made[name]].append(name)
    for empty in [shard for shard in devices if not shard]:
        for _ in range(len(made) // shards):
            empty.append(max(devices, key=len).pop())
    return {name: number for number, names in enumerate(devices)
            for name in names}
