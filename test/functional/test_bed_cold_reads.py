"""Cold bytes are read from the least busy HDD, on a bed with a slow one."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import pathlib
import re
import shutil
import threading
import time
from collections import Counter
from typing import Any, Dict, Iterator, List

import pytest
from support import pattern, wait_until
from support.nodes.beds import (
    add_classes, await_tiers, bed, set_in_proxies)

import swift_dss
from swift_dss.aio import throttle
from swift_dss.aio.bed.bed import Bed
from swift_dss.strategy.eviction.warmth import rank_of
from swift_dss.wire import names

pytestmark = [pytest.mark.cluster, pytest.mark.root]

SIZE = 300000
COUNT = 40
ICY = """
[class:9]
name = icy
rank = 5
allocate = never
"""
SLOW = 'n1'
CGROUP = 'dss-cold-reads'
IOPS = 20
#: The queue of the slow HDD is never shorter, and the proxy hears so.
QUEUE_SECONDS = 0.1
#: In an object server: for how long its HDD is busy.
SAID = 'str(node.backlog_ms(device))'


@pytest.fixture(scope='module')
def made() -> Iterator[Bed]:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    with bed(nodes=3, options={'gateway': {'enabled': 'false'}}) as new_bed:
        set_in_proxies(new_bed, 'filter:dss', least_loaded='true')
        add_classes(new_bed, ICY)
        yield new_bed


@pytest.fixture(scope='module')
def bodies(made: Bed) -> Dict[str, bytes]:
    """Objects that are on HDDs alone, as those that load the slow one."""
    client = made.client()
    client.container('cold')
    client.container('load')
    wanted = ['cold/%d' % number for number in range(COUNT)] + [
        'load/%d' % number for number in range(12)]
    uploaded = {name: pattern(SIZE, name) for name in wanted}
    for name, body in uploaded.items():
        assert client.put(name, body, {
            'X-DSS-Object-Class': 'icy'}).status == 201
    for name in wanted:
        await_tiers(made, '/AUTH_test/' + name, 'hdd')
    for node in made.plan.nodes:
        forget(made, node)
    return {name: body for name, body in uploaded.items()
            if name.startswith('cold/')}


def ranked(made: Bed, name: str) -> List[str]:
    """Nodes of the primaries, by rank."""
    path = '/AUTH_test/' + name
    primaries = made.primaries(path)
    return sorted(primaries, key=lambda node: rank_of(
        made.hash_of(path), primaries.index(node), len(primaries)))


def of_rank_0(made: Bed, bodies: Dict[str, bytes],
              node: str) -> List[str]:
    return [name for name in bodies if ranked(made, name)[0] == node]


class Reads:
    """Which nodes gave bodies, and which sent readers on, since then."""

    def __init__(self, made: Bed) -> None:
        self._made = made
        self._at = {node: len(self._log(node)) for node in made.plan.nodes}

    def _log(self, node: str) -> str:
        with open(self._made.node(node).conf.path(
                'log', 'object-server.log')) as source:
            return source.read()

    def names_by_node(self, status: int = 200) -> Dict[str, List[str]]:
        """What it answered to the proxy, by the objects' names."""
        return {node: re.findall(
            r'"GET /d1/\d+/AUTH_test/(cold/\S+)" %d .*"proxy-server' % status,
            self._log(node)[at:]) for node, at in self._at.items()}

    def by_node(self, status: int = 200) -> Dict[str, int]:
        """Answers to the proxy."""
        return {node: len(given)
                for node, given in self.names_by_node(status).items()}


def forget(made: Bed, node: str) -> None:
    """Drop what the page cache has of a node's HDD."""
    for folder, _, files in os.walk(made.node(node).conf.path('hdd')):
        for name in files:
            with open(os.path.join(folder, name), 'rb') as source:
                os.fsync(source.fileno())
                os.posix_fadvise(source.fileno(), 0, 0,
                                 os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def slow_disk(made: Bed) -> Iterator[None]:
    """The slow node's HDD does few reads a second, and other readers have a
    dozen under way: each takes more than half a second."""
    node = made.node(SLOW)
    with open('/proc/self/mounts') as source:
        device, = {line.split()[0] for line in source
                   if line.split()[1] == node.conf.path('hdd', 'd1')}
    try:
        procs, = throttle.apply(CGROUP, [device], IOPS)
    except OSError as err:
        pytest.skip('no disk can be slowed down here: %s' % err)
    for pid in node.running()['object-server']:
        with open(procs, 'w') as target:
            target.write(str(pid))
    stop = threading.Event()
    readers = [threading.Thread(target=read_on, args=(made, stop, number))
               for number in range(12)]
    for reader in readers:
        reader.start()
    try:
        wait_until(lambda: backlog_ms(made) > 1000 * QUEUE_SECONDS, 60,
                   'a queue')
        yield
    finally:
        stop.set()
        for reader in readers:
            reader.join()
        with open(os.path.join(throttle.V1_ROOT, 'cgroup.procs')
                  if procs.startswith(throttle.V1_ROOT) else
                  os.path.join(throttle.V2_ROOT, 'cgroup.procs'),
                  'w') as target:
            for pid in node.running()['object-server']:
                target.write(str(pid))
                target.flush()
        throttle.remove(CGROUP)


def read_on(made: Bed, stop: threading.Event, number: int) -> None:
    """A reader at the object server itself: its bytes do not stay in the page
    cache, as it has a token."""
    while not stop.is_set():
        made.direct(SLOW, 'GET', '/AUTH_test/load/%d' % number,
                    headers={'X-Auth-Token': 'x'}, seconds=120)


def backlog_ms(made: Bed) -> int:
    return int(made.direct(SLOW, 'HEAD', '/AUTH_test/load/0').headers[
        names.BACKEND_BACKLOG.lower()])


@pytest.fixture(scope='module')
def edited(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes this version anew, with a line of its object server edited."""
    def edit(line: str, other: str) -> str:
        packages = str(tmp_path_factory.mktemp('packages'))
        shutil.copytree(os.path.dirname(swift_dss.__file__),
                        os.path.join(packages, 'swift_dss'))
        # A checkout has an egg's folder beside what was installed.
        distribution = next(
            installed
            for installed in importlib.metadata.distributions(name='swift-dss')
            if installed.read_text('METADATA'))
        for file in ('METADATA', 'entry_points.txt'):
            target = os.path.join(packages, 'swift_dss-0.dist-info', file)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, 'w') as out:
                out.write(distribution.read_text(file) or '')
        edited_files = 0
        for path in pathlib.Path(packages).glob('swift_dss/objserver/*.py'):
            text = path.read_text()
            if line in text:
                path.write_text(text.replace(line, other))
                edited_files += 1
        assert edited_files == 1, line
        return packages
    return edit


def read_with_a_slow_disk(made: Bed, bodies: Dict[str, bytes]) -> Reads:
    """Read all, and then those whose first rank has the slow disk."""
    client = made.client()
    mine = of_rank_0(made, bodies, SLOW)
    for name, body in bodies.items():
        assert client.get(name).body == body
    with slow_disk(made):
        reads = Reads(made)
        took: Dict[str, float] = {}
        for name in mine:
            began = time.monotonic()
            assert client.get(name).body == bodies[name]
            took[name] = time.monotonic() - began
        given = reads.names_by_node()
    assert sum(map(len, given.values())) == len(mine)
    # The proxy hears of the queue by the first answer, and asks again when
    # that queue has run out: the others' answers take so long together.
    others = sum(seconds for name, seconds in took.items()
                 if name not in given[SLOW])
    assert len(given[SLOW]) <= 2 + others / QUEUE_SECONDS, (given, took)
    return reads


def test_an_idle_cluster_reads_by_rank(made: Bed,
                                       bodies: Dict[str, bytes]) -> None:
    reads = Reads(made)
    client = made.client()
    for name, body in bodies.items():
        assert client.get(name).body == body
    assert reads.by_node() == Counter(
        ranked(made, name)[0] for name in bodies)
    assert not any(reads.by_node(404).values())


def test_readers_of_cold_bytes_go_past_a_busy_hdd(
        made: Bed, bodies: Dict[str, bytes]) -> None:
    reads = read_with_a_slow_disk(made, bodies)
    print(reads.by_node(), reads.by_node(404))


@pytest.mark.parametrize('line, other, is_read', [
    # Of an earlier release: it says nothing, and heeds nothing.
    ('names.BACKEND_BACKLOG: ' + SAID, '', False),
    (SAID, "'9' * 5000", False),
    (SAID, "'60000'", False),
    (SAID, "'0'", True)],
    ids=['says nothing', 'says nonsense', 'is always busy', 'never is'])
def test_a_node_that_does_not_tell_the_truth(
        made: Bed, bodies: Dict[str, bytes], edited: Any, line: str,
        other: str, is_read: bool) -> None:
    made.version('n2', edited(line, other))
    try:
        given = read_with_a_slow_disk(made, bodies).by_node()
        assert given['n3'] and (is_read or not given['n2']), given
    finally:
        made.version('n2')


def test_where_each_node_refuses_each_read_is_served(
        made: Bed, bodies: Dict[str, bytes], edited: Any) -> None:
    """The proxy then asks without a limit."""
    refusing = edited('opened.dss_backlog_ms > limit_ms',
                      'opened.dss_backlog_ms >= 0')
    for node in ('n2', 'n3'):
        made.version(node, refusing)
    try:
        reads = read_with_a_slow_disk(made, bodies)
        assert min(reads.by_node(404).values()) >= 1
    finally:
        for node in ('n2', 'n3'):
            made.version(node)


def test_a_node_that_is_down_is_passed_over_as_ever(
        made: Bed, bodies: Dict[str, bytes]) -> None:
    client = made.client()
    for body in bodies.items():
        assert client.get(body[0]).body == body[1]
    made.node('n3').kill()
    try:
        given = read_with_a_slow_disk(made, bodies).by_node()
        assert given['n2'] and not given['n3'], given
    finally:
        made.node('n3').start()
        made.await_all()
