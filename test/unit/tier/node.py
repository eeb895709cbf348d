"""A node for the daemon's own tests: folders, classes, a keeper."""

from __future__ import annotations

import logging
import os

from sample_node import SampleNode, Vouching

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.config import NodeConf, TierConf
from swift_dss.core.spans import ClassMap
from swift_dss.tier.devices import Devices
from swift_dss.tier.hear.ledger import Ledger
from swift_dss.tier.hits import Hits
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.placing import Placing
from swift_dss.tier.keep.keeper import Keeper
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.wire import classmap
from swift_dss.wire.control import Event, EventKind

KIB = 1024
LOGGER = logging.getLogger('tier-test')
LOGGER.addHandler(logging.NullHandler())
TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(5, 'silver', 50),
    ClassSpec(9, 'gold', 90)])


class FakeGateway:
    """Remembers what it was asked for."""

    def __init__(self):
        self.uploads, self.deletes, self.renewals = [], [], []

    def enqueue_uploads(self, wanted):
        self.uploads += [(one.version, one.urgent) for one in wanted]

    def enqueue_renewals(self, changed):
        self.renewals += [version for version, _ in changed]

    def enqueue_deletes(self, obsolete):
        self.deletes += [version for version, _ in obsolete]


class Rig:
    """One device with its ledger and keeper; no thread runs by itself."""

    def __init__(self, root, with_hdd=True, table=TABLE, **tier):
        self.node = SampleNode(str(root), with_hdd)
        self.now = 1700000000.0
        self.table = table
        options = {'ssd_bytes': 1000 * KIB, 'clean_after_seconds': 30.0,
                   'index_dir': os.path.join(str(root), 'run')}
        options.update(tier)
        self.conf = NodeConf(
            devices=self.node.devices, swift_dir=str(root),
            mount_check=False,
            run_dir=os.path.join(str(root), 'run'),
            capacity={'sda': self.node.capacity_path} if with_hdd else {},
            tier=TierConf(**options))
        self.index = Index(
            os.path.join(str(root), 'run', 'index.db'),
            Placing(lambda: self.conf.tier.eviction, lambda: self.table))
        self.metrics = Metrics(self.conf, LOGGER)
        self.hits = Hits()
        self.gateway = FakeGateway()
        self.local = Local(lambda: self.conf, Devices(self.conf),
                           self.index, lambda: self.table, self.metrics,
                           LOGGER)
        self.witness = self.local.witness = Vouching()
        self.keeper = Keeper(
            self.local.devices.get('sda'), self.local, lambda: self.conf,
            lambda: self.table, self.metrics, LOGGER, lambda: self.now,
            departed=lambda device: self.ledger.departures.look(device))
        self.ledger = Ledger(
            self.local, self.index, lambda: self.table, self.metrics,
            LOGGER, self.gateway, self.keeper.wish, self.hits.count,
            self.keeper.to_mend)

    def put(self, name, data, class_id=0, timestamp='', class_map=None,
            policy=0):
        """Write an object and tell the daemon."""
        self.now += 1
        mapped = class_map or ClassMap.uniform(class_id)
        place = self.node.put(
            name, data, timestamp or '%016.5f' % self.now, mapped,
            policy=policy)
        self.tell(EventKind.PUT, place, mapped)
        return place

    def tell(self, kind, place, class_map=None, tier_bits=0):
        """One event about a version."""
        self.ledger.apply([Event(
            kind, place.version, place.partition, place.content_length,
            classmap.encode(class_map) if class_map else '', 0,
            place.content_length, tier_bits, self.now)])

    def close(self):
        """End the movers and the index."""
        self.keeper.duties.stop()
        self.index.close()

    def ssd(self, class_id):
        """Bytes of a class on the SSD, by the index."""
        return self.index.occupancy('sda').get(class_id, {}).get('ssd', 0)
