"""Keep a running daemon abreast of its node: files, devices, figures."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterable

from swift_dss.core.errors import DssError, TierUnavailable
from swift_dss.gateway.mend.scrub_ask import Pass, Rounds
from swift_dss.gateway.service import Gateway
from swift_dss.tier import report
from swift_dss.tier.devices import Device
from swift_dss.tier.doors.history import History
from swift_dss.tier.inforce import Source
from swift_dss.tier.node import Node

#: Filters of names that a look makes at most: each takes ten milliseconds.
_NAMED_AT_ONCE = 8
#: Row up to which the bucket was read back.
_SCRUBBED = 'scrubbed'
#: Of 4 KiB: what a look gives back of an index that shrank takes some 20 ms,
#: in which no other thread changes it.
_SHRINK_PAGES = 500
#: Row up to which keys were asked for, and when that pass began.
_ASKED_FOR = 'asked_for'


class Upkeep:
    """Files that are looked at every few seconds, or on an operator's order.

    :param source: of configuration and class table
    """

    def __init__(self, node: Node, source: Source) -> None:
        self._node = node
        self._source = source
        self.history = History()

    def reload(self) -> None:
        """Read configuration and class table; take both over or neither.

        :raises BadConfig: what is wrong; nothing has changed
        """
        node = self._node
        conf, table = self._source.read()
        node.devices.policies.load()
        node.ours.check_replicator(conf)
        before = node.in_force.table
        node.in_force.take(conf, table)
        node.ledger.tuning.renew()
        node.ours.take_policies()
        for class_id in range(32):
            pin = table.spec(class_id).pin
            if before.spec(class_id).pin != pin:
                node.index.pin_rows.set_movable(class_id, not pin,
                                                conf.tier.min_demote_bytes)
        node.keepers.kick()
        self.feed_kernel()
        node.metrics.logger.info('configuration and class table reloaded')

    def status(self) -> Dict[str, Any]:
        """Everything ``swift-dss tier status`` shows."""
        return report.status(self._node)

    def publish(self) -> None:
        """Refresh the labelled gauges, the history and the recon file."""
        in_force = self._node.in_force
        report.publish(self.status(), report.Sinks(
            in_force.conf, in_force.table, self._node.metrics, self.history))

    def feed_kernel(self) -> None:
        """The class table, to devices whose SSD the kernel fills."""
        self._node.block.feed_classes([
            keeper.device.path for keeper in self._node.keepers
            if keeper.device.is_block])

    def look(self) -> None:
        """The chores. Never raises for something that fails by itself."""
        node = self._node
        try:
            node.ours.look()
            node.intake.read_spools(node.in_force.conf.io.spool_bytes)
            node.keepers.discover()
            self.feed_kernel()
            node.prefetcher.save()
            self._on_each('spill', [keeper.device for keeper in node.keepers],
                          node.relocator.spill)
            node.ledger.workload.look(
                time.time(),
                node.gateway is None or node.gateway.link().drains)
            node.ledger.workload.save()
            node.ledger.tuning.look()
            node.space.look(node.keepers.names)
            node.index.file.shrink(_SHRINK_PAGES)
            for _ in range(_NAMED_AT_ONCE):
                if not node.index.pages.note_names():
                    break
            self.publish()
        except (DssError, OSError) as err:
            node.metrics.count('tier.chore_errors')
            node.metrics.logger.error('chores: %s', err)

    def look_for_departed(self) -> None:
        """Versions that left without an event; slow after a rebalance, which
        takes a million of them."""
        node = self._node

        def look(device: Device) -> None:
            if node.departures.look(device):
                node.keepers.kick(device.name)

        self._on_each('departures', node.devices.discover(), look)

    def start_scrubs(self, gateway: Gateway) -> None:
        """Let both scrubs of S3 go on where those of the last daemon ended."""
        index = self._node.index
        mend = gateway.parts.mend
        mend.scrubber.start(
            self._node.local.in_s3, int(index.file.get_state(_SCRUBBED, '0')),
            lambda at: index.file.set_state(_SCRUBBED, str(at)))
        at, _, began = index.file.get_state(_ASKED_FOR, '0 0').partition(' ')
        mend.ask_scrubber.start(Rounds(
            self._node.local.in_s3, self._spans,
            lambda state: index.file.set_state(_ASKED_FOR, '%d %f' % state)),
            Pass(int(at), float(began)))

    def _on_each(self, name: str, devices: Iterable[Device],
                 chore: Callable[[Device], object]) -> None:
        """A chore on each device. One that fails holds up no other."""
        for device in devices:
            try:
                chore(device)
            except TierUnavailable:
                pass  # not mounted: its keeper says so
            except (DssError, OSError) as err:
                self._node.metrics.count('tier.chore_errors')
                self._node.metrics.logger.error('%s: %s: %s', device.name,
                                                name, err)

    def _spans(self) -> int:
        """About as many as there are versions with a copy in S3."""
        return sum(sums['objects'] for name in self._node.keepers.names
                   for sums in self._node.index.occupancy(name).values())
