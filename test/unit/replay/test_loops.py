"""Clients that wait for their answers, and links that they share."""

import dataclasses
import math

import pytest

from swift_dss.cli import main
from swift_dss.core.classes import ClassTable
from swift_dss.replay import latency, plan, results, simulator
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators, native

#: A miss is 100 ms and a millisecond for 1000 bytes, the SSD a millisecond.
STILL = latency.Cloud('still', latency.Times(100.0), latency.Times(50.0),
                      1e6, 1e-6, 2e-6, 3e-9, 4e-9)
SSD = latency.Disk('ssd', latency.Times(1.0), math.inf)
CLIENTS = [line.encode() for line in (
    '# swift-dss trace 2', '# clients',
    '0 GET a 1000 0 999 0 1', '1 GET a 1000 0 999 0 1',
    '2 GET b 1000 0 999 0 2', '3 GET c 1000 0 999 0 1',
    '4 GET c 1000 0 999 0 2')]


def ready_of(lines):
    return plan.plan(native.read(lines, 'test'))


def setup(**changes):
    return Setup('lru', 100000, ClassTable(), STILL, SSD, **changes)


def test_a_client_waits_for_its_answer_and_thinks():
    ready = ready_of(CLIENTS)
    turns = plan.Turns(ready.trace, 0.01)
    made = []
    for row, at_ms in turns:
        made.append((row, at_ms))
        turns.answered(row, at_ms + 100.0)
    # Client 1: at 0, 110 and 220; client 2: at 2 and 112.
    assert made == [(0, 0.0), (2, 2.0), (1, 110.0), (4, 112.0), (3, 220.0)]
    outcome = simulator.replay(ready, setup(think_seconds=0.01))
    # c is brought in by client 2 at 114, and there when client 1 comes.
    assert outcome.hits.tolist() == [False, True, False, True, False]
    # Answers: 0 to 102, 112 to 113, 123; 2 to 104, 114 to 216.
    assert outcome.latency_ms.tolist() == [
        102.0, 1.0, 102.0, pytest.approx(93.0), 102.0]
    assert outcome.span_ms == 123.0
    assert outcome.counts['gets'] == 3


def test_an_open_loop_is_as_the_trace_says():
    ready = ready_of(CLIENTS)
    assert list(plan.Turns(ready.trace, None)) == [
        (row, float(row)) for row in range(5)]
    assert simulator.replay(ready, setup()).span_ms == 0.0


def test_one_client_with_the_times_of_a_closed_loop_gives_its_figures():
    trace = generators.generate(
        'gen:zipf,requests=600,objects=80,writes=0.1,sigma=1')
    ready = plan.plan(trace)
    closed = dataclasses.replace(
        setup(think_seconds=0.25, write='back', upload_seconds=1.0),
        cache_bytes=ready.footprint_bytes // 4)
    once = simulator.replay(ready, closed)
    at_ms, times = float(trace.at_ms[0]), []
    for waited in once.latency_ms.tolist():
        times.append(at_ms)
        at_ms += waited + 250.0
    timed = plan.plan(dataclasses.replace(
        trace, at_ms=trace.at_ms * 0 + times))
    again = simulator.replay(
        timed, dataclasses.replace(closed, think_seconds=None))
    assert (again.hits == once.hits).all()
    assert again.latency_ms == pytest.approx(once.latency_ms)
    assert 0.1 < once.hits.mean() < 0.9
    assert once.span_ms == pytest.approx(times[-1] - times[0])
    # A month, and the drive's day, are those of the loop.
    rows = [results.summary(ready, once), results.summary(timed, again)]
    assert rows[0]['drive_writes_a_day'] == pytest.approx(
        rows[1]['drive_writes_a_day'])


def test_transfers_share_the_link():
    ready = ready_of([b'0 GET a 1000', b'0 GET b 1000', b'5000 GET c 1000'])
    outcome = simulator.replay(ready, setup(link_bytes_per_second=1000.0))
    # A second each, one after the other; later the link is free.
    assert outcome.latency_ms.tolist() == [1101.0, 2101.0, 1101.0]
    fast = simulator.replay(ready, setup(link_bytes_per_second=1e9))
    assert fast.latency_ms.tolist() == [102.0] * 3


def test_readers_go_before_bytes_ahead_of_demand():
    link = latency.Link(1000.0)
    assert link.wait_ms(0.0, 100, True) == 100.0
    assert link.wait_ms(0.0, 100, True) == 200.0
    # A reader passes both, and the next prefetch waits for all three.
    assert link.wait_ms(0.0, 100, False) == 100.0
    assert link.wait_ms(50.0, 100, False) == 150.0
    assert link.wait_ms(50.0, 100, True) == 450.0
    assert link.wait_ms(9000.0, 100, True) == 100.0
    assert latency.Link(0.0).wait_ms(0.0, 100, True) == 0.0


def test_a_narrow_link_makes_a_prefetcher_wait():
    ready = plan.plan(generators.generate(
        'gen:streams,requests=1500'), 65536)
    narrow, wide = (simulator.replay(ready, dataclasses.replace(
        setup(prefetch='seq', link_bytes_per_second=rate),
        cache_bytes=ready.footprint_bytes // 4)) for rate in (2e5, 0.0))
    assert narrow.hits.mean() < wide.hits.mean()
    assert narrow.counts['late_bytes'] > wide.counts['late_bytes']


@pytest.mark.parametrize('options, said', [
    (['--think', '1'], '--think: only clients of --loop closed think'),
    (['--loop', 'closed', '--think', '-1'], '--think: -1 is not a number'),
    (['--loop', 'closed', '--think', 'nan'], '--think: nan is not a number'),
    (['--loop', 'closed', '--think', 'inf'], '--think: inf is not a number'),
    (['--link', '0'], "--link: '0' is not a number of bytes"),
    (['--link', '1m', '--sample', 'auto'], '--sample: what a sample'),
    (['--loop', 'closed', '--sample', '0.5'], '--sample: what a sample')])
def test_a_bad_option_is_named(options, said, capsys):
    assert main.main(['replay', 'gen:zipf,requests=50,objects=9',
                      *options]) == 78
    error = capsys.readouterr().err
    assert said in error and error.count('\n') == 1


def test_the_command_plays_both(capsys):
    assert main.main([
        'replay', 'gen:streams,requests=400', '--loop', 'closed', '--think',
        '0.05', '--link', '300k', '--cache', '20%', '--strategy', 'lru']) == 0
    assert '400 requests' in capsys.readouterr().out
