"""Stock Swift, an old version, the one before and this one, beside each other.

A cluster is upgraded node by node, and may be taken back. Meanwhile objects
are written, changed and deleted through proxies of either version, stubs
and S3 keys are shared, and drives are lost.
"""

from __future__ import annotations

import collections
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import threading
from typing import Dict, Iterator, List, Optional, Tuple

import pytest
from support import manual, md5, pattern, wait_until
from support.nodes.beds import ask, bed

from swift_dss.aio.bed import http
from swift_dss.aio.bed.bed import Bed

pytestmark = [pytest.mark.cluster, pytest.mark.root]

ROOT = os.path.abspath(os.path.join(
    os.path.dirname(__file__), os.pardir, os.pardir))
#: The last commit whose formats and questions differ from today's.
OLD = 'c3bff7b'
#: The one that operators have until they have this.
BEFORE = os.environ.get('SWIFT_DSS_VERSION_BEFORE', '06f3d16')
#: Container to policy, size and class.
KINDS = {'single': ('dss', 70000, 'gold'), 'small': ('dss', 2000, 'tiny'),
         'pieces': ('dss-ec', 90000, 'gold')}
CLASSES = """
[class:5]
name = tiny
rank = 5
bundle = true
"""


@pytest.fixture(scope='module')
def before(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The version before, installed in a folder of its own."""
    return _installed(BEFORE, tmp_path_factory)


@pytest.fixture(scope='module')
def old(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An old version, installed in a folder of its own."""
    return _installed(OLD, tmp_path_factory)


def _installed(commit: str, folders: pytest.TempPathFactory) -> str:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    if not shutil.which('git'):
        pytest.skip('no git here, so no earlier version')
    source = folders.mktemp('source')
    packed = subprocess.run(['git', 'archive', commit], cwd=ROOT,
                            capture_output=True, check=False)
    if packed.returncode:
        pytest.skip('this checkout has no commit %s' % commit)
    subprocess.run(['tar', '-x', '-C', str(source)], input=packed.stdout,
                   check=True)
    packages = str(folders.mktemp('packages'))
    subprocess.run(
        [sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps',
         '--target', packages, str(source)],
        check=True)
    return packages


@pytest.fixture(scope='module')
def made() -> Iterator[Bed]:
    # A fragment of a node that is away goes to a second drive of another.
    with bed(nodes=3, proxies=2, drives=2, options={'gateway': {
            'remote_after_seconds': '1', 'delete_delay_seconds': '3',
            'take_over_seconds': '6'}}) as new_bed:
        yield new_bed


class Users:
    """Users of all proxies, and what they may expect to read."""

    def __init__(self, made: Bed) -> None:
        self._made = made
        self._clients = [made.client(proxy=name)
                         for name in made.plan.proxies]
        self._turn = 0
        self.expected: Dict[str, Optional[bytes]] = {}
        self.colours: Dict[str, str] = {}
        for container, (policy, _, _) in KINDS.items():
            self._clients[0].container(container, policy)

    def _client(self) -> http.Client:
        self._turn += 1
        return self._clients[self._turn % len(self._clients)]

    def write(self, when: str, count: int = 4) -> List[str]:
        """New objects of each kind; of those before, one each is
        overwritten, deleted, changed by POST."""
        for container in KINDS:
            mine = [path for path, body in self.expected.items()
                    if path.startswith(container + '/') and body is not None]
            if len(mine) >= 3:
                self._put(mine[0], when)
                self._delete(mine[1])
                self._post(mine[2], when)
        return [self._put('%s/%s-%d' % (container, when, number), when)
                for container in KINDS for number in range(count)]

    def _put(self, path: str, when: str) -> str:
        _, size, name = KINDS[path.partition('/')[0]]
        body = pattern(size, path + when)
        reply = self._client().put(path, body, {'X-DSS-Object-Class': name})
        assert reply.status == 201, (path, reply.status, reply.body)
        self.expected[path] = body
        self.colours.pop(path, None)
        return path

    def _delete(self, path: str) -> None:
        assert self._client().delete(path).status == 204
        self.expected[path] = None

    def _post(self, path: str, colour: str) -> None:
        reply = self._client().post(path, {'X-Object-Meta-Colour': colour})
        assert reply.status == 202, (path, reply.status, reply.body)
        self.colours[path] = colour

    def update(self, expected: Dict[str, Optional[bytes]]) -> None:
        """Expect what others wrote, once each server has it."""
        for path, body in expected.items():
            if body is not self.expected.get(path):
                self.colours.pop(path, None)
        self.expected.update(expected)
        for node in self._made.nodes:
            node.run_once('object-replicator', 'object-reconstructor')

    def read(self) -> None:
        """Everything, by every proxy."""
        for client in self._clients:
            for path, body in self.expected.items():
                reply = client.get(path)
                if body is None:
                    assert reply.status == 404, (path, reply.status)
                    continue
                assert (reply.status, md5(reply.body)) == (
                    200, md5(body)), path
                if reply.headers.get('x-object-meta-colour') != \
                        self.colours.get(path):
                    # A server that was away may have missed a POST.
                    reply = client.get(path, headers={'X-Newest': 'true'})
                assert reply.headers.get('x-object-meta-colour') == \
                    self.colours.get(path), path
        assert not self._made.quarantined()

    @property
    def living(self) -> List[str]:
        """Paths of what is there."""
        return [path for path, body in self.expected.items()
                if body is not None]


class Load:
    """Users who go on while a member changes its version, by the proxies that
    stay: objects of each kind are written, overwritten, deleted and read. What
    a node was away for and does not know yet, it answers as stock Swift's do,
    so users ask for the newest.
    """

    #: By method and container, of all loads.
    requests: Dict[Tuple[str, str], int] = collections.Counter()

    def __init__(self, made: Bed, users: Users, member: str) -> None:
        self._made, self._users, self._member = made, users, member
        self._clients = [made.client(proxy=name)
                         for name in made.plan.proxies if name != member]
        self._expected = dict(users.expected)
        self._begun, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.failed: List[object] = []

    def version(self, packages: str = '') -> None:
        """Change the version of the member meanwhile."""
        self._thread.start()
        assert self._begun.wait(60)
        try:
            self._made.version(self._member, packages)
        finally:
            self._ended.set()
            self._thread.join()
        assert self.failed == []
        self._users.update(self._expected)

    def _run(self) -> None:
        for number in itertools.count():
            for client in self._clients:
                try:
                    self._round(client, number)
                except OSError as err:
                    self.failed.append(repr(err))
            self._begun.set()
            if self._ended.is_set():
                return

    def _round(self, client: http.Client, number: int) -> None:
        kind = ('pieces', 'small', 'single')[number % 3]
        if number < 30:
            self._put(client, '%s/load-%s-%d' % (
                kind, self._member, len(self._expected)), number)
            mine = [path for path in self._expected if self._own(path)]
            self._put(client, mine[number * 5 % len(mine)], number + 1)
            if number:
                self._delete(client, mine[number - 1])
        known = list(self._expected)
        for path in (known[-1], known[number * 7 % len(known)]):
            body = self._expected[path]
            reply = client.get(path, headers={'X-Newest': 'true'})
            self._judge(reply, 404 if body is None else 200, 'GET', path)
            if body is not None and reply.body != body:
                self.failed.append(('other bytes', path))

    def _own(self, path: str) -> bool:
        return '/load-%s-' % self._member in path

    def _put(self, client: http.Client, path: str, number: int) -> None:
        _, size, name = KINDS[path.partition('/')[0]]
        body = pattern(size, '%s %d' % (path, number))
        self._judge(client.put(path, body, {
            'X-DSS-Object-Class': name}), 201, 'PUT', path)
        self._expected[path] = body

    def _delete(self, client: http.Client, path: str) -> None:
        wanted = 204 if self._expected[path] is not None else 404
        self._judge(client.delete(path), wanted, 'DELETE', path)
        self._expected[path] = None

    def _judge(self, reply: http.Reply, wanted: int, *words: str) -> None:
        Load.requests[words[0], words[1].partition('/')[0]] += 1
        if reply.status != wanted or reply.cut:
            self.failed.append((reply.status, *words))


def _away(made: Bed, users: Users, nodes: List[str]) -> None:
    """What these nodes have is in S3 alone."""
    def away() -> bool:
        for node in nodes:
            for container in KINDS:
                ask(made, node, 'demote', to='remote',
                    container='AUTH_test/' + container)
        return left() == []

    def left() -> List[Tuple[str, str, str]]:
        return [(path, file.node, file.tiers) for path in users.living
                for file in made.files('/AUTH_test/' + path)
                if file.kind == 'data' and file.node in nodes
                and file.tiers != 'remote']
    try:
        wait_until(away, 120)
    except AssertionError:
        raise AssertionError('not in S3 alone: %r' % left()) from None


def _common_table(made: Bed, name: str) -> None:
    """A class table that each version understands: an operator uses what is
    new once all members have it."""
    path = pathlib.Path(made.plan.conf(name).path('etc', 'dss-classes.conf'))
    path.write_text(''.join(
        line for line in path.read_text().splitlines(keepends=True)
        if not line.startswith(('s3_storage_class', 's3_restore'))
        ) + CLASSES)


def test_versions_beside_each_other_lose_nothing(
        made: Bed, old: str, before: str) -> None:
    for name in made.plan.nodes + made.plan.proxies:
        _common_table(made, name)
    made.version('p2', old)
    made.version('n2', old)
    made.stock('n1')
    made.version('n3')
    made.version('p1')
    users = Users(made)
    users.write('mixed')
    users.read()
    # Bytes leave the two nodes that know how; the third has whole files.
    _away(made, users, ['n2', 'n3'])
    users.read()
    users.write('stubs')
    users.read()
    # Whole files come from stock Swift, stubs from one of ours.
    made.lose_drive('n3', 'd1')
    made.rebalance()
    users.read()

    # The stock node becomes one of the version before.
    made.version('n1', before)
    made.stock('n1', False)
    rebuild = manual.commands(
        manual.SOURCE / 'howto' / 'enable-node-by-node.rst')[-1].words[1:]
    assert rebuild == ['tier', 'rebuild']
    done = made.tool('n1', *rebuild, '--config', '{conf}')
    assert not done.returncode, done.stdout + done.stderr
    users.write('before')
    _away(made, users, ['n1', 'n2', 'n3'])
    users.read()
    made.lose_drive('n2', 'd1')
    made.rebalance()
    users.read()

    # All become this one, in turn, with stubs on all of them.
    for name in ('n1', 'n2', 'p2'):
        Load(made, users, name).version()
        users.write('now-' + name, 2)
        users.read()
    _away(made, users, ['n1', 'n2', 'n3'])
    users.read()

    # One node is taken back, and reads what this version wrote.
    Load(made, users, 'n1').version(before)
    users.write('back', 2)
    _away(made, users, ['n1', 'n2', 'n3'])
    users.read()
    made.lose_drive('n2', 'd1')
    made.rebalance()
    users.read()
    Load(made, users, 'n1').version()
    users.read()
    pieces = [Load.requests[method, 'pieces']
              for method in ('PUT', 'GET', 'DELETE')]
    assert all(pieces), Load.requests
    print('figure: %d requests of users while members changed their '
          'versions, there and back, %d of them of erasure-coded objects: 0 '
          'failed' % (sum(Load.requests.values()), sum(pieces)))
    print('figure: %d objects, %d of them deleted, through 4 versions: 0 '
          'lost, 0 quarantined' % (
              len(users.expected),
              len(users.expected) - len(users.living)))
