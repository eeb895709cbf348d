#!/usr/bin/env python
"""Histories on a bed of real nodes, judged by the simulation's model.

A PUT, an overwrite and a DELETE of an object each reach a subset of its three
primaries, drawn from a seed: one of 512 histories. Some share one of twelve
settings: no node is lost, or one loses its drives and all state before or
after the DELETE; the writes follow at once, or after uploads and with no local
byte left; the ring stays, or a node leaves it and another enters. Then
replicators run until nothing moves, and each primary and a client must show
what acknowledged writes allow. One start of the bed serves all settings.

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
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set

import swiftclient

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from beds import add_classes, bed
from support import wait_until

from swift_dss.aio import layout, processes
from swift_dss.aio.bed import look, plan
from swift_dss.core.errors import TierUnavailable
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.bundle import since
from swift_dss.gateway.link.client import OWNER_KEY
from swift_dss.gateway.restore.places import FOLDERS
from swift_dss.sim.model import Attempt, Model
from swift_dss.wire import classmap, names
from swift_dss.wire.layout import parse_remote_key

NODES = 5
CONTAINER = 'histories'
ACCOUNT = 'AUTH_test'
OPTIONS = {
    'tier': {'interval_seconds': '1', 'clean_after_seconds': '1',
             'min_demote_bytes': '1024'},
    'gateway': {'remote_after_seconds': '1', 'delete_delay_seconds': '3',
                'take_over_seconds': '6', 'bundle_age_seconds': '2'}}
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
SUBSETS = [one for count in range(4)
           for one in itertools.combinations(range(3), count)]
#: Until uploads are done, also those that a later primary takes over.
_SEND_SECONDS = 40.0
#: Until a delete has had its turn on any replica.
_DUE_SECONDS = 15.0
#: Until what clients see is final.
_REST_SECONDS = 60.0
#: Each node has looked through its part of the bucket; a key is old enough
#: for ``gc --absent``.
_ROUND_SECONDS, _WEEK_SECONDS = 3.1 * 86400, 8 * 86400.0
_GC_SECONDS = 180.0


class Setting(NamedTuple):
    """What some histories share.

    :param lost: a node is lost ``before`` or ``after`` the DELETE; '' none
    :param waits: between the writes uploads are done, and then no local
        bytes are left
    :param moves: a node leaves the ring and another enters
    """

    lost: str
    waits: bool
    moves: bool

    def __str__(self) -> str:
        return '%s, writes follow %s, the ring %s' % (
            'a node is lost %s the DELETE' % self.lost if self.lost
            else 'no node is lost',
            'after uploads' if self.waits else 'at once',
            'changes' if self.moves else 'stays')


SETTINGS = [Setting(lost, waits, moves) for lost in ('after', 'before', '')
            for waits in (True, False) for moves in (True, False)]


class History(NamedTuple):
    """An object, and the primaries (0, 1, 2) that its writes reach."""

    name: str
    kind: int
    reached: Any

    def __str__(self) -> str:
        return '%s: PUT reaches %s, overwrite %s, DELETE %s' % (
            (self.name,) + tuple(str(list(one)) for one in self.reached))


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
        some = list(self._draw(count))
        for number in range(3):
            if number == 2 and setting.lost == 'before':
                self._lose_a_node()
            for history in some:
                self._write(history, number)
            if setting.waits and number < 2:
                self._send(some)
        if setting.waits:
            time.sleep(_DUE_SECONDS)
        if twin:
            self._forget_keys(some)
        if setting.lost == 'after':
            self._lose_a_node()
        if setting.moves:
            add_classes(self.made, CLASSES, [self.made.add()])
            self.made.remove(self.dice.choice(self.made.plan.nodes[:-1]))
        self.made.rebalance()
        for history in some:
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
        for one in history.reached[number]:
            reply = self.made.direct(
                primaries[one], 'DELETE' if body is None else 'PUT',
                self._path(history.name), self.policy, headers, body)
            assert reply.status // 100 == 2 or (
                body is None and reply.status == 404), reply
        name = self.model.name(history.name)
        name.tried(Attempt(stamp, body))
        if len(history.reached[number]) >= 2:
            name.acknowledge(stamp)

    def _send(self, some: List[History]) -> None:
        """Wait until S3 has all, as far as it gets them; nobody else then."""
        until = time.monotonic() + _SEND_SECONDS
        while time.monotonic() < until and not all(
                found.residency and found.residency.remote
                for found in self._files(some) if found.kind == 'data'):
            time.sleep(0.5)
        for node in self.made.plan.nodes:
            done = self.made.tool(
                node, 'tier', 'demote', '--config', '{conf}', '--to',
                'remote', '--container', '%s/%s' % (ACCOUNT, CONTAINER))
            assert not done.returncode, done.stdout + done.stderr

    def _files(self, some: List[History]) -> List[look.Found]:
        return [found for history in some
                for found in self.made.files(self._path(history.name))]

    def _forget_keys(self, some: List[History]) -> None:
        """S3 loses all that acknowledged versions lean on."""
        for found in self._files(some):
            if found.residency and found.residency.remote:
                self.made.s3.fault(
                    'forget', keys=found.residency.remote.key + '*')

    def _lose_a_node(self) -> None:
        """Its drives, and all that its daemon knows."""
        node = self.made.node(self.dice.choice(self.made.plan.nodes))
        processes.end(node.conf.root, ['tierd', 'object-server'])
        for part in STATE:
            for path in glob.glob(node.conf.path('**', part + '*'),
                                  recursive=True):
                os.unlink(path)
        for device in node.conf.device_names:
            for what in ('ssd', 'hdd'):
                self.made.lose_drive(node.name, device, what)
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
                    (one.node, one.kind, one.tiers, one.timestamp)
                    for one in self._files([history])]))

    def _wrong(self, history: History) -> str:
        """What a client or a primary answers that no write allows."""
        name = self.model.name(history.name)
        allowed: Set[Optional[bytes]] = {one.body for one in name.allowed()}
        if name.promised() is None:
            allowed.add(None)
        replies = {'a client': self.made.client().get(
            '%s/%s' % (CONTAINER, history.name))}
        for node in self._primaries(history.name):
            replies[node] = self.made.direct(
                node, 'GET', self._path(history.name), self.policy)
        for who, reply in replies.items():
            if reply.status not in (200, 404):
                return '%s answers %d' % (who, reply.status)
            if (reply.body if reply.status == 200 else None) not in allowed:
                return '%s shows %s' % (
                    who, reply.headers.get('x-timestamp')
                    if reply.status == 200 else 'nothing')
        return ''

    # -- the bucket ------------------------------------------------------

    def three_days(self) -> int:
        """Each node looks through its part of the bucket; bytes that are left
        and that nothing needs, but for those of writes that were refused."""
        self._pass(_ROUND_SECONDS)
        return sum(self._leaked().values()) if not self._wait_for(
            lambda: not self._leaked()) else 0

    def a_week(self) -> List[str]:
        """An operator collects what is absent; keys that are left and that no
        record names."""
        self._pass(_ROUND_SECONDS + _WEEK_SECONDS)
        for node in self.made.plan.nodes:
            self._gc(node)
        first = self.made.plan.nodes[0]
        # Bundles that nodes rewrote for it go by and by.
        self._wait_for(lambda: self._gc(first, '--all')
                       and not self.not_needed())
        return sorted(self.not_needed())

    def _pass(self, seconds: float) -> None:
        for name in self.made.plan.members:
            self.made.skew(name, seconds)

    def _wait_for(self, done: Any) -> bool:
        until = time.monotonic() + _GC_SECONDS
        while not done():
            if time.monotonic() > until:
                return False
            time.sleep(3.0)
        return True

    def _gc(self, node: str, *words: str) -> Any:
        def one_pass() -> Any:
            done = self.made.tool(node, 'gateway', 'gc', '--config',
                                  '{conf}', '--absent', '--json', *words)
            if done.returncode == TierUnavailable.exit_code:
                return None  # the daemon makes one by itself just now
            assert not done.returncode, done.stdout + done.stderr
            return json.loads(done.stdout)
        return wait_until(one_pass, 120, 'a pass of gc')

    def not_needed(self) -> Dict[str, int]:
        """Keys that no record names, of versions that no node has, and their
        bytes."""
        needed: Set[str] = set()
        for node in self.made.plan.nodes:
            for found in look.every_file(self.made.plan, node):
                if found.kind != 'data':
                    continue
                object_hash = os.path.basename(os.path.dirname(found.path))
                # A stub whose bundle is gone reads its own key.
                needed.add('%s/%s' % (object_hash, found.timestamp))
                if found.residency and found.residency.remote:
                    needed.add(found.residency.remote.key)
        return {key: length for key, length in self.keys().items()
                if not needed & _means(key)}

    def keys(self) -> Dict[str, int]:
        """All keys of the bucket but records of accounts and containers, and
        the owner's mark."""
        account, user, key = layout.CLOUD_USER
        with self.made.inside(plan.S3):
            cloud = swiftclient.Connection(
                authurl=self.made.member(plan.S3).conf.cloud_url
                + '/auth/v1.0', user='%s:%s' % (account, user), key=key)
            listing = cloud.get_container(
                layout.CLOUD_BUCKET, full_listing=True)[1]
            cloud.close()
        return {one['name']: one['bytes'] for one in listing
                if not one['name'].startswith(FOLDERS)
                and not one['name'].endswith(OWNER_KEY)}

    def _leaked(self) -> Dict[str, int]:
        """The same, but for versions that were refused, which a lost node may
        have had alone."""
        refused = {(self.made.hash_of(self._path(name)), one.timestamp)
                   for name, history in self.model.names.items()
                   for one in history.attempts
                   if one.timestamp > history.acknowledged}
        offered = self._offered()
        return {key: length for key, length in self.not_needed().items()
                if not _versions(key, offered) & refused}

    def _offered(self) -> Dict[str, Set[Any]]:
        """The bucket's bundles, and hashes and timestamps of the members."""
        done = self.made.tool(self.made.plan.nodes[0], 'gateway', 'ls',
                              '--config', '{conf}', '--json')
        assert done.stdout, done.stderr
        found: Dict[str, Set[Any]] = {}
        for row in json.loads(done.stdout):
            found.setdefault(row['key'], set()).add((
                self.made.hash_of(row['name']), row['timestamp']))
        return found

    # -- inside ----------------------------------------------------------

    def _path(self, name: str) -> str:
        return '/%s/%s/%s' % (ACCOUNT, CONTAINER, name)

    def _primaries(self, name: str) -> List[str]:
        found: List[str] = self.made.primaries(
            self._path(name), self.policy)
        return found


def _means(key: str) -> Set[str]:
    """A key, that of the data which it lies beside, and its version."""
    parsed = parse_remote_key('', key)
    if parsed is None:
        return {since.bundle_of(key) or key}
    version, suffix = parsed
    return {key[:len(key) - len(suffix)], '%s/%s' % (
        version.object_hash, version.timestamp)}


def _versions(key: str, offered: Dict[str, Set[Any]]) -> Set[Any]:
    """Hashes and timestamps of what lies under a key, or beside it."""
    parsed = parse_remote_key('', key)
    if parsed is None:
        return offered.get(since.bundle_of(key) or key, set())
    return {(parsed[0].object_hash, parsed[0].timestamp)}


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
        found = dict(judge.wrong, histories=len(judge.told),
                     put_bytes=judge.put_bytes)
        if not twin:
            found['not_needed_bytes'] = sum(judge.not_needed().values())
            found['leaked_bytes'] = judge.three_days()
            found['left_by_gc'] = judge.a_week()
            found['keys'] = len(judge.keys())
    return dict(found, seconds=round(time.monotonic() - began, 1))


def is_broken(found: Dict[str, Any]) -> bool:
    """True if a promise was broken."""
    return bool(found['unreadable'] or found['restored']
                or found.get('left_by_gc')
                or found.get('leaked_bytes', 0) > 0.01 * found['put_bytes'])


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--histories', type=int, default=108)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--twin', action='store_true')
    args = parser.parse_args()
    found = run(args.histories, args.seed,
                SETTINGS[:1] if args.twin else SETTINGS, args.twin)
    print(json.dumps(found, indent=1))
    return is_broken(found) != args.twin


if __name__ == '__main__':
    sys.exit(main())
