"""Versions that readers wish to have on a device's SSD, and whom it lets in.

A version that was read from a slower tier is a *wish*. With ``[tier] admit``
at ``all`` each is granted as far as the class rule has room for it. With
``second:N`` the first read of a version is only noted, so that what is read
once is never written to the SSD. ``learned`` tries that, and other rules,
on caches without bytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple, Optional, Sequence, Tuple

from swift_dss.core.limits import MAX_KEPT_OUT
from swift_dss.core.version import VersionId
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.doorkeeper import SecondTouch
from swift_dss.strategy.eviction.objects.learned import NAMES, Learned
from swift_dss.strategy.tuning.choices import configured
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.inforce import InForce
from swift_dss.tier.metrics import Metrics

#: Versions that wait for promotion; later wishes are dropped.
_MAX_WISHES = 10000
#: Reads that a wish names: with two of them it is granted.
_READS = 2


class Wish(NamedTuple):
    """Classes of a version that its readers had to take from a slower tier.

    :param reads: numbers of the reads, see ``hear.passes``; none of a wish
        that no reader made
    """

    version: VersionId
    partition: str
    class_ids: Tuple[int, ...]
    reads: Tuple[int, ...] = ()


class Wishes:
    """Those of one device, oldest first. Thread-safe."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._guard = threading.Lock()
        self._waiting: OrderedDict[VersionId, Wish] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, wish: Wish) -> None:
        """A wish takes the place of an older one of its version, and has
        its reads, too."""
        with self._guard:
            if len(self._waiting) >= _MAX_WISHES:
                self._metrics.count('tier.wishes_dropped')
                return
            older = self._waiting.get(wish.version)
            if older is not None:
                wish = wish._replace(reads=tuple(dict.fromkeys(
                    older.reads + wish.reads))[-_READS:])
            self._waiting[wish.version] = wish

    def take(self) -> Optional[Wish]:
        """The oldest, which is none any more; None: there is none."""
        with self._guard:
            if not self._waiting:
                return None
            return self._waiting.popitem(last=False)[1]


class Access(NamedTuple):
    """Reads of a version, from whatever tier.

    :param length: of all of its classes
    :param passes: that began, see ``hear.passes``
    """

    version: VersionId
    length: int
    class_ids: Sequence[int]
    passes: int


class Newcomer(NamedTuple):
    """Bytes of one class of a version that may come in.

    :param length: bytes that the SSD lacks, at least 1
    :param is_known: the SSD has other bytes of it, or it is hot
    """

    wish: Wish
    class_id: int
    length: int
    is_known: bool


class Doorkeeper:
    """Says which newcomers a device's SSD lets in. Thread-safe.

    A restart forgets whom it kept out, and what it has learned: each of them
    has its first read once more.

    :param device: its name
    """

    def __init__(self, device: str, in_force: InForce,
                 metrics: Metrics) -> None:
        self._device = device
        self._in_force = in_force
        self._metrics = metrics
        self._guard = threading.Lock()
        #: That the rule was made for.
        self._made_for: Tuple[object, ...] = ()
        self._rule: Optional[SecondTouch] = None

    def __len__(self) -> int:
        """First reads that are remembered."""
        return 0 if self._rule is None else len(self._rule)

    @property
    def rule(self) -> str:
        """The option in force, or the rule that was learned."""
        rule = self._rule
        if isinstance(rule, Learned):
            return NAMES[rule.in_force]
        return str(self._in_force.conf.tier.admit)

    def lets_in(self, newcomer: Newcomer, room_bytes: int,
                free_bytes: int) -> bool:
        """Judge a newcomer; count it if it stays out.

        :param room_bytes: of the SSD
        :param free_bytes: below its low watermark: they are for all
        """
        with self._guard:
            is_in = newcomer.is_known or self._judge(
                self._renewed(room_bytes), newcomer, free_bytes)
        if not is_in:
            self._metrics.count('tier.promotions_kept_out')
            self._metrics.count('tier.kept_out_bytes', newcomer.length)
        return is_in

    def heard(self, accesses: Sequence[Access],
              written: Sequence[VersionRow],
              gone: Sequence[VersionId]) -> None:
        """Reads and uploads of the node, and versions that nobody wants any
        more. Costs nothing where nothing is learned, or before the first
        newcomer."""
        rule = self._rule
        if not isinstance(rule, Learned):
            return
        with self._guard:
            for version in gone:
                if version.device == self._device:
                    for class_id in {0, *self._in_force.table.specs}:
                        rule.removed(hash((version, class_id)))
            for row in written:
                if row.version.device == self._device:
                    self._hear_upload(rule, row)
            for access in accesses:
                if access.version.device == self._device:
                    self._hear_read(rule, access)

    @staticmethod
    def _hear_upload(rule: Learned, row: VersionRow) -> None:
        for span in row.spans:
            if span.ssd_bytes:
                rule.hear(hash((row.version, span.class_id)), span.ssd_bytes,
                          span.class_id, False, True)

    @staticmethod
    def _hear_read(rule: Learned, access: Access) -> None:
        # Events do not say how much is of which class.
        length = max(1, access.length // max(1, len(access.class_ids)))
        for class_id in access.class_ids:
            for _ in range(access.passes):
                rule.hear(hash((access.version, class_id)), length, class_id,
                          False, False)

    @staticmethod
    def _judge(rule: Optional[SecondTouch], newcomer: Newcomer,
               free_bytes: int) -> bool:
        if rule is None:
            return True
        if not newcomer.wish.reads:
            # Nobody has read it: that is no first read, either.
            return newcomer.length <= free_bytes
        key = hash((newcomer.wish.version, newcomer.class_id))
        return any(rule.admits(key, newcomer.length, free_bytes, read)
                   for read in newcomer.wish.reads)

    def _renewed(self, room_bytes: int) -> Optional[SecondTouch]:
        """The rule of the configuration that is in force."""
        tier, table = self._in_force.conf.tier, self._in_force.table
        made_for = (tier.admit, room_bytes,
                    (tier.eviction, table) if tier.admit.learns else None)
        if made_for != self._made_for:
            self._made_for, self._rule = made_for, self._made(room_bytes)
        return self._rule

    def _made(self, room_bytes: int) -> Optional[SecondTouch]:
        tier, table = self._in_force.conf.tier, self._in_force.table
        if not tier.admit.learns:
            return SecondTouch(
                max(1, tier.admit.window * room_bytes), MAX_KEPT_OUT) \
                if tier.admit.window else None
        weights = {class_id: float(spec.weight)
                   for class_id, spec in table.specs.items()}
        strategy = configured(tier.eviction).strategy
        return Learned(
            max(1, room_bytes), lambda room: orders.make(
                strategy, room, table, weights), weights,
            MAX_KEPT_OUT // len(NAMES))
