"""AMP, rule by rule, and what its authors published of it."""

from __future__ import annotations

import heapq

import pytest
from support.rigs.prefetch_host import Host, stream

from swift_dss.strategy.prefetch.amp import UNIT_STATE_BYTES
from swift_dss.strategy.prefetch.amp import Amp as WholeAmp
from swift_dss.strategy.prefetch.base import (
    Access, Settings, Urgency)
from swift_dss.strategy.prefetch.seq import Seq

UNIT = 100
SETTINGS = Settings(UNIT, max_degree=64)
END = 1 << 30


def Amp(settings):
    """With a first degree at which rule 3 can be seen."""
    return WholeAmp(settings, first_degree=4)


def read(amp, unit, units=1, hit=True, at=0.0, room=1 << 40, **more):
    """What is wanted after a read of whole units: (first, units)."""
    return [(want.offset // UNIT, want.length // UNIT) for want in
            amp.on_request(Access('a', 'c', 'x', unit * UNIT, units * UNIT,
                                  more.get('end', END), hit, at), room)]


def arrive(amp, unit, units=1, waited=False, at=0.0):
    amp.on_arrival('a', 'x', unit * UNIT, units * UNIT, waited, at)


def last_chance(amp, unit):
    return amp.on_last_chance('a', 'x', unit * UNIT, UNIT, 0.0)


def begun(units=1):
    """A stream whose first set, [2, 5], is there: p = 4, g = 2."""
    amp = Amp(SETTINGS)
    assert read(amp, 0, units, hit=False) == []
    assert read(amp, units, units, hit=False) == [(2 * units, 4)]
    arrive(amp, 2 * units, 4)
    return amp


def test_rule_1_a_miss_after_what_is_known_is_sequential():
    amp = Amp(SETTINGS)
    assert read(amp, 10, hit=False) == []
    assert read(amp, 20, hit=False) == []
    wants = amp.on_request(Access('a', 'c', 'x', 11 * UNIT, UNIT, END,
                                  False, 0.0), 1 << 40)
    assert [(want.offset // UNIT, want.length // UNIT, want.urgency)
            for want in wants] == [(12, 4, Urgency.WITH_MISS)]


def test_rule_1_what_is_known_counts_by_bytes_and_not_by_units():
    """Reads that are smaller than units: neighbours among units are none
    among reads."""
    amp = Amp(SETTINGS)

    def small(offset):
        return amp.on_request(Access('a', 'c', 'x', offset, 10, END, False,
                                     0.0), 1 << 40)

    assert small(20) == [] and small(160) == []
    assert small(200) == []
    assert small(170)[0].offset == 180


def test_rule_2_a_set_after_another_takes_over_degree_and_trigger():
    amp = begun()
    for unit in (2, 3, 4):
        assert read(amp, unit) == []
    read(amp, 5)                              # rule 5: p = 5
    assert read(amp, 6, hit=False) == [(7, 5)]
    arrive(amp, 7, 5)
    assert read(amp, 7) == [] and read(amp, 8) == []
    # The last is 11 and g is 2: 9 has the tag.
    assert read(amp, 9) == [(12, 5)]


def test_rule_2_a_large_request_begins_with_a_degree_as_large():
    amp = Amp(SETTINGS)
    assert read(amp, 0, 8, hit=False) == []
    assert read(amp, 8, 8, hit=False) == [(16, 8)]
    arrive(amp, 16, 8)
    # p = 8, so g = 4, and the tag is at 23 - 4.
    assert read(amp, 16, 3) == []
    assert read(amp, 19, 1) == [(24, 8)]


def test_rule_3_small_degrees_fetch_nothing_ahead():
    amp = begun()
    assert [read(amp, unit) for unit in (2, 3, 4, 5)] == [[]] * 4


def test_rule_4_a_tag_counts_once():
    amp = Amp(SETTINGS)
    read(amp, 0, 8, hit=False)
    read(amp, 8, 8, hit=False)
    arrive(amp, 16, 8)
    assert read(amp, 19) == [(24, 8)]
    assert read(amp, 19) == []


def test_rule_5_the_degree_grows_by_the_request_up_to_its_limit():
    amp = begun(units=2)
    read(amp, 4, 2)
    read(amp, 6, 2)                           # the last of [4, 7]: 4 + 2
    assert read(amp, 8, 2, hit=False) == [(10, 6)]
    amp = Amp(Settings(UNIT, max_degree=6))
    read(amp, 0, hit=False)
    read(amp, 1, hit=False)
    first = 2
    for _ in range(9):
        for unit in range(first, first + 5):
            wanted = read(amp, unit) or []
            assert all(units <= 5 for _, units in wanted)
        first += 5


def test_rule_5_an_old_unit_lets_nothing_grow():
    amp = begun()
    assert last_chance(amp, 5)                # old; p = 3
    for unit in (2, 3, 4, 5):
        read(amp, unit)
    assert read(amp, 6, hit=False) == [(7, 3)]


def test_rule_6_an_unread_unit_is_kept_once_and_the_degree_falls():
    amp = begun()
    assert last_chance(amp, 2)
    assert not last_chance(amp, 2)
    for unit in (2, 3, 4):
        read(amp, unit)
    assert not last_chance(amp, 3)            # it was read
    assert read(amp, 5) == []                 # p = 3 + 1
    assert read(amp, 6, hit=False) == [(7, 4)]


@pytest.mark.parametrize('seconds, kept', [(20.0, True), (21.0, False)])
def test_rule_6_a_unit_of_a_stream_that_ended_is_not_kept(seconds, kept):
    """Its last read was 10 s after the unit was requested."""
    amp = begun()
    read(amp, 2, at=10.0)
    assert amp.on_last_chance('a', 'x', 5 * UNIT, UNIT, seconds) == kept
    assert run_of(amp, 3).degree == 3


def test_rule_6_the_degree_never_falls_below_one():
    amp = begun()
    for unit in (2, 3, 4, 5):
        assert last_chance(amp, unit)
    amp.on_evict('a', 'x', 2 * UNIT, 4 * UNIT, False, 0.0)
    assert read(amp, 2, hit=False) == [(3, 1)]


def test_rule_6_takes_the_tag():
    amp = Amp(SETTINGS)
    read(amp, 0, 8, hit=False)
    read(amp, 8, 8, hit=False)
    arrive(amp, 16, 8)
    assert last_chance(amp, 19)
    assert read(amp, 16, 8) == []


def test_rule_7_a_reader_that_waits_moves_the_trigger():
    amp = Amp(SETTINGS)
    read(amp, 0, 8, hit=False)
    read(amp, 8, 8, hit=False)                # p = 8, g = 4
    assert read(amp, 16, hit=False) == []     # it is on its way: no miss
    arrive(amp, 16, 8, waited=True)           # g = 5
    assert read(amp, 19) == [(24, 8)]         # the set's own tag stays
    arrive(amp, 24, 8)
    assert read(amp, 26) == [(32, 8)]         # 31 - 5


def test_rule_7_the_degree_makes_room_for_the_trigger():
    amp = begun()
    run = run_of(amp, 2)
    run.trigger = 3
    amp.on_evict('a', 'x', 2 * UNIT, 4 * UNIT, False, 0.0)
    assert read(amp, 2, hit=False) == [(3, 4)]
    arrive(amp, 3, 4, waited=True)
    assert (run.degree, run.trigger) == (5, 4)


def run_of(amp, unit):
    """The stream that goes on at a unit."""
    return amp.before(Access('a', 'c', 'x', unit * UNIT, 1, END, True,
                             0.0)).run


def test_rule_8_the_trigger_falls_with_the_degree():
    amp = begun()
    run = run_of(amp, 2)
    seen = [(run.degree, run.trigger)]
    for unit in (2, 3, 4, 5):
        last_chance(amp, unit)
        seen.append((run.degree, run.trigger))
    assert seen == [(4, 2), (3, 1), (2, 0), (1, 0), (1, 0)]


def test_what_was_dropped_is_asked_for_again_when_it_is_missed():
    amp = begun()
    amp.on_dropped('a', 'x', 4 * UNIT, 2 * UNIT, 0.0)
    read(amp, 2)
    read(amp, 3)
    assert read(amp, 4, hit=False) == [(5, 4)]


def test_a_first_set_starts_where_measured_times_ask_for():
    """A fetch took two seconds, and the stream reads a unit in a quarter
    of one: eight units are read meanwhile."""
    amp = Amp(SETTINGS)
    for number in range(5):
        whole_stream(amp, 1000 * (number + 1), 30)
    read(amp, 100, hit=False, at=0.0)
    read(amp, 101, hit=False, at=0.0)
    arrive(amp, 102, 4, at=2.0)
    read(amp, 0, hit=False, at=3.0)
    assert read(amp, 1, hit=False, at=3.25) == [(2, 9)]
    arrive(amp, 2, 9, at=3.3)
    assert read(amp, 2, at=3.5) == [(11, 9)]  # its trigger: 10 - 8


def whole_stream(amp, first, units, **more):
    """A stream that misses all the time; what was wanted of it."""
    return [wanted for unit in range(first, first + units)
            for wanted in read(amp, unit, hit=False, **more)]


def test_a_set_goes_no_further_than_most_streams_before_it():
    amp = WholeAmp(SETTINGS)
    assert whole_stream(amp, 1000, 4)[0] == (1002, 5)
    for number in range(2, 6):
        whole_stream(amp, 1000 * number, 4)
    assert whole_stream(amp, 6000, 4) == [(6002, 2)]
    # The one that goes on beyond has what it needs again.
    assert whole_stream(amp, 6004, 9) == [(6005, 3), (6009, 4)]


def test_a_stream_that_is_read_again_is_no_longer_one():
    amp = WholeAmp(SETTINGS)
    for number in range(1, 6):
        for _ in range(9):
            whole_stream(amp, 1000 * number, 4)
    assert whole_stream(amp, 6000, 4)[0] == (6002, 2)


def test_streams_that_end_at_once_are_not_fetched():
    amp = WholeAmp(SETTINGS)
    for number in range(1, 6):
        whole_stream(amp, 1000 * number, 2)
    assert whole_stream(amp, 6000, 2) == []


def test_the_length_of_streams_is_learnt_by_account_and_class():
    amp = WholeAmp(SETTINGS)
    for number in range(1, 6):
        whole_stream(amp, 1000 * number, 4)

    def first_set(account, class_id):
        wants = []
        for unit in (0, 1):
            wants += amp.on_request(
                Access(account, 'c', 'y%d' % class_id, unit * UNIT, UNIT, END,
                       False, 0.0, class_id), 1 << 40)
        return [want.length // UNIT for want in wants]

    assert first_set('a', 0) == [2]
    assert first_set('a', 1) == [5]
    assert first_set('b', 0) == [5]


def test_the_room_bounds_what_is_known_to_come():
    amp = Amp(SETTINGS)
    read(amp, 0, hit=False)
    assert read(amp, 1, hit=False, room=2 * UNIT) == [(2, 2)]
    read(amp, 2)
    read(amp, 3)
    assert read(amp, 4, hit=False, room=0) == []


def test_nothing_is_wanted_past_the_end():
    amp = Amp(SETTINGS)
    read(amp, 0, hit=False, end=4 * UNIT)
    assert read(amp, 1, hit=False, end=4 * UNIT) == [(2, 2)]


def test_its_state_is_bounded_and_forgets_the_oldest():
    amp = Amp(Settings(UNIT, state_bytes=10 * UNIT_STATE_BYTES))
    for unit in range(0, 1000, 10):
        read(amp, unit, hit=False)
    assert amp.state_bytes() == 10 * UNIT_STATE_BYTES
    assert read(amp, 991, hit=False) != []
    assert read(amp, 1, hit=False) == []


# -- what its authors published ------------------------------------------


@pytest.mark.parametrize('gap', (0.5, 0.1, 0.02))
def test_a_satisfied_stream_has_no_misses_once_adapted(gap):
    """Whatever its rate: t(p) <= (g + 1) / r comes about by itself."""
    host = Host(Amp(SETTINGS), UNIT, 4000, lambda n: 0.6 + 0.001 * n)
    waits = stream(host, 3000, gap)
    assert any(waits[:100])
    assert not any(waits[1500:])
    assert host.count['wasted'] == 0


def test_a_fixed_degree_never_adapts():
    """The wrong twin: the same stream with SEQ waits for ever."""
    host = Host(Seq(SETTINGS), UNIT, 4000, lambda n: 0.6 + 0.001 * n)
    waits = stream(host, 3000, 0.02)
    assert sum(wait > 0 for wait in waits[1500:]) > 100


def many_streams(strategy, capacity, streams=16, units=700):
    """Streams of different rates side by side; reads that had to wait in
    the second half of each."""
    host = Host(strategy, UNIT, capacity, lambda n: 0.3 + 0.001 * n)
    due = [(0.0, number) for number in range(streams)]
    at_unit = [0] * streams
    waited = 0
    while due:
        at, number = heapq.heappop(due)
        if at_unit[number] == units:
            continue
        wait = host.read(at, at_unit[number], object_id='s%d' % number)
        waited += wait > 0 and at_unit[number] > units // 2
        at_unit[number] += 1
        heapq.heappush(due, (at + wait + 0.05 * (1 + number), number))
    return waited, host.count


def test_streams_side_by_side_are_satisfied_each_by_itself():
    waited, count = many_streams(Amp(Settings(UNIT, 24)), 16000,
                                 units=1000)
    assert waited == 0
    assert count['useful'] > 16 * 900


def test_the_sequential_anomaly_is_absent():
    """More cache never means more misses (Gill and Modha, ATC'05, found
    that it does where fetching and evicting do not know of each other)."""
    misses = []
    for capacity in (100, 200, 400, 800, 1600, 3200):
        _, count = many_streams(Amp(SETTINGS), capacity)
        misses.append(count['miss'])
    for smaller, larger in zip(misses, misses[1:]):
        assert larger <= smaller * 1.02 + 2, misses
    assert misses[0] > misses[-1]


def test_the_cache_that_is_too_small_keeps_degrees_small():
    """What leaves unread lowers the degree until streams share what there
    is: little is wasted even then."""
    _, count = many_streams(Amp(SETTINGS), 120)
    assert count['wasted'] < 0.2 * (count['useful'] + count['wasted'])
