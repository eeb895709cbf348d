"""GDSF whose cost is the price of a miss, not the wait for it."""

import json
from dataclasses import replace

import pytest

from swift_dss.cli import main
from swift_dss.core.classes import ClassTable
from swift_dss.replay import compiled, latency, plan, simulator
from swift_dss.replay.setup import DOLLARS, LATENCY, Setup
from swift_dss.replay.traces import generators

MIXED = 'gen:zipf,requests=8000,objects=900,sigma=1.5,size=65536'
SIZES = (1 << 10, 1 << 20, 1 << 30)


def setup_of(**changes):
    return Setup('gdsf', 1 << 20, ClassTable(), latency.S3, **changes)


def price(cloud, size):
    return cloud.get_dollars + size * cloud.out_dollars


@pytest.mark.parametrize('larger', SIZES[1:])
def test_costs_are_to_one_another_as_prices_are(larger):
    setup = setup_of(cost=DOLLARS)
    assert setup.penalty(larger, 0) / setup.penalty(SIZES[0], 0) == \
        pytest.approx(price(latency.S3, larger)
                      / price(latency.S3, SIZES[0]))


def test_a_weight_multiplies_the_price():
    plain, heavy = (setup_of(cost=DOLLARS, weights=weights)
                    for weights in ({}, {7: 3.0}))
    assert heavy.penalty(100, 7) == 3 * plain.penalty(100, 7)


def test_where_bytes_are_free_all_misses_cost_the_same():
    free = replace(latency.S3, out_dollars=0.0)
    setup = replace(setup_of(cost=DOLLARS), cloud=free)
    assert setup.penalty(1, 0) == setup.penalty(1 << 40, 0) > 0
    nothing = replace(setup, cloud=replace(free, get_dollars=0.0))
    assert nothing.penalty(1, 0) > 0


@pytest.mark.parametrize('strategy', ['gdsf', 'class-gdsf'])
def test_c_and_python_decide_the_same(strategy):
    ready = plan.plan(generators.generate(MIXED))
    setup = replace(setup_of(cost=DOLLARS), strategy=strategy,
                    cache_bytes=ready.footprint_bytes // 20)
    if compiled.cache(setup) is None:
        pytest.skip('there was no compiler')

    def in_c(chosen):
        return joined(compiled.play(
            ready, chosen, compiled.cache(chosen), 1000))

    assert in_c(setup) == joined(simulator.decided(
        ready, setup, setup.make_cache(), 1000))
    assert in_c(setup) != in_c(replace(setup, cost=LATENCY))


def joined(steps):
    return b''.join(results.tobytes() for _, results, _ in steps)


def test_the_command_weighs_prices(capsys):
    dollars = {}
    for cost in (LATENCY, DOLLARS):
        assert main.main([
            'replay', MIXED, '--strategy', 'gdsf', '--cache', '5%',
            '--cost', cost, '--json', '-']) == 0
        report = json.loads(capsys.readouterr().out)
        assert report['cost'] == cost
        dollars[cost] = report['runs'][0]['dollars']
    assert dollars[DOLLARS] < dollars[LATENCY]
