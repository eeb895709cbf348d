#!/usr/bin/env python
"""Histories on a bed of real nodes, judged by the simulation's model.

Each history is one object: written everywhere and sent to S3, in half of
them with no local byte left; then an overwrite or a DELETE reaches a subset
of its primaries, drawn from a seed. The keys of what is obsolete come due,
the drive of one node is lost, replicators run, and every object must show
what its acknowledged writes allow. Processes, network namespaces, file
systems and S3 are real.

    python test/fault/bed_histories.py [--histories 100] [--seed 1]

The wrong twin (--twin) deletes a shared key from S3 by hand before the drive
is lost, as one replica alone once did; its loss must be seen.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from typing import Any, Dict, List, Optional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from beds import bed
from support import wait_until

from swift_dss.sim.model import Attempt, Model

NODES = 5
CONTAINER = 'histories'
ACCOUNT = 'AUTH_test'
#: Histories that share one lost drive.
ROUND = 25
OPTIONS = {
    'tier': {'interval_seconds': '1', 'clean_after_seconds': '1',
             'min_demote_bytes': '1024'},
    'gateway': {'remote_after_seconds': '1', 'delete_delay_seconds': '3',
                'take_over_seconds': '6', 'bundle_age_seconds': '2'}}
#: Longer than a delete waits for its turn on any replica.
_DUE_SECONDS = 30.0


class Histories:
    """One bed, and what its clients were told."""

    def __init__(self, made: Any, seed: int) -> None:
        self.made = made
        self.client = made.client()
        self.client.container(CONTAINER)
        self.policy = made.policy_of(CONTAINER)
        self.dice = random.Random(seed)
        self.model = Model()
        self.number = 0

    def round(self, count: int, twin: bool) -> List[str]:
        """Some histories, and one drive that is lost; what went wrong."""
        names = [self._put() for _ in range(count)]
        self._send(names)
        for name in names:
            self._change(name)
        # Deletes come due, and all who may do them have had their turn.
        time.sleep(_DUE_SECONDS)
        if twin:
            self._delete_keys(names)
        self._lose_a_drive()
        for _ in range(2):
            self._replicate()
        return [wrong for wrong in map(self._judge, names) if wrong]

    def _put(self) -> str:
        self.number += 1
        name = 'o%d' % self.number
        body = self.dice.randbytes(self.dice.choice((3000, 20000, 90000)))
        stamp = '%016.5f' % time.time()
        for node in self._primaries(name):
            self._direct(node, 'PUT', name, stamp, body)
        self._tried(name, stamp, body, 3)
        return name

    def _send(self, names: List[str]) -> None:
        """Wait until S3 has all; in half of them nobody else has."""
        for name in names:
            wait_until(lambda name=name: self._tiers(name) and all(
                's3' in tiers or 'remote' in tiers
                for tiers in self._tiers(name)), 120, name + ' in S3')
        for name in names[::2]:
            for node in self._primaries(name):
                self._demote(node, name)

    def _demote(self, node: str, name: str) -> None:
        done = self.made.tool(node, 'tier', 'demote', '--config', '{conf}',
                              '--to', 'remote', '--json', self._path(name))
        assert not done.returncode, done.stdout + done.stderr

    def _change(self, name: str) -> None:
        """A newer version or a DELETE that reaches some primaries."""
        body: Optional[bytes] = None
        if self.dice.random() < 0.4:
            body = self.dice.randbytes(20000)
        stamp = '%016.5f' % time.time()
        reached = [node for node in self._primaries(name)
                   if self.dice.random() < 0.5]
        for node in reached:
            self._direct(node, 'DELETE' if body is None else 'PUT', name,
                         stamp, body)
        self._tried(name, stamp, body, len(reached))

    def _tried(self, name: str, stamp: str, body: Optional[bytes],
               reached: int) -> None:
        history = self.model.name(name)
        history.tried(Attempt(stamp, body))
        if reached >= 2:
            history.acknowledge(stamp)

    def _delete_keys(self, names: List[str]) -> None:
        for name in names:
            history = self.model.name(name)
            if history.acknowledged != history.attempts[-1].timestamp:
                self.made.s3.fault('forget', keys='*%s*' % (
                    self.made.hash_of(self._path(name))))

    def _lose_a_drive(self) -> None:
        victim = self.dice.choice(self.made.plan.nodes)
        self.made.lose_drive(
            victim, self.made.node(victim).conf.device_names[0])

    def _replicate(self) -> None:
        for node in self.made.nodes:
            node.run_once('object-replicator')

    def _judge(self, name: str) -> str:
        allowed: Dict[Optional[bytes], str] = {
            one.body: one.timestamp
            for one in self.model.name(name).allowed()}
        reply = wait_until(lambda: self._answer(name), 60, name)
        body = None if reply.status == 404 else reply.body
        if reply.status in (200, 404) and body in allowed:
            return ''
        return '%s: status %d, %d bytes; allowed: %s; on disk: %s' % (
            name, reply.status, len(reply.body), sorted(allowed.values()),
            [(one.node, one.kind, one.tiers, one.timestamp)
             for one in self.made.files(self._path(name))])

    def _answer(self, name: str) -> Any:
        reply = self.client.get('%s/%s' % (CONTAINER, name))
        # A refusal may be of this moment; one that lasts is judged.
        if reply.status == 503:
            self._refused[name] = self._refused.get(name, 0) + 1
            return reply if self._refused[name] > 10 else None
        return reply

    _refused: Dict[str, int] = {}

    # -- inside ----------------------------------------------------------

    def _path(self, name: str) -> str:
        return '/%s/%s/%s' % (ACCOUNT, CONTAINER, name)

    def _primaries(self, name: str) -> List[str]:
        found: List[str] = self.made.primaries(
            self._path(name), self.policy)
        return found

    def _tiers(self, name: str) -> List[str]:
        return [one.tiers for one in self.made.files(self._path(name))
                if one.kind == 'data']

    def _direct(self, node: str, method: str, name: str, stamp: str,
                body: Optional[bytes]) -> None:
        reply = self.made.direct(
            node, method, self._path(name), self.policy,
            {'X-Timestamp': stamp, 'Content-Type': 'text/plain'},
            body)
        assert reply.status // 100 == 2 or (
            method == 'DELETE' and reply.status == 404), reply.status


def run(histories: int, seed: int, twin: bool = False) -> Dict[str, Any]:
    """All of them; what was seen."""
    wrong: List[str] = []
    began = time.monotonic()
    with bed(nodes=NODES, options=OPTIONS) as made:
        judge = Histories(made, seed)
        while judge.number < histories:
            wrong += judge.round(min(ROUND, histories - judge.number), twin)
            print('%d histories, %d wrong' % (judge.number, len(wrong)),
                  flush=True)
    return {'histories': judge.number, 'wrong': wrong,
            'seconds': round(time.monotonic() - began, 1)}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--histories', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--twin', action='store_true')
    args = parser.parse_args()
    found = run(args.histories, args.seed, args.twin)
    print(json.dumps(found, indent=1))
    return bool(found['wrong']) != args.twin


if __name__ == '__main__':
    sys.exit(main())
