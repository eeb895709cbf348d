"""Decide whether to accept a new object before its body is read. Pure.

Bytes that are not yet in S3 exist only on this node: they are *dirty*.
Accepting more than the device can hold would make a write fail half-way. So
each write is first judged by its class:

- The **budget** limits dirty bytes on a device. The lowest class may fill it;
  each higher class may go further into the **reserve** above it, the top class
  to its end. So while S3 is away the lowest class is refused first, and the
  top class last.
- From ``throttle_at`` of a class's limit on, writes wait, longer the fuller
  the device is: at most as long as the link needs to send their bytes, and
  never longer than the class's deadline.
- Over the limit a write is refused at once, with the time in which the
  predicted drain makes room for it.
- A write that can never fit is refused for good.

The sources are requirements R6, R6a, R6b and E2 of "Storage on the Edge".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Iterable, List, Sequence

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.limits import (
    DEFAULT_RETRY_AFTER_SECONDS, FASTEST_DEVICE_BYTES_PER_SECOND,
    MAX_PRESSURE_REST_SECONDS, MAX_RETRY_AFTER_SECONDS)
from swift_dss.core.pressure import Backlog

#: Workers of proxies that write to one device at a time: more of them than
#: a quorum of large clusters has, each with as much under way as we have.
_OTHERS = 64


class Answer(Enum):
    """The possible answers to a write, mildest first."""

    ACCEPT = 'accept'
    THROTTLE = 'throttle'
    RETRY = 'retry'
    FULL = 'full'


_SEVERITY = {answer: place for place, answer in enumerate(Answer)}


@dataclass(frozen=True)
class Verdict:
    """The answer, and for whom it is.

    :param seconds: THROTTLE: wait so long first; RETRY: come back then
    :param reason: one clause for the client and the log
    """

    answer: Answer
    seconds: float = 0.0
    reason: str = ''

    @property
    def order(self) -> float:
        """Sorts verdicts, mildest first."""
        return _SEVERITY[self.answer] * 1e9 + self.seconds


ACCEPTED = Verdict(Answer.ACCEPT)


def budgets(configured_bytes: int, reserve_share: float,
            pending_bytes: int, room_bytes: int) -> Sequence[int]:
    """(budget, reserve) of a device, bytes.

    :param configured_bytes: the operator's budget; 0 is all there is
    :param room_bytes: new bytes that still fit
    :returns: together never more than pending and room
    """
    most = int((pending_bytes + room_bytes) / (1 + reserve_share))
    budget = min(configured_bytes or most, most)
    return budget, int(budget * reserve_share)


def room(free_bytes: int, held_bytes: int, only_local_bytes: int,
         headroom_bytes: int) -> int:
    """The room for new bytes, after all bytes that can leave have left.

    :param free_bytes: of all local tiers together
    :param held_bytes: copies on all local tiers, each counted
    :param only_local_bytes: bytes without a copy in S3: one local copy of each
        must stay
    :param headroom_bytes: left for moves, fills and writes under way
    """
    return max(0, free_bytes + max(0, held_bytes - only_local_bytes)
               - headroom_bytes)


def with_uploads(backlog: Backlog, uploading_bytes: int) -> Backlog:
    """The backlog as it were without uploads that are under way.

    Object servers take the room of an upload before its body comes. Who
    counts it as coming must not miss it in the room as well.

    :param uploading_bytes: of uploads that began before it was looked at
    """
    taken = min(uploading_bytes, backlog.untracked_bytes)
    if not taken:
        return backlog
    room_bytes = backlog.room_bytes + taken
    budget_bytes, reserve_bytes = budgets(
        backlog.configured_bytes, backlog.reserve_share,
        backlog.pending_bytes, room_bytes)
    return replace(backlog, room_bytes=room_bytes,
                   budget_bytes=budget_bytes, reserve_bytes=reserve_bytes)


def rest_seconds(backlog: Backlog, coming_bytes: int) -> float:
    """Seconds for which a device's figures may be trusted.

    The time in which all writers together could fill the fastest device to the
    first limit that slows writes down. Other workers' uploads that the figures
    do not show yet are estimated as a multiple of our own.

    :param coming_bytes: admitted by this worker and not in ``backlog`` yet
    """
    left = min(backlog.room_bytes,
               backlog.budget_bytes * backlog.throttle_at
               - backlog.pending_bytes) - coming_bytes * _OTHERS
    return max(0.0, min(left / FASTEST_DEVICE_BYTES_PER_SECOND,
                        MAX_PRESSURE_REST_SECONDS))


def rank_position(table: ClassTable, spec: ClassSpec) -> float:
    """0 for the lowest class that goes to S3, 1 for the highest."""
    ranks: List[int] = sorted({
        other_spec.rank for other_spec in table.specs.values()
        if other_spec.remote is not RemoteMode.NEVER} | {spec.rank})
    if len(ranks) == 1:
        return 0.0
    return ranks.index(spec.rank) / (len(ranks) - 1)


def decide(backlog: Backlog, table: ClassTable, class_ids: Iterable[int],
           size: int, coming_bytes: int = 0) -> Verdict:
    """Judge one write on one device.

    :param class_ids: of the object's bytes; the highest one speaks for it
    :param size: bytes that it will take there
    :param coming_bytes: admitted before and not in ``backlog`` yet
    """
    specs = [table.spec(class_id) for class_id in class_ids] or [
        table.spec(0)]
    spec = max(specs, key=lambda class_spec: class_spec.rank)
    if size <= 0:
        return ACCEPTED
    left = backlog.room_bytes - coming_bytes
    stays = any(class_spec.remote is RemoteMode.NEVER for class_spec in specs)
    if stays:
        return ACCEPTED if size <= left else _no_room(
            backlog, coming_bytes + size - backlog.room_bytes)
    limit = backlog.budget_bytes + int(
        backlog.reserve_bytes * rank_position(table, spec))
    if size > limit:
        return Verdict(Answer.FULL, 0.0, 'the object is larger than all '
                       'that may wait for S3 here')
    need = backlog.pending_bytes + coming_bytes + size
    if need > limit:
        return Verdict(
            Answer.RETRY, retry_seconds(backlog, need - limit),
            'as much as this class may have waits for S3')
    if size > left:
        return _no_room(backlog, size - left)
    wait_seconds = _throttle(backlog, spec, need, limit)
    if wait_seconds > 0:
        return Verdict(Answer.THROTTLE, wait_seconds)
    return ACCEPTED


def retry_seconds(backlog: Backlog, over_bytes: int) -> float:
    """When ``over_bytes`` of the backlog should have left."""
    if not backlog.drains:
        # Nothing leaves before S3 was asked again.
        return _bounded(max(backlog.probe_seconds,
                            float(DEFAULT_RETRY_AFTER_SECONDS)))
    if backlog.drain_rate <= 0:
        return float(DEFAULT_RETRY_AFTER_SECONDS)
    return _bounded(over_bytes / backlog.drain_rate)


def of_quorum(verdicts: Sequence[Verdict], quorum: int) -> Verdict:
    """The verdict that at least ``quorum`` of a write's replicas agree to.

    :param verdicts: one of each replica (at least one)
    """
    ordered = sorted(verdicts, key=lambda verdict: verdict.order)
    return ordered[min(quorum, len(ordered)) - 1]


def _throttle(backlog: Backlog, spec: ClassSpec, need: int,
              limit: int) -> float:
    soft = limit * backlog.throttle_at
    if need <= soft or limit <= soft:
        return 0.0
    most = backlog.throttle_seconds
    if spec.deadline_ms:
        most = min(most, spec.deadline_ms / 1000.0)
    wait_seconds = most * (need - soft) / (limit - soft)
    if backlog.drains and backlog.drain_rate > 0:
        wait_seconds = min(wait_seconds,
                           (need - soft) / backlog.drain_rate)
    return wait_seconds


def _no_room(backlog: Backlog, over_bytes: int) -> Verdict:
    if backlog.pending_bytes >= over_bytes:
        return Verdict(Answer.RETRY, retry_seconds(backlog, over_bytes),
                       'there is no room until S3 has the bytes that wait')
    return Verdict(Answer.FULL, 0.0, 'there is no room, and nothing that '
                   'may leave')


def _bounded(seconds: float) -> float:
    return max(1.0, min(seconds, float(MAX_RETRY_AFTER_SECONDS)))
