"""A cache in virtual time that keeps to the contract of prefetch
strategies, as small as can be: LRU over units, fetches that take their
time, and nothing else."""

from __future__ import annotations

import heapq
from collections import OrderedDict

from swift_dss.strategy.prefetch.base import Access


class Host:
    """Drives one strategy.

    :param seconds: what a fetch of ``n`` units takes: a function of ``n``
    :param capacity: units in the cache
    """

    def __init__(self, strategy, unit_bytes, capacity, seconds,
                 object_bytes=1 << 40, room=1 << 40):
        self.strategy = strategy
        self.unit = unit_bytes
        self.capacity = capacity
        self.seconds = seconds
        self.object_bytes = object_bytes
        self.room = room
        self.now = 0.0
        #: key to [arrives at, prefetched, used]
        self.cache = OrderedDict()
        self.coming = []
        self.waited = set()
        self.number = 0
        self.wants = []
        self.count = dict.fromkeys(
            ('hit', 'late', 'miss', 'useful', 'wasted'), 0)

    def read(self, at, unit, units=1, object_id='x', client='c',
             account='a'):
        """Read whole units at a time; how long the reader waits."""
        self.pass_to(at)
        keys = [(account, object_id, number)
                for number in range(unit, unit + units)]
        cached = [self.cache.get(key) for key in keys]
        there = [piece is not None and piece[0] <= at for piece in cached]
        wait = 0.0
        if all(there):
            self.count['hit'] += 1
        elif all(cached):
            self.count['late'] += 1
            wait = max(piece[0] for piece in cached) - at
            self.waited.update(keys)
        else:
            self.count['miss'] += 1
            wait = self.seconds(units)
        self._touch(keys)
        wants = self.strategy.on_request(Access(
            account, client, object_id, unit * self.unit,
            units * self.unit, self.object_bytes, all(there), at), self.room)
        self.wants += wants
        for want in wants:
            self._fetch(want, at)
        return wait

    def _touch(self, keys):
        for key in keys:
            entry = self.cache.pop(key, None) or [0.0, False, True]
            if entry[1] and not entry[2]:
                self.count['useful'] += 1
            entry[2] = True
            self.cache[key] = entry
        self._shrink()

    def _fetch(self, want, at):
        first = want.offset // self.unit
        last = (want.offset + want.length - 1) // self.unit
        keys = [(want.account, want.object_id, number)
                for number in range(first, last + 1)]
        for key in keys:
            if key in self.cache and self.cache[key][0] <= at:
                self.strategy.on_arrival(*key[:2], key[2] * self.unit,
                                         self.unit, False, at)
        keys = [key for key in keys if key not in self.cache]
        if not keys:
            return
        ready = at + self.seconds(len(keys))
        for key in keys:
            self.cache[key] = [ready, True, False]
        self.number += 1
        heapq.heappush(self.coming, (ready, self.number, keys))
        self._shrink()

    def pass_to(self, now):
        """Let time pass."""
        self.now = now
        while self.coming and self.coming[0][0] <= now:
            ready, _, keys = heapq.heappop(self.coming)
            for account, object_id, number in keys:
                key = account, object_id, number
                if key in self.cache:
                    self.strategy.on_arrival(
                        account, object_id, number * self.unit, self.unit,
                        key in self.waited, ready)
                    self.waited.discard(key)

    def _shrink(self):
        while len(self.cache) > self.capacity:
            key, entry = self.cache.popitem(last=False)
            where = (*key[:2], key[2] * self.unit, self.unit)
            if entry[1] and not entry[2]:
                if self.strategy.on_last_chance(*where, self.now):
                    self.cache[key] = entry
                    continue
                self.count['wasted'] += 1
            self.strategy.on_evict(*where, entry[2], self.now)


def stream(host, units, gap, start=0, first=0, request=1, **which):
    """One stream that waits for each read, ``gap`` seconds apart; the
    waits."""
    at, waits = start, []
    for unit in range(first, first + units, request):
        wait = host.read(at, unit, request, **which)
        waits.append(wait)
        at += wait + gap
    return waits
