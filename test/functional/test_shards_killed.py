"""Shards killed while a device moves between them, with uploads pending.

A real daemon with two shards, and a real S3. A device goes from one shard to
the other and back again. Each time one process is killed with SIGKILL at one
step: the shard that gives the device away while it stops, the shard that
gets it while it reads the device, or the parent between the two. Half of the
versions are on their way to S3 then, and half wait in the queue. Afterwards
every byte and every row is there, and S3 has each version once.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple

import pytest
from support import pattern, wait_until
from support.edges.s3_servers import BUCKET, VersityServer
from support.nodes.daemon_node import CLASSES, DaemonProcess, write, write_node
from support.nodes.sample_node import SampleNode, read_version
from support.ring_names import ring_names

from swift_dss.io.switch import Place
from swift_dss.tier.doors.asking import ask
from swift_dss.wire.node import shards

DEVICES = ('sda', 'sdb', 'sdc', 'sdd')
#: Versions that come to each device before each move, of both kinds.
MANY = 2
#: Age at which a version goes up, much more than a test takes.
LATER = 3600.0
#: ``sdb`` goes to and fro.
LAYOUTS = ('sda sdb; sdc sdd', 'sda; sdb sdc sdd')
#: The shard that gives the device away.
STOPPING = ('stop.begun', 'stop.heard', 'stop.sent', 'stop.clean')
#: The shard that gets it.
READING = ('devices.left', 'devices.due', 'devices.taken', 'walk.indexed',
           'walk.settled', 'walk.pruned', 'walk.done')
#: The parent, with neither of them.
BETWEEN = ('shards.planned', 'handover.uploads', 'handover.deletes',
           'handover.renewals', 'handover.holders', 'shards.handed_over',
           'shards.settled', 'shards.published')
#: Python runs this at the start of the daemon and of each shard.
_MINE = '''
import json, os, signal, sys
from swift_dss.io import steps
def own():
    with open('/proc/self/cmdline') as source:
        words = source.read().split(chr(0))
    return words[words.index('--shard') + 1] if '--shard' in words else ''
def die(name):
    try:
        with open(%(path)r) as source:
            who, step = json.load(source)
    except FileNotFoundError:
        return
    if (own(), name) == (who, step):
        os.unlink(%(path)r)
        os.kill(os.getpid(), signal.SIGKILL)
if 'swift_dss.tier.main' in ' '.join(sys.orig_argv):
    steps.listen(die)
'''


class Stored(NamedTuple):
    """A version that was acknowledged."""

    place: Place
    body: bytes


class Node:
    """Four devices, a daemon with two shards, and S3."""

    def __init__(self, root: str, server: VersityServer) -> None:
        self.root = root
        self._server = server
        self._armed = os.path.join(root, 'armed')
        self.stored: List[Stored] = []
        self._nodes = {name: SampleNode(root, False, name)
                       for name in DEVICES}
        write(os.path.join(root, 's3-secret'),
              'access_key = %s\nsecret_key = %s\n' % (
                  server.access_key, server.secret_key))
        os.chmod(os.path.join(root, 's3-secret'), 0o600)
        os.mkdir(os.path.join(root, 'site'))
        write(os.path.join(root, 'site', 'sitecustomize.py'),
              _MINE % {'path': self._armed})
        self.at = 0
        self.configure()
        self._names = ring_names(root, DEVICES)
        self.daemon = DaemonProcess(root)
        self.fill()
        self.start()

    def start(self) -> None:
        self.daemon.start({'PYTHONPATH': os.path.join(self.root, 'site')})

    def configure(self) -> None:
        write_node(self.root, {
            'io': {'carrier': 'null'},
            'tier': {'interval_seconds': 1, 'shards': LAYOUTS[self.at],
                     'index_dir': os.path.join(self.root, 'state'),
                     'clean_after_seconds': 86400},
            'gateway': {
                'enabled': 'true', 'bucket': BUCKET,
                'url': self._server.url, 'addressing_style': 'path',
                'secret_file': os.path.join(self.root, 's3-secret'),
                'uploads': 2, 'remote_after_seconds': LATER}},
            CLASSES.replace('rank', 'remote = back\nrank'))

    def fill(self) -> None:
        """More versions: the first is old enough for S3, the next is not,
        and so on."""
        left = dict.fromkeys(DEVICES, 2 * MANY)
        while any(left.values()):
            named = next(self._names)
            if not left[named.device]:
                continue
            left[named.device] -= 1
            body = pattern(20000, named.name)
            self.stored.append(Stored(self._nodes[named.device].put(
                named.name, body, '%016.5f' % (
                    1.7e9 if left[named.device] % 2 else 1.9e9),
                object_hash=named.object_hash,
                partition=named.partition), body))

    def arm(self, who: str, step: str) -> None:
        """Have a shard, or the parent (''), die at a step, once."""
        with open(self._armed + '.new', 'w', encoding='ascii') as target:
            json.dump([who, step], target)
        os.rename(self._armed + '.new', self._armed)

    @property
    def is_armed(self) -> bool:
        return os.path.exists(self._armed)

    def pending(self) -> int:
        uploads: int = self.daemon.ask(
            {'verb': 'status'})['gateway']['uploads']
        return uploads

    def rows(self) -> List[Dict[str, Any]]:
        """Every version that the index of any shard has."""
        path = os.path.join(self.root, 'run', 'admin.sock')
        return [row for said in ask(path, {'verb': 'ls'})
                for row in said.get('progress', {}).get('rows', ())]

    def layout(self) -> Dict[str, int]:
        with open(os.path.join(self.root, 'run', shards.FILE),
                  'rb') as source:
            return dict(shards.decode(source.read()).devices)

    def _is_read(self) -> bool:
        status = self.daemon.ask({'verb': 'status'})
        return not status['rebuild_needed'] and all(
            shard['answers'] for shard in status['shards'])

    def judge(self) -> None:
        """No byte is lost, no row, and no upload."""
        wait_until(lambda: not self.is_armed, 60, 'a process was killed')
        wait_until(self._is_read, 60, 'devices are read')
        assert self.layout()['sdb'] == self.at
        assert Counter((row['device'], row['hash'])
                       for row in self.rows()) == Counter(
            (thing.place.version.device, thing.place.version.object_hash)
            for thing in self.stored)
        self.daemon.ask({'verb': 'relocate', 'container': 'a/c'})
        wait_until(lambda: not self.pending(), 60, 'all of it in S3')
        keys = self._server.list_keys()
        assert len(keys) == len(self.stored)
        remote = {key: self._server.body(key) for key in keys}
        assert Counter(remote.values()) == Counter(
            thing.body for thing in self.stored)
        for stored in self.stored:
            assert read_version(stored.place, remote) == stored.body
        assert all(row['on_remote'] for row in self.rows())


@pytest.fixture(scope='module')
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    server = VersityServer()
    made = Node(str(tmp_path_factory.mktemp('killed')), server)
    yield made
    made.daemon.stop()
    server.close()


def _move(node: Node, who: str, step: str) -> None:
    """Have ``sdb`` change its shard while a process dies."""
    node.fill()
    node.daemon.ask({'verb': 'sweep'})
    assert node.pending() >= MANY * len(DEVICES)
    node.at = 1 - node.at
    node.configure()
    node.arm(who, step)
    node.daemon.ask({'verb': 'reload'})


@pytest.mark.parametrize('step', STOPPING)
def test_the_shard_that_gives_a_device_away(node: Node, step: str) -> None:
    _move(node, str(node.at), step)
    node.judge()


@pytest.mark.parametrize('step', READING)
def test_the_shard_that_gets_a_device(node: Node, step: str) -> None:
    _move(node, str(1 - node.at), step)
    node.judge()


@pytest.mark.parametrize('step', BETWEEN)
def test_the_parent_between_the_two(node: Node, step: str) -> None:
    with pytest.raises(OSError):
        _move(node, '', step)
    node.daemon.process.wait()
    node.start()
    node.judge()
