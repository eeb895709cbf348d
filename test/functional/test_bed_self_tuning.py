"""A running daemon that tunes itself, on a bed whose S3 is 60 ms away."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator

import pytest
from support import pattern, wait_until
from support.nodes.beds import ask, bed, demote

from swift_dss.aio.bed.bed import Bed

pytestmark = [pytest.mark.cluster, pytest.mark.root]

NODE = 'n1'
SIZE = 128 * 1024
#: In a round hot objects are read, some of the others, the hot ones again, and
#: more others than the SSDs hold beside them: LRU has lost the hot ones then.
HOT, OTHERS, BETWEEN, AFTER = 30, 120, 20, 60
ROOM = 3 * 1024 * 1024
READERS = 8
S3_MILLISECONDS = 60.0
#: In so many an order is chosen, or never; a new one takes so many.
MOST_ROUNDS, SETTLING = 60, 4


@pytest.fixture(scope='module')
def made() -> Iterator[Bed]:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    with bed(nodes=1, drives=3, ssd_budget_bytes=ROOM, options={
            'tier': {'self_tuning': 'true'}}) as new_bed:
        yield new_bed


@pytest.fixture(scope='module')
def bodies(made: Bed) -> Dict[str, bytes]:
    """Objects of which S3 alone has the bytes."""
    client = made.client()
    client.container('loop')
    uploaded = {'loop/%d' % number: pattern(SIZE, str(number))
                for number in range(HOT + OTHERS)}
    for name, body in uploaded.items():
        assert client.put(name, body, {
            'X-DSS-Object-Class': 'user1'}).status == 201
    demote(made, NODE, container='/AUTH_test/loop')
    made.s3.fault('slow', milliseconds=S3_MILLISECONDS)
    return uploaded


def told(made: Bed) -> Dict[str, Any]:
    row, = ask(made, NODE, 'status')['self_tuning']
    assert isinstance(row, dict)
    return row


class Rounds:
    """Reads of some clients at once.

    :ivar names: of the others, in turn for ever
    """

    def __init__(self, made: Bed, bodies: Dict[str, bytes]) -> None:
        self._made, self._bodies = made, bodies
        names = list(bodies)
        self._hot = names[:HOT]
        self.names = itertools.cycle(names[HOT:])
        self.reads = 0

    def play(self) -> float:
        """A round; the share of the bodies that an SSD gave."""
        hits, before = 0, self.reads
        for names in (self._hot, itertools.islice(self.names, BETWEEN),
                      self._hot, itertools.islice(self.names, AFTER)):
            wanted = list(names)
            self.reads += len(wanted)
            with ThreadPoolExecutor(READERS) as readers:
                hits += sum(readers.map(self._read, wanted))
            # Reads that are heard of at once are one use.
            wait_until(self._are_heard)
        return hits / (self.reads - before)

    def _are_heard(self) -> bool:
        classes = ask(self._made, NODE, 'status')['classes']
        return sum(row.get('reads', 0)
                   for row in classes.values()) >= self.reads

    def _read(self, name: str) -> bool:
        reply = self._made.client().get(name)
        assert reply.body == self._bodies[name]
        return 'ssd' in reply.headers['x-dss-tier']


def test_an_order_that_saves_more_comes_into_force_and_goes_again(
        made, bodies):
    first = told(made)
    assert first['in_force'] == first['configured']
    rounds, before = Rounds(made, bodies), []
    while told(made)['in_force'] == first['configured']:
        before.append(rounds.play())
        assert len(before) < MOST_ROUNDS, (before, told(made))
    changed, reads = told(made), rounds.reads
    after = [rounds.play() for _ in range(SETTLING + 4)][SETTLING:]
    assert told(made)['in_force'] == changed['in_force']
    assert sum(after) / len(after) > sum(before) / len(before)
    assert changed['cpu_seconds'] < 0.01 * changed['daemon_cpu_seconds']
    print('figure: self-tuning with S3 %g ms away: %s to %s after %d GETs; '
          '%.0f %% of them hit before, %.0f %% after; %.3f of %.1f '
          'seconds of CPU in the daemon' % (
              S3_MILLISECONDS, first['configured'], changed['in_force'],
              reads, 100 * sum(before) / len(before),
              100 * sum(after) / len(after), changed['cpu_seconds'],
              changed['daemon_cpu_seconds']))
    made.set_options({'tier': {'self_tuning': 'false'}}, [NODE])
    wait_until(lambda: not ask(made, NODE, 'status')['self_tuning'], 30,
               'the tuner to be gone')
    name, body = next(iter(bodies.items()))
    assert made.client().get(name).body == body
