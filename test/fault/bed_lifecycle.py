#!/usr/bin/env python
"""Lifecycle rounds on a bed of real nodes whose leader is in trouble.

In each setting a bucket has rules, and objects that are due for a class or
for their end, some that are not due yet, and some that clients overwrite,
delete or give a class while the round is at them. In the middle of the round
the proxy that leads is killed, stopped for longer than its lease, cut off from
the nodes, or has its clock put ahead or back; and none, one or two nodes are
killed. When all are back, what a client and every replica show must be what
the rules and the acknowledged requests say: every due object has its class or
is gone, no other was touched, and nothing of what clients wrote meanwhile was
given the fate of the version before.

At the end objects are restored while one of their servers is away, and their
days end when only that one is there.

Objects of forty days ago come from a proxy whose clock is so late. Processes,
network namespaces and file systems are real.

    python test/fault/bed_lifecycle.py [--settings 18] [--seed 1]

The wrong twin (--twin) makes objects that are due, and tells the judge that
they are not: the judge must see it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import random
import signal
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from support import wait_until
from support.nodes.beds import bed, set_in_proxies

from swift_dss.bench.cluster.bed import change
from swift_dss.wire import names

NODES = 4
#: Its clock is late, and it does no rounds: objects of long ago come from it.
PAST = 'p3'
DAY = 86400
#: Objects of each kind in a setting.
COUNT = 8
RULES = [
    {'ID': 'class', 'Status': 'Enabled', 'Filter': {'Prefix': 't/'},
     'Transitions': [{'Days': 30, 'StorageClass': 'STANDARD_IA'},
                     {'Days': 60, 'StorageClass': 'GLACIER'}]},
    {'ID': 'end', 'Status': 'Enabled', 'Filter': {'Prefix': 'e/'},
     'Expiration': {'Days': 30}}]
LEADERS = '/.dss_lifecycle/leaders/'
RESTORE = 'x-dss-restore'
GOLD, SILVER, BRONZE = '25', '26', '27'
TROUBLES = ('kill', 'pause', 'cut', 'ahead', 'behind', 'none')
#: Longer than the lease of a leader.
_TROUBLE_SECONDS = 12.0
_SKEW_SECONDS = 15.0 * DAY
#: Until all is as it should be, once all servers are back.
_REST_SECONDS = 120.0
#: A client goes on with one request for so long.
_TRY_SECONDS = 120.0
#: Until a round over what was put off is done.
_ROUND_SECONDS = 5.0
#: A leader's lease, and some looks at what is due.
_LOOKS_SECONDS = 14.0


class Setting(NamedTuple):
    """What happens in the middle of a round.

    :param trouble: of the leader
    :param nodes: that are killed
    """

    trouble: str
    nodes: int

    def __str__(self) -> str:
        return 'leader: %s, %d nodes killed' % self


SETTINGS = [Setting(trouble, nodes) for nodes in (0, 1, 2)
            for trouble in TROUBLES]


class Kind(NamedTuple):
    """Objects that share a fate.

    :param days: how old they are
    :param client: what a client does with each during the round
    :param class_id: that it has in the end; None is unclassified
    :param lives: whether it is there in the end
    """

    name: str
    days: int
    client: str = ''
    class_id: Optional[str] = None
    lives: bool = True


KINDS = (
    Kind('t/due', 40, class_id=SILVER), Kind('t/late', 70, class_id=BRONZE),
    Kind('t/young', 20), Kind('e/due', 40, lives=False),
    Kind('e/young', 20), Kind('t/over', 40, 'put'), Kind('e/over', 40, 'put'),
    Kind('t/gone', 40, 'delete', lives=False),
    Kind('e/again', 40, 'delete and put'),
    Kind('t/gold', 40, 'gold', class_id=GOLD),
    Kind('e/posted', 40, 'color', lives=False))


class Thing(NamedTuple):
    """An object.

    :param path: container and name
    """

    path: str
    kind: Kind

    @property
    def body(self) -> bytes:
        """In the end."""
        return b'new' if 'put' in self.kind.client else b'old'


class Rounds:
    """One bed, and what its clients were told."""

    def __init__(self, made: Any, seed: int, twin: bool = False,
                 count: int = COUNT) -> None:
        self.made = made
        self.dice = random.Random(seed)
        self.twin = twin
        self.count = count
        self.wrong: List[str] = []
        self.objects = 0
        set_in_proxies(made, 'filter:dss', lifecycle_interval='1',
                       lifecycle_per_second='20')
        change(made.plan.conf(PAST).path('etc', 'proxy-server.conf'),
               {'filter:dss': {'lifecycle_interval': '0'}})
        made.member(PAST).restart('proxy-server')

    def run(self, setting: Setting) -> None:
        """One round, judged."""
        things = self._make()
        container = things[0].path.partition('/')[0]
        self._set_rules(container)
        victim = self._leader()
        other = 'p2' if victim == 'p1' else 'p1'
        client = threading.Thread(target=self._requests, args=(
            other, [thing for thing in things if thing.kind.client]))
        first = [thing for thing in things if thing.kind.name[2:] == 'due'][:2]
        wait_until(lambda: self._has_begun(other, first), 60,
                   'the round to begin')
        client.start()
        self._meet(setting, victim)
        if setting.nodes:
            # Swift answers 503 to a POST that one server takes and two know
            # no object for, until replicators have passed.
            self._replicate()
        client.join()
        self._judge(setting, other, things)
        self._s3(lambda s3: s3.delete_bucket_lifecycle(Bucket=container))

    def restore(self) -> None:
        """RestoreObject while one primary is away; its days end while that is
        the only one that is there, which knows of no restoration."""
        container = self._client('p1').container('restored')
        away, rest, names_of = self._placed(container)
        kept, newer = names_of[:2]
        client = self._client('p2')
        for name in names_of:
            assert client.put(name, b'old', {
                names.OBJECT_CLASS: BRONZE}).ok
        self.made.kill(away)
        for name in names_of:
            self._s3(functools.partial(_restore, container, name))
        self.made.kill(self._leader('restores'))
        for proxy in ('p1', 'p2'):
            self.made.revive(proxy)
        wait_until(lambda: all('"false"' in client.head(name).headers.get(
            RESTORE, '') for name in names_of), 90, 'bytes on the SSDs')
        for member in self.made.plan.members:
            self.made.skew(member, 3.0 * DAY)
        for node in rest:
            self.made.kill(node)
        self.made.revive(away)
        client = self._client('p2')  # the token has come to its end
        # Swift's proxy leaves a server alone for a minute after ten errors.
        wait_until(lambda: client.head(kept).ok, 90, 'an answer of ' + away)
        time.sleep(_LOOKS_SECONDS)
        for node in rest:
            self.made.revive(node)
        assert client.put(newer, b'new').ok
        # A server that missed an end of the days hears of it.
        self._replicate()
        until = time.monotonic() + _REST_SECONDS
        wanted = {name: (BRONZE if name != newer else None, '')
                  for name in names_of}
        shown: Dict[str, Any] = {}
        while shown != wanted and time.monotonic() < until:
            time.sleep(0.5)
            replies = {name: client.head(name, {'X-Newest': 'true'})
                       for name in names_of}
            shown = {name: (_class_of(reply), reply.headers.get(RESTORE, ''))
                     for name, reply in replies.items()}
        self.objects += len(names_of)
        self.wrong += ['restored %s is %s' % (name, shown[name])
                       for name in names_of if shown[name] != wanted[name]]

    def _replicate(self) -> None:
        time.sleep(_ROUND_SECONDS)
        for node in self.made.nodes:
            node.run_once('object-replicator')

    def _placed(self, container: str) -> Any:
        """A node, two that are with it the primaries of some objects, and the
        names of these. The others keep the leader's lease writable."""
        spare, = set(self.made.plan.nodes) - set(
            self.made.primaries(LEADERS + 'restores'))
        away, third = [node for node in self.made.plan.nodes
                       if node != spare][:2]
        return away, [spare, third], [name for name in (
            '%s/o%d' % (container, number) for number in range(40))
            if set(self.made.primaries('/AUTH_test/' + name)) == {
                spare, third, away}][:4]

    # -- before ----------------------------------------------------------

    def _make(self) -> List[Thing]:
        container = 'life-%d' % self.objects
        self._client('p1').container(container)
        things = [Thing('%s/%s%d' % (container, kind.name, number), kind)
                  for number in range(self.count) for kind in KINDS]
        self.objects += len(things)
        for days in sorted({kind.days for kind in KINDS}):
            self.made.skew(PAST, -days * DAY - (
                self.twin and days == 20) * 20 * DAY)
            past = self._client(PAST)
            for thing in things:
                if thing.kind.days == days:
                    assert past.put(thing.path, b'old').status == 201
        return things

    def _client(self, proxy: str) -> Any:
        return self.made.client(proxy=proxy, seconds=25.0)

    def _s3(self, call: Callable[[Any], Any]) -> None:
        proxy = self.made.member('p1').conf
        with self.made.inside('p1'):
            call(boto3.client(
                's3', endpoint_url='http://%s:%d' % (
                    proxy.address, proxy.proxy_port),
                aws_access_key_id='test:tester',
                aws_secret_access_key='testing', region_name='us-east-1',
                config=Config(s3={'addressing_style': 'path'})))

    def _set_rules(self, container: str) -> None:
        self._s3(lambda s3: s3.put_bucket_lifecycle_configuration(
            Bucket=container, LifecycleConfiguration={'Rules': RULES}))

    def _leader(self, work: str = 'lifecycle') -> str:
        """The proxy that leads, by the number of its process."""
        pids = {str(pid): name for name in ('p1', 'p2')
                for pids in self.made.member(name).running().values()
                for pid in pids}
        path = LEADERS + work

        def leader() -> str:
            # The newest: one that was away has another's.
            told = [('', '')]
            for node in self.made.primaries(path):
                with contextlib.suppress(OSError):
                    headers = self.made.direct(node, 'HEAD', path).headers
                    told.append((headers.get('x-object-meta-until', ''),
                                 headers.get('x-object-meta-beside', '')))
            return pids.get(max(told)[1].partition('.')[0], '')
        wait_until(leader, 60, 'a leader')
        return leader()

    def _has_begun(self, proxy: str, things: List[Thing]) -> bool:
        client = self._client(proxy)
        return any(reply.status == 404 or _class_of(reply) == SILVER
                   for thing in things
                   for reply in [client.head(thing.path)])

    # -- meanwhile -------------------------------------------------------

    def _requests(self, proxy: str, things: List[Thing]) -> None:
        """What clients do; each request until it is acknowledged."""
        client = self._client(proxy)
        for thing in random.Random(len(things)).sample(things, len(things)):
            if 'delete' in thing.kind.client:
                _until_ok(client.delete, thing.path, also=404)
            if 'put' in thing.kind.client:
                _until_ok(client.put, thing.path, b'new')
            if thing.kind.client == 'color':
                _until_ok(client.post, thing.path, {
                    'X-Object-Meta-Color': 'red'}, also=404)
            if thing.kind.client == 'gold':
                _until_ok(client.post, thing.path, {
                    names.OBJECT_CLASS: 'gold'})

    def _meet(self, setting: Setting, victim: str) -> None:
        """Trouble, and its end."""
        made, trouble = self.made, setting.trouble
        killed = self.dice.sample(made.plan.nodes, setting.nodes)
        pids = [pid for pids in made.member(victim).running().values()
                for pid in pids]
        if trouble == 'kill':
            made.kill(victim)
        elif trouble == 'pause':
            _signal(pids, signal.SIGSTOP)
        elif trouble == 'cut':
            made.partition(victim, ['nodes'])
        elif trouble in ('ahead', 'behind'):
            made.skew(victim, _SKEW_SECONDS * (
                1 if trouble == 'ahead' else -1))
        for node in killed:
            made.kill(node)
        time.sleep(_TROUBLE_SECONDS if trouble != 'none' else 2.0)
        for node in killed:
            made.revive(node)
        if trouble == 'kill':
            made.revive(victim)
        elif trouble == 'pause':
            _signal(pids, signal.SIGCONT)
        elif trouble == 'cut':
            made.heal(victim)
        elif trouble != 'none':
            made.skew(victim, 0.0)

    # -- the judge -------------------------------------------------------

    def _judge(self, setting: Setting, proxy: str,
               things: List[Thing]) -> None:
        # Nodes that were killed missed some, others a POST that a quorum
        # took: whatever they have must not win. X-Newest would not tell: it
        # compares data alone.
        if setting.nodes or setting.trouble != 'none':
            self._replicate()
        until = time.monotonic() + _REST_SECONDS
        while any(self._seen_wrong(proxy, things)) and \
                time.monotonic() < until:
            time.sleep(1.0)
        self.wrong += ['%s: %s' % (setting, line)
                       for line in self._seen_wrong(proxy, things)]
        for thing in things if setting.nodes else ():
            path = '/AUTH_test/' + thing.path
            for node in self.made.primaries(path):
                said = _wrong(thing, self.made.direct(node, 'GET', path))
                if said:
                    self.wrong.append('%s: %s: %s %s' % (
                        setting, node, thing.path, said))

    def _seen_wrong(self, proxy: str,
                    things: List[Thing]) -> Iterator[str]:
        client = self._client(proxy)
        for thing in things:
            said = _wrong(thing, client.get(
                thing.path, headers={'X-Newest': 'true'}))
            if said:
                yield '%s %s' % (thing.path, said)


def _wrong(thing: Thing, reply: Any) -> str:
    """What is wrong with an answer; '' if nothing is."""
    if reply.status == 404:
        return 'is gone' * thing.kind.lives
    if reply.status != 200:
        return 'answers %d' % reply.status
    if not thing.kind.lives:
        return 'is there'
    if reply.body != thing.body:
        return 'has the bytes of before'
    class_id = _class_of(reply)
    return '' if class_id == thing.kind.class_id else 'has class %s' % class_id


def _restore(container: str, name: str, s3: Any) -> None:
    try:
        s3.restore_object(Bucket=container, Key=name.partition('/')[2],
                          RestoreRequest={'Days': 1})
    except ClientError as err:
        # It was sent again, and the first was heard.
        if err.response['Error']['Code'] != 'RestoreAlreadyInProgress':
            raise


def _class_of(reply: Any) -> Optional[str]:
    """The class that a client or a replica says."""
    told: Optional[str] = reply.headers.get(names.OBJECT_CLASS.lower())
    if told is None:
        text = reply.headers.get(names.TRANSIENT_MAP.lower(), '')
        told = text.rpartition('-')[2] if text else None
    return told


def _until_ok(ask: Callable[..., Any], *words: Any, also: int = 0) -> None:
    until = time.monotonic() + _TRY_SECONDS
    while time.monotonic() < until:
        try:
            reply = ask(*words)
        except OSError:
            continue
        if reply.ok or reply.status == also:
            return
        time.sleep(0.2)
    raise AssertionError('no acknowledgement: %r' % (reply,))


def _signal(pids: List[int], number: int) -> None:
    for pid in pids:
        os.kill(pid, number)


def run(settings: List[Setting], seed: int, twin: bool = False,
        count: int = COUNT, nodes: int = NODES,
        restores: bool = True) -> Dict[str, Any]:
    """What was seen in these settings."""
    began = time.monotonic()
    with bed(nodes=nodes, proxies=3) as made:
        rounds = Rounds(made, seed, twin, count)
        for setting in settings:
            seen = len(rounds.wrong)
            rounds.run(setting)
            print(*rounds.wrong[seen:], sep='\n', end='\n' * (
                len(rounds.wrong) > seen))
            print('%d objects, %d wrong, %.0f s: %s' % (
                rounds.objects, len(rounds.wrong),
                time.monotonic() - began, setting), flush=True)
        if restores:
            rounds.restore()
    return {'settings': len(settings), 'objects': rounds.objects,
            'wrong': rounds.wrong,
            'seconds': round(time.monotonic() - began, 1)}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--settings', type=int, default=len(SETTINGS))
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--trouble', choices=TROUBLES)
    parser.add_argument('--killed', type=int, choices=(0, 1, 2),
                        help='nodes')
    parser.add_argument('--twin', action='store_true')
    args = parser.parse_args()
    settings = [setting for setting in SETTINGS
                if args.trouble in (None, setting.trouble)
                and args.killed in (None, setting.nodes)]
    report = run(list(itertools.islice(
        itertools.cycle(settings), min(args.settings, len(settings))
        if not args.twin else 1)), args.seed, args.twin)
    print(json.dumps(report))
    return bool(report['wrong']) != args.twin


if __name__ == '__main__':
    sys.exit(main())
