"""A tuner takes what serves better, says why, and gives it back."""

import random

import pytest

from swift_dss.cli import main
from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.replay import latency, plan, simulator
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.verbs import HIT, MISS
from swift_dss.strategy.tuning import shadows
from swift_dss.strategy.tuning.cache import TunedCache
from swift_dss.strategy.tuning.choices import (
    Choice, candidates, configured)
from swift_dss.strategy.tuning.chooser import (
    HELD_BATCHES, LONGEST, Chooser, Verdict)
from swift_dss.strategy.tuning.guard import (
    LEAST, SETTLING, Guard, Lag)
from swift_dss.strategy.tuning.shadows import Penalty, Shadows
from swift_dss.strategy.tuning.tuner import Earlier, Tuner

EVEN = Penalty({}, 1000.0, 1e9)
TABLE = ClassTable.of([ClassSpec(0, 'none', 0), ClassSpec(9, 'gold', 9)])


def judged(chooser, gains, batches, now=0.0):
    """Changes that these shares of 1000 lead to, with some noise."""
    dice = random.Random(1)
    changes = []
    for _ in range(batches):
        noise = dice.uniform(-20, 20)
        change = chooser.judge(1000.0, [
            500 + noise + 1000 * gain for gain in gains], now)
        if change is not None:
            changes.append(change)
    return changes


# -- choices -----------------------------------------------------------------

def test_classes_keep_their_kind_and_the_configured_comes_first():
    own = configured('class_ordered')
    assert own == Choice('class', '')
    assert [choice.strategy for choice in candidates(own, TABLE)] == [
        'class', 'class-sieve', 'class-s3fifo', 'class-gdsf']
    assert [choice.strategy for choice in candidates(
        configured('gdsf'), TABLE)] == ['gdsf', 'lru', 'sieve', 's3fifo']


def test_a_choice_changes_the_order_in_classes_and_nothing_else():
    eviction, table = Choice('class', 'gdsf').apply('class_ordered', TABLE)
    assert eviction == 'class_ordered'
    assert {(spec.rank, spec.inner) for spec in table.specs.values()} == {
        (0, 'gdsf'), (9, 'gdsf')}
    assert Choice('class', '').apply('class_ordered', TABLE) == (
        'class_ordered', TABLE)
    assert Choice('', 'sieve').apply('lru', TABLE) == ('sieve', TABLE)


def test_ids_without_a_row_take_the_chosen_order_too():
    _, table = Choice('class', 'sieve').apply('class_ordered', ClassTable())
    assert table.spec(17).inner == 'sieve'


# -- chooser -----------------------------------------------------------------

def test_a_large_gain_counts_soon_and_a_small_one_later():
    large, = judged(Chooser(), [0.0, 0.1], 40)
    small, = judged(Chooser(), [0.0, 0.005], 130)
    assert (large.new, large.batches) == (1, 8)
    assert (small.new, small.batches) == (1, 128)
    assert large.gain == pytest.approx(0.1)


def test_a_gain_that_is_next_to_nothing_changes_nothing():
    assert judged(Chooser(), [0.0, 0.003], 500) == []


def test_a_gain_of_a_few_lucky_batches_changes_nothing():
    """Eight batches say 4 points more, by less than two standard errors."""
    chooser = Chooser()
    for gain in (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.16, 0.16):
        assert chooser.judge(1000.0, [500.0, 500 + 1000 * gain], 0.0) is None


def test_the_configured_one_comes_back_when_it_is_not_worse():
    chooser = Chooser()
    judged(chooser, [0.0, 0.1], 8)
    assert chooser.current == 1
    back, = judged(chooser, [0.0, 0.0], 200)
    assert (back.old, back.new, back.batches) == (1, 0, 128)


def test_four_better_batches_do_not_keep_what_gains_nothing():
    chooser = Chooser(current=1)
    for _ in range(LONGEST - 4):
        assert chooser.judge(1000.0, [500.0, 500.0], 0.0) is None
    last = [chooser.judge(1000.0, [500.0, 502.0], 0.0) for _ in range(4)]
    assert last[:3] == [None] * 3
    assert (last[3].new, last[3].batches) == (0, LONGEST)


def test_the_configured_one_comes_back_at_once_when_it_is_better():
    chooser = Chooser(current=1)
    back, = judged(chooser, [0.1, 0.0], 20)
    assert (back.new, back.batches) == (0, 4)


def test_changes_are_bounded_and_the_way_back_is_not():
    chooser = Chooser(changes_a_day=2)
    for _ in range(2):
        assert len(judged(chooser, [0.0, 0.1], 20)) == 1
        assert len(judged(chooser, [0.1, 0.0], 20)) == 1
    assert judged(chooser, [0.0, 0.1], 200, now=86399.0) == []
    assert len(judged(chooser, [0.0, 0.1], 20, now=86400.0)) == 1


def test_what_led_to_a_change_does_not_lead_back():
    chooser = Chooser()
    judged(chooser, [0.0, 0.1, 0.0], 8)
    assert judged(chooser, [0.0, 0.1, 0.11], 7) == []
    assert chooser.batches == 7


# -- shadows -----------------------------------------------------------------

def test_shadows_remember_no_more_than_memory_allows(monkeypatch):
    monkeypatch.setattr(shadows, 'MOST', 300)
    monkeypatch.setattr(shadows, 'MOST_PYTHON', 300)
    made = Shadows(candidates(configured('lru'), TABLE), 10 ** 9, TABLE,
                   EVEN)
    for key in range(20000):
        made.hear(key, 1000, 0)
    assert made.generation and made.share < 0.1


def test_a_sample_has_all_of_an_object_or_nothing(monkeypatch):
    monkeypatch.setattr(shadows, 'MOST', 300)
    monkeypatch.setattr(shadows, 'MOST_PYTHON', 300)
    made = Shadows([Choice('', 'lru')], 10 ** 6, TABLE, EVEN)
    for key in range(20000):
        made.hear(key, 1000, 0)
    batches = [made.hear(7919 + key, 10, 0)
               for _ in range(400) for key in range(500)]
    asked = sum(batch[0] for batch in batches if batch)
    saved = sum(batch[1][0] for batch in batches if batch)
    assert made.share < 0.5
    assert asked and saved > 0.9 * asked


@pytest.mark.parametrize('is_compiled', [True, False])
def test_removed_objects_are_missed_and_removals_cost_nothing(
        is_compiled, monkeypatch):
    if not is_compiled:
        monkeypatch.setattr(shadows.compiled, 'fast', None)
    made = Shadows([Choice('', 'lru'), Choice('', 'gdsf')], 10 ** 6, TABLE,
                   EVEN)
    rows = [(1, shadows.ACCESS), (1, shadows.ACCESS), (1, shadows.REMOVE),
            (2, shadows.REMOVE)] * (shadows.BATCH // 4)
    batch = [made.hear(key, 1000, 0, verb) for key, verb in rows][-1]
    assert batch.asked == pytest.approx(2 * batch.saved[0])
    assert batch.saved[0] == batch.saved[1] > 0


@pytest.mark.parametrize('hits', [True, False])
def test_a_write_costs_nothing_and_brings_the_object(hits):
    made = Shadows([Choice('', 'lru')], 10 ** 6, TABLE, EVEN)
    rows = [(1, shadows.WRITE, None), (1, shadows.ACCESS, hits)] * (
        shadows.BATCH // 2)
    batch = [made.hear(key, 1000, 0, verb, is_hit)
             for key, verb, is_hit in rows][-1]
    assert batch.saved == [batch.asked] and batch.asked > 0
    assert batch.true == (batch.asked if hits else 0)
    number = shadows.BATCH // 2
    assert batch.reads == (number, 1000 * number)
    assert batch.hits == [batch.reads]


# -- guard -------------------------------------------------------------------

def lags(guard, share, batches, seed=1):
    dice = random.Random(seed)
    for _ in range(batches):
        guard.hear(1000.0, 500.0 + 1000 * share + dice.uniform(-20, 20),
                   500.0)


def test_a_guard_measures_the_lag_at_home_and_sees_a_larger_one_away():
    guard = Guard()
    lags(guard, 0.05, 100)
    guard.left()
    assert guard.home.mean == pytest.approx(0.05, abs=0.005)
    lags(guard, 0.05, 128)
    assert guard.loss() is None
    guard.changed()
    lags(guard, 0.09, SETTLING + 20)
    loss, error, batches = guard.loss()
    assert loss == pytest.approx(0.04, abs=0.01) and batches == 20
    assert 0 < error < 0.01


def test_a_loss_of_more_than_a_point_is_never_borne():
    guard = Guard(Lag(0.0, 1.0))
    lags(guard, 0.012, 127)
    assert guard.loss() is None
    lags(guard, 0.012, 1)
    assert guard.loss()[0] > 0.01


def test_a_guard_does_not_judge_a_few_batches():
    guard = Guard(Lag(0.0, 0.0))
    lags(guard, 0.5, LEAST - 1)
    assert guard.lag() is None and guard.loss() is None
    lags(guard, 0.5, 1)
    assert guard.loss()[2] == LEAST


def test_a_guard_without_a_lag_from_home_says_nothing():
    guard = Guard()
    lags(guard, 0.5, 128)
    assert guard.loss() is None


def test_what_the_guard_brought_back_stays_for_a_while():
    chooser = Chooser(current=1)
    back = chooser.go_back(0.02, 0.001, 20)
    assert (back.old, back.new, back.by_guard, back.gain) == (
        1, 0, True, 0.02)
    assert judged(chooser, [0.0, 0.1], HELD_BATCHES - 1) == []
    assert len(judged(chooser, [0.0, 0.1], 20)) == 1


# -- all together ------------------------------------------------------------

def scan(times, keys):
    """A loop a little larger than the cache, which LRU never hits, beside
    some keys that it always hits."""
    return [key for _ in range(times) for key in range(keys)]


def test_a_tuner_leaves_lru_in_a_loop_and_says_what_it_gains():
    tuner = Tuner(configured('lru'), 100 * 10, TABLE, EVEN)
    changes = [change for key in scan(100, 120) for change in [
        tuner.hear(key, 10, 0, 0.0)] if change]
    assert changes[0].old == 0 and changes[0].gain > 0.2
    assert tuner.current.strategy != 'lru'
    assert changes[0].saved[changes[0].new] - changes[0].saved[0] == \
        pytest.approx(changes[0].gain)


def test_shares_of_hits_and_of_bytes_are_told_apart():
    """Five large objects fill the cache that LRU keeps them in; GDSF has the
    small ones, which come a little less often."""
    tuner = Tuner(configured('lru'), 5100, TABLE, EVEN)
    assert tuner.hit_shares() == []
    for turn in range(2000):
        tuner.hear(turn % 5, 1000, 0, 0.0)
        tuner.hear(100 + turn % 30, 10, 0, 0.0)
        if tuner.chooser.batches == 20:
            break
    shares = dict(zip(tuner.names, tuner.hit_shares()))
    hits, in_bytes = shares['lru']
    assert in_bytes > 0.9 > hits
    hits, in_bytes = shares['gdsf']
    assert hits > shares['lru'][0] and in_bytes < shares['lru'][1]
    assert all(0 <= share <= 1 for both in shares.values() for share in both)


def test_a_cache_that_does_not_do_what_its_order_should_is_given_up():
    """The true one hits as the configured order would, and under any other
    misses all."""
    tuner = Tuner(configured('lru'), 100 * 10, TABLE, EVEN)
    true = orders.make('lru', 100 * 10, TABLE, {}, EVEN)
    changes = []
    for key in scan(400, 120):
        is_hit = true.access(key, 10) == HIT and not tuner.chooser.current
        change = tuner.hear(10000 + key % 40, 10, 0, 0.0, is_hit=bool(
            not tuner.chooser.current))
        change = change or tuner.hear(key, 10, 0, 0.0, is_hit=is_hit)
        if change:
            changes.append(change)
    assert [change.by_guard for change in changes[:2]] == [False, True]
    assert not changes[1].new and changes[1].gain > 0.01


def test_shadows_that_begin_again_are_judged_from_there(monkeypatch):
    monkeypatch.setattr(shadows, 'MOST', 300)
    monkeypatch.setattr(shadows, 'MOST_PYTHON', 300)
    tuner = Tuner(configured('lru'), 10 ** 6, TABLE, EVEN)
    judged_before = 0
    for key in range(20000):
        judged_before = judged_before or tuner.chooser.batches
        tuner.hear(key, 1000, 0, 0.0)
        if tuner.shadows.generation:
            break
    assert judged_before and not tuner.chooser.batches


def test_an_earlier_choice_goes_on_and_an_unknown_one_does_not():
    assert Tuner(configured('lru'), 9, TABLE, EVEN,
                 earlier=Earlier('gdsf')).current.strategy == 'gdsf'
    assert Tuner(configured('lru'), 9, TABLE, EVEN,
                 earlier=Earlier('class-gdsf')).current.strategy == 'lru'


def test_a_change_keeps_what_is_there():
    cache = TunedCache(configured('lru'), 1000, TABLE, EVEN)
    for key in scan(100, 120):
        cache.access(key, 10)
        assert cache.used_bytes <= 1000
    assert cache.changes
    there = [key for key in range(120) if key in cache]
    assert len(there) == len(cache) == cache.used_bytes / 10 == 100
    assert [cache.access(key, 10) for key in there] == [HIT] * 100


def test_dirty_and_pinned_objects_stay_through_a_change():
    cache = TunedCache(configured('lru'), 1000, TABLE, EVEN)
    for key in (1000, 1001):
        assert cache.access(key, 10) == MISS
    cache.set_dirty(1000)
    cache.pin(1001)
    for key in scan(100, 120):
        cache.access(key, 10)
    assert cache.changes and cache.held_bytes() == 20
    assert cache.is_dirty(1000) and not cache.is_dirty(1001)
    assert 1000 in cache and 1001 in cache


def to_and_fro(chooser, asked, saved, now, may_leave=True):
    """In place of :meth:`Chooser.judge`: another one after each batch."""
    old, chooser.current = chooser.current, 1 - chooser.current
    return Verdict(old, chooser.current, 0.0, 0.0, 1, tuple(saved))


@pytest.mark.parametrize('seed', range(3))
def test_what_leaves_with_a_change_is_told(seed, monkeypatch):
    monkeypatch.setattr(Chooser, 'judge', to_and_fro)
    dice = random.Random(seed)
    cache = TunedCache(configured('weighted'), 1000, ClassTable.of([
        ClassSpec(1, 'one', 1, cap=0.3), ClassSpec(2, 'two', 2, cap=0.5),
        ClassSpec(3, 'three', 3)]), EVEN)
    cache.evicted, there, in_changes = [], set(), 0
    for _ in range(60):
        for key in range(dice.choice((90, 120, 150))):
            class_id, size = dice.choice((1, 2, 3)), dice.choice(
                (1, 5, 10, 20, 40))
            changes = len(cache.changes)
            cache.access(key, size, class_id)
            there.add(key)
            gone = {other for other in there if other not in cache}
            assert gone - {key} <= set(cache.evicted)
            in_changes += len(gone) * (len(cache.changes) - changes)
            there -= gone
            cache.evicted.clear()
    assert in_changes


def test_weighted_order_keeps_the_weights_of_the_class_table(monkeypatch):
    table = ClassTable.of([ClassSpec(1, 'one', 1, weight=1),
                           ClassSpec(2, 'two', 2, weight=9)])

    def here(cache):
        for key in range(4000):
            cache.access(key, 10, 1 + key % 2)
        return cache.bytes_of(2)
    assert here(TunedCache(configured('weighted'), 1000, table, EVEN)) == 900


@pytest.mark.parametrize('options, word', [
    (['--strategy', 'tuned-lru', '--admit', 'second'], '--admit'),
    (['--strategy', 'tuned-mru'], 'tuned-mru'),
    (['--strategy', 'tuned-lru', '--measure', '100'], 'tuned-lru')])
def test_what_a_tuner_cannot_do_is_refused(options, word, capsys):
    assert main.main(['replay', 'gen:zipf,requests=100', *options])
    assert word in capsys.readouterr().err


def test_a_replay_in_charge_of_a_tuner_beats_the_order_it_began_with():
    ready = plan.plan(generators.generate(
        'gen:zipf,requests=60000,objects=8000,alpha=0.6,sigma=1.5'))
    lru, tuned = (simulator.replay(ready, Setup(
        name, ready.footprint_bytes // 20, TABLE, latency.S3)).hits.mean()
        for name in ('lru', 'tuned-lru'))
    assert tuned > lru + 0.1
