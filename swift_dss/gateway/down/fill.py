"""Bytes that a reader lacks: from S3, streamed while they are stored.

A fetch walks its range: bytes that are local by now are read locally, the rest
comes through flights (one read of a part from S3 however many want it). The
reply is sent only when the first verified byte is here, so a fetch that cannot
be served says 503 within its deadline; one that breaks later is cut short,
never padded.
"""

from __future__ import annotations

import abc
import time
from dataclasses import replace
from typing import Callable, Iterator, Optional

from swift_dss.core.errors import (
    BadConfig, DssError, RemoteCorrupt, RemoteUnavailable, TierFull,
    TierUnavailable, VersionGone)
from swift_dss.core.residency import Extent, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.down.flights import Flight
from swift_dss.gateway.down.keeping import Keeping, begin_fill
from swift_dss.gateway.down.source import Plan
from swift_dss.gateway.down.supply import HELD_PER_FILL, RESERVED, Supply
from swift_dss.gateway.form.own_record import own_copy
from swift_dss.gateway.link import wan
from swift_dss.gateway.link.alarm import Alarm
from swift_dss.gateway.link.client import S3Client, S3Missing
from swift_dss.gateway.ports import LocalVersion, LocalVersions, Sink
from swift_dss.io import steps
from swift_dss.wire.control import FetchReply, FetchRequest

#: Written to a reader at a time.
_WRITE_BYTES = 1024 * 1024
_LOCAL = Tier.SSD | Tier.HDD


class GivenUp(DssError):
    """A part that was fetched ahead is not wanted, or not now."""

    counter = 'ahead_given_up'


class Losses(abc.ABC):
    """Versions that S3 was found not to have."""

    @abc.abstractmethod
    def missed(self, version: VersionId, partition: str) -> None:
        """S3 has not got a version. MUST NOT block on S3."""


class Filler:
    """Serves fetches and brings parts back. Thread-safe.

    :param alarm: says if waiting for S3 is no use
    :param losses: hear of versions that S3 has not got
    """

    def __init__(self, around: Around, client: S3Client,
                 local: LocalVersions, supply: Supply, alarm: Alarm,
                 losses: Losses) -> None:
        self._conf = around.conf
        self._clock = around.clock
        self._metrics = around.metrics
        self._logger = around.logger
        self._client = client
        self._local = local
        self._supply = supply
        self._source = supply.source
        self._flights = supply.flights
        self._leaders = supply.leaders
        self._plans = supply.plans
        self._alarm = alarm
        self._losses = losses

    def fetch(self, request: FetchRequest, sink: Sink) -> bool:
        """Serve one request to its end, in the caller's thread.

        :returns: False if the bytes were cut short after the reply: the
            caller MUST close the connection without more
        :raises OSError: what ``sink`` raised; its reader left
        """
        began = False
        sent = 0
        try:
            for data in self._bytes(request):
                if not began:
                    began = True
                    sink.begin(FetchReply(200))
                sent += len(data)
                sink.write(data)
            if not began:
                sink.begin(FetchReply(200))
        except GivenUp as err:
            if not began:
                sink.begin(self._refusal(err))
            return False
        except (DssError, TimeoutError) as err:
            self._metrics.count('gateway.fetch_failed')
            self._logger.warning(
                'fetch %s on %s bytes %d-%d: %s after %d bytes',
                request.version.key, request.version.device,
                request.offset, request.offset + request.length - 1,
                err, sent)
            if began:
                return False
            sink.begin(self._refusal(err))
            return False
        self._metrics.count('gateway.fetched_bytes', sent)
        return True

    def _bytes(self, request: FetchRequest) -> Iterator[bytes]:
        deadline = time.monotonic() + request.deadline_seconds
        offset, end = request.offset, request.offset + request.length
        lost = False
        while offset < end:
            local = self._local.describe(request.version, request.partition)
            if end > local.content_length:
                raise VersionGone('%s has only %d bytes' % (
                    request.version.key, local.content_length))
            extent = next(local.residency.split(offset, end - offset))
            from_disk = bool(extent.tiers & _LOCAL) and not lost
            if from_disk:
                pieces = self._from_disk(request, extent)
            else:
                pieces = self._from_flight(request, local, extent, deadline)
            try:
                for data in pieces:
                    offset += len(data)
                    yield data
                    # Only the first byte has the request's deadline; later
                    # ones wait as long as S3's own time-outs allow.
                    deadline = time.monotonic() + self._stall_seconds()
            except (VersionGone, TierUnavailable):
                lost = from_disk and bool(extent.tiers & Tier.REMOTE)
                if not lost:
                    raise
                # The record says that they are here, and they are not.
                self._metrics.count('gateway.local_lost')

    def _from_disk(self, request: FetchRequest,
                   extent: Extent) -> Iterator[bytes]:
        with self._local.open(request.version, request.partition) as reader:
            for offset in range(extent.offset, extent.end, _WRITE_BYTES):
                yield reader.read(
                    offset, min(_WRITE_BYTES, extent.end - offset))

    def _from_flight(self, request: FetchRequest, local: LocalVersion,
                     extent: Extent, deadline: float) -> Iterator[bytes]:
        """Bytes of the part at the extent's start; may end early, and the
        rest is then looked for again."""
        since = self._clock.monotonic()
        has_bytes = extent.offset > request.offset

        def look(may_wait: bool = False) -> None:
            # A reader with some bytes waits rather than lose the rest: S3 may
            # be back soon.
            if not has_bytes:
                self._alarm.look(since, may_wait)

        look(True)
        plan = self._plans.wait_for(local, deadline, look)
        start, length = plan.part(extent.offset)
        end = min(extent.end, start + length)
        flight = self._join(request, local, plan, start, deadline, look)
        ahead: Optional[Flight] = None
        try:
            if end < extent.end:
                ahead = self._ahead(request, local, plan, end)
            offset = extent.offset
            while offset < end:
                data = flight.read(
                    offset, min(_WRITE_BYTES, end - offset), deadline, look)
                if data is None:
                    return
                offset += len(data)
                yield data
                deadline = time.monotonic() + self._stall_seconds()
            if request.ahead:
                # A fetch ahead stores the bytes and does not read them.
                flight.wait(deadline)
        finally:
            self._flights.leave(flight)
            if ahead is not None:
                self._flights.leave(ahead)

    def _ahead(self, request: FetchRequest, local: LocalVersion,
               plan: Plan, offset: int) -> Optional[Flight]:
        """Begin the part after this one if it delays no reader."""
        if not request.keep:
            return None
        try:
            return self._join(request, local, plan, plan.part(offset)[0],
                              time.monotonic())
        except RemoteUnavailable:
            return None

    def _join(self, request: FetchRequest, local: LocalVersion, plan: Plan,
              start: int, deadline: float,
              look: Callable[[], None] = lambda: None) -> Flight:
        flow = (wan.prefetch if request.ahead else wan.fill)(
            request.class_id)
        keep_free = 0
        if self._leaders.reserves() and not self._leaders.is_top(flow):
            # Memory for the top class, whatever the others want.
            keep_free = HELD_PER_FILL * self._conf.fills // RESERVED

        def lead(flight: Flight) -> None:
            self._leaders.submit(flow, self._lead, flight, request, local,
                                 plan)

        flight = self._flights.join(
            (request.version, start),
            min(deadline, time.monotonic()) if request.ahead else deadline,
            lead, request.ahead, keep_free, look)
        if flight is None and request.ahead:
            raise GivenUp('no room ahead of readers')
        if flight is None:
            self._metrics.count('gateway.fetch_busy')
            raise RemoteUnavailable('all %d fills are busy'
                                    % self._conf.fills,
                                    self._conf.retry_after_seconds)
        return flight

    def _lead(self, flight: Flight, request: FetchRequest,
              local: LocalVersion, plan: Plan) -> None:
        """Bring one part; runs in a leader's thread and never raises."""
        length = plan.part(flight.offset)[1]
        error: Optional[DssError] = None
        keeping = Keeping(self._metrics, None)
        stored = False
        began = time.monotonic()
        try:
            if self._flights.given_up(flight):
                raise GivenUp('no reader waits for it')
            keeping = Keeping(self._metrics, begin_fill(
                self._local, self._metrics, request, flight.offset, length))
            if self._source.too_big_to_hold(plan):
                self._bring_unproven(local, keeping)
            else:
                self._bring_from_where_it_is(flight, local, plan, keeping)
            stored = keeping.commit()
            steps.reached('fill.stored')
            self._metrics.count('gateway.parts_read')
            self._metrics.count('gateway.read_bytes', length)
            self._metrics.timing('gateway.part', time.monotonic() - began)
        except DssError as err:
            error = err
            self._metrics.count('gateway.%s' % err.counter)
        except Exception as err:  # readers must be told
            self._logger.exception('fill of %s on %s failed',
                                   flight.key[0].key, flight.key[0].device)
            error = TierUnavailable('fill failed: %s' % type(err).__name__)
        finally:
            keeping.abort()
            self._flights.land(flight, error, stored)
            if isinstance(error, S3Missing):
                self._losses.missed(local.version, local.partition)

    def _bring_from_where_it_is(self, flight: Flight, local: LocalVersion,
                                plan: Plan, keeping: Keeping) -> None:
        """Find the version under its own key: the keeper of its bundle may
        have rewritten the bundle without it.
        """
        try:
            self._bring(flight, local, plan, keeping)
            return
        except (S3Missing, BadConfig):
            # BadConfig: the seal's key left the key file, as it may once
            # the node that kept the bundle has dropped it.
            remote = local.residency.remote
            moved = own_copy(self._conf, self._client, local) \
                if remote is not None and remote.in_bundle else None
            if moved is None:
                raise
        local = replace(local, residency=local.residency.with_remote(moved))
        moved_plan = self._source.plan(local)
        is_cut_alike = moved_plan.part(flight.offset) == plan.part(
            flight.offset)
        if is_cut_alike:
            self._bring(flight, local, moved_plan, keeping)
        else:
            self._supply.read_through(local)
        self._local.record_remote(local.version, local.partition, moved)
        self._metrics.count('gateway.bundle_moved')
        if not is_cut_alike:
            raise RemoteUnavailable('%s has just moved' % moved.key, 1)

    def _bring(self, flight: Flight, local: LocalVersion, plan: Plan,
               keeping: Keeping) -> None:
        offset, length = plan.part(flight.offset)
        for block in self._source.blocks(local, plan, offset, length):
            if self._flights.given_up(flight):
                raise GivenUp('no reader waits for it')
            flight.publish(block)
            keeping.write(offset, block)
            offset += len(block)
            steps.reached('fill.block')

    def _bring_unproven(self, local: LocalVersion,
                        keeping: Keeping) -> None:
        """A large version whose side car is lost: to disk first, and read
        from there once the whole has proven right."""
        offset = 0
        for block in self._source.unproven(local):
            keeping.write(offset, block)
            offset += len(block)
            if not keeping.going:
                raise RemoteCorrupt(
                    '%s: its side car is lost, and there is no room to '
                    'prove the whole' % local.version.key)

    def _refusal(self, err: Exception) -> FetchReply:
        after = self._conf.retry_after_seconds
        if isinstance(err, VersionGone):
            return FetchReply(404, str(err))
        if isinstance(err, (TierUnavailable, TierFull)):
            return FetchReply(507, str(err), after)
        if isinstance(err, RemoteUnavailable):
            after = max(after, err.retry_after_seconds)
        return FetchReply(503, str(err), after)

    def _stall_seconds(self) -> float:
        return self._conf.read_timeout_seconds * 4
