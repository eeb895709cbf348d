"""Make a loop device as slow as a disk, for the servers of one cluster."""

from __future__ import annotations

import os
from typing import Dict, List, Sequence

#: Where the block controller of either cgroup version lies.
V1_ROOT = '/sys/fs/cgroup/blkio'
V2_ROOT = '/sys/fs/cgroup'


def apply(name: str, devices: Sequence[str],
          iops: int) -> List[str]:
    """Limit reads and writes of a new cgroup on some block devices.

    :param devices: device files
    :param iops: operations a second, each way
    :returns: the ``cgroup.procs`` files that a server has to join
    :raises OSError: the kernel or the container does not allow it
    """
    numbers = []
    for device in devices:
        number = os.stat(device).st_rdev
        numbers.append('%d:%d' % (os.major(number), os.minor(number)))
    if os.path.exists(os.path.join(
            V1_ROOT, 'blkio.throttle.read_iops_device')):
        group = os.path.join(V1_ROOT, name)
        limits = {'blkio.throttle.%s_iops_device' % way: '%s %d'
                  for way in ('read', 'write')}
        return _write(group, limits, numbers, iops)
    group = os.path.join(V2_ROOT, name)
    _enable_v2()
    # One line sets both ways: '%s riops=N wiops=N'.
    return _write(group, {'io.max': '%%s riops=%d wiops=%%d' % iops},
                  numbers, iops)


def _enable_v2() -> None:
    with open(os.path.join(V2_ROOT, 'cgroup.controllers')) as source:
        if 'io' not in source.read().split():
            raise OSError('this cgroup has no io controller')
    with open(os.path.join(V2_ROOT, 'cgroup.subtree_control'), 'w') as out:
        out.write('+io')


def _write(group: str, limits: Dict[str, str], numbers: Sequence[str],
           iops: int) -> List[str]:
    os.makedirs(group, exist_ok=True)
    for option, line in limits.items():
        for number in numbers:
            with open(os.path.join(group, option), 'w') as out:
                out.write(line % (number, iops))
    return [os.path.join(group, 'cgroup.procs')]


def remove(name: str) -> bool:
    """Remove the cgroup; its processes must be gone.

    :returns: whether there was one
    """
    is_removed = False
    for root in (V1_ROOT, V2_ROOT):
        group = os.path.join(root, name)
        if os.path.isdir(group):
            os.rmdir(group)
            is_removed = True
    return is_removed
