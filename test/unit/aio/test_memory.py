"""The cache in the proxy's memory behaves as memcached's client does."""

from __future__ import annotations

from swift_dss.aio.memory import Memory, filter_factory


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_values_age_and_can_be_forgotten():
    clock = Clock()
    memory = Memory(clock)
    memory.set('a', {'x': 1}, time=10)
    memory.set('b', 2)
    assert memory.get('a') == {'x': 1}
    clock.now += 10
    assert memory.get('a') is None
    assert memory.get('b') == 2
    memory.delete('b')
    assert memory.get('b') is None


def test_counters_never_go_below_zero():
    memory = Memory(Clock())
    assert memory.incr('n') == 1
    assert memory.incr('n', 4) == 5
    assert memory.decr('n', 9) == 0


def test_several_at_once_keep_their_order():
    memory = Memory(Clock())
    memory.set_multi({'a': 1, 'b': 2}, 'server')
    assert memory.get_multi(['b', 'c', 'a'], 'server') == [2, None, 1]


def test_it_does_not_grow_without_bound():
    memory = Memory(Clock())
    for number in range(25000):
        memory.set('key%d' % number, number)
    assert sum(memory.get('key%d' % number) is not None
               for number in range(25000)) <= 10000
    assert memory.get('key24999') == 24999


def test_the_filter_puts_it_where_swift_looks():
    seen = []
    wrapped = filter_factory({})(
        lambda env, start: seen.append(env['swift.cache']))
    wrapped({}, None)
    wrapped({}, None)
    assert seen[0] is seen[1]
