"""Names of objects, and where a ring with one replica puts each."""

from __future__ import annotations

import itertools
from typing import Iterator, NamedTuple, Sequence

from swift.common.ring import Ring
from swift.common.utils import (
    get_partition_for_hash, hash_path, set_swift_dir, validate_hash_conf)

from swift_dss.aio import rings


class Named(NamedTuple):
    """An object and its one place."""

    name: str
    object_hash: str
    partition: str
    device: str


def ring_names(folder: str, devices: Sequence[str]) -> Iterator[Named]:
    """Objects of ``a/c`` without end, of a ring that is made in ``folder``.

    :param folder: with a ``swift.conf``
    """
    rings.write(folder, 'object', 1, 6010, devices)
    set_swift_dir(folder)
    validate_hash_conf()
    ring = Ring(folder, ring_name='object')
    for number in itertools.count():
        name = 'o%d' % number
        object_hash = hash_path('a', 'c', name)
        partition = get_partition_for_hash(object_hash, rings.PART_POWER)
        yield Named(name, object_hash, str(partition),
                    ring.get_part_nodes(partition)[0]['device'])
