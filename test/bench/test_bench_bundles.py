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
    found = {one.variant: one for one in bundles.measure(plan)}
    single, bundled = found['single'], found['bundled']
    # Two halves: one bundle before the link was cut, and one after.
    assert (single.puts, bundled.puts) == (10, 2)
    for one in (single, bundled):
        assert one.data_bytes == 40960 <= one.stored_bytes
        # Every byte that counts went through the link, both ways.
        assert one.link_sent_bytes > one.data_bytes
        assert one.read_bytes == 40960 < one.link_read_bytes
        assert 0 < one.wait_p50 <= one.wait_p99 <= one.seconds
        assert one.drain_sent_bytes > one.data_bytes / 2
        # Who did the work of the backlog was seen at it.
        assert one.daemon_cpu > 0 and one.link_cpu > 0
    assert bundled.price < single.price
    text = bundles.text(bundles.report(plan, list(found.values())))
    assert '5 times fewer PUTs' in text and 'ms an object' in text


def test_who_listens_is_found_and_nobody_else():
    with socket.socket() as ours:
        ours.bind(('127.0.0.1', 0))
        port = ours.getsockname()[1]
        assert cpu.listeners(port) == []
        ours.listen()
        assert cpu.listeners(port) == [os.getpid()]
    assert cpu.listeners(port) == []
