"""A node for the daemon's own tests: folders, classes, a keeper."""

from __future__ import annotations

import logging
import os

from support.nodes.sample_node import SampleNode, Vouching
from support.clocks import WallOf

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.config import NodeConf, TierConf
from swift_dss.core.spans import ClassMap
from swift_dss.io.workers import World, threads
from swift_dss.tier.devices import Devices
from swift_dss.tier.hear.ledger import Ledger
from swift_dss.tier.inforce import InForce
from swift_dss.tier.index.due import Due
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.placing import Placing
from swift_dss.tier.keep.keepers import Keepers
from swift_dss.tier.local.departures import Departures
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
        #: S3 as it is now; None as if it were not looked at.
        self.state = None

    def link(self):
        return self.state

    def enqueue_uploads(self, wanted):
        self.uploads += [(upload.version, upload.urgent) for upload in wanted]

    def enqueue_renewals(self, changed):
        self.renewals += [version for version, _ in changed]

    def enqueue_deletes(self, obsolete):
        self.deletes += [version for version, _ in obsolete]


class Rig:
    """One device with its ledger and keeper; no thread runs by itself."""

    def __init__(self, root, with_hdd=True, table=TABLE, pool=threads,
                 **tier):
        self.node = SampleNode(str(root), with_hdd)
        self.now = 1700000000.0
        options = {'ssd_bytes': 1000 * KIB, 'clean_after_seconds': 30.0,
                   'index_dir': os.path.join(str(root), 'run')}
        options.update(tier)
        self.in_force = InForce(NodeConf(
            devices=self.node.devices, swift_dir=str(root),
            mount_check=False,
            run_dir=os.path.join(str(root), 'run'),
            capacity={'sda': self.node.capacity_path} if with_hdd else {},
            tier=TierConf(**options)), table)
        self.index = Index(
            os.path.join(str(root), 'run', 'index.db'),
            Placing(self.in_force))
        self.metrics = Metrics(self.conf, LOGGER)
        self.gateway = FakeGateway()
        self.local = Local(self.in_force, Devices(self.conf), self.index,
                           self.metrics)
        self.witness = self.local.witness = Vouching()
        self.due = Due(self.index, self.metrics)
        departures = Departures(self.local, self.gateway, self.due,
                                self.metrics)
        self.keepers = Keepers(self.local, departures, self.metrics,
                               self.gateway, World(WallOf(self), pool))
        self.keeper = self.keepers.add(self.local.devices.get('sda'))
        self.ledger = Ledger(self.local, departures, self.keepers,
                             self.gateway, self.metrics)

    @property
    def conf(self):
        """The configuration in force."""
        return self.in_force.conf

    @conf.setter
    def conf(self, conf):
        self.in_force.take(conf, self.table)

    @property
    def table(self):
        """The class table in force."""
        return self.in_force.table

    @table.setter
    def table(self, table):
        self.in_force.take(self.conf, table)

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
        self.index.file.close()

    def ssd(self, class_id):
        """Bytes of a class on the SSD, by the index."""
        return self.index.occupancy('sda').get(class_id, {}).get('ssd', 0)
