"""A disk that cannot read some of its places: real EIO, under XFS.

The image of a loop device is cut short within the data of one object. Reads
behind the cut fail with EIO, in the object server and in the tier daemon, and
all that the file system itself needs lies before it.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import subprocess
import tempfile

import pytest
from support import md5, pattern, wait_until

from support.nodes.daemon_node import DaemonProcess
from support.nodes.object_node import make_node

from swift_dss.aio import storage
from swift_dss.core.residency import Residency, Tier
from swift_dss.io import residency_store, switch
from swift_dss.io.capacity import Capacity
from swift_dss.io.sums import blocks
from swift_dss.wire import layout

pytestmark = [pytest.mark.root, pytest.mark.skipif(
    bool(storage.why_no_loops()), reason=storage.why_no_loops())]

MIB = 1 << 20
SIZE = 6 * MIB + 777
BODIES = {name: pattern(SIZE, name) for name in ('bad', 'good')}
#: The first of them can be read. Pages are read by up to 2 MiB, and fail
#: together.
CUT = 4 * MIB
_IMAGE_BYTES = 400 * MIB
_BALLAST_BYTES = 100 * MIB


class Disk:
    """XFS on a loop device with an image of its own."""

    def __init__(self, image, mount):
        self.image, self.mount = image, mount
        with open(image, 'wb') as target:
            target.truncate(_IMAGE_BYTES)
        # In one group, so that no metadata lies behind the data.
        subprocess.run(['mkfs.xfs', '--unsupported', '-q', '-d', 'agcount=1',
                        image], check=True, capture_output=True)
        os.makedirs(mount, exist_ok=True)
        subprocess.run(['mount', '-o', 'loop', image, mount], check=True)

    @contextlib.contextmanager
    def ballast(self):
        """What is written meanwhile lies behind all that comes later."""
        path = os.path.join(self.mount, 'ballast')
        with open(path, 'wb') as target:
            os.posix_fallocate(target.fileno(), 0, _BALLAST_BYTES)
        yield
        os.sync()
        os.unlink(path)

    def cut(self, path):
        """What lies behind the first ``CUT`` bytes of a file fails."""
        os.sync()
        said = subprocess.run(['filefrag', '-e', '-b4096', path], check=True,
                              capture_output=True, text=True).stdout
        first, = [line for line in said.splitlines()
                  if line.split(':')[0].strip() == '0']
        block = int(first.split(':')[2].split('..')[0])
        with open(self.image, 'r+b') as image:
            image.truncate(block * 4096 + CUT)
        with open('/proc/sys/vm/drop_caches', 'w') as caches:
            caches.write('3')
        with open(path, 'rb') as source, pytest.raises(OSError):
            while source.read(65536):
                pass

    def remove(self):
        subprocess.run(['umount', self.mount], check=True)


class Node:
    """An object server and a tier daemon over an SSD and an HDD."""

    def __init__(self, root):
        self.root = root
        self.ssd = Disk(root + '/ssd.img', root + '/devices/sda')
        self.hdd = Disk(root + '/hdd.img', root + '/hdd/sda')
        self.server = make_node(root, capacity=root + '/hdd')
        with open(root + '/dss.conf', 'a') as conf:
            conf.write('clean_after_seconds = 5\ninterval_seconds = 1\n')
        self.daemon = DaemonProcess(root)
        self.capacity = Capacity(self.hdd.mount, 'sda')

    def start(self):
        self.server.start()
        self.daemon.start()

    def stop(self):
        self.server.stop()
        self.daemon.stop()
        self.ssd.remove()
        self.hdd.remove()

    def place(self, name):
        path = self.server.data_file(name)
        return switch.Place(
            self.ssd.mount, self.capacity,
            layout.version_of_path('sda', path), '7', SIZE)

    def residency(self, name):
        with open(self.server.data_file(name), 'rb') as source:
            return residency_store.load(source.fileno()) or \
                Residency.whole(SIZE)

    def tiers(self, name):
        all_tiers = Tier.NONE
        for extent in self.residency(name).extents:
            all_tiers |= extent.tiers
        return all_tiers

    def hdd_file(self, name):
        return self.capacity.file_path(self.place(name).version)

    def metrics(self):
        return self.daemon.ask({'verb': 'status'})['metrics']

    def state(self, name):
        device, = self.daemon.ask({'verb': 'status'})['devices']
        return device[name]

    def get(self, name, **headers):
        """The answer as a proxy has it: what came of the body counts."""
        connection = self.server.connect()
        connection.request('GET', '/sda/7/a/c/' + name, None, dict(
            headers, **{'X-Backend-Storage-Policy-Index': '0'}))
        try:
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.IncompleteRead as err:
            return 206, err.partial
        finally:
            connection.close()

    def quarantined(self):
        return [name for _, _, names in os.walk(os.path.join(
            self.ssd.mount, 'quarantined')) for name in names]


@pytest.fixture
def node():
    root = tempfile.mkdtemp(prefix='dss-eio-', dir='/var/tmp')
    made = Node(root)
    made.start()
    yield made
    made.stop()
    shutil.rmtree(root)


def put(node, name):
    assert node.server.request('PUT', name, BODIES[name]).status == 201


def remove_sums(node, name):
    """As of a version that was written before there were any."""
    fd = os.open(node.server.data_file(name), os.O_RDONLY)
    assert blocks.remove(fd)
    os.fsync(fd)
    os.close(fd)


def has_sums(node, name):
    with open(node.server.data_file(name), 'rb') as source:
        sums = blocks.load(source.fileno(), SIZE)
        return sums is not None and all(
            sums.expected(block) for block in range(SIZE // 65536 + 1))


def is_clean(node, name):
    return node.tiers(name) == Tier.SSD | Tier.HDD


#: Before the cut, across it, behind it, and at the end.
RANGES = [(0, 100), (CUT - 50, CUT + 50), (5 * MIB, 5 * MIB + 1),
          (SIZE - 10, SIZE)]


def reads_right(node, name):
    for first, last in RANGES:
        assert node.get(name, Range='bytes=%d-%d' % (first, last - 1)) == (
            206, BODIES[name][first:last])
    assert node.get(name) == (200, BODIES[name])


def sends_nothing_wrong(node, name):
    for first, last in RANGES:
        status, body = node.get(name, Range='bytes=%d-%d' % (
            first, last - 1))
        assert status == 409 or BODIES[name][first:last].startswith(body)
    status, body = node.get(name)
    assert status == 409 or BODIES[name].startswith(body)


def stays_and_is_read_as_far_as_it_can_be(node, name):
    """No other node is known to have it."""
    wait_until(lambda: node.state('lacking') == 1, 60,
               'the daemon to see what it lacks')
    assert node.quarantined() == []
    assert node.state('hdd_state') == node.state('ssd_state') == 'ready'
    first, last = RANGES[0]
    assert node.get(name, Range='bytes=%d-%d' % (first, last - 1)) == (
        206, BODIES[name][first:last])
    assert node.get(name, Range='bytes=%d-' % RANGES[-1][0])[0] == 409
    sends_nothing_wrong(node, name)


@pytest.mark.parametrize('with_sums', [True, False])
def test_an_ssd_that_fails_is_read_past_and_mended_from_the_hdd(
        node, with_sums):
    with node.ssd.ballast():
        put(node, 'bad')
        remove_sums(node, 'bad')
    wait_until(lambda: is_clean(node, 'bad'), 60, 'a copy on the HDD')
    assert has_sums(node, 'bad'), 'the move read all of it'
    if not with_sums:
        remove_sums(node, 'bad')
    node.ssd.cut(node.server.data_file('bad'))
    reads_right(node, 'bad')
    wait_until(lambda: node.metrics().get(
        'tier.rotten_versions_mended') == 1, 60, 'the daemon to mend it')
    assert is_clean(node, 'bad')
    for path in (node.server.data_file('bad'), node.hdd_file('bad')):
        with open(path, 'rb') as source:
            assert md5(source.read()) == md5(BODIES['bad'])
    reads_right(node, 'bad')
    assert node.quarantined() == []


@pytest.mark.parametrize('with_sums', [True, False])
def test_a_move_that_meets_it_lets_the_others_go_on(node, with_sums):
    """The only copy here, and nobody else is known to have one."""
    with node.ssd.ballast():
        put(node, 'bad')
        if not with_sums:
            remove_sums(node, 'bad')
    node.ssd.cut(node.server.data_file('bad'))
    put(node, 'good')
    wait_until(lambda: is_clean(node, 'good'), 60, 'the other to be copied')
    stays_and_is_read_as_far_as_it_can_be(node, 'bad')
    reads_right(node, 'good')
    # Nobody tries again and again.
    for _ in range(3):
        node.daemon.settle()
    assert node.metrics()['tier.rotten_moves'] == 1
    assert node.metrics()['tier.rotten_versions_kept'] == 1
    # It is written anew.
    put(node, 'bad')
    wait_until(lambda: is_clean(node, 'bad'), 60, 'it to be copied')
    reads_right(node, 'bad')


@pytest.mark.parametrize('with_sums', [True, False])
def test_an_hdd_that_fails_under_a_promotion(node, with_sums):
    put(node, 'good')
    wait_until(lambda: is_clean(node, 'good'), 60, 'a copy on the HDD')
    with node.hdd.ballast():
        put(node, 'bad')
        wait_until(lambda: is_clean(node, 'bad'), 60, 'a copy on the HDD')
    for name in ('bad', 'good'):
        assert node.daemon.ask({'verb': 'demote', 'to': 'hdd',
                                'object': '/a/c/' + name})['moved'] == 1
    if not with_sums:
        remove_sums(node, 'bad')
    node.hdd.cut(node.hdd_file('bad'))
    for name in ('bad', 'good'):
        # The daemon is told, and wishes to have it on the SSD.
        assert node.get(name, Range='bytes=0-99') == (
            206, BODIES[name][:100])
    wait_until(lambda: is_clean(node, 'good'), 60, 'the other to come back')
    stays_and_is_read_as_far_as_it_can_be(node, 'bad')
    reads_right(node, 'good')
