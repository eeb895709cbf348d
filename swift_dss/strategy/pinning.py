"""Which small versions stay on the SSD whatever the pressure.

Small objects are many, cost a round trip each and take little room: the
edge keeps them (*Storage on the Edge*, enhancement E1), chosen by their
metadata alone. The limit of size follows from the stored sizes: the cut-off is
the largest size at which all that the rule fits still takes no more than its
share of the SSD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import FrozenSet, Iterable, List, Optional, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import TierConf
from swift_dss.core.errors import BadConfig
from swift_dss.core.globs import Glob

#: Upper bounds of the histogram's buckets, bytes: doubling from 4 KiB.
BUCKETS = tuple(4096 << number for number in range(19))


@dataclass(frozen=True)
class PinRule:
    """The conditions of the pin rule.

    :param largest_bytes: nothing larger is ever pinned
    :param depth: least and largest number of ``/`` in the object's name
    :param types: content types; none means any
    :param class_ids: all of a version's classes must be among them; none
        means any
    """

    largest_bytes: int
    depth: Tuple[int, int] = (0, 1 << 30)
    types: Tuple[Glob, ...] = ()
    class_ids: FrozenSet[int] = frozenset()

    def why_not(self, name: str, size: int, content_type: str,
                class_ids: Iterable[int]) -> Optional[str]:
        """The condition that fails; None if the rule fits.

        :param name: ``/account/container/object``
        """
        if size > self.largest_bytes:
            return 'larger than %d' % self.largest_bytes
        depth = depth_of(name)
        if not self.depth[0] <= depth <= self.depth[1]:
            return 'depth %d' % depth
        plain = content_type.partition(';')[0].strip().lower()
        if self.types and not any(glob.matches(plain) for glob in self.types):
            return 'type %s' % plain
        others = set(class_ids) - self.class_ids
        if self.class_ids and others:
            return 'class %d' % min(others)
        return None


def rule_of(tier: TierConf, table: ClassTable) -> Optional[PinRule]:
    """The rule that the configuration spells; None if it pins nothing.

    :raises BadConfig: it does not spell one
    """
    if not tier.pin_share:
        return None
    least, largest = 0, 1 << 30
    if tier.pin_depth:
        parts = tier.pin_depth.split('-')
        if len(parts) != 2 or not all(part.isdecimal() for part in parts):
            raise BadConfig('[tier] pin_depth: %r is not LEAST-LARGEST'
                            % tier.pin_depth)
        least, largest = int(parts[0]), int(parts[1])
    class_ids = set()
    for word in _words(tier.pin_classes):
        spec = table.by_name(word)
        if spec is None and not word.isdecimal():
            raise BadConfig('[tier] pin_classes: no class is called %r'
                            % word)
        class_ids.add(spec.class_id if spec else int(word))
    return PinRule(tier.pin_largest_bytes, (least, largest), tuple(
        Glob.of(word.lower()) for word in _words(tier.pin_types)),
        frozenset(class_ids))


def depth_of(name: str) -> int:
    """How deep an object lies: slashes in its name, without those of
    account and container."""
    parts = name.split('/', 3)
    return parts[3].count('/') if len(parts) == 4 else 0


def cut_off(sizes: Iterable[Tuple[int, int]], cap_bytes: int,
            largest_bytes: int) -> int:
    """The largest size that may be pinned, so that the sum stays under
    the cap.

    :param sizes: (bucket, bytes) of all that the rule fits
    :returns: 0 if not even the smallest bucket fits
    """
    left = cap_bytes
    bytes_left = 0
    filled: List[int] = [0] * (len(BUCKETS) + 1)
    for bucket, length in sizes:
        filled[bucket] += length
    for bucket, upper in enumerate(BUCKETS):
        left -= filled[bucket]
        if left < 0:
            return bytes_left
        bytes_left = min(upper, largest_bytes)
        if upper >= largest_bytes:
            break
    return bytes_left


def _words(text: str) -> List[str]:
    return [word.strip() for word in text.split(',') if word.strip()]
