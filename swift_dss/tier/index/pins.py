"""Small versions that stay on the SSD by rule, under a cap.

The index has, for each device, how many versions of each size the rule
fits (triggers keep it, so no decision ever counts the population); from this
and the cap the strategy computes a cut-off; larger versions lose their pin,
smaller ones get it, some thousands at a time. As everywhere, a pinned version
is in no queue of eviction, and goes to S3 like any other.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, Iterable, List, Optional, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import TierConf
from swift_dss.core.errors import BadConfig
from swift_dss.strategy.pinning import (
    BUCKETS, PinRule, cut_off, depth_of, rule_of)
from swift_dss.tier.inforce import InForce
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.rows import VersionRow

#: Values of a row's ``pin_rule``. The rule fits all but NONE.
NONE, PINNED, TOO_LARGE, IDLE = 0, 2, 3, 4
#: Rows looked at in a round for how long they were not used.
_LOOKED_AT = 500


class Pins:
    """The rule and its cut-off on each device. Thread-safe."""

    def __init__(self, in_force: InForce, index: Index) -> None:
        self._in_force = in_force
        self._index = index
        self._lock = threading.Lock()
        self._made: Optional[Tuple[TierConf, ClassTable,
                                   Optional[PinRule]]] = None
        self._cut_offs: Dict[str, Tuple[int, int]] = {}
        self._cursors: Dict[str, int] = {}

    def rule(self) -> Optional[PinRule]:
        """The rule in force.

        :raises BadConfig: it cannot be understood
        """
        tier, table = self._in_force.conf.tier, self._in_force.table
        with self._lock:
            # Nearly always it is the same one: no look at all its options.
            if self._made is None or self._made[1] is not table or (
                    self._made[0] is not tier and self._made[0] != tier):
                self._made = (tier, table, rule_of(tier, table))
            return self._made[2]

    def has_rule(self) -> bool:
        """True if anything may be pinned by rule, or the rule is wrong."""
        try:
            return self.rule() is not None
        except BadConfig:
            return True

    def judge(self, device: str, name: str, size: int, content_type: str,
              class_ids: Iterable[int]) -> int:
        """The ``pin_rule`` of a new row."""
        try:
            rule = self.rule()
        except BadConfig:
            return NONE  # said at every round
        if rule is None or not size or rule.why_not(
                name, size, content_type, class_ids) is not None:
            return NONE
        cut = self._cut_offs.get(device, (0, 0))[1]
        return PINNED if size <= cut else TOO_LARGE

    def round(self, device: str, room_bytes: int) -> None:
        """Bring cut-off and rows up to date; bounded work.

        :raises BadConfig: the rule cannot be understood
        """
        rule = self.rule()
        tier = self._in_force.conf.tier
        cap = int(room_bytes * tier.pin_share)
        cut = 0 if rule is None else cut_off(
            [(bucket, length) for bucket, _, length
             in self._index.pin_rows.sizes(device)], cap, rule.largest_bytes)
        if rule is None and device not in self._cut_offs:
            return
        self._cut_offs[device] = (cap, cut)
        pinned = [spec.class_id for spec in self._in_force.table.specs.values()
                  if spec.pin]
        self._index.pin_rows.up_to(device, cut, pinned, tier.min_demote_bytes)
        if tier.pin_idle_seconds:
            self._cursors[device] = self._index.pin_rows.look(
                device, self._cursors.get(device, 0), _LOOKED_AT,
                time.time() - tier.pin_idle_seconds, pinned,
                tier.min_demote_bytes)

    def shown(self, device: str) -> Dict[str, Any]:
        """A device's lines in ``swift-dss gateway pins``."""
        cap, cut = self._cut_offs.get(device, (0, 0))
        sizes = [{'up_to': BUCKETS[bucket] if bucket < len(BUCKETS)
                  else None, 'versions': count, 'bytes': length,
                  'pinned': bucket < len(BUCKETS) and BUCKETS[bucket] <= cut
                  or bucket < len(BUCKETS) and 0 < cut < BUCKETS[bucket]
                  and (bucket == 0 or BUCKETS[bucket - 1] < cut)}
                 for bucket, count, length
                 in self._index.pin_rows.sizes(device)]
        return {'device': device, 'cap_bytes': cap, 'cut_off': cut,
                'sizes': sizes, 'pinned_bytes': sum(
                    size['bytes'] for size in sizes if size['pinned'])}

    def why(self, device: str, row: VersionRow) -> str:
        """Why a version stays on the SSD, or does not; '' if no pin has
        anything to do with it."""
        said: List[str] = []
        table = self._in_force.table
        if row.pinned:
            said.append('an operator pinned it')
        for span in row.spans:
            if table.spec(span.class_id).pin:
                said.append('class %s is pinned'
                            % table.name_of(span.class_id))
        cut = self._cut_offs.get(device, (0, 0))[1]
        if row.pin_rule == PINNED:
            said.append('by rule: %d bytes, not above the cut-off of %d; '
                        'depth %d; class %s' % (
                            row.size, cut, depth_of(row.name), ', '.join(
                                table.name_of(span.class_id)
                                for span in row.spans)))
        elif row.pin_rule == TOO_LARGE:
            said.append('not pinned: %d bytes are above the cut-off of %d'
                        % (row.size, cut))
        elif row.pin_rule == IDLE:
            said.append('not pinned: not used for a while')
        return '; '.join(said)
