"""The caches in C decide as those in Python, access by access."""

import dataclasses
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swift_dss.core.classes import Allocate, ClassSpec, ClassTable
from swift_dss.core.config import Admit
from swift_dss.replay import compiled, plan, simulator
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators, native
from swift_dss.replay.traces.model import Trace, numpy
from swift_dss.strategy.eviction.objects import compiled as by_name
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.s3fifo import S3FifoOrder

fast: Any = by_name.fast
if fast is None:
    pytest.skip('the caches were not compiled: no compiler, or no Python.h',
                allow_module_level=True)

STRATEGIES = [name for name in orders.names() if 'sarc' not in name]
CLASSES = 7


def chosen(dice):
    """A class table."""
    return ClassTable.of([ClassSpec(
        class_id, 'c%d' % class_id, dice.choice((1, 2, 3, 10 * class_id)),
        dice.choice([Allocate.ALWAYS] * 6 + [Allocate.ROOM, Allocate.NEVER]),
        dice.choice((0, 0, 0.1, 0.3)), dice.choice((1, 1, 1, 0.5, 0.2)),
        pin=dice.random() < 0.08, weight=dice.randint(1, 5),
        inner=dice.choice(('lru', 'sieve', 's3fifo', 'gdsf')))
        for class_id in range(CLASSES)])


def traced(dice):
    """Requests for objects of any size and class, which change now and then,
    some of them writes and deletes."""
    np = numpy()
    count, objects = dice.choice((50, 300, 2000)), dice.choice((5, 40, 300))
    largest, classes = dice.choice((1, 13, 1000)), dice.choice((1, 3, CLASSES))
    about = [(dice.randint(1, largest), dice.randrange(classes))
             for _ in range(objects)]
    keys, rows, verbs = [], [], []
    changes = dice.choice((0.0, 0.05))
    writes = dice.choice((0.0, 0.1))
    for _ in range(count):
        keys.append(min(dice.randrange(objects), dice.randrange(objects)))
        size, class_id = about[keys[-1]]
        rows.append((
            dice.randint(1, largest) if dice.random() < changes else size,
            dice.randrange(classes) if dice.random() < 0.1 else class_id))
        verbs.append(dice.choice((1, 2)) if dice.random() < writes else 0)
    sizes, class_ids = (np.array(column) for column in zip(*rows))
    zero = np.zeros(count, dtype='int64')
    return Trace('drawn', zero + np.arange(count), np.array(verbs, 'uint8'),
                 np.array(keys), zero, sizes, sizes,
                 class_ids.astype('uint8'), zero, zero)


def in_python(ready, setup):
    cache = setup.make_cache()
    return in_parts(simulator.decided(ready, setup, cache, 100)), \
        cache.used_bytes


def in_parts(steps):
    return [result for _, results, _ in steps
            for result in results.tolist()]


def in_c(ready, setup):
    cache = compiled.cache(setup, ready)
    return in_parts(compiled.play(ready, setup, cache, 100)), \
        cache.used_bytes


def drawn(seed, strategy):
    dice = random.Random(seed)
    ready = plan.plan(traced(dice))
    return ready, Setup(
        strategy, max(1, int(ready.footprint_bytes * dice.choice(
            (0.02, 0.1, 0.3, 0.9)))), chosen(dice),
        weights=dice.choice(({}, {1: 0.5, 2: 3.0})),
        write=dice.choice(('through', 'around')),
        admit=Admit(dice.choice((0, 0, 1, 4))))


@pytest.mark.parametrize('strategy', STRATEGIES)
@given(st.integers(0, 1 << 32))
@settings(max_examples=40, deadline=None, derandomize=False,
          suppress_health_check=[HealthCheck.too_slow])
def test_every_access_has_the_result_that_it_has_in_python(strategy, seed):
    ready, setup = drawn(seed, strategy)
    assert in_c(ready, setup) == in_python(ready, setup)


@pytest.mark.parametrize('twin', [
    lambda setup: dataclasses.replace(
        setup, cache_bytes=setup.cache_bytes - 1),
    lambda setup: dataclasses.replace(setup, weights={0: 2.0}),
    lambda setup: changed(setup, floor=0.2),
    lambda setup: changed(setup, cap=0.4),
    lambda setup: changed(setup, rank=25),
    lambda setup: changed(setup, allocate=Allocate.ROOM),
    lambda setup: changed(setup, pin=True),
    lambda setup: changed(setup, inner='sieve'),
    lambda setup: dataclasses.replace(
        setup, admit=Admit(setup.admit.window + 1))],
    ids=['room', 'weights', 'floor', 'cap', 'rank', 'allocate', 'pin',
         'order', 'window'])
def test_a_twin_that_is_wrong_in_one_place_is_seen(twin):
    strategy = 'weighted-gdsf' if twin(Setup('lru', 2, ClassTable())).weights \
        else 'class'
    assert any(in_c(ready, twin(setup)) != in_python(ready, setup)
               for ready, setup in (drawn(seed, strategy)
                                    for seed in range(40)))


def changed(setup, **values):
    return dataclasses.replace(setup, table=ClassTable.of(
        dataclasses.replace(spec, **values) if spec.class_id == 1 else spec
        for spec in setup.table.specs.values()))


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_times_and_sums_are_those_without_a_compiler(strategy, monkeypatch):
    # More objects than a first table has room for, and blocks of volumes.
    for text, unit in (('gen:zipf,requests=6000,objects=4000,sigma=1,'
                        'rate=50', -1),
                       ('gen:chains,requests=1500', 4096)):
        ready = plan.plan(generators.generate(text), unit)
        setup = Setup(strategy, ready.footprint_bytes // 3, ClassTable())
        with monkeypatch.context() as patch:
            compiled_too = simulator.replay(ready, setup)
            patch.setattr(by_name, 'fast', None)
            assert compiled.cache(setup, ready) is None
            alone = simulator.replay(ready, setup)
        assert compiled_too.counts == alone.counts
        assert (compiled_too.latency_ms == alone.latency_ms).all()
        assert (compiled_too.hit_bytes == alone.hit_bytes).all()
    assert alone.counts['delayed'] > 0


def test_what_c_cannot_say_is_left_to_python():
    table = ClassTable.of([ClassSpec(1, 'streams', 10, inner='sarc')])
    assert compiled.cache(Setup('sarc', 10, ClassTable())) is None
    assert compiled.cache(Setup('class', 10, table)) is None
    assert compiled.cache(Setup('class-lru', 10, table)) is not None
    # Products of bytes and weights that are not exact.
    assert compiled.cache(Setup('weighted-lru', 1 << 53, ClassTable(),
                                weights={3: 2.0})) is None
    assert compiled.cache(Setup('lru', 10, ClassTable(),
                                admit=Admit(learns=True))) is None
    # Which units an object has, when it is replaced.
    parted = plan.plan(native.read(
        [b'0 GET a 100 0 9', b'1 PUT a 100', b'2 GET a 100 0 9'], 'parts'))
    assert compiled.cache(Setup('lru', 10, ClassTable()), parted) is None


def test_a_change_of_class_forgets_the_ghost_that_it_meets():
    order = S3FifoOrder()
    order.insert(2, 50)
    for _ in range(2):
        order.touch(2)
    for _ in range(5):
        # By a change of class: nobody missed it here.
        order.insert(1, 10)
        assert order.evict() == (1, 10)
    order.remove(2)
    order.insert(3, 5)
    order.insert(4, 5)
    assert order.evict() == (3, 5)


ROW = (0, 1, 0, 100, 1.0, 0, 0, 1.0)


@pytest.mark.parametrize('arguments', [
    (0, True, False, 0.0, 0.0, (ROW,) * 32, 0),
    (10, True, False, 0.0, 0.0, (ROW,) * 31, 0),
    (10, True, False, 0.0, 0.0, (ROW,) * 32, -1),
    (10, True, False, 0.0, 0.0, ((4, *ROW[1:]),) * 32, 0)])
def test_a_cache_of_wrong_arguments_is_refused(arguments):
    with pytest.raises(ValueError):
        fast.Cache(*arguments)


@pytest.mark.parametrize('changes', [
    {'sizes': [0, 5]}, {'class_ids': [0, 32]}, {'verbs': [0, 5]},
    {'sizes': [5]}, {'came': [0]}, {'verbs': [0]}])
def test_columns_that_cannot_be_meant_are_refused(changes):
    np = numpy()
    made = fast.Cache(10, True, False, 0.0, 0.0, (ROW,) * 32, 0)
    columns = {
        'keys': [1, 2], 'sizes': [5, 5], 'class_ids': [0, 0],
        'verbs': [0, 0], 'results': [9, 9], 'came': [9, 9]}
    types = dict(dict.fromkeys(columns, 'uint8'), keys='int64',
                 sizes='int64', came='uint32')

    def play(columns):
        made.play(*(np.array(columns[name], types[name])
                    for name in columns), 0)
    play(columns)
    assert made.used_bytes == 10
    with pytest.raises(ValueError):
        play(dict(columns, **changes))
    with pytest.raises(ValueError):
        made.__init__(10, True, False, 0.0, 0.0, (ROW,) * 32)


def test_a_cache_says_how_many_objects_it_remembered_at_most():
    made = compiled.cache(Setup('lru', 20, ClassTable()))
    rows = numpy().arange(1, 6, dtype='int64')
    columns = [bytearray(5 * width) for width in (1, 1, 4)]
    made.play(rows, rows * 0 + 5, columns[0], b'', *columns[1:], 0)
    assert (made.used_bytes, made.remembered) == (20, 4)
