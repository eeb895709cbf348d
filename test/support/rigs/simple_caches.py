"""The published algorithms once more, as plainly as they can be said.

Nothing is shared with ``swift_dss.strategy.eviction``: lists are searched
from end to end, sums are counted anew. Slow, and meant to be.
"""

import bisect


class SimpleLru:
    """A list; the front leaves."""

    def __init__(self, room):
        self.room, self.items = room, []

    def used(self):
        return sum(item['size'] for item in self.items)

    def find(self, key):
        return next((item for item in self.items if item['key'] == key), None)

    def access(self, key, size):
        item = self.find(key)
        if item:
            self.items.remove(item)
            self.items.append(item)
            return True
        if size > self.room:
            return False
        while self.used() + size > self.room:
            self.items.pop(0)
        self.items.append({'key': key, 'size': size})
        return False


class SimpleSieve(SimpleLru):
    """The newest in front; the hand goes from the back to the front."""

    def __init__(self, room):
        super().__init__(room)
        self.hand = None

    def access(self, key, size):
        item = self.find(key)
        if item:
            item['visited'] = True
            return True
        if size > self.room:
            return False
        while self.used() + size > self.room:
            self.evict()
        self.items.insert(0, {'key': key, 'size': size, 'visited': False})
        return False

    def evict(self):
        at = len(self.items) - 1
        if self.hand is not None:
            at = next(place for place, item in enumerate(self.items)
                      if item['key'] == self.hand)
        while self.items[at]['visited']:
            self.items[at]['visited'] = False
            at = at - 1 if at > 0 else len(self.items) - 1
        self.hand = self.items[at - 1]['key'] if at > 0 else None
        del self.items[at]


class SimpleS3Fifo:
    """Three lists, the oldest in front."""

    def __init__(self, room):
        self.room = room
        self.small_room = int(room * 0.1)
        self.small, self.main, self.ghost = [], [], []
        self.evicted_once = False

    @staticmethod
    def total(items):
        return sum(item['size'] for item in items)

    def access(self, key, size):
        for item in self.small + self.main:
            if item['key'] == key:
                item['hits'] += 1
                return True
        known = [item for item in self.ghost if item['key'] == key]
        for item in known:
            self.ghost.remove(item)
        if size > self.small_room or (size == self.small_room
                                      and not known):
            return False
        while self.total(self.small + self.main) + size > self.room:
            self.evict()
        item = {'key': key, 'size': size, 'hits': 0}
        full = self.total(self.small) >= self.small_room
        if known or (not self.evicted_once and full):
            self.main.append(item)
        else:
            self.small.append(item)
        return False

    def evict(self):
        self.evicted_once = True
        main_room = self.room - self.small_room
        if self.small and self.total(self.main) <= main_room:
            while self.small:
                item = self.small.pop(0)
                if item['hits'] >= 2:
                    item['hits'] = 0
                    self.main.append(item)
                    continue
                self.remember(item)
                return
            return
        while True:
            item = self.main.pop(0)
            if item['hits'] == 0:
                return
            item['hits'] = min(item['hits'], 3) - 1
            self.main.append(item)

    def remember(self, item):
        limit = int(self.room * 0.9)
        if item['size'] > limit:
            return
        while self.total(self.ghost) + item['size'] > limit:
            self.ghost.pop(0)
        self.ghost.append(item)


class SimpleGdsf:
    """All priorities in one sorted list; the least leaves. A trace of a
    million requests takes seconds."""

    def __init__(self, room, cost=lambda size: 1.0e6):
        self.room, self.used, self.age, self.turn = room, 0, 0.0, 0
        self.order, self.items, self.cost = [], {}, cost

    def access(self, key, size):
        self.turn += 1
        entry = self.items.get(key)
        if entry:
            priority, uses, size = entry
            del self.order[bisect.bisect_left(self.order, priority)]
            self.rank(key, uses + 1, size)
            return True
        if size > self.room:
            return False
        while self.used + size > self.room:
            priority = self.order.pop(0)
            self.age = priority[0]
            self.used -= self.items.pop(priority[2])[2]
        self.used += size
        self.rank(key, 1, size)
        return False

    def rank(self, key, uses, size):
        priority = (self.age + uses * self.cost(size) / size, self.turn, key)
        bisect.insort(self.order, priority)
        self.items[key] = priority, uses, size


SIMPLE = {'lru': SimpleLru, 'sieve': SimpleSieve, 's3fifo': SimpleS3Fifo,
          'gdsf': SimpleGdsf}
