"""Files of a device lie in the order of their writing: XFS, as it is."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import subprocess
import sys
from typing import Any, Dict, Iterator, List, NamedTuple

import pytest
from object_node import ObjectNode, make_node
from support import md5, pattern, wait_until

from swift_dss.aio import storage
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


@pytest.fixture
def xfs(tmp_path) -> Iterator[Xfs]:
    image, mount = str(tmp_path / 'image'), str(tmp_path / 'devices' / 'sda')
    with open(image, 'wb') as target:
        target.truncate(_IMAGE_BYTES)
    subprocess.run(['mkfs.xfs', '-q', '-d', 'agcount=4', image], check=True)
    os.makedirs(mount)
    subprocess.run(['mount', '-o', 'loop', image, mount], check=True)
    try:
        yield Xfs(mount, str(tmp_path))
    finally:
        subprocess.run(['umount', mount], check=True)


def _put(node: ObjectNode, number: int) -> str:
    name = 'o%d' % number
    body = pattern(SIZES[number], name)
    assert node.request('PUT', name, body).status == 201
    return name


def _moves(node: ObjectNode, names: List[str]) -> int:
    found = arms.way(arms.extents(node.data_file(name)) for name in names)
    print('figure: arm moves %d of %d extents' % (found.moves, found.extents))
    return found.moves


def _told(node: ObjectNode, *options: str) -> List[Dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main', 'tier', 'place', 'sda',
         '--json', '--config', os.path.join(node.root, 'dss.conf'),
         *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: List[Dict[str, Any]] = json.loads(done.stdout)
    return found


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
    placement = groups.Placement(xfs.mount)
    found = groups.groups_of(root)
    assert found is not None and found.number == 4

    def begin() -> int:
        fd = placement.open()
        assert fd is not None
        group = found.of(os.fstat(fd).st_ino)
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
    placement = groups.Placement(xfs.mount)
    assert begin() == 1
    os.unlink(in_first)
    wait_until(lambda: groups.free_share(root, 0) > 0.5, 30)
    # Of the processes of a node each comes to the same group again.
    placement = groups.Placement(xfs.mount)
    assert begin() == 0
