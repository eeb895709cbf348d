"""One device's keeper: a thread that does its duties, round after round.

A keeper a device, so that a slow HDD holds back its own device and no
other.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Optional

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import DssError, TierUnavailable
from swift_dss.core.residency import Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.service import Gateway
from swift_dss.io.workers import World
from swift_dss.tier.devices import Device
from swift_dss.tier.index.file import IndexDamaged, IndexUnavailable
from swift_dss.tier.keep import backlog
from swift_dss.tier.keep.duties import Duties
from swift_dss.tier.keep.state import DeviceState, StateBook, publish
from swift_dss.tier.keep.wishes import Wish
from swift_dss.tier.local.departures import Departures
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.wire.node.pressure import Pressure

#: Rounds follow one another no faster than this, whatever happens.
_MIN_ROUND_SECONDS = 0.2
#: After bytes came that change nothing of importance, the next round is at
#: most this far away.
SOON_SECONDS = 1.0
#: More than this share of the SSD at once is of importance.
_MUCH = 0.01
#: A pressure file that says nothing new is written again after this long,
#: well before object servers take it for old.
_PUBLISH_SECONDS = 30.0


class Keeper:
    """Keeps one device between its watermarks.

    :param gateway: None where there is no remote tier
    """

    def __init__(self, device: Device, local: Local, departures: Departures,
                 metrics: Metrics, gateway: Optional[Gateway] = None,
                 world: Optional[World] = None) -> None:
        world = world or World()
        self.device = device
        self._gateway = gateway
        self._departures = departures
        self._pins = local.mover.pins
        self._in_force = local.in_force
        self._metrics = metrics
        self._logger = metrics.logger
        self._clock = world.clock
        self._book = StateBook(device.name, metrics)
        self.duties = Duties(device, local, departures, metrics,
                             self._book, world)
        # Reentrant: a waiter for a round requests one first.
        self._changed = threading.Condition()
        self._begun = self._settled = 0
        self._published: Optional[Pressure] = None
        #: Monotonic time of the next round, and bytes that came since the
        #: last one began.
        self._due = 0.0
        self._heard_bytes = 0
        self._thread = threading.Thread(
            target=self._run, name='dss-keep-' + device.name, daemon=True)

    @property
    def state(self) -> DeviceState:
        """The result of the last round."""
        return self._book.state

    def start(self) -> None:
        """Begin; the first round is at once."""
        self._thread.start()

    def stop(self) -> None:
        """Let running moves end, then return."""
        self.duties.stopping.set()
        self.kick()
        if self._thread.is_alive():
            self._thread.join()
        self.duties.stop()

    def kick(self) -> None:
        """Something changed: do not wait for the next interval."""
        self._look_by(0.0)

    def came(self, length: int) -> None:
        """``length`` bytes were put on the device: look at once if that
        may fill it, else soon."""
        pressure = self.state.pressure
        with self._changed:
            self._heard_bytes += length
            heard = self._heard_bytes
        if pressure is None or heard > pressure.ssd_bytes * _MUCH or \
                pressure.ssd_used_bytes + heard > pressure.high_bytes:
            self.kick()
        else:
            self._look_by(time.monotonic() + SOON_SECONDS)

    def wish(self, wish: Wish) -> None:
        """A reader had to take bytes from a slower tier."""
        self.duties.wishes.add(wish)
        self.kick()

    def to_mend(self, version: VersionId, partition: str) -> None:
        """A reader met a block that is not as it was written."""
        self.duties.mender.add(version, partition)
        self.kick()

    def wait_round(self, seconds: float) -> bool:
        """True once a round that began after this call left nothing."""
        with self._changed:
            wanted = self._begun + 1
            self.kick()
            return self._changed.wait_for(
                lambda: self._settled >= wanted, max(0.0, seconds))

    def _look_by(self, due: float) -> None:
        with self._changed:
            if due < self._due:
                self._due = due
                self._changed.notify_all()

    def round(self) -> bool:
        """One pass over all duties; errors of tiers become states.

        :returns: False if there is more to do at once
        """
        conf = self._in_force.conf
        self.duties.begin()
        try:
            self.device.require_mounted()
        except TierUnavailable as err:
            self._book.say('ssd_state', 'unmounted', err)
            return True
        mended = self.duties.mender.turn()
        why = self.duties.checks.why(Tier.SSD)
        self._book.say('ssd_state', 'failing' if why else 'ready', why)
        self.duties.look_at_hdd()
        try:
            self._pins.round(self.device.name, self.duties.levels(conf)[0])
        finally:
            # The SSD of a pin rule that fails must not fill up.
            self.duties.make_room(conf)
            self.duties.drop_remote_only()
            self.duties.relieve_hdd(conf)
            self.publish_pressure(conf)
        before = self.duties.moved
        clean = self.duties.clean(conf)
        promoted = self.duties.promote(conf)
        settled = self.duties.settle_orders()
        if self.duties.moved != before:
            self.publish_pressure(conf)
        return mended and clean and promoted and settled

    def publish_pressure(self, conf: NodeConf) -> None:
        """Tell object servers how full the device is."""
        room, used, _ = self.duties.levels(conf)
        table = self._in_force.table
        takes = self.duties.strategy(conf).plan(
            self.duties.occupancies(), table, room, 1)
        rank = min((table.spec(class_id).rank for take in takes
                    for class_id in take.class_ids), default=None)
        if any(part.evictable_bytes for part in self.duties.cold().values()):
            # They leave for any class.
            rank = 0
        pressure = Pressure(
            room, used, int(room * self.duties.watermarks(conf)[0]), rank,
            self.state.hdd_state == 'ready', self._clock.wall(),
            backlog.of_device(
                self.device, self.duties.sums(), table, conf, room, used,
                self.state.hdd_state == 'ready',
                None if self._gateway is None else self._gateway.link()),
            {} if self.device.is_block else self.duties.strategy(
                conf).claims(self.duties.occupancies(), table, room))
        known, self.state.pressure = self._published, pressure
        if known is not None and self.state.publish_state == 'ready' and \
                replace(known, at=pressure.at) == pressure and \
                abs(pressure.at - known.at) < _PUBLISH_SECONDS:
            return
        try:
            publish(conf.run_dir, self.device.name, pressure)
        except OSError as err:
            self._book.say('publish_state', 'failing', err)
        else:
            self._book.say('publish_state', 'ready')
            self._published = pressure

    def _run(self) -> None:
        while not self.duties.stopping.is_set():
            with self._changed:
                self._begun += 1
                self._heard_bytes = 0
                self._due = time.monotonic() + \
                    self._in_force.conf.tier.interval_seconds
            finished = self._try_round()
            with self._changed:
                if not finished:
                    self._due = 0.0
                elif self.state.round_state == 'ready':
                    self._settled = self._begun
                self._changed.notify_all()
                while not self.duties.stopping.is_set() and \
                        self._due > time.monotonic():
                    self._changed.wait(self._due - time.monotonic())
            self.duties.stopping.wait(_MIN_ROUND_SECONDS)

    def _try_round(self) -> bool:
        try:
            finished = self.round()
        except IndexDamaged as err:
            self._departures.due.replace_index(err)
        except IndexUnavailable as err:
            self._book.say('index_state', 'unavailable', err)
        except DssError as err:
            self._failed(err)
        except OSError as err:
            self._book.say('ssd_state', 'failing', err)
        except Exception as err:
            # A device whose keeper died would fill up in silence.
            self._logger.exception('%s: round failed', self.device.name)
            self._failed(err)
        else:
            self._book.say('index_state', 'ready')
            self._book.say('round_state', 'ready')
            return finished
        return True

    def _failed(self, err: Exception) -> None:
        self._metrics.count('tier.round_errors')
        self._book.say('round_state', 'failing', '%s: %s' % (
            type(err).__name__, err))
