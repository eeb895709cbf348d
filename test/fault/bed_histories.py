#!/usr/bin/env python
"""Histories on a bed of real nodes, judged by the simulation's model.

A PUT, an overwrite and a DELETE of an object each reach a subset of its three
primaries, drawn from a seed: one of 512 histories. Some share one of sixteen
settings: no node is lost, or one is killed and loses its drives and all state
before or after the DELETE; no node is cut off from all others and from S3, or
one from before the overwrite until after the DELETE; the writes follow at
once, or after uploads and with no local byte left; the ring stays, or a node
leaves it and another enters. Then replicators run until nothing moves, and
each primary and a client must show what acknowledged writes allow. One start
of the bed serves all settings.

At the end three days pass at once for all clocks, in which each node looks
through its part of the bucket, and then more than a week, after which
``gateway gc --absent`` must leave nothing that no record names. Processes,
network namespaces, file systems and S3 are real.

    python test/fault/bed_histories.py [--histories 108] [--seed 1]

The wrong twin (--twin) has S3 forget keys that are needed; the loss must be
seen.
"""

from __future__ import annotations

import argparse
import glob
import itertools
import json
import os
import random
import sys
import time
from typing import (
    Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from bed_bucket import ACCOUNT, CONTAINER, Bucket, path_of
from support.nodes.beds import add_classes, bed, demote

from swift_dss.aio import processes
from swift_dss.aio.bed import look
from swift_dss.core.spans import ClassMap
from swift_dss.sim.model import Attempt, Model
from swift_dss.wire import classmap, names

NODES = 5
OPTIONS = {
    'tier': {'interval_seconds': '1', 'clean_after_seconds': '1',
             'min_demote_bytes': '1024'},
    'gateway': {'remote_after_seconds': '1', 'delete_delay_seconds': '2',
                'take_over_seconds': '4', 'bundle_age_seconds': '2'}}
CLASSES = """
[class:5]
name = tiny
rank = 5
bundle = true
"""
#: Class and bytes: with a key of its own, and in a bundle.
KINDS = ((0, 30000), (5, 2000))
#: What a daemon keeps: index, queue and bundle book.
STATE = ('index.db', 'gateway.db', 'bundles.db')
SUBSETS = [ranks for count in range(4)
           for ranks in itertools.combinations(range(3), count)]
#: Until uploads are done, also those that a later primary takes over.
_SEND_SECONDS = 40.0
#: Until a delete has had its turn on any replica.
_DUE_SECONDS = 10.0
#: Until what clients see is final.
_REST_SECONDS = 60.0


class Setting(NamedTuple):
    """What some histories share.

    :param lost: a node is lost ``before`` or ``after`` the DELETE; '' none
    :param waits: between the writes uploads are done, and then no local
        bytes are left
    :param moves: a node leaves the ring and another enters
    :param cut: a node is cut off before the overwrite, until the DELETE has
        had its turn on the others; writes reach it all the same, as if they
        had come a moment before
    """

    lost: str
    waits: bool
    moves: bool
    cut: bool = False

    def __str__(self) -> str:
        return '%s, %s, writes follow %s, the ring %s' % (
            'a node is lost %s the DELETE' % self.lost if self.lost
            else 'no node is lost',
            'one is cut off' if self.cut else 'none is cut off',
            'after uploads' if self.waits else 'at once',
            'changes' if self.moves else 'stays')


SETTINGS = [Setting(lost, waits, moves) for lost in ('after', 'before', '')
            for waits in (True, False) for moves in (True, False)]
SETTINGS += [Setting(lost, waits, bool(lost), True)
             for lost in ('after', '') for waits in (True, False)]


class History(NamedTuple):
    """An object, and the primaries (0, 1, 2) that its writes reach."""

    name: str
    kind: int
    reached: Any

    def __str__(self) -> str:
        return '%s: PUT reaches %s, overwrite %s, DELETE %s' % (
            (self.name,) + tuple(str(list(ranks)) for ranks in self.reached))


class Histories:
    """One bed, and what its clients were told."""

    def __init__(self, made: Any, seed: int) -> None:
        self.made = made
        add_classes(made, CLASSES)
        made.client().container(CONTAINER)
        self.policy = made.policy_of(CONTAINER)
        self.dice = random.Random(seed)
        self.model = Model()
        self.told: List[History] = []
        self.put_bytes = 0
        #: What primaries show that should not be.
        self.wrong: Dict[str, List[str]] = {'unreadable': [], 'restored': []}
        drawn = list(itertools.product(SUBSETS, repeat=3))
        self.dice.shuffle(drawn)
        self._drawn = itertools.cycle(drawn)

    def run(self, setting: Setting, count: int, twin: bool = False) -> None:
        """Tell so many histories, and judge them."""
        histories = list(self._draw(count))
        cut: List[str] = []
        for number in range(3):
            if number == 1 and setting.cut:
                cut = [self.dice.choice(self.made.plan.nodes)]
                self.made.partition(cut[0], ['all'])
            if number == 2 and setting.lost == 'before':
                self._lose_a_node()
            for history in histories:
                self._write(history, number)
            if setting.waits and number < 2:
                self._send(histories, cut)
        if setting.waits or cut:
            time.sleep(_DUE_SECONDS)
        if cut:
            self.made.heal(*cut)
        if twin:
            self._forget_keys(histories)
        if setting.lost == 'after':
            self._lose_a_node()
        if setting.moves:
            add_classes(self.made, CLASSES, [self.made.add()])
            self.made.remove(self.dice.choice(self.made.plan.nodes[:-1]))
        self.made.rebalance()
        for history in histories:
            self._judge(setting, history)

    def _draw(self, count: int) -> Iterator[History]:
        for _ in range(count):
            number = len(self.told)
            self.told.append(History('o%d' % number, number % len(KINDS),
                                     next(self._drawn)))
            yield self.told[-1]

    def _write(self, history: History, number: int) -> None:
        class_id, length = KINDS[history.kind]
        body = None if number == 2 else self.dice.randbytes(length + number)
        self.put_bytes += len(body or b'')
        stamp = '%016.5f' % time.time()
        primaries = self._primaries(history.name)
        headers = {'X-Timestamp': stamp, 'Content-Type': 'text/plain',
                   names.BACKEND_MAP: classmap.encode(
                       ClassMap.uniform(class_id))}
        for rank in history.reached[number]:
            reply = self.made.direct(
                primaries[rank], 'DELETE' if body is None else 'PUT',
                path_of(history.name), self.policy, headers, body)
            assert reply.status // 100 == 2 or (
                body is None and reply.status == 404), reply
        name = self.model.name(history.name)
        name.tried(Attempt(stamp, body))
        if len(history.reached[number]) >= 2:
            name.acknowledge(stamp)

    def _send(self, histories: List[History], cut: Sequence[str]) -> None:
        """Wait until S3 has all, as far as it gets them; nobody else then.

        :param cut: nodes that cannot send
        """
        until = time.monotonic() + _SEND_SECONDS
        while time.monotonic() < until and not all(
                file.residency and file.residency.remote
                for file in self._files(histories)
                if file.kind == 'data' and file.node not in cut):
            time.sleep(0.5)
        for node in self.made.plan.nodes:
            if node in cut:
                continue
            demote(self.made, node,
                   container='%s/%s' % (ACCOUNT, CONTAINER))

    def _files(self, histories: List[History]) -> List[look.Found]:
        return [file for history in histories
                for file in self.made.files(path_of(history.name))]

    def _forget_keys(self, histories: List[History]) -> None:
        """S3 loses all that acknowledged versions lean on."""
        for file in self._files(histories):
            if file.residency and file.residency.remote:
                self.made.s3.fault(
                    'forget', keys=file.residency.remote.key + '*')

    def _lose_a_node(self) -> None:
        """Its drives, and all that its daemon knows, with a kill -9."""
        node = self.made.node(self.dice.choice(self.made.plan.nodes))
        processes.kill(node.conf.root, ['tierd', 'object-server'])
        for part in STATE:
            for path in glob.glob(node.conf.path('**', part + '*'),
                                  recursive=True):
                os.unlink(path)
        for device in node.conf.device_names:
            for drive in ('ssd', 'hdd'):
                self.made.lose_drive(node.name, device, drive)
        node.start()
        node.await_servers()

    # -- the judge -------------------------------------------------------

    def _judge(self, setting: Setting, history: History) -> None:
        said = self._wrong(history)
        until = time.monotonic() + _REST_SECONDS
        while said and time.monotonic() < until:
            time.sleep(1.0)
            said = self._wrong(history)
        if said:
            promised = self.model.name(history.name).promised()
            kind = 'restored' if promised is not None \
                and promised.body is None and 'shows' in said \
                else 'unreadable'
            self.wrong[kind].append('%s: %s: %s; %s' % (
                setting, history, said, [
                    (file.node, file.kind, file.tiers, file.timestamp)
                    for file in self._files([history])]))

    def _wrong(self, history: History) -> str:
        """What a client or a primary answers that no write allows."""
        name = self.model.name(history.name)
        allowed: Set[Optional[bytes]] = {attempt.body
                                         for attempt in name.allowed()}
        if name.promised() is None:
            allowed.add(None)
        replies = {'a client': self.made.client().get(
            '%s/%s' % (CONTAINER, history.name))}
        for node in self._primaries(history.name):
            replies[node] = self.made.direct(
                node, 'GET', path_of(history.name), self.policy)
        for who, reply in replies.items():
            if reply.status not in (200, 404):
                return '%s answers %d' % (who, reply.status)
            if (reply.body if reply.status == 200 else None) not in allowed:
                return '%s shows %s' % (
                    who, reply.headers.get('x-timestamp')
                    if reply.status == 200 else 'nothing')
        return ''

    # -- inside ----------------------------------------------------------

    def _primaries(self, name: str) -> List[str]:
        names: List[str] = self.made.primaries(
            path_of(name), self.policy)
        return names


def run(histories: int, seed: int, settings: List[Setting],
        twin: bool = False) -> Dict[str, Any]:
    """So many of all settings together; what was seen."""
    began = time.monotonic()
    with bed(nodes=NODES, options=OPTIONS) as made:
        judge = Histories(made, seed)
        for number, setting in enumerate(settings):
            left = len(settings) - number
            judge.run(setting, -(-(histories - len(judge.told)) // left),
                      twin)
            print('%d histories, %d wrong: %s' % (
                len(judge.told), sum(map(len, judge.wrong.values())),
                setting), flush=True)
        report = dict(judge.wrong, histories=len(judge.told),
                      put_bytes=judge.put_bytes)
        if not twin:
            bucket = Bucket(made, judge.model)
            report['not_needed_bytes'] = sum(bucket.not_needed().values())
            report['leaked_bytes'] = bucket.three_days()
            report['left_by_gc'] = bucket.a_week()
            report['keys'] = len(bucket.keys())
    return dict(report, seconds=round(time.monotonic() - began, 1))


def is_broken(report: Dict[str, Any]) -> bool:
    """True if a promise was broken."""
    return bool(report['unreadable'] or report['restored']
                or report.get('left_by_gc')
                or report.get('leaked_bytes', 0) > 0.01 * report['put_bytes'])


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--histories', type=int, default=108)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--twin', action='store_true')
    args = parser.parse_args()
    report = run(args.histories, args.seed,
                 SETTINGS[:1] if args.twin else SETTINGS, args.twin)
    print(json.dumps(report, indent=1))
    return is_broken(report) != args.twin


if __name__ == '__main__':
    sys.exit(main())
