"""A class's word on prefetching goes before the strategy's."""

from __future__ import annotations

from swift_dss.core.classes import PrefetchHint
from swift_dss.strategy.prefetch import build
from swift_dss.strategy.prefetch.base import Access, Settings

UNIT = 100
SETTINGS = Settings(UNIT, max_degree=4)
HINTS = {1: PrefetchHint.NEVER, 2: PrefetchHint.WHOLE}


def made(name='amp'):
    return build(name, SETTINGS,
                 lambda class_id: HINTS.get(class_id, PrefetchHint.AUTO))[0]


def read(hinted, offset, class_id, room=1 << 40, size=1000, hit=False):
    return [(want.offset, want.length) for want in hinted.on_request(
        Access('a', 'c', 'x', offset, UNIT, size, hit, 0.0, class_id), room)]


def test_auto_is_what_the_strategy_thinks():
    hinted = made()
    assert read(hinted, 0, 0) == []
    assert read(hinted, 100, 0) != []


def test_never_wants_nothing_and_teaches_nothing():
    hinted = made()
    assert read(hinted, 0, 1) == read(hinted, 100, 1) == []
    assert read(hinted, 200, 0) == []


def test_whole_wants_all_of_it_with_the_first_read_even_without_strategy():
    hinted = made('none')
    assert read(hinted, 300, 2) == [
        (400, 400), (800, 200), (0, 300)]
    assert read(hinted, 400, 2) == []


def test_whole_goes_on_where_there_was_no_room():
    hinted = made()
    assert read(hinted, 0, 2, room=250) == [(100, 250)]
    assert read(hinted, 100, 2, room=0) == []
    assert read(hinted, 200, 2) == [(350, 400), (750, 250)]


def test_whole_begins_anew_when_some_of_it_is_gone():
    hinted = made()
    read(hinted, 0, 2)
    hinted.on_evict('a', 'x', 500, 100, True, 0.0)
    assert sum(length for _, length in read(hinted, 0, 2)) == 900


def test_all_of_it_together_keeps_within_one_bound():
    hinted = made('combined')
    for number in range(5000):
        hinted.on_request(Access(
            'a', number, 'o%d' % number, number * 37 % 1000, UNIT, 5000,
            False, 0.0, number % 3), 1 << 40)
    assert hinted.state_bytes() <= SETTINGS.state_bytes
