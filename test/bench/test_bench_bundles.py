"""The bench of bundles: what it measures is what it says."""

from __future__ import annotations

import dataclasses
import os
import socket

import pytest

from swift_dss.bench import cpu
from swift_dss.bench.cluster import bundles


@pytest.mark.slow
def test_it_counts_what_went_over_the_link():
    plan = dataclasses.replace(bundles.QUICK, scale=0.0, rtt_seconds=0.002)
    runs = {run.variant: run for run in bundles.measure(plan)}
    single, bundled = runs['single'], runs['bundled']
    # Two halves: one bundle before the link was cut, and one after.
    assert (single.puts, bundled.puts) == (10, 2)
    for run in (single, bundled):
        assert run.data_bytes == 40960 <= run.stored_bytes
        # Every byte that counts went through the link, both ways.
        assert run.link_sent_bytes > run.data_bytes
        assert run.read_bytes == 40960 < run.link_read_bytes
        assert 0 < run.wait_p50 <= run.wait_p99 <= run.seconds
        assert run.drain_sent_bytes > run.data_bytes / 2
        # Who did the work of the backlog was seen at it.
        assert run.daemon_cpu > 0 and run.link_cpu > 0
    assert bundled.price < single.price
    text = bundles.text(bundles.report(plan, list(runs.values())))
    assert '5 times fewer PUTs' in text and 'ms an object' in text


def test_who_listens_is_found_and_nobody_else():
    with socket.socket() as ours:
        ours.bind(('127.0.0.1', 0))
        port = ours.getsockname()[1]
        assert cpu.listeners(port) == []
        ours.listen()
        assert cpu.listeners(port) == [os.getpid()]
    assert cpu.listeners(port) == []
