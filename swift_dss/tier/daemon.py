"""The cache-tier daemon of one node, or of one shard of its devices.

Composes the parts and owns their life: intake of events, one keeper a
device, the sweeper, the fetch and admin sockets, metrics, and the gateway.
Plain threads; nothing here is monkey-patched.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, FrozenSet, List, Optional

from swift_dss.block.engine import BlockView
from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, DssError, TierUnavailable
from swift_dss.core.limits import EVENT_BATCH_SECONDS
from swift_dss.core.pressure import Link
from swift_dss.core.version import VersionId
from swift_dss.gateway.form import verify
from swift_dss.gateway.mend.aside import Asides
from swift_dss.gateway.mend.scrub import Listed
from swift_dss.gateway.mend.scrub_ask import Pass, Rounds
from swift_dss.gateway.peers.primaries import RingPrimaries, looks_at
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.gateway.service import Gateway
from swift_dss.io import carriers, spool, switch, syncing
from swift_dss.io.private import make_folder
from swift_dss.tier import report, space
from swift_dss.tier.devices import Device, Devices
from swift_dss.tier.doors.admin import AdminServer
from swift_dss.tier.doors.fetchd import FetchServer
from swift_dss.tier.doors.history import History
from swift_dss.tier.doors.html import node_page
from swift_dss.tier.doors.page import Page
from swift_dss.tier.hear.intake import Intake
from swift_dss.tier.hear.ledger import Ledger
from swift_dss.tier.hits import Hits
from swift_dss.tier.index.filters import Filter
from swift_dss.tier.index.index import IndexDamaged, open_or_replace
from swift_dss.tier.index.placing import Placing
from swift_dss.tier.keep.keeper import Keeper
from swift_dss.tier.local.local import Local
from swift_dss.tier.local.locks import lock_node
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.policies import indexes_text, parse_indexes
from swift_dss.tier.prefetch.service import Prefetcher
from swift_dss.tier.walk.relocate import Relocator
from swift_dss.tier.walk.survey import Survey
from swift_dss.tier.workload import Workload
from swift_dss.wire.control import Event, EventKind, encode_event
from swift_dss.wire.settings import classtable, nodeconf

_CLEAN_STOP = 'clean_stop'
#: Row up to which the bucket was read back.
_SCRUBBED = 'scrubbed'
#: Row up to which keys were asked for, and when that pass began.
_ASKED_FOR = 'asked_for'
#: Versions of a page of that.
_SCRUB_PAGE = 100
_REBUILD_NEEDED = 'rebuild_needed'
_WORKLOAD = 'workload'
#: Policies that were ours at the last look.
_POLICIES = 'policies'
#: Devices that the shard had when it last looked; a node without shards
#: has none written down.
_DEVICES = 'devices'
#: Policies that were, and are not any more.
_LEFT = 'policies_left'
#: How often spools, devices and metrics are looked at.
_CHORES_SECONDS = 10.0


class Daemon:
    """The parts of the daemon, composed.

    :param conf_path: ``dss.conf``
    :param part: makes the configuration of a shard of that of the node
    :raises BadConfig: it or the class table does not parse
    """

    def __init__(self, conf_path: str, logger: logging.Logger,
                 part: Callable[[NodeConf], NodeConf] = lambda conf: conf
                 ) -> None:
        # long: the one place where the parts of the daemon are put together.
        self._read_conf = lambda: part(read_conf(conf_path))
        self._logger = logger
        self._conf = self._read_conf()
        self._table = read_table(self._conf.class_table)
        conf = self._conf
        make_folder(conf.sockets_dir, space.RUN_MODE, '[dss] run_dir')
        self._lock_fd = lock_node(conf.sockets_dir)
        try:
            space.prepare(conf, logger)
        except BaseException:
            os.close(self._lock_fd)
            raise
        self.index, aside = open_or_replace(index_path(conf), Placing(
            lambda: self._conf.tier.eviction, self.table))
        if aside:
            logger.error('the index was damaged: moved to %s; rebuilding '
                         'it from the devices', aside)
        self.rebuild_needed = bool(aside) or \
            self.index.get_state(_REBUILD_NEEDED, '1') == '1'
        self.unclean = self.index.get_state(_CLEAN_STOP) != '1'
        self._wake_sweeper = threading.Event()
        self.metrics = Metrics(conf, logger)
        self.hits = Hits()
        choice = carriers.choose(conf.io.carrier)
        logger.info('carrier: %s%s', choice.carrier.name, ''.join(
            '; not %s' % reason for reason in choice.refused))
        self.devices = Devices(conf)
        try:
            self._check_replicator(conf)
            self._take_policies()
            self._take_devices()
        except BaseException:
            self.release()
            raise
        self.block = BlockView(conf.run_dir, conf.class_table, logger)
        self.local = Local(self.conf, self.devices, self.index, self.table,
                           self.metrics, logger, choice.carrier)
        self.gateway: Optional[Gateway] = None
        if conf.gateway.enabled:
            self.gateway = Gateway(conf, self.table, self.local, logger,
                                   self.metrics)
            self.local.witness = self.gateway.witness
            self.local.put_aside_if = self.gateway.asides.put_aside
        else:
            self.local.put_aside_if = Asides(self.local, RingPrimaries(
                Ranks(conf.swift_dir, shard=conf.shard), looks_at(self.local),
                is_sound=functools.partial(verify.is_sound, self.local)),
                self.metrics).put_aside
        self.keepers: Dict[str, Keeper] = {}
        self._ledger = Ledger(self.local, self.index, self.table,
                              self.metrics, logger, self.gateway,
                              self._wish, self.hits.count, self._to_mend)
        self.local.on_remote = self._left_for_s3
        self.prefetcher = Prefetcher(
            conf, self.table, self.local, self.index, self.gateway,
            self._wish, self.metrics, logger,
            in_order=lambda call: self.intake.in_order(call))
        self.local.watcher = self.prefetcher
        self.intake = Intake(
            os.path.join(conf.sockets_dir, 'events.sock'),
            self.devices.discover, self._apply, self.metrics, logger)
        self._fetch = FetchServer(os.path.join(conf.sockets_dir, 'fetch.sock'),
                                  self.local, self.gateway, self.metrics,
                                  logger)
        self._admin = AdminServer(os.path.join(conf.sockets_dir, 'admin.sock'),
                                  self, logger)
        self._page: Optional[Page] = None
        self.history = History()
        self.started_at = time.time()
        self._stopping = threading.Event()
        self.relocator = Relocator(self, self._stopping.wait)
        self.workload = Workload(self.index.get_state(_WORKLOAD),
                                 self.started_at)
        self._workload_text = ''
        self.space_warnings: List[str] = []
        self._survey_lock = threading.Lock()
        self._asked_lock = threading.Lock()
        #: Somebody asked for a walk: the sweeper's own gives way to it.
        self._asked = threading.Event()
        self._threads = [
            threading.Thread(target=target, name='dss-' + name, daemon=True)
            for name, target in (('chores', self._do_chores),
                                 ('departures', self._do_departures),
                                 ('sweep', self._do_sweeps))]

    def conf(self) -> NodeConf:
        """The configuration in force."""
        return self._conf

    def table(self) -> ClassTable:
        """The class table in force."""
        return self._table

    # -- life ------------------------------------------------------------

    def start(self) -> None:
        """Begin serving; costs the same for any number of objects."""
        self.index.set_state(_CLEAN_STOP, '0')
        self._find_devices()
        if self.gateway is not None:
            self.gateway.start()
            self.gateway.scrubber.start(
                self._to_scrub, int(self.index.get_state(_SCRUBBED, '0')),
                lambda at: self.index.set_state(_SCRUBBED, str(at)))
            at, _, began = self.index.get_state(
                _ASKED_FOR, '0 0').partition(' ')
            self.gateway.ask_scrubber.start(Rounds(
                self._to_scrub, self._remote_versions,
                lambda one: self.index.set_state(
                    _ASKED_FOR, '%d %f' % one)), Pass(int(at), float(began)))
        self.prefetcher.start()
        self.intake.start()
        self._fetch.start()
        self._admin.start()
        self._page = node_page(
            self._conf.tier.prometheus_port, self.status, self.history,
            self.metrics.text, self._logger)
        for thread in self._threads:
            thread.start()
        self._logger.info('%d devices; index %s', len(self.keepers),
                          'to be rebuilt' if self.rebuild_needed else
                          'to be swept' if self.unclean else 'clean')

    def stop(self) -> None:
        """End every thread, in the order that loses nothing."""
        self._relocate_before_stop()
        self._stopping.set()
        self._wake_sweeper.set()
        self._admin.stop()
        self._fetch.stop()
        # Before those that it hands work to.
        self.intake.stop()
        self.prefetcher.stop()
        for keeper in self.keepers.values():
            keeper.stop()
        if self.gateway is not None:
            self.gateway.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        if self._page is not None:
            self._page.stop()
        if not self._sweep_needed():
            with contextlib.suppress(DssError):
                # All that was received is in the index.
                self.index.set_state(_CLEAN_STOP, '1')
        self.release()

    def release(self) -> None:
        """Let index and lock go: all that one never started has."""
        self.index.close()
        os.close(self._lock_fd)

    def reload(self) -> None:
        """Read configuration and class table; take both over or neither.

        :raises BadConfig: what is wrong; nothing has changed
        """
        conf = self._read_conf()
        table = read_table(conf.class_table)
        self.devices.policies.load()
        self._check_replicator(conf)
        before = self._table
        changed = [class_id for class_id in range(32)
                   if before.spec(class_id).pin != table.spec(class_id).pin]
        self._conf, self._table = conf, table
        self._take_policies()
        for class_id in changed:
            self.index.set_movable(class_id, not table.spec(class_id).pin,
                                   conf.tier.min_demote_bytes)
        self.kick()
        self._feed_kernel()
        self._logger.info('configuration and class table reloaded')

    # -- for other parts ---------------------------------------------------

    def link(self) -> Optional[Link]:
        """S3 as it is now; None where there is no remote tier."""
        return None if self.gateway is None else self.gateway.link()

    def status(self) -> Dict[str, Any]:
        """Everything ``swift-dss tier status`` shows."""
        return report.status(self)

    def publish(self) -> None:
        """Refresh the labelled gauges, the history and the recon file."""
        report.publish(self.status(), report.Sinks(
            self._conf, self._table, self.metrics, self.history))

    def kick(self, device: str = '') -> None:
        """Have a device's keeper (or all) look now."""
        for keeper in list(self.keepers.values()):
            if not device or keeper.device.name == device:
                keeper.kick()

    def survey(self, files_per_second: float, orphans: bool,
               progress: Callable[[Dict[str, Any]], None]
               ) -> List[Dict[str, Any]]:
        """Walk all devices; the sweeper's own walk gives way to this one.

        :raises TierUnavailable: another walk that was asked for is under way
        """
        if not self._asked_lock.acquire(blocking=False):
            raise TierUnavailable('another rebuild or sweep that was asked '
                                  'for is under way')
        try:
            self._asked.set()
            with self._survey_lock:
                return self._survey(files_per_second, orphans, progress,
                                    self._stopping.is_set)
        finally:
            self._asked.clear()
            self._asked_lock.release()

    def settle(self, deadline: float) -> bool:
        """Apply all events and let every keeper make a round."""
        # Reads that an object server has kept to send several at once.
        self._stopping.wait(EVENT_BATCH_SECONDS * 1.5)
        self.intake.read_spools()
        if not self.intake.wait_until_idle(deadline - time.monotonic()):
            return False
        return all(keeper.wait_round(deadline - time.monotonic())
                   for keeper in list(self.keepers.values()))

    # -- inside ----------------------------------------------------------

    def _check_replicator(self, conf: NodeConf) -> None:
        """:raises BadConfig: Swift would copy stubs by rsync"""
        if any(policy.is_replicated for policy
               in self.devices.policies.known.values()) and \
                not syncing.check_file(conf.object_conf):
            self._logger.warning(
                '%s is not there, so the daemon cannot check that the object '
                'replicator has sync_method = ssync, which stubs need: name '
                'the file in [dss] object_conf', conf.object_conf)

    def _take_policies(self) -> None:
        """Know the versions of our policies, and of no other.

        :raises BadConfig: swift.conf cannot be read
        """
        policies = self.devices.policies
        text = self.index.get_state(_POLICIES, 'unknown')
        if text == indexes_text(policies.ours):
            return
        before = parse_indexes(text)
        dropped = self.index.keep_policies(policies.ours)
        for number in sorted((before | dropped) - policies.ours):
            self._logger.warning(
                '%s is not ours by %s: its files, its copies on the HDD and '
                'in S3 are left as they are', policies.named(number),
                policies.path)
        self.index.set_state(_LEFT, indexes_text(
            (before | dropped | self.left_policies()) - policies.ours))
        if text != 'unknown' and policies.ours - before:
            self.rebuild_needed = True
            self.index.set_state(_REBUILD_NEEDED, '1')
            self._wake_sweeper.set()
        self.index.set_state(_POLICIES, indexes_text(policies.ours))

    def _take_devices(self) -> None:
        """Know the versions on devices of this shard, and on no others.
        What comes from another shard is read from the device."""
        shard = self._conf.shard
        before = self.index.get_state(_DEVICES)
        if shard is None and not before:
            return  # it never was a shard
        mine = set(shard.devices) if shard is not None else {
            device.name for device in self.devices.discover()}
        if shard is not None:
            gone = self.index.keep_devices(mine)
            if gone:
                self._logger.info('%s: another shard has them now',
                                  ', '.join(sorted(gone)))
        came = mine - set(before.split())
        if came:
            self.rebuild_needed = True
            self.index.set_state(_REBUILD_NEEDED, '1')
            self._wake_sweeper.set()
        self.index.set_state(_DEVICES, ' '.join(sorted(mine))
                             if shard is not None else '')

    def left_policies(self) -> FrozenSet[int]:
        """Policies that were ours once and may have stubs still."""
        return parse_indexes(self.index.get_state(_LEFT))

    def _look_at_policies(self) -> None:
        """An operator may change swift.conf and tell object servers only.
        """
        policies = self.devices.policies
        try:
            if not policies.is_changed():
                return
            policies.load()
        except BadConfig as err:
            self.metrics.count('tier.chore_errors')
            self._logger.error('%s; the earlier file stays in force', err)
            return
        self._take_policies()

    def _to_scrub(self, after: int) -> List[Listed]:
        return [(row_id, row.version, row.partition)
                for row_id, row in self.index.listing(
                    Filter(on_remote=True), _SCRUB_PAGE, after)]

    def _remote_versions(self) -> int:
        """About how many versions have a copy in S3: their spans."""
        return sum(sums['objects'] for name in list(self.keepers)
                   for sums in self.index.occupancy(name).values())

    def _left_for_s3(self, version: VersionId, length: int) -> None:
        if self.gateway is not None:
            self.gateway.throughput.drain.moved(length)
        self.kick(version.device)

    def _relocate_before_stop(self) -> None:
        seconds = self._conf.gateway.relocate_stop_seconds
        if not seconds or self.gateway is None:
            return
        try:
            left = self.relocator.before_stop(seconds)
        except DssError as err:
            self._logger.error('stop: %s', err)
            return
        self._logger.info('stop: %d versions are left for S3', left)

    def _look_around(self) -> None:
        """Chores of the gateway: spill, measure, warn of shared disks."""
        for keeper in list(self.keepers.values()):
            self.relocator.spill(keeper.device)
        self.workload.look(time.time(), self.gateway is None
                           or self.gateway.link().drains)
        text = self.workload.text()
        if text != self._workload_text:
            self.index.set_state(_WORKLOAD, text)
            self._workload_text = text
        found = space.warnings(space.areas(self._conf, list(self.keepers)))
        if self.gateway is not None:
            found += ['%s is in no ring at an address of this node: its '
                      'versions go to S3 as late as those of handoffs'
                      % name for name
                      in self.gateway.not_in_rings(list(self.keepers))]
        for text in found:
            if text not in self.space_warnings:
                self._logger.warning('%s', text)
        self.space_warnings = found

    def _survey(self, files_per_second: float, orphans: bool,
                progress: Callable[[Dict[str, Any]], None],
                broken_off: Callable[[], bool]) -> List[Dict[str, Any]]:
        walker = Survey(self.local, self._logger, self._ledger.settle,
                        self._ledger.departures, broken_off,
                        self._stopping.wait)
        found = []
        whole = True
        for device in self.devices.discover():
            try:
                found.append(vars(walker.device(
                    device, files_per_second, orphans, progress)))
            except TierUnavailable as err:
                whole = False
                self._logger.warning('%s is left out of the walk: %s',
                                     device.name, err)
        if whole and not broken_off():
            self.index.set_state(_REBUILD_NEEDED, '0')
            self.index.set_state('swept_at', str(time.time()))
            self.rebuild_needed = self.unclean = False
        self.kick()
        return found

    def _find_devices(self) -> None:
        for device in self.devices.discover():
            if device.name not in self.keepers:
                self._tidy(device)
                keeper = Keeper(device, self.local, self.conf, self.table,
                                self.metrics, self._logger, link=self.link,
                                departed=self._ledger.departures.look)
                self.keepers[device.name] = keeper
                keeper.start()

    def _tidy(self, device: Device) -> None:
        try:
            device.require_mounted()
            removed = switch.clean_tmp(device.path, device.capacity.path)
        except (DssError, OSError) as err:
            self._logger.warning('%s: %s', device.name, err)
            return
        if removed:
            self._logger.info('%s: removed %d files of interrupted moves',
                              device.name, removed)

    def _feed_kernel(self) -> None:
        """The class table, to devices whose SSD the kernel fills."""
        self.block.feed_classes([
            keeper.device.path for keeper in list(self.keepers.values())
            if keeper.device.is_block])

    def _apply(self, batch: List[Event]) -> None:
        batch = [event for event in batch
                 if self.devices.is_mine(event.version.device)
                 or self._pass_on(event)]
        self.workload.heard(batch)
        try:
            changed = self._ledger.apply(batch)
        except IndexDamaged as err:
            self.metrics.count('tier.index_damaged')
            self._logger.critical('%s: moved to %s; rebuilding it from '
                                  'the devices', err, self.index.replace())
            self._wake_sweeper.set()
            return
        except Exception:
            # One bad event must not end the intake of all others.
            self.metrics.count('tier.events_failed', len(batch))
            self._logger.exception('%d events were not applied', len(batch))
            self._ledger.missed = True
            return
        for device, length in changed.items():
            keeper = self.keepers.get(device)
            if keeper is not None:
                keeper.came(length)

    def _pass_on(self, event: Event) -> bool:
        """Leave an event to the shard that has its device by now: its
        sender had not heard yet. Always False."""
        device = self.devices.get(event.version.device)
        kept = False
        with contextlib.suppress(OSError):
            kept = event.kind is EventKind.READ or spool.append(
                device.path, encode_event(event),
                self._conf.io.spool_bytes)
        self.metrics.count('tier.events_passed_on' if kept
                           else 'tier.events_dropped')
        return False

    def _wish(self, version: VersionId, partition: str,
              class_ids: List[int]) -> None:
        keeper = self.keepers.get(version.device)
        if keeper is not None:
            keeper.wish(version, partition, class_ids)

    def _to_mend(self, version: VersionId, partition: str) -> None:
        keeper = self.keepers.get(version.device)
        if keeper is not None:
            keeper.to_mend(version, partition)

    def _do_chores(self) -> None:
        while True:
            try:
                self._look_at_policies()
                self.intake.read_spools(self._conf.io.spool_bytes)
                self._find_devices()
                self._feed_kernel()
                self.prefetcher.save()
                self._look_around()
                self.publish()
            except (DssError, OSError) as err:
                self.metrics.count('tier.chore_errors')
                self._logger.error('chores: %s', err)
            if self._stopping.wait(_CHORES_SECONDS):
                return

    def _do_departures(self) -> None:
        """A thread of its own: a rebalance takes a million versions."""
        while not self._stopping.wait(_CHORES_SECONDS):
            for device in self.devices.discover():
                try:
                    if self._ledger.departures.look(device):
                        self.kick(device.name)
                except TierUnavailable:
                    pass  # not mounted: its keeper says so
                except (DssError, OSError) as err:
                    self.metrics.count('tier.chore_errors')
                    self._logger.error('departures: %s', err)

    def _do_sweeps(self) -> None:
        """A thread of its own: a paced walk may take days."""
        replaced = 0
        while not self._stopping.is_set():
            if self.index.replaced != replaced:
                replaced = self.index.replaced
                self.rebuild_needed = True
            try:
                with self._survey_lock:
                    self._sweep_if_due()
            except (DssError, OSError) as err:
                self.metrics.count('tier.chore_errors')
                self._logger.error('sweep: %s', err)
            except Exception:  # the next one must still come
                self.metrics.count('tier.chore_errors')
                self._logger.exception('sweep failed')
            self._wake_sweeper.wait(_CHORES_SECONDS)
            self._wake_sweeper.clear()

    def _sweep_needed(self) -> bool:
        return (self.unclean or self.intake.overflowed
                or self._ledger.missed)

    def _sweep_if_due(self) -> None:
        conf = self._conf.tier
        self.unclean = self._sweep_needed()
        swept_at = float(self.index.get_state('swept_at', '0'))
        due = time.time() - swept_at > conf.sweep_interval_seconds
        if not (self.rebuild_needed or self.unclean or due):
            return
        self.intake.overflowed = self._ledger.missed = False
        pace = 0.0 if self.rebuild_needed else conf.sweep_files_per_second
        self._survey(pace, True, lambda said: None,
                     lambda: self._stopping.is_set() or self._asked.is_set())


def index_path(conf: NodeConf) -> str:
    """Where the node's index lies."""
    return os.path.join(conf.state_dir, space.INDEX_FILE)


def read_conf(path: str) -> NodeConf:
    """:raises BadConfig: the file is missing or does not parse."""
    return nodeconf.parse(_read(path), path, os.environ)


def read_table(path: str) -> ClassTable:
    """:raises BadConfig: the file is missing or does not parse."""
    return classtable.parse(_read(path), path)


def _read(path: str) -> str:
    try:
        with open(path, encoding='utf-8') as source:
            return source.read()
    except (OSError, UnicodeDecodeError) as err:
        raise BadConfig('%s: %s' % (path, err)) from err


if __name__ == '__main__':
    from swift_dss.tier.main import main
    sys.exit(main())
