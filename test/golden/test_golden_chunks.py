"""What the chunk caches decide on a generated trace, written down.

A line changes only when a decision is meant to change: then run
``python test/bench/three_enforcers.py``, which must say that all are
identical, and after it the same with ``--write-golden``.
"""

import json
import pathlib

import pytest
from support.chunk_oracle import chunk_traces, enforcers
from support.chunk_oracle.core_library import ChunkLibrary, load
from support.chunk_oracle.ordered import ChunkOrdered

GOLDEN = json.loads(
    (pathlib.Path(__file__).parent / 'chunks.json').read_text())
PREFIX, PREFIX_SLOTS = 50000, 2048
LIBRARY = load()
SCENARIO = pytest.mark.parametrize(
    'scenario', enforcers.SCENARIOS.values(), ids=list(enforcers.SCENARIOS))


@pytest.fixture(scope='module')
def whole():
    return chunk_traces.generated()


@pytest.fixture(scope='module')
def beginning():
    trace = chunk_traces.generated(PREFIX)
    trace.slots = PREFIX_SLOTS
    return trace


def check(outcome, scenario, length):
    wanted = dict(GOLDEN['%s, %d requests' % (scenario.name, length)])
    assert outcome.decisions == wanted.pop('decisions')
    assert outcome.counts == wanted


@SCENARIO
def test_the_library_decides_a_million_requests_as_written(whole, scenario):
    check(enforcers.replay_in_c(
        ChunkLibrary(whole.slots, LIBRARY), whole, scenario),
        scenario, len(whole))


@SCENARIO
def test_the_reference_decides_the_beginning_as_written(
        beginning, scenario):
    check(enforcers.replay(ChunkOrdered(beginning.slots), beginning,
                           scenario), scenario, PREFIX)


@SCENARIO
def test_the_library_decides_the_same_call_by_call_from_python(
        beginning, scenario):
    check(enforcers.replay(ChunkLibrary(beginning.slots, LIBRARY),
                           beginning, scenario), scenario, PREFIX)


def test_the_trace_is_the_one_that_was_written_down(whole):
    assert len(whole) == 1000000
    assert whole.origin_chunks() == 327680
    assert [sum(whole.class_ids), sum(whole.oblocks) % 1000003,
            sum(whole.writes)] == GOLDEN['trace']


def test_class_order_beats_plain_lru_as_it_was_first_measured(whole):
    """About 0.653 against 0.561 on a trace of this kind."""
    ratios = {}
    for name in ('strict', 'lru'):
        wanted = GOLDEN['%s, 1000000 requests' % name]
        ratios[name] = sum(wanted[str(class_id)].get('hits', 0)
                           for class_id in whole.rows) / len(whole)
    assert ratios['strict'] == pytest.approx(0.653, abs=0.01)
    assert ratios['lru'] == pytest.approx(0.561, abs=0.01)
