"""Which doorkeeper writes least at no loss: tried on caches without bytes.

Whether a second miss is worth waiting for depends on the load: where objects
are read once or always it even adds hits, and where each comes back once,
soon after its first read, it loses all of them. So each doorkeeper, and none,
has a *shadow*: a cache of the same order over a spatial sample of the objects
(Waldspurger and others, "Cache Modeling and Optimization using Miniature
Simulations", ATC 2017) with the same share of the room. In force is the one
whose shadow wrote the fewest bytes, of those whose hits are not more than
:data:`SLACK` of the reads below the hits of the shadow that lets all in. As
far as it is less than that below them, the rest is spent on one that writes
still less: it is in force for a part of the objects.
"""

from __future__ import annotations

from typing import Callable, List, Mapping, Optional

from swift_dss.strategy.eviction.objects.doorkeeper import ANY, SecondTouch
from swift_dss.strategy.eviction.objects.smallfirst import SmallFirst
from swift_dss.strategy.eviction.objects.verbs import HIT, MISS, ObjectCache

#: Hits that fewer writes may cost, as a share of the reads.
SLACK = 0.004
#: Objects of one shadow: with more, the sample is made smaller.
MOST = 6000
#: Sampled accesses from one look at the shadows to the next, and weighted
#: reads after which older ones count half.
_BATCH, _MEMORY = 128, 20000.0
#: Caches of misses that are remembered.
_SHORT, _LONG = 1, 4
_MASK = (1 << 64) - 1
_ODD = 0x9E3779B97F4A7C15


#: The candidates, the one that lets all in first.
NAMES = 'all', 'second:%d' % _SHORT, 'second:%d' % _LONG, 'small'


def _rules(room: int, most_keys: int) -> List[Optional[SecondTouch]]:
    """The candidates for a cache, in the order of their names."""
    return [None, SecondTouch(_SHORT * room, most_keys),
            SecondTouch(_LONG * room, most_keys),
            SmallFirst(room, _LONG * room, most_keys)]


def _mixed(key: int) -> int:
    """A number of 64 bits for a key, in no order."""
    mixed = key * _ODD & _MASK
    return (mixed ^ mixed >> 32) * _ODD & _MASK


class Shadow:
    """One candidate's cache.

    :ivar hits: weighted
    :ivar written_bytes: with those that clients wrote
    """

    def __init__(self, cache: ObjectCache,
                 rule: Optional[SecondTouch]) -> None:
        self.cache = cache
        self.cache.doorkeeper = rule
        self.hits = self.written_bytes = 0.0

    def hear(self, key: int, size: int, class_id: int, sequential: bool,
             is_written: bool, weight: float) -> None:
        """An access of the sample."""
        come = self.cache.write if is_written else self.cache.access
        outcome = come(key, size, class_id, sequential)
        if outcome == MISS or outcome == HIT and is_written:
            self.written_bytes += size
        elif outcome == HIT:
            self.hits += weight


class Learned(SecondTouch):
    """See the module. Memory is that of four shadows of :data:`MOST` objects,
    and of four caches of keys that were kept out.

    :param room_bytes: of the true cache
    :param make: an empty cache of the order, of so many bytes
    :param weights: of classes, for hits; 1 each
    :param most_keys: that each candidate remembers
    :ivar in_force: the number of the candidate
    """

    def __init__(self, room_bytes: int, make: Callable[[int], ObjectCache],
                 weights: Mapping[int, float], most_keys: int = ANY) -> None:
        super().__init__(_LONG * room_bytes, most_keys)
        self._room_bytes = room_bytes
        self._make = make
        self._weights = weights
        self._candidates = _rules(room_bytes, most_keys)
        self.in_force = self._other = self._candidates.index(None)
        self._other_below = 0
        self._share = 1.0
        self._restart()

    def __len__(self) -> int:
        return sum(len(rule) for rule in self._candidates if rule)

    def hear(self, key: int, size: int, class_id: int, sequential: bool,
             is_written: bool) -> None:
        """See :meth:`SecondTouch.hear`."""
        for rule in self._candidates:
            if rule is not None:
                rule.hear(key, size, class_id, sequential, is_written)
        if not self._is_sampled(key):
            return
        weight = self._weights.get(class_id, 1.0)
        for shadow in self._shadows:
            shadow.hear(key, size, class_id, sequential, is_written, weight)
        self._reads += weight * (not is_written)
        self._heard += 1
        if not self._heard % _BATCH:
            self._judge()

    def removed(self, key: int) -> None:
        """See :meth:`SecondTouch.removed`."""
        if self._is_sampled(key):
            for shadow in self._shadows:
                shadow.cache.remove(key)

    def admits(self, key: int, size: int, room_bytes: int,
               read: int = 0) -> bool:
        """See :meth:`SecondTouch.admits`."""
        # Each goes on remembering, so that it can take over at any time.
        verdicts = [rule is None or rule.admits(key, size, room_bytes, read)
                    for rule in self._candidates]
        return verdicts[self._other if _mixed(~key) < self._other_below
                        else self.in_force]

    def _is_sampled(self, key: int) -> bool:
        return _mixed(key) < self._below

    def _judge(self) -> None:
        self._choose()
        if self._reads > _MEMORY:
            self._reads /= 2
            for shadow in self._shadows:
                shadow.hits /= 2
                shadow.written_bytes /= 2
        if max(len(shadow.cache) for shadow in self._shadows) > MOST:
            self._share /= 2
            self._restart()

    def _choose(self) -> None:
        least = self._shadows[0].hits - SLACK * self._reads
        numbers = range(len(self._shadows))
        best = min((number for number in numbers
                    if self._shadows[number].hits >= least),
                   key=lambda number: self._shadows[number].written_bytes)
        other, saved_bytes, part = best, 0.0, 0.0
        spare = self._shadows[best].hits - least
        for number in numbers:
            shadow = self._shadows[number]
            if shadow.hits >= least:
                continue
            its_part = spare / (self._shadows[best].hits - shadow.hits)
            saved = its_part * (self._shadows[best].written_bytes
                                - shadow.written_bytes)
            if saved > saved_bytes:
                other, saved_bytes, part = number, saved, its_part
        self.in_force, self._other = best, other
        self._other_below = int(part * (1 << 64))

    def _restart(self) -> None:
        room = max(1, int(self._share * self._room_bytes))
        self._below = int(self._share * (1 << 64))
        self._heard, self._reads = 0, 0.0
        self._shadows = [Shadow(self._make(room), rule)
                         for rule in _rules(room, self.most_keys)]
