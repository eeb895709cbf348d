#!/usr/bin/env python
"""R31: anything in any order, against a dict.

A state machine of hypothesis drives a real cluster (three devices, three
replicas, HDDs, bundles, a second Swift as S3 behind a link): PUT, POST, GET,
ranges, COPY, SLO, DELETE and expiry, while objects are demoted, evicted,
promoted and flushed, the tier daemon is killed with SIGKILL, and S3 goes and
comes. A dict says what every read must give. While S3 is away a read may be
refused with 503, and nothing else may differ.

    python test/fault/do_anything_in_any_order.py [--examples 10]
                                                  [--steps 40] [--seed 1]

The wrong twin reads through a cache that knows an object by its name.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import uuid
from typing import Any, Callable, Dict, List, Optional, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from fault.outage import Server
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine, precondition, rule, run_state_machine_as_test)
from support import pattern, tier, wait_until
from support.edges.faulty_s3 import FaultyS3
from support.edges.wan_link import WanLink
from support.nodes.tuned_cluster import TunedCluster
from swiftclient import ClientException

from swift_dss.aio import configs, layout, processes

CLASSES = {
    'small': '[class:0]\nname = small\nrank = 0\nremote = through\n'
             'bundle = yes\n',
    'normal': '[class:1]\nname = normal\nrank = 50\nremote = through\n',
    'home': '[class:2]\nname = home\nrank = 90\nremote = never\n'}
NAMES = st.sampled_from(('a', 'b', 'c'))
SIZES = st.sampled_from((0, 1, 3000, 70000, 300000))
#: Where S3 is as it should be, a read is not refused for longer.
PATIENCE_SECONDS = 60.0
_COUNTS = {'steps': 0, 'reads': 0, 'kills': 0, 'outages': 0, 'evictions': 0,
           'refused': 0}


class Divergence(AssertionError):
    """The cluster says other than the dict."""


class World:
    """The cluster, and its S3 behind a link."""

    def __init__(self) -> None:
        root = tempfile.mkdtemp(prefix='dss-r31-', dir='/var/tmp')
        self.conf = layout.AioConf(
            root=root, storage='folders', devices=3, background=False,
            base_port=processes.free_base_port(layout.PORTS, first=21580))
        self.faulty = FaultyS3(Server(self.conf))
        self.link = WanLink(self.faulty)
        self.cluster = _Cluster(self.conf, self.link.url)
        try:
            self.cluster.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave nothing."""
        self.cluster.stop()
        self.link.stop()
        self.faulty.stop()
        shutil.rmtree(self.conf.root, ignore_errors=True)

    def away(self, how: str) -> None:
        """S3 goes."""
        if how == 'cut':
            self.link.cut()
        elif how == 'stall':
            self.link.stall()
        else:
            self.faulty.arm(how, times=0)

    def back(self) -> None:
        """S3 is there."""
        self.faulty.disarm()
        self.link.flow()
        if self.link.is_cut:
            self.link.mend()


class _Cluster(TunedCluster):

    def __init__(self, conf: layout.AioConf, url: str) -> None:
        super().__init__(conf)
        self.options = {
            'tier': {'interval_seconds': '1', 'clean_after_seconds': '86400'},
            'gateway': {'url': url, 'remote_after_seconds': '0',
                        'delete_delay_seconds': '1',
                        'bundle_age_seconds': '1', 'take_over_seconds': '5',
                        'read_timeout_seconds': '3',
                        'connect_timeout_seconds': '1'}}

    def _configure(self) -> None:
        super()._configure()
        configs.write(self.conf, {
            'etc/dss-classes.conf': ''.join(CLASSES.values()),
            'etc/dss-rules.conf': ''})


class Machine(RuleBasedStateMachine):
    """One container, whatever happens to it."""

    world: World
    stale_cache = False

    def __init__(self) -> None:
        super().__init__()
        self.container = 'r31-' + uuid.uuid4().hex[:8]
        self._number = 0
        self._is_away = False
        #: Name to what its body and its metadata may be: several after a
        #: write that was not answered.
        self.model: Dict[str, List[Optional[Tuple[bytes, str]]]] = {}
        self._cache: Dict[str, Any] = {}
        self.swift = self.world.cluster.connection()
        self.swift.retries = 0
        self.swift.put_container(self.container)

    # -- what clients do -------------------------------------------------

    @rule(name=NAMES, size=SIZES, class_name=st.sampled_from(
        sorted(CLASSES)))
    def put(self, name: str, size: int, class_name: str) -> None:
        """A new object or version."""
        body = self._body(size)
        self._write(name, (body, ''), lambda: self.swift.put_object(
            self.container, name, body,
            headers={'X-DSS-Object-Class': class_name}))

    @rule(name=NAMES, text=st.sampled_from(('x', 'y')))
    def post(self, name: str, text: str) -> None:
        """Other metadata, the same bytes."""
        known = self._known(name)
        if known is not None:
            self._write(name, (known[0], text),
                        lambda: self.swift.post_object(
                            self.container, name,
                            {'X-Object-Meta-Text': text}))

    @rule(name=NAMES)
    def get(self, name: str) -> None:
        """All of it."""
        self._read(name)

    @rule(name=NAMES, start=st.integers(0, 300000),
          length=st.integers(1, 100000))
    def get_range(self, name: str, start: int, length: int) -> None:
        """Some of it."""
        self._read(name, (start, length))

    @rule(name=NAMES, into=NAMES)
    def copy(self, name: str, into: str) -> None:
        """By the server."""
        known = self._known(name)
        if known is not None and name != into:
            self._write(into, known, lambda: self.swift.copy_object(
                self.container, name, '/%s/%s' % (self.container, into)))

    @rule(name=NAMES, sizes=st.lists(SIZES.filter(bool), min_size=1,
                                     max_size=3))
    def slo(self, name: str, sizes: List[int]) -> None:
        """A large object of segments of its own."""
        bodies = [self._body(size) for size in sizes]
        manifest = []
        for number, body in enumerate(bodies):
            path = 'segment-%d-%d' % (self._number, number)
            if not self._try(lambda path=path, body=body:  # type: ignore
                             self.swift.put_object(self.container, path,
                                                   body)):
                return
            manifest.append({'path': '/%s/%s' % (self.container, path)})
        self._write(name, (b''.join(bodies), ''),
                    lambda: self.swift.put_object(
                        self.container, name, json.dumps(manifest),
                        query_string='multipart-manifest=put'))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        """It goes."""
        if self._known(name) is not None:
            self._write(name, None, lambda: self.swift.delete_object(
                self.container, name))

    @rule(name=NAMES)
    def expire(self, name: str) -> None:
        """It goes by itself."""
        body = self._body(1000)
        at = int(time.time()) + 2
        if self._try(lambda: self.swift.put_object(
                self.container, name, body,
                headers={'X-Delete-At': str(at)})):
            wait_until(lambda: time.time() > at + 1, 30)
            self.model[name] = [None]

    # -- what happens to them --------------------------------------------

    @rule(to=st.sampled_from(('hdd', 'remote', 'remote')))
    def evict(self, to: str) -> None:
        """As much as may leave does."""
        for name in list(self.model):
            self._tier('demote', '--to', to, name)
        _COUNTS['evictions'] += 1

    @rule()
    def promote(self) -> None:
        """Back to the SSDs."""
        for name in list(self.model):
            self._tier('promote', name)

    @precondition(lambda self: not self._is_away)
    @rule()
    def flush(self) -> None:
        """Until S3 has all that it is to have."""
        def settled() -> bool:
            gateway = tier(self.world.cluster, 'status')['gateway']
            return not (gateway['uploads'] or gateway['uploading'])
        wait_until(settled, 240, 'S3 has everything')

    @rule()
    def kill(self) -> None:
        """The daemon dies and starts again."""
        processes.kill(self.world.conf.root, ['tierd'])
        self.world.cluster.restart('tierd')
        _COUNTS['kills'] += 1

    @precondition(lambda self: not self._is_away)
    @rule(how=st.sampled_from(('cut', 'stall', '503', 'gone', 'swallow')))
    def away(self, how: str) -> None:
        """S3 goes."""
        self.world.away(how)
        self._is_away = True
        _COUNTS['outages'] += 1

    @precondition(lambda self: self._is_away)
    @rule()
    def back(self) -> None:
        """S3 is there again."""
        self.world.back()
        self._is_away = False

    def teardown(self) -> None:
        """Everything once more, with S3 there."""
        try:
            self.back()
            for name in ('a', 'b', 'c'):
                self._read(name)
        finally:
            self.swift.close()

    # -- inside ----------------------------------------------------------

    def _body(self, size: int) -> bytes:
        self._number += 1
        return pattern(size, '%s %d' % (self.container, self._number))

    def _known(self, name: str) -> Optional[Tuple[bytes, str]]:
        """What it is, if that is sure."""
        may = self.model.get(name, [None])
        return may[0] if len(may) == 1 else None

    def _try(self, call: Callable[[], object]) -> bool:
        _COUNTS['steps'] += 1
        try:
            call()
        except ClientException as err:
            if (err.http_status or 503) < 500:
                raise Divergence('%s' % err) from err
            return False
        return True

    def _write(self, name: str, becomes: Optional[Tuple[bytes, str]],
               call: Callable[[], object]) -> None:
        if self._try(call):
            self.model[name] = [becomes]
        else:
            self.model[name] = self.model.get(name, [None]) + [becomes]

    def _read(self, name: str,
              span: Optional[Tuple[int, int]] = None) -> None:
        _COUNTS['steps'] += 1
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            status, body, text = self._fetch(name, span)
            if status < 500:
                break
            _COUNTS['refused'] += 1
            if self._is_away:
                return
            if time.monotonic() > deadline:
                raise Divergence('%s: %d, though S3 is there' % (
                    name, status))
            time.sleep(0.5)
        _COUNTS['reads'] += 1
        may = self.model.get(name, [None])
        right = [value for value in may
                 if _answer(value, span) == (status, body, text)]
        if not right:
            raise Divergence('%s %s: %d with %d bytes %r, not %s' % (
                name, span, status, len(body), text,
                [(answer[0], len(answer[1]), answer[2]) for answer in (
                    _answer(value, span) for value in may)]))
        if span is None:
            self.model[name] = right[:1]

    def _fetch(self, name: str, span: Optional[Tuple[int, int]]
               ) -> Tuple[int, bytes, str]:
        if self.stale_cache and (name, span) in self._cache:
            return self._cache[name, span]
        headers = {} if span is None else {
            'Range': 'bytes=%d-%d' % (span[0], span[0] + span[1] - 1)}
        try:
            said, body = self.swift.get_object(
                self.container, name, headers=headers)
        except ClientException as err:
            return err.http_status or 503, b'', ''
        except (OSError, ValueError):
            return 503, b'', ''  # cut short
        if len(body) != int(said['content-length']):
            return 503, b'', ''  # cut short, and it can be told
        answer = (206 if 'content-range' in said else 200, body,
                  said.get('x-object-meta-text', ''))
        self._cache[name, span] = answer
        return answer

    def _tier(self, *words: str) -> None:
        try:
            tier(self.world.cluster, *words[:-1], '/%s/%s/%s' % (
                self._account(), self.container, words[-1]))
        except (AssertionError, ValueError):
            pass  # some of it may not leave now: that is an answer

    def _account(self) -> str:
        return str(self.swift.get_auth()[0].rpartition('/')[2])


def _answer(value: Optional[Tuple[bytes, str]],
            span: Optional[Tuple[int, int]]) -> Tuple[int, bytes, str]:
    """What Swift says of an object that is this."""
    if value is None:
        return 404, b'', ''
    body, text = value
    if span is None:
        return 200, body, text
    start, length = span
    if start >= len(body):
        return (416, b'', '') if body else (200, b'', text)
    return 206, body[start:start + length], text


def campaign(world: World, examples: int, steps: int, number: int,
             stale_cache: bool = False) -> Optional[str]:
    """The first divergence, or None."""
    machine = type('Seeded', (Machine,), {
        'world': world, 'stale_cache': stale_cache})
    run = seed(number)(lambda: run_state_machine_as_test(
        machine, settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None,
            database=None, phases=(Phase.generate,), print_blob=False,
            suppress_health_check=list(HealthCheck))))
    seed(number)(machine)
    try:
        random.seed(number)
        run()
    except Divergence as err:
        return str(err)
    finally:
        world.back()
    return None


def main() -> int:
    """Run everything and print the figures; 1 if anything diverged."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--examples', type=int, default=10)
    parser.add_argument('--steps', type=int, default=40)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    world = World()
    try:
        divergence = campaign(world, args.examples, args.steps, args.seed)
        counts = dict(_COUNTS)
        twin = campaign(world, 3, args.steps, args.seed, True)
    finally:
        world.close()
    if divergence:
        print('WRONG: ' + divergence)
    print('R31: %(steps)d steps, %(reads)d reads judged, %(evictions)d '
          'evictions, %(kills)d kills, %(outages)d outages, %(refused)d '
          'reads refused while S3 was away' % counts + ', %d divergences'
          % bool(divergence))
    print('R31 wrong twin: %s (must diverge)' % (twin or 'no divergence'))
    return 1 if divergence or not twin or not counts['reads'] else 0


if __name__ == '__main__':
    sys.exit(main())
