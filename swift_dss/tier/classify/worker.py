"""Gives classes to uploads whose rule says ``classify = auto``.

Each node that holds a replica hears of the upload. The device that is the
first primary by the ring does it, ``classify_after_seconds`` later; the next
one ``classify_next_seconds`` after that, and so on, a handoff last. A
node whose turn comes second sees in its own files that the classes are there,
and does nothing. A file of no known format, a damaged one and one whose child
was killed get the class of the rule, by a POST as well: no other node tries
them again.

One thread, one child at a time: a node full of hostile files spends one
processor on them, and other uploads wait. Nothing else waits for it.
"""

from __future__ import annotations

import random
import threading
from typing import Any, Dict, Optional

from swift_dss.core.config import TierConf
from swift_dss.core.errors import DssError, TooManySpans, VersionGone
from swift_dss.core.limits import DEFAULT_MAX_SPANS
from swift_dss.core.spans import ClassMap, Span
from swift_dss.gateway.peers.ranks import NoRing
from swift_dss.gateway.ports import LocalVersion
from swift_dss.io.workers import CLOCK, Clock
from swift_dss.tier.classify import child
from swift_dss.tier.classify.child import Bounds, Verdict
from swift_dss.tier.classify.telling import Teller
from swift_dss.tier.index.file import IndexDamaged, IndexUnavailable
from swift_dss.tier.index.waiting.book import Book, Waiting
from swift_dss.tier.local.local import Local
from swift_dss.tier.local.reader import Reader
from swift_dss.tier.metrics import Metrics
from swift_dss.wire import names
from swift_dss.wire.control import Event

#: Name of the list of versions that wait, in ``index_dir``.
FILE = 'classify.db'
#: Tries for what may be another way the next time: a server that does not
#: answer, an HDD that is not mounted.
_MOST_ATTEMPTS = 8
_AGAIN_SECONDS = 30.0
#: Maps of so few spans always fit the headers of a POST.
_FEWEST_SPANS = 64
#: Longest sleep: the clock may be set.
_LOOK_SECONDS = 10.0
#: Swift's own encryption: the bytes here are not the object's.
_SEALED = 'X-Object-Sysmeta-Crypto-Body-Meta'


class Classifier:
    """See the module.

    :param path: of the list of versions that wait
    :param teller: knows the object servers
    """

    def __init__(self, path: str, local: Local, teller: Teller,
                 metrics: Metrics, clock: Clock = CLOCK) -> None:
        self._path = path
        self._local = local
        self._teller = teller
        self._metrics = metrics
        self._logger = metrics.logger
        self._clock = clock
        self._book: Optional[Book] = None
        self._stopping = threading.Event()
        self._more = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='dss-classify', daemon=True)

    def open(self) -> None:
        """Open the list; without one nothing is classified, and all else
        goes on."""
        try:
            self._book = Book(self._path)
        except (IndexDamaged, IndexUnavailable) as err:
            self._logger.error('%s: %s; uploads keep the class of their rule',
                               self._path, err)

    def start(self) -> None:
        """Open the list, and go on with it."""
        self.open()
        self._thread.start()

    def stop(self) -> None:
        """Kill the child, if there is one, and return; what it did is done
        again after the next start."""
        self._stopping.set()
        self._more.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._book is not None:
            self._book.close()

    def heard(self, event: Event) -> None:
        """Keep an upload whose rule asks for this. Never raises: no upload
        depends on it.

        :param event: a PUT
        """
        if event.auto is None:
            return
        if not self._conf.classify:
            self._count('off')
        elif event.version.frag_index is not None:
            self._count('fragment')
        else:
            self._keep(event, event.auto)

    def status(self) -> Dict[str, Any]:
        """Plain values for ``swift-dss tier status``."""
        prefix = 'tier.classify.'
        return {'on': self._conf.classify,
                'waiting': 0 if self._book is None else len(self._book),
                'outcomes': {name[len(prefix):]: int(count) for name, count
                             in sorted(self._metrics.snapshot().items())
                             if name.startswith(prefix)}}

    def turn(self) -> float:
        """Do what is due first.

        :returns: seconds until more is
        """
        book = self._book
        row = book.first() if book is not None else None
        if book is None or row is None:
            return _LOOK_SECONDS
        wait = row.due - self._clock.wall()
        if wait > 0:
            return min(wait, _LOOK_SECONDS)
        outcome = self._outcome(row)
        if outcome == 'stopped':
            return 0.0
        if outcome != 'again':
            book.remove(row)
        elif row.attempts + 1 < _MOST_ATTEMPTS:
            book.later(row, self._clock.wall() + _AGAIN_SECONDS
                       * 2 ** row.attempts * random.uniform(0.7, 1.3))
        else:
            book.remove(row)
            outcome = 'given_up'
        self._count(outcome)
        return 0.0

    # -- inside ----------------------------------------------------------

    @property
    def _conf(self) -> TierConf:
        return self._local.in_force.conf.tier

    def _count(self, outcome: str) -> None:
        self._metrics.count('tier.classify.' + outcome)

    def _keep(self, event: Event, class_id: int) -> None:
        try:
            rank = self._teller.rank(event.version)
        except NoRing:
            rank = 0
        due = self._clock.wall() + self._conf.classify_after_seconds \
            + rank * self._conf.classify_next_seconds
        try:
            kept = self._book is not None and self._book.add(Waiting(
                event.version, event.partition, class_id, due))
        except (IndexDamaged, IndexUnavailable) as err:
            self._logger.error('%s: %s', self._path, err)
            kept = False
        if not kept:
            self._count('dropped')
        self._more.set()

    def _outcome(self, row: Waiting) -> str:
        """The name of a counter; ``again`` and ``stopped`` leave the row."""
        try:
            return self._classify(row)
        except VersionGone:
            return 'gone'
        except (DssError, OSError) as err:
            self._logger.warning('classify %s: %s', row.version.key, err)
            return 'again'

    def _classify(self, row: Waiting) -> str:
        if not self._local.devices.is_mine(row.version.device):
            return 'gone'
        local = self._local.describe(row.version, row.partition)
        if _is_given(local):
            return 'given'
        if _SEALED in local.metadata:
            return 'sealed'
        if not local.content_length:
            return 'empty'
        spans = DEFAULT_MAX_SPANS
        while True:
            verdict = self._read(row, local, spans)
            if verdict.kind != 'classified':
                self._logger.info('classify %s: %s: %s', row.version.key,
                                  verdict.kind, verdict.reason)
            if not verdict.is_final:
                return verdict.kind
            try:
                return self._tell(row, local, verdict)
            except TooManySpans:
                if spans < _FEWEST_SPANS:
                    raise
                # The map is longer than headers may be.
                spans //= 4

    def _read(self, row: Waiting, local: LocalVersion,
              spans: int) -> Verdict:
        conf = self._conf
        with self._local.open(row.version, row.partition) as reader:
            assert isinstance(reader, Reader)
            return child.read(
                local.content_length, reader.files(), Bounds(
                    conf.classify_seconds, conf.classify_memory_bytes,
                    spans), self._stopping)

    def _tell(self, row: Waiting, local: LocalVersion,
              verdict: Verdict) -> str:
        told = self._teller.post(
            row.version, local.metadata['name'], ClassMap.from_spans(
                [Span(offset, length, row.class_id)
                 for offset, length in verdict.ranges],
                local.class_map.rest))
        if not told.is_done:
            return 'again'
        return verdict.kind if told.taken else 'overtaken'

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._more.clear()
            try:
                wait = self.turn()
            except Exception:
                self._count('errors')
                self._logger.exception('classify')
                wait = _LOOK_SECONDS
            if wait:
                self._more.wait(wait)


def _is_given(local: LocalVersion) -> bool:
    """Whether a POST gave classes: a client's, or another node's."""
    prefix = names.TRANSIENT_MAP.title()
    return any(name.title().startswith(prefix) for name in local.metadata)

