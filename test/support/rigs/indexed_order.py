"""An order whose queue is the tier daemon's index, asked like any other."""

from __future__ import annotations

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.config import NodeConf, TierConf
from swift_dss.core.version import VersionId
from swift_dss.strategy.eviction.objects.verbs import UNIT_COST, Order
from swift_dss.tier.inforce import InForce
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.placing import Placing
from swift_dss.tier.index.rows import SpanRow, VersionRow

CLASS = 1


class IndexedOrder(Order):
    """Bytes that are not on the SSD are on the HDD: a row stays, as it
    does in the daemon, until :meth:`delete`."""

    def __init__(self, path, name, blind=False):
        self.path = path
        self.name = name
        self.in_force = InForce(NodeConf(tier=TierConf(
            eviction=name if blind else 'class_ordered')), ClassTable())
        self.set_inner('lru' if blind else name)
        self.now = 1.0
        self.there = set()
        self.open()

    def set_inner(self, name):
        """The class table says so from now on."""
        self.in_force.take(self.in_force.conf, ClassTable.of([
            ClassSpec(CLASS, 'c', 1, inner=name)]))

    def open(self):
        """As after a restart."""
        self.placing = Placing(self.in_force)
        self.index = Index(self.path, self.placing)

    def close(self):
        self.index.file.close()

    @property
    def used_bytes(self):
        return self.index.occupancy('sda').get(CLASS, {}).get('evictable', 0)

    def __len__(self):
        return len(self.there)

    def __contains__(self, key):
        row = self.index.get(version_of(key))
        return bool(row and row.spans[0].ssd_bytes)

    def touch(self, key, sequential=False):
        self.now += 1.0
        self.index.touch({version_of(key): (self.now, None)},
                         [version_of(key)] if sequential else [])
        return key in self

    def insert(self, key, size, cost=UNIT_COST, sequential=False):
        self.now += 1.0
        self.index.put(row_of(key, size, size, self.now))
        self.there.add(key)
        if sequential and self.name == 'sarc':
            # It is known to be part of a stream by the read alone.
            self.touch(key, True)

    def evict(self):
        victim, = self.index.victims.next('sda', [CLASS], 1, 1)
        key = int(victim.version.object_hash, 16)
        self.index.put(row_of(key, victim.size, 0, self.now))
        self.there.remove(key)
        return key, victim.size

    def remove(self, key):
        size = self.index.get(version_of(key)).size if key in self else 0
        self.index.remove(version_of(key))
        self.there.discard(key)
        return size


def version_of(key):
    return VersionId('sda', 0, '%032x' % key, '1700000000.00000', None)


def row_of(key, size, on_ssd, now):
    return VersionRow(
        version_of(key), '7', size, '/a/c/o%d' % key, put_at=now,
        read_at=now, spans=[SpanRow(CLASS, size, on_ssd, size)])
