"""Prefetch: tells a strategy of reads, and fetches its wants.

Decisions are the strategy's (``strategy.prefetch``); here are time, threads
and money. Wants are cut into parts of S3 and wait in order of urgency. While
the link has spare room and unread parts are within the budget, a few workers
fetch each part as any read is fetched: the same flights, the same proofs,
stored in the same way. A reader of such a part joins its fetch; if a reader
needs a link that is full of such fetches, the least likely one is given up.

Bytes from S3 land on the HDD if the device has one; the keeper brings bytes on
the HDD to the SSD, as after a read.
"""

# long: one strategy, one lock, and everything that may be told or asked.
from __future__ import annotations

import contextlib
import heapq
import json
import os
import threading
import time
from functools import partial
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from swift_dss.core.errors import DssError
from swift_dss.core.residency import Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.link.throughput import GET_PRICE
from swift_dss.gateway.ports import Sink
from swift_dss.gateway.service import Gateway
from swift_dss.io.workers import Clock
from swift_dss.strategy.prefetch import build
from swift_dss.strategy.prefetch.base import Access, Settings, Want
from swift_dss.tier.hear.intake import Intake
from swift_dss.tier.keep.keepers import Keepers
from swift_dss.tier.keep.wishes import Wish
from swift_dss.tier.local.local import Local
from swift_dss.tier.local.watch import Watcher
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.prefetch.book import Book, Fate, Piece, Stage
from swift_dss.tier.prefetch.daily import Daily
from swift_dss.tier.prefetch.manifests import (
    ManifestHearer, ManifestReader, Members)
from swift_dss.tier.prefetch.objects import Known, Objects
from swift_dss.tier.prefetch.spare import Spare
from swift_dss.tier.prefetch.watch import Ahead, Nobody, Watched
from swift_dss.wire.control import Event, FetchRequest

_LOCAL = Tier.SSD | Tier.HDD
FILE = 'prefetch.json'
GB = 1e9
#: A want that waited longer than this is dropped.
_STALE_SECONDS = 30.0
#: S3 has so long for the first byte of a piece.
_DEADLINE_SECONDS = 20.0
#: Pieces that wait, are coming or are unread, at most: about 20 MB.
MAX_PIECES = 20000
#: A piece that is here unread may be written off after this, if its room
#: in the budget is needed.
_WRITE_OFF_SECONDS = 30.0
_SAVE_SECONDS = 600.0
#: An event that claims to be older is of another clock.
_OLDEST_SECONDS = 5.0


class Prefetcher(Watcher, Ahead, ManifestHearer):
    """See the module. Thread-safe.

    :param gateway: None where there is no remote tier
    :param keepers: bring classes of a version from the HDD to the SSD
    :param intake: what readers of S3's bytes do is told after what object
        servers told before it
    """

    def __init__(self, local: Local, gateway: Optional[Gateway],
                 keepers: Keepers, intake: Intake, metrics: Metrics,
                 clock: Optional[Clock] = None) -> None:
        # long: the one place where the parts of prefetching meet.
        in_force = local.in_force
        conf = in_force.conf
        self._conf = conf.prefetch
        self._part_bytes = conf.gateway.part_bytes
        self._fills = conf.gateway.fills
        self._local = local
        self._gateway = gateway
        self._keepers = keepers
        self._intake = intake
        self._metrics = metrics
        self._logger = metrics.logger
        self._clock = clock or Clock()
        self._path = os.path.join(conf.state_dir, FILE)
        self._strategy, self._on_manifests = build(
            self._conf.strategy, Settings(
                self._part_bytes, self._conf.max_degree,
                self._conf.state_bytes),
            lambda class_id: in_force.table.spec(class_id).prefetch)
        self._book = Book(GET_PRICE, self._conf.dollars_per_gb / GB)
        self._daily = Daily(self._conf.dollars_per_day, self._clock,
                            self._logger)
        self._objects = Objects(local.index, conf.swift_dir)
        self._spare = Spare(
            float(self._conf.bytes_per_second),
            gateway.throughput.down if gateway is not None else None,
            self._clock)
        self._lock = threading.RLock()
        self._more = threading.Condition(self._lock)
        self._heap: List[Tuple[int, float, int, Piece]] = []
        self._pushed = 0
        self._stopping = threading.Event()
        self._saved_at = self._clock.monotonic()
        self._manifests = ManifestReader(local, self._objects, self, metrics)
        self._threads = [
            threading.Thread(target=self._work, daemon=True,
                             name='dss-prefetch-%d' % number)
            for number in range(max(1, self._conf.workers))]

    # -- life ------------------------------------------------------------

    def start(self) -> None:
        """Load the state of the last stop, and begin."""
        try:
            with open(self._path, encoding='utf-8') as source:
                self._strategy.load(json.load(source))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, RecursionError) as err:
            self._logger.warning('prefetch: %s is not taken over: %s',
                                 self._path, err)
        for thread in self._threads:
            thread.start()
        self._manifests.start()

    def stop(self) -> None:
        """Give up running fetches, keep the state."""
        with self._lock:
            self._stopping.set()
            self._more.notify_all()
        self._manifests.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self.save(0.0)

    def save(self, every_seconds: float = _SAVE_SECONDS) -> None:
        """Write the strategy's state to disk, now and then."""
        with self._lock:
            if self._clock.monotonic() - self._saved_at < every_seconds:
                return
            self._saved_at = self._clock.monotonic()
            saved = self._strategy.save()
        if not saved:
            return
        try:
            with open(self._path + '.tmp', 'w', encoding='utf-8',
                      opener=_for_us_alone) as out:
                json.dump(saved, out)
            # No fsync: state lost in a power cut is learnt again.
            os.replace(self._path + '.tmp', self._path)
        except OSError as err:
            self._logger.warning('prefetch: %s: %s', self._path, err)

    # -- reports ---------------------------------------------------------

    def on_fetch(self, request: FetchRequest, sink: Sink) -> Sink:
        """See :meth:`Watcher.on_fetch`."""
        if not request.keep or self._stopping.is_set():
            return sink
        self._make_way(request)
        return Watched(self, request, sink, self._part_bytes)

    def on_reads(self, version: VersionId, partition: str,
                 events: Sequence[Event]) -> None:
        """See :meth:`Watcher.on_reads`."""
        for event in events:
            # The fetch has already reported bytes from S3.
            if not event.tier_bits & Tier.REMOTE:
                self.on_read(version, partition, event.offset, event.length,
                             True, client=event.client, at=event.at)
            if event.manifest and event.offset == 0:
                self._look(version, event.client)

    def _look(self, version: VersionId, client: str) -> None:
        with self._guarded():
            known = self._objects.known(version)
            if known is not None:
                self._manifests.look(known, client)

    def on_read(self, version: VersionId, partition: str, offset: int,
                length: int, there: bool,
                class_id: Optional[int] = None, client: str = '',
                at: float = 0.0) -> None:
        """Note a read; ``there``: from a local tier.

        :param at: when, in seconds since the epoch; 0: now
        """
        ago = min(max(0.0, time.time() - at), _OLDEST_SECONDS) if at else 0.0
        with self._guarded():
            known = self._objects.known(version)
            if known is None:
                return
            if not length or offset >= known.size:
                return
            with self._lock:
                self._read(known, offset, length, there, known.class_id
                           if class_id is None else class_id, client, ago)

    def demanded(self, length: int) -> None:
        """See :meth:`Ahead.demanded`."""
        self._spare.demanded(length)

    def comes_to(self, request: FetchRequest, offset: int, length: int,
                 there: bool) -> None:
        """See :meth:`Ahead.comes_to`."""
        # The last read of a stream's part is still on its way to us when
        # the first of the next part is here.
        self._intake.in_order(partial(
            self.on_read, request.version, request.partition, offset, length,
            there, request.class_id, request.client, time.time()))

    def on_left(self, version: VersionId,
                left: Optional[Residency]) -> None:
        """See :meth:`Watcher.on_left`."""
        with self._guarded():
            if self._objects.is_new(version) and not self._book.of(version):
                return
            known = gone = None
            if left is None:
                self._objects.forget(version)
            else:
                known = self._objects.known(version)
                gone = [(extent.offset, extent.length)
                        for extent in left.extents
                        if not extent.tiers & _LOCAL]
            with self._lock:
                self._left(version, known, gone)

    def keeps(self, version: VersionId) -> bool:
        """See :meth:`Watcher.keeps`."""
        with self._guarded(), self._lock:
            kept = False
            for piece in self._book.of(version):
                if piece.stage is Stage.HERE and \
                        self._strategy.on_last_chance(
                            piece.account, piece.object_id, piece.offset,
                            piece.length, self._clock.monotonic()):
                    self._book.keep(piece)
                    kept = True
            return kept
        return False

    def status(self) -> Dict[str, Any]:
        """Plain values for status output."""
        with self._lock:
            fields = self._book.status()
            fields.update(self._daily.status(self._book.dollars))
            fields.update(
                strategy=self._conf.strategy,
                budget_bytes=self._conf.budget_bytes,
                state_bytes=self._strategy.state_bytes(),
                **{'strategy_' + name: value for name, value
                   in self._strategy.counts().items()})
            return fields

    # -- under the lock --------------------------------------------------

    def _read(self, known: Known, offset: int, length: int, there: bool,
              class_id: int, client: str, ago: float) -> None:
        now = self._clock.monotonic()
        pieces = self._book.within(known.version, offset, length)
        for piece in pieces:
            if piece.stage is Stage.HERE:
                self._close(piece, Fate.USEFUL)
            else:
                piece.waited = True
        hit = there or bool(pieces) and all(
            piece.stage is Stage.HERE for piece in pieces)
        wants = self._strategy.on_request(Access(
            known.account, client, known.object_id, offset,
            min(length, known.size - offset), known.size, hit, now - ago,
            class_id), self._room())
        for piece in pieces:
            if piece.stage is Stage.WAITING:
                # Its reader fetches it itself now.
                self._close(piece, Fate.LATE)
                self._strategy.on_arrival(
                    piece.account, piece.object_id, piece.offset,
                    piece.length, True, now)
        for want in wants:
            self._take_up(want, known, now)
        if wants:
            self._more.notify_all()

    def _take_up(self, want: Want, reader: Known, now: float) -> None:
        """A want, as pieces that wait."""
        target: Optional[Known] = reader
        if want.object_id != reader.object_id:
            target = self._objects.newest(want.account, str(want.object_id))
        end = 0 if target is None else min(target.size,
                                           want.offset + want.length)
        offset = want.offset - want.offset % self._part_bytes
        while target is not None and offset < end:
            stop = min(offset + self._part_bytes, target.size)
            piece = Piece(
                target.account, target.object_id, target.version,
                target.partition, offset, stop - offset, target.class_id,
                want.urgency, want.confidence, want.strategy, now)
            if len(self._book) < MAX_PIECES and self._book.add(piece):
                self._pushed += 1
                heapq.heappush(self._heap, (
                    int(want.urgency), -want.confidence, self._pushed,
                    piece))
            offset = stop
        if offset < want.offset + want.length:
            self._strategy.on_dropped(
                want.account, want.object_id, max(offset, want.offset),
                want.offset + want.length - max(offset, want.offset), now)

    def _room(self) -> int:
        """Bytes that may be taken up now."""
        if self._daily.is_spent(self._book.dollars):
            return 0
        now = self._clock.monotonic()
        room = self._conf.budget_bytes - self._book.open_bytes
        while room < self._part_bytes:
            # The piece was not read, and may stay for days: write it off, so
            # that it does not end all prefetching.
            piece = self._book.oldest_unread()
            if piece is None or now - piece.asked_at < _WRITE_OFF_SECONDS:
                break
            where = (piece.account, piece.object_id, piece.offset,
                     piece.length)
            if self._strategy.on_last_chance(*where, now):
                piece.asked_at = now
                self._book.keep(piece)
                continue
            self._close(piece, Fate.WASTED)
            self._strategy.on_evict(*where, False, now)
            room = self._conf.budget_bytes - self._book.open_bytes
        return max(0, room)

    def _left(self, version: VersionId, known: Optional[Known],
              gone: Optional[List[Tuple[int, int]]]) -> None:
        """Bytes that are nowhere here any more; None: all of them."""
        now = self._clock.monotonic()
        coming = []
        for piece in self._book.of(version):
            if piece.stage is not Stage.HERE:
                coming.append(piece)
            elif gone is None or any(
                    offset < piece.end and offset + length > piece.offset
                    for offset, length in gone):
                self._close(piece, Fate.WASTED)
                self._strategy.on_evict(
                    piece.account, piece.object_id, piece.offset,
                    piece.length, False, now)
        for offset, length in _without(gone or [], coming):
            if known is not None:
                self._strategy.on_evict(
                    known.account, known.object_id, offset, length, True,
                    now)

    def on_manifest(self, known: Known, client: str,
                    members: Members) -> None:
        """See :meth:`ManifestHearer.on_manifest`."""
        with self._guarded(), self._lock:
            self._on_manifests.on_manifest(
                known.account, client, known.object_id, members,
                self._clock.monotonic())
            self._metrics.count('tier.prefetch.manifests')

    def _close(self, piece: Piece, fate: Optional[Fate]) -> None:
        self._book.close(piece, fate)
        if fate is not None:
            self._metrics.count('tier.prefetch.%s' % fate.value)
            self._metrics.count('tier.prefetch.%s_bytes' % fate.value,
                                piece.length)
        self._metrics.gauge('tier.prefetch.open_bytes',
                            self._book.open_bytes)

    # -- workers ---------------------------------------------------------

    def _make_way(self, request: FetchRequest) -> None:
        """A reader comes: where fetches ahead have the last threads, the
        least likely of them ends."""
        if self._gateway is None or \
                self._gateway.reading()[0] < self._fills - 1:
            return
        with self._lock:
            running = [piece for piece in self._book.running()
                       if piece.version != request.version
                       or not (piece.offset < request.offset
                               + request.length
                               and piece.end > request.offset)]
            if running:
                max(running, key=lambda piece: (
                    piece.urgency, -piece.confidence)).cancelled = True

    def _work(self) -> None:
        while True:
            piece = self._next()
            if piece is None:
                return
            try:
                self._bring(piece)
            except Exception:
                # One bad piece must not end all prefetching.
                self._logger.exception('prefetch of %s failed',
                                       piece.version.key)
                self._end(piece, Fate.DROPPED)

    def _next(self) -> Optional[Piece]:
        """The most urgent piece, once there is room on the link for it."""
        while True:
            with self._lock:
                while not self._heap and not self._stopping.is_set():
                    self._more.wait()
                if self._stopping.is_set():
                    return None
                piece = heapq.heappop(self._heap)[3]
                if not self._book.has(piece):
                    continue
                if self._clock.monotonic() - piece.asked_at > _STALE_SECONDS:
                    self._end(piece, Fate.DROPPED)
                    continue
                piece.stage = Stage.COMING
                wait_seconds = self._spare.wait_seconds(piece.length)
                deadline = self._clock.monotonic() + wait_seconds
                while wait_seconds > 0 and not self._stopping.is_set():
                    self._more.wait(wait_seconds)
                    wait_seconds = deadline - self._clock.monotonic()
            return piece

    def _bring(self, piece: Piece) -> None:
        """Fetch a piece, from wherever it is."""
        try:
            tiers = self._tiers(piece)
            if all(tier & _LOCAL for tier in tiers):
                if not all(tier & Tier.SSD for tier in tiers):
                    self._keepers.wish(Wish(
                        piece.version, piece.partition, (piece.class_id,)))
                self._end(piece, None)
                return
            if not self._has_room(piece):
                self._end(piece, Fate.DROPPED)
                return
            self._end(piece, self._from_s3(piece))
        except (DssError, OSError) as err:
            self._logger.debug('prefetch of %s: %s', piece.version.key, err)
            self._end(piece, Fate.DROPPED)

    def _from_s3(self, piece: Piece) -> Optional[Fate]:
        """HERE is no fate: what None means is for :meth:`_arrived`."""
        if self._gateway is None:
            return Fate.DROPPED
        sink = Nobody(piece, self._stopping)
        with self._lock:
            self._book.pay(piece)
        began = self._clock.monotonic()
        with contextlib.suppress(BrokenPipeError):
            self._gateway.fetch(FetchRequest(
                piece.version, piece.partition, piece.offset, piece.length,
                piece.class_id, _DEADLINE_SECONDS, ahead=True), sink)
        if piece.cancelled or self._stopping.is_set():
            return Fate.CANCELLED
        if sink.taken < piece.length or \
                not all(tier & _LOCAL for tier in self._tiers(piece)):
            return Fate.DROPPED
        self._metrics.timing('tier.prefetch.fetch',
                             self._clock.monotonic() - began)
        self._arrived(piece)
        return None

    def _arrived(self, piece: Piece) -> None:
        with self._lock:
            piece.stage = Stage.HERE
            if piece.waited:
                self._close(piece, Fate.LATE)
            self._strategy.on_arrival(
                piece.account, piece.object_id, piece.offset, piece.length,
                piece.waited, self._clock.monotonic())

    def _end(self, piece: Piece, fate: Optional[Fate]) -> None:
        """A piece is through, unless it has arrived; None: it was here."""
        with self._lock:
            if not self._book.has(piece) or piece.stage is Stage.HERE:
                return
            self._close(piece, fate)
            where = (piece.account, piece.object_id, piece.offset,
                     piece.length)
            if fate is None:
                self._strategy.on_arrival(*where, piece.waited,
                                          self._clock.monotonic())
            else:
                self._strategy.on_dropped(*where, self._clock.monotonic())

    def _tiers(self, piece: Piece) -> Set[Tier]:
        local = self._local.describe(piece.version, piece.partition)
        return {extent.tiers for extent in local.residency.split(
            piece.offset, min(piece.length, local.content_length
                              - piece.offset))}

    def _has_room(self, piece: Piece) -> bool:
        """True if a piece has room without evictions."""
        with self._lock:
            reserved = sum(running.length for running in self._book.running()
                           if running.admitted
                           and running.version.device == piece.version.device)
            piece.admitted = self._local.has_room_ahead(
                piece.version, piece.length + reserved)
            return piece.admitted

    @contextlib.contextmanager
    def _guarded(self) -> Any:
        """Keep errors of prefetching from callers that report."""
        try:
            yield
        except DssError as err:
            self._metrics.count('tier.prefetch.errors')
            self._logger.debug('prefetch: %s', err)
        except Exception:
            self._metrics.count('tier.prefetch.errors')
            self._logger.exception('prefetch')


def _without(ranges: List[Tuple[int, int]],
             pieces: List[Piece]) -> List[Tuple[int, int]]:
    """Ranges without the parts that are waiting or coming."""
    for piece in pieces:
        cut = []
        for offset, length in ranges:
            end = offset + length
            if offset < piece.offset:
                cut.append((offset, min(end, piece.offset) - offset))
            if end > piece.end:
                start = max(offset, piece.end)
                cut.append((start, end - start))
        ranges = cut
    return ranges


def _for_us_alone(path: str, flags: int) -> int:
    """Open with mode 0600: histories of reads reveal names."""
    return os.open(path, flags, 0o600)
