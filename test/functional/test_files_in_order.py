"""Files of a device lie in the order of their writing: XFS, as it is."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import random
import subprocess
import sys
from typing import Any, Dict, Iterator, List, NamedTuple

import pytest
from support import md5, pattern, wait_until
from support.nodes.object_node import ObjectNode, make_node

from swift_dss.aio import storage
from swift_dss.core.version import VersionId
from swift_dss.io.capacity import Capacity
from swift_dss.io.place import arms, groups

pytestmark = [pytest.mark.root, pytest.mark.skipif(
    bool(storage.why_no_loops()), reason=storage.why_no_loops())]

MIB = 1 << 20
#: Of sizes as users have them: most are small, most bytes are in large ones.
SIZES = [1 << (12 + number % 9) for number in range(90)]
_IMAGE_BYTES = 640 * MIB


class Xfs(NamedTuple):
    """A mounted file system of four groups."""

    mount: str
    root: str

    def node(self, options: str = '') -> ObjectNode:
        """A running object server on it."""
        made = make_node(self.root)
        conf = os.path.join(self.root, 'dss.conf')
        with open(conf) as source:
            text = source.read()
        with open(conf, 'w') as target:
            target.write(text.replace('[io]\n', '[io]\n' + options))
        made.start()
        return made


@contextlib.contextmanager
def _made(tmp_path: Any, *options: str) -> Iterator[Xfs]:
    image, mount = str(tmp_path / 'image'), str(tmp_path / 'devices' / 'sda')
    with open(image, 'wb') as target:
        target.truncate(_IMAGE_BYTES)
    subprocess.run(['mkfs.xfs', '-q', '-d', 'agcount=4', *options, image],
                   check=True)
    os.makedirs(mount)
    subprocess.run(['mount', '-o', 'loop', image, mount], check=True)
    try:
        yield Xfs(mount, str(tmp_path))
    finally:
        subprocess.run(['umount', mount], check=True)


@pytest.fixture
def xfs(tmp_path) -> Iterator[Xfs]:
    with _made(tmp_path) as made:
        yield made


def _put(node: ObjectNode, number: int, size: int = 0) -> str:
    name = 'o%d' % number
    body = pattern(size or SIZES[number], name)
    assert node.request('PUT', name, body).status == 201
    return name


def _moves(node: ObjectNode, names: List[str]) -> int:
    way = arms.way(arms.extents(node.data_file(name)) for name in names)
    print('figure: arm moves %d of %d extents' % (way.moves, way.extents))
    return way.moves


def _told(node: ObjectNode, *options: str) -> List[Dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main', 'tier', 'place', 'sda',
         '--json', '--config', os.path.join(node.root, 'dss.conf'),
         *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: List[Dict[str, Any]] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize('options, most', [('', 4), (
    'placement = false\n', 90)])
def test_one_after_the_other(xfs: Xfs, options: str, most: int) -> None:
    node = xfs.node(options)
    try:
        names = [_put(node, number) for number in range(len(SIZES))]
        moves = _moves(node, names)
        said, = _told(node)
        assert (said['files'], said['arm_moves']) == (len(names), moves)
        assert said['placed'] is not bool(options)
        for number, name in enumerate(names):
            assert md5(node.request('GET', name).body) == md5(
                pattern(SIZES[number], name))
    finally:
        node.stop()
    # Without it XFS moves for nearly each of them.
    assert moves <= most and (not options or moves > 60)
    assert os.path.isdir(os.path.join(xfs.mount, groups.FOLDER)) is \
        (not options)
    if not options:
        assert _told(node, '--remove') == [{'device': 'sda'}]
        assert not os.path.exists(os.path.join(xfs.mount, groups.FOLDER))


def test_inodes_of_a_kilobyte_leave_no_gaps_between_files(tmp_path) -> None:
    # In inodes of 512 bytes attributes have no room: a block for each file
    # lies between it and the next one.
    with _made(tmp_path, '-i', 'size=1024') as xfs:
        node = xfs.node()
        try:
            places = [arms.extents(node.data_file(_put(node, number, 5000)))
                      for number in range(40)]
        finally:
            node.stop()
        rows = sorted((extent.at, extent.length)
                      for of_file in places for extent in of_file)
        gaps = [after - at - length for (at, length), (after, _length)
                in zip(rows, rows[1:])]
        print('figure: gaps of bytes %s' % sorted(set(gaps)))
        assert gaps.count(0) >= 0.9 * len(gaps)


def test_files_of_an_hdd_lie_in_order_too(xfs: Xfs) -> None:
    capacity = Capacity(os.path.join(xfs.mount, 'hdd'), 'sda')
    capacity.initialise()
    places = []
    for number, size in enumerate(SIZES):
        version = VersionId('sda', 1, '%032x' % (number << 64),
                            '1000000000.%05d' % number, None)
        fd = capacity.create()
        try:
            os.write(fd, pattern(size, str(number)))
            os.fsync(fd)
            capacity.publish(fd, version)
        finally:
            os.close(fd)
        places.append(arms.extents(capacity.file_path(version)))
        assert os.stat(capacity.file_path(version)).st_mode & 0o777 == 0o600
    # As XFS has them it is some 80; folders of names take blocks in between.
    assert arms.way(places).moves <= 9
    # What fills the group sends the next files on to another.
    root = os.open(xfs.mount, os.O_RDONLY)
    try:
        number = groups.groups_of(root)
        assert number is not None
        share = groups.free_share(root, number.journal)
        assert share is not None
        with open(os.path.join(capacity.path, groups.FOLDER, str(
                number.journal), 'ballast'), 'wb') as ballast:
            os.posix_fallocate(ballast.fileno(), 0, int(
                (share - 0.03) * _IMAGE_BYTES / 4))
        fd = Capacity(capacity.path, 'sda').create()
        assert number.of(os.fstat(fd).st_ino) == number.journal - 1
        os.close(fd)
    finally:
        os.close(root)


def test_many_at_a_time(xfs: Xfs) -> None:
    node = xfs.node()
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            names = list(pool.map(lambda number: _put(node, number),
                                  range(len(SIZES))))
        assert _moves(node, names) < 60
    finally:
        node.stop()


def test_the_next_group_when_one_is_full(xfs: Xfs) -> None:
    with contextlib.ExitStack() as kept:
        root = os.open(xfs.mount, os.O_RDONLY)
        kept.callback(os.close, root)
        _fills_one_after_the_other(xfs, root)


def _fills_one_after_the_other(xfs: Xfs, root: int) -> None:
    placement = groups.Placement(xfs.mount, near_journal=False)
    layout = groups.groups_of(root)
    assert layout is not None and layout.number == 4

    def begin() -> int:
        fd = placement.open()
        assert fd is not None
        group = layout.of(os.fstat(fd).st_ino)
        os.close(fd)
        return group
    assert begin() == 0
    in_first = os.path.join(xfs.mount, groups.FOLDER, '0', 'ballast')
    share = groups.free_share(root, 0)
    assert share is not None and share > 0.5
    with open(in_first, 'wb') as ballast:
        os.posix_fallocate(ballast.fileno(), 0, int(
            (share - 0.03) * _IMAGE_BYTES / 4))
    assert groups.free_share(root, 0) < 0.06
    placement = groups.Placement(xfs.mount, near_journal=False)
    assert begin() == 1
    os.unlink(in_first)
    # No name is ever given in it, but for the ballast.
    os.utime(os.path.dirname(in_first), (0, 0))
    wait_until(lambda: groups.free_share(root, 0) > 0.5, 30)
    # Of the processes of a node each comes to the same group again.
    placement = groups.Placement(xfs.mount, near_journal=False)
    assert begin() == 0


def test_they_begin_near_the_journal(xfs: Xfs) -> None:
    root = os.open(xfs.mount, os.O_RDONLY)
    try:
        number = groups.groups_of(root)
        assert number is not None
        for near, group in ((True, number.journal), (False, 0)):
            fd = groups.Placement(xfs.mount, near_journal=near).open()
            assert fd is not None
            assert number.of(os.fstat(fd).st_ino) == group
            os.close(fd)
    finally:
        os.close(root)
    # mkfs.xfs puts it into the middle.
    assert number.journal == 2


def test_overwritten_ones_lie_in_order_too(xfs: Xfs) -> None:
    node = xfs.node()
    dice = random.Random('overwritten')
    order = list(range(len(SIZES)))
    try:
        for _ in range(3):
            names = [_put(node, number, dice.choice(SIZES))
                     for number in order]
            moves = _moves(node, names)
            dice.shuffle(order)
    finally:
        node.stop()
    # In the holes of those before, it would be two of three.
    assert moves <= len(SIZES) // 3


def test_a_group_full_of_holes_is_left_for_all_processes(xfs: Xfs) -> None:
    with contextlib.ExitStack() as kept:
        root = os.open(xfs.mount, os.O_RDONLY)
        kept.callback(os.close, root)
        _leaves_holes(xfs, root, kept)


def _leaves_holes(xfs: Xfs, root: int, kept: contextlib.ExitStack) -> None:
    first, second = groups.Placement(xfs.mount), groups.Placement(xfs.mount)
    number = groups.groups_of(root)
    assert number is not None
    holes = kept.enter_context(contextlib.ExitStack())

    def begin(placement: groups.Placement, size: int = MIB,
              to: contextlib.ExitStack = kept) -> int:
        fd = placement.open()
        assert fd is not None
        to.callback(os.close, fd)
        os.posix_fallocate(fd, 0, size)
        assert placement.landed(fd)
        return number.of(os.fstat(fd).st_ino)
    # Every other pair of files goes.
    assert {begin(first, to=(kept, holes)[at // 2 % 2])
            for at in range(32)} == {2}
    share = groups.free_share(root, 2)
    holes.close()
    wait_until(lambda: groups.free_share(root, 2) > share, 30)
    # Freed blocks can be taken once the journal says that they are free.
    os.sync()
    # Every second new file fits into no hole.
    assert {begin(first, size * MIB) for size in (1, 3) * 8} == {2}
    assert begin(first) == begin(second) == 1
    # The time at which it was left outlives the making of folders.
    left = os.stat(os.path.join(first.path, '2')).st_mtime_ns
    assert left
    third = groups.Placement(xfs.mount, near_journal=False)
    for _ in range(2):
        # From group 0 on, folders are made in all of them until it is 0.
        assert begin(third) == 0
        os.rmdir(os.path.join(third.path, '0'))
    assert os.stat(os.path.join(first.path, '2')).st_mtime_ns == left
