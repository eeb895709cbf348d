"""Walks over all devices: those that are due, and those asked for."""

from __future__ import annotations

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Optional, Sequence

from swift_dss.core.errors import DssError, TierUnavailable
from swift_dss.core.limits import WALKS
from swift_dss.io import steps
from swift_dss.tier.devices import Device
from swift_dss.tier.hear.ledger import Ledger
from swift_dss.tier.index.due import Due
from swift_dss.tier.keep.keepers import Keepers
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.walk.survey import Survey

#: How often the sweeper looks whether a walk is due.
_LOOK_SECONDS = 10.0


class Sweeper:
    """Walks, one at a time; a walk reads some devices side by side.

    :param stopping: set when the daemon ends
    """

    def __init__(self, local: Local, ledger: Ledger, keepers: Keepers,
                 due: Due, stopping: threading.Event,
                 metrics: Metrics) -> None:
        self._local = local
        self._ledger = ledger
        self._keepers = keepers
        self._due = due
        self._stopping = stopping
        self._metrics = metrics
        self._walking = threading.Lock()
        self._one_asked = threading.Lock()
        #: Set while an operator wants to walk: a walk that was due gives
        #: way.
        self._asked = threading.Event()

    def survey(self, files_per_second: float, orphans: bool,
               progress: Callable[[Dict[str, Any]], None]
               ) -> List[Dict[str, Any]]:
        """Walk all devices because an operator asks for it.

        :raises TierUnavailable: another walk that was asked for is under way
        """
        if not self._one_asked.acquire(blocking=False):
            raise TierUnavailable('another rebuild or sweep that was asked '
                                  'for is under way')
        try:
            self._asked.set()
            with self._walking:
                return self._walk(files_per_second, orphans, progress,
                                  [self._stopping])
        finally:
            self._asked.clear()
            self._one_asked.release()

    def run(self) -> None:
        """Walk whenever it is due, until the daemon stops."""
        replaced = 0
        while not self._stopping.is_set():
            if self._local.index.file.replaced != replaced:
                replaced = self._local.index.file.replaced
                self._due.rebuild = True
            try:
                with self._walking:
                    self.sweep_if_due()
            except (DssError, OSError) as err:
                self._metrics.count('tier.chore_errors')
                self._metrics.logger.error('sweep: %s', err)
            except Exception:  # the next one must still come
                self._metrics.count('tier.chore_errors')
                self._metrics.logger.exception('sweep failed')
            self._due.wake.wait(_LOOK_SECONDS)
            self._due.wake.clear()

    def sweep_if_due(self) -> None:
        """Walk if there is a reason to. Call with no walk under way."""
        conf = self._local.in_force.conf.tier
        if self._due.look(conf.sweep_interval_seconds):
            self._walk(
                0.0 if self._due.rebuild else conf.sweep_files_per_second,
                True, lambda said: None, [self._stopping, self._asked])

    def _walk(self, files_per_second: float, orphans: bool,
              progress: Callable[[Dict[str, Any]], None],
              ends: Sequence[threading.Event]) -> List[Dict[str, Any]]:
        failed = threading.Event()
        walker = Survey(self._local, self._ledger, self._metrics,
                        [*ends, failed])
        together = _Together(progress)

        def walk(number: int, device: Device) -> Optional[Dict[str, Any]]:
            try:
                return vars(walker.device(
                    device, files_per_second, orphans,
                    functools.partial(together.add, number)))
            except TierUnavailable as err:
                self._metrics.logger.warning(
                    '%s is left out of the walk: %s', device.name, err)
                return None
            except BaseException:
                failed.set()
                raise

        devices = self._local.devices.discover()
        with ThreadPoolExecutor(WALKS, 'dss-walk') as pool:
            walks = list(pool.map(walk, range(len(devices)), devices))
        walked = [walk for walk in walks if walk is not None]
        if len(walked) == len(devices) and not walker.is_over:
            self._due.walked()
            steps.reached('walk.done')
        self._keepers.kick()
        return walked


class _Together:
    """Progress of several devices as that of one walk."""

    def __init__(self, progress: Callable[[Dict[str, Any]], None]) -> None:
        self._progress = progress
        self._last: Dict[int, Dict[str, Any]] = {}
        self._lock = threading.Lock()

    def add(self, number: int, said: Dict[str, Any]) -> None:
        """One device, by its number, has come so far."""
        with self._lock:
            self._last[number] = said
            self._progress({
                name: value if isinstance(value, str) else sum(
                    counts[name] for counts in self._last.values())
                for name, value in said.items()})
