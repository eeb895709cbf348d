#!/usr/bin/env python
"""POSTs of classes to a large object on a bed of real nodes, amid faults.

A large object shares some of its segments with another one of a class of
higher rank. In each setting a node is killed or cut off, then two proxies give
the large object two classes, one shortly after the other; in the middle one of
the proxies, or none, is killed, stopped or cut off from the nodes, the node
comes back with what it had, and another node is killed. All the while a client
gives single segments a class, until it is refused. When all are back, the
manifest must show no work going on, and each primary of each segment must have
the class that the manifest shows: for all segments that of the same POST, if
one was acknowledged, and for shared segments that of the other large object,
or that of a client who gave it to the segment before the large object had one.
Which of both is newer the proxies decide, when they have read the manifest.

    python test/fault/bed_large.py [--settings 8] [--seed 1] [--segments 200]

The wrong twin (--twin) gives a segment another class behind the manifest's
back: the judge must see it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import random
import signal
import sys
import threading
import time
from typing import (
    Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from support.nodes.beds import bed
from swift.common.utils import Timestamp

from swift_dss.core.spans import ClassMap
from swift_dss.proxy.bodies import stored
from swift_dss.wire import names, registers

NODES = 4
TOP, FIRST, SECOND, ALONE = 25, 26, 27, 28
TROUBLES = ('kill', 'pause', 'cut', 'none')
LOSSES = ('kill', 'cut')
#: Longer than the lease of a record of work.
_TROUBLE_SECONDS = 35.0
_REST_SECONDS = 150.0


class Setting(NamedTuple):
    """What happens.

    :param trouble: of the first proxy, in the middle of its POST
    :param loss: of the first node, before the POSTs
    """

    trouble: str
    loss: str

    def __str__(self) -> str:
        return 'proxy: %s, node: %s' % self


SETTINGS = [Setting(trouble, loss) for loss in LOSSES for trouble in TROUBLES]


class Large:
    """One bed, and what its clients were told.

    :param count: segments; a fifth of them are shared
    """

    def __init__(self, made: Any, seed: int, count: int,
                 twin: bool = False) -> None:
        self.made = made
        self.dice = random.Random(seed)
        self.count = count
        self.twin = twin
        self.wrong: List[str] = []
        self.segments = self.faults = self.cut_short = self.refused = 0

    def run(self, setting: Setting) -> None:
        """Two POSTs, judged."""
        where = self._make()
        lost, other = self.dice.sample(self.made.plan.nodes, 2)
        self._lose(setting.loss, lost)
        said: Dict[int, int] = {}
        first = threading.Thread(target=self._post, args=(
            'p1', where, FIRST, said))
        second = threading.Thread(target=self._post, args=(
            'p2', where, SECOND, said))
        ended = threading.Event()
        taken: Set[int] = set()
        single = threading.Thread(target=self._post_single, args=(
            where, random.Random(self.dice.random()), ended, taken))
        single.start()
        first.start()
        time.sleep(self.dice.uniform(0.05, 1.0))
        second.start()
        time.sleep(self.dice.uniform(0.0, 1.0))
        end = self._trouble(setting.trouble)
        self._return(setting.loss, lost)
        self.made.kill(other)
        self.faults += 2 + (setting.trouble != 'none')
        self.cut_short += FIRST not in said
        time.sleep(_TROUBLE_SECONDS)
        end()
        self.made.revive(other)
        ended.set()
        for thread in (first, second, single):
            thread.join()
        if self.twin:
            self._change_behind('/AUTH_test/%s_s/%04d' % (where, 3))
        self._judge(setting, where, said, taken)

    # -- what happens ----------------------------------------------------

    def _make(self) -> str:
        client = self._client('p1')
        where = 'large-%d' % self.segments
        for name in (where, where + '_s'):
            client.container(name)
        self.segments += self.count
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            pool.map(lambda number: self._put_some(where, number), range(6))
        for name, first, class_id in (('big', 0, 0), (
                'other', self.count - self.count // 5, TOP)):
            rows = [{'path': '/%s_s/%04d' % (where, number)}
                    for number in range(first, self.count)]
            reply = client.request(
                'PUT', '%s/%s' % (where, name), json.dumps(rows).encode(),
                {names.OBJECT_CLASS: str(class_id)} if class_id else {},
                'multipart-manifest=put')
            assert reply.status == 201, reply
        return where

    def _put_some(self, where: str, first: int) -> None:
        client = self._client('p2')
        for number in range(first, self.count, 6):
            for _attempt in range(3):
                if client.put('%s_s/%04d' % (where, number), b'x').ok:
                    break

    def _post(self, proxy: str, where: str, class_id: int,
              said: Dict[int, int]) -> None:
        try:
            said[class_id] = self._client(proxy).post(where + '/big', {
                names.OBJECT_CLASS: str(class_id)}).status
        except OSError:
            pass  # no answer

    def _post_single(self, where: str, dice: random.Random,
                     ended: threading.Event, taken: Set[int]) -> None:
        """Give segments a class by either proxy.

        :param taken: those that the answer does not say were refused
        """
        while not ended.is_set():
            number = dice.randrange(self.count)
            try:
                status = self.made.client(
                    proxy=dice.choice(('p1', 'p2')), seconds=10.0).post(
                        '%s_s/%04d' % (where, number),
                        {names.OBJECT_CLASS: str(ALONE)}).status
            except OSError:
                status = 0
            if status == 409:
                self.refused += 1
            else:
                taken.add(number)
            time.sleep(0.1)

    def _change_behind(self, path: str) -> None:
        """Give a segment a class that no proxy knows of."""
        for node in self.made.primaries(path):
            assert self.made.direct(node, 'POST', path, headers=dict(
                registers.class_alone(Timestamp.now().internal),
                **{names.TRANSIENT_MAP: '31'})).ok

    def _lose(self, loss: str, node: str) -> None:
        if loss == 'kill':
            self.made.kill(node)
        else:
            self.made.partition(node, ['nodes', 'proxies'])

    def _return(self, loss: str, node: str) -> None:
        if loss == 'kill':
            self.made.revive(node)
        else:
            self.made.heal(node)

    def _trouble(self, trouble: str) -> Any:
        """Trouble of the first proxy; ends it when called."""
        made = self.made
        pids = [pid for pids in made.member('p1').running().values()
                for pid in pids]
        if trouble == 'kill':
            made.kill('p1')
            return lambda: made.revive('p1')
        if trouble == 'pause':
            _signal(pids, signal.SIGSTOP)
            return lambda: _signal(pids, signal.SIGCONT)
        if trouble == 'cut':
            made.partition('p1', ['nodes'])
            return lambda: made.heal('p1')
        return lambda: None

    def _client(self, proxy: str) -> Any:
        return self.made.client(proxy=proxy, seconds=120.0)

    # -- the judge -------------------------------------------------------

    def _judge(self, setting: Setting, where: str,
               said: Dict[int, int], taken: Set[int]) -> None:
        until = time.monotonic() + _REST_SECONDS
        found = ['nothing was looked at']
        while found and time.monotonic() < until:
            time.sleep(2.0)
            for node in self.made.nodes:
                node.run_once('object-replicator')
            found = list(self._seen_wrong(where, said, taken))
        self.wrong += ['%s, answers %r: %s' % (setting, said, line)
                       for line in found[:5]]
        if found[5:]:
            self.wrong.append('and %d more' % len(found[5:]))

    def _seen_wrong(self, where: str, said: Dict[int, int],
                    taken: Set[int]) -> Iterator[str]:
        shown = None
        for node, headers in self._replicas(where + '/big'):
            if names.STATE.lower() in headers:
                yield '%s: %s' % (node, headers[names.STATE.lower()])
            mine = _map(headers)
            if shown is not None and mine != shown:
                yield 'the manifest on %s differs' % node
            shown = mine
        if shown is None:
            yield 'the manifest is gone'
            return
        given = next((shown.class_at(number) for number in range(self.count)
                      if number not in taken), FIRST)
        if 202 in said.values() and given not in (FIRST, SECOND):
            yield 'the manifest shows %d' % given
        for number in range(self.count):
            wanted = TOP if number >= self.count - self.count // 5 else given
            if shown.class_at(number) not in (
                    wanted, ALONE if number in taken else wanted):
                yield 'segment %d is shown as %d, not %d' % (
                    number, shown.class_at(number), wanted)
            for node, headers in self._replicas(
                    '%s_s/%04d' % (where, number)):
                if _map(headers).class_at(0) != shown.class_at(number):
                    yield 'segment %d: %s has %d, shown is %d' % (
                        number, node, _map(headers).class_at(0),
                        shown.class_at(number))

    def _replicas(self, path: str) -> Iterator[Tuple[str, Any]]:
        path = '/AUTH_test/' + path
        for node in self.made.primaries(path):
            reply = self.made.direct(node, 'HEAD', path)
            yield node, reply.headers if reply.ok else {}


def _map(headers: Any) -> ClassMap:
    titled = {name.title(): value for name, value in headers.items()}
    known: Optional[ClassMap] = stored.effective_map(titled)
    return known or ClassMap.uniform(0)


def _signal(pids: List[int], number: int) -> None:
    for pid in pids:
        os.kill(pid, number)


def run(settings: List[Setting], seed: int, count: int = 200,
        twin: bool = False) -> Dict[str, Any]:
    """What was seen in these settings."""
    began = time.monotonic()
    with bed(nodes=NODES, proxies=2) as made:
        large = Large(made, seed, count, twin)
        for setting in settings:
            seen = len(large.wrong)
            large.run(setting)
            print('%d segments, %d wrong, %.0f s: %s' % (
                large.segments, len(large.wrong), time.monotonic() - began,
                setting), *large.wrong[seen:], sep='\n', flush=True)
    return {'settings': len(settings), 'segments': large.segments,
            'faults': large.faults,
            'cut_short': large.cut_short, 'refused': large.refused,
            'wrong': large.wrong,
            'seconds': round(time.monotonic() - began, 1)}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--settings', type=int, default=len(SETTINGS))
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--trouble', choices=TROUBLES)
    parser.add_argument('--loss', choices=LOSSES)
    parser.add_argument('--segments', type=int, default=200)
    parser.add_argument('--twin', action='store_true')
    args = parser.parse_args()
    settings = [setting for setting in SETTINGS
                if args.trouble in (None, setting.trouble)
                and args.loss in (None, setting.loss)]
    report = run(settings[:1 if args.twin else args.settings], args.seed,
                 args.segments, args.twin)
    print(json.dumps(report))
    return bool(report['wrong']) != args.twin


if __name__ == '__main__':
    sys.exit(main())
