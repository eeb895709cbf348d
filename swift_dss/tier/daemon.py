"""The cache-tier daemon of one node, or of one shard of its devices.

Owns the life of the parts, which :mod:`swift_dss.tier.node` puts together:
their threads and sockets, their start and their end. Plain threads; nothing
here is monkey-patched.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from typing import Optional

from swift_dss.core.errors import DssError
from swift_dss.io import steps
from swift_dss.io.private import make_folder
from swift_dss.tier import space
from swift_dss.tier.doors.admin import AdminServer
from swift_dss.tier.doors.fetchd import FetchServer
from swift_dss.tier.doors.html import node_page
from swift_dss.tier.doors.page import Page
from swift_dss.tier.inforce import InForce, Source
from swift_dss.tier.local.locks import lock_node
from swift_dss.tier.node import assembled
from swift_dss.tier.upkeep import Upkeep

#: How often spools, devices and metrics are looked at.
_CHORES_SECONDS = 10.0


class Daemon:
    """See the module.

    :param source: of configuration and class table
    :raises BadConfig: they do not parse
    :raises TierUnavailable: another daemon runs on the node
    """

    def __init__(self, source: Source, logger: logging.Logger) -> None:
        in_force = InForce(*source.read())
        conf = in_force.conf
        make_folder(conf.sockets_dir, space.RUN_MODE, '[dss] run_dir')
        self._lock_fd = lock_node(conf.sockets_dir)
        self._stopping = threading.Event()
        try:
            space.prepare(conf, logger)
            self.node = assembled(in_force, self._stopping, logger)
        except BaseException:
            os.close(self._lock_fd)
            raise
        node = self.node
        self._logger = logger
        self.upkeep = Upkeep(node, source)
        self._fetch = FetchServer(os.path.join(conf.sockets_dir, 'fetch.sock'),
                                  node.local, node.gateway, node.metrics)
        self._admin = AdminServer(os.path.join(conf.sockets_dir, 'admin.sock'),
                                  node, self.upkeep)
        self._page: Optional[Page] = None
        self._threads = [
            threading.Thread(target=target, name='dss-' + name, daemon=True)
            for name, target in (('chores', self._do_chores),
                                 ('departures', self._do_departures),
                                 ('sweep', node.sweeper.run))]

    def start(self) -> None:
        """Begin serving; costs the same for any number of objects."""
        node = self.node
        node.due.begin()
        node.keepers.discover()
        if node.gateway is not None:
            node.gateway.start()
            self.upkeep.start_scrubs(node.gateway)
        node.prefetcher.start()
        node.classifier.start()
        node.intake.start(node.ledger)
        self._fetch.start()
        self._admin.start()
        self._page = node_page(
            node.in_force.conf, self.upkeep.status,
            self.upkeep.history, node.metrics.text, self._logger)
        for thread in self._threads:
            thread.start()
        self._logger.info('%d devices; index %s', len(node.keepers.names),
                          'to be rebuilt' if node.due.rebuild else
                          'to be swept' if node.due.unclean else 'clean')

    def stop(self) -> None:
        """End every thread, in the order that loses nothing."""
        node = self.node
        self._relocate_before_stop()
        self._stopping.set()
        node.due.wake.set()
        steps.reached('stop.begun')
        self._admin.stop()
        self._fetch.stop()
        # Before those that it hands work to.
        node.intake.stop()
        steps.reached('stop.heard')
        node.prefetcher.stop()
        node.classifier.stop()
        node.keepers.stop()
        if node.gateway is not None:
            node.gateway.stop()
        steps.reached('stop.sent')
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        if self._page is not None:
            self._page.stop()
        with contextlib.suppress(DssError):
            node.due.end()
        steps.reached('stop.clean')
        self.release()

    def release(self) -> None:
        """Let index and lock go: all that one never started has."""
        self.node.index.file.close()
        os.close(self._lock_fd)

    def reload(self) -> None:
        """See :meth:`Upkeep.reload`."""
        self.upkeep.reload()

    def _relocate_before_stop(self) -> None:
        seconds = self.node.in_force.conf.gateway.relocate_stop_seconds
        if not seconds or self.node.gateway is None:
            return
        try:
            left = self.node.relocator.before_stop(seconds)
        except DssError as err:
            self._logger.error('stop: %s', err)
            return
        self._logger.info('stop: %d versions are left for S3', left)

    def _do_chores(self) -> None:
        while True:
            self.upkeep.look()
            if self._stopping.wait(_CHORES_SECONDS):
                return

    def _do_departures(self) -> None:
        while not self._stopping.wait(_CHORES_SECONDS):
            self.upkeep.look_for_departed()


def started(source: Source, logger: logging.Logger) -> Daemon:
    """A daemon at work.

    :raises BadConfig, TierUnavailable: as :class:`Daemon`
    """
    made = Daemon(source, logger)
    made.start()
    return made
