"""Images of disks: what a check of the file system reads is hot.

All cold bytes of an image are overwritten; a check finds nothing amiss.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess

import pytest
from support.disk_images import gpt, mbr, ntfs, qcow2
from support.format_files import MIB, sparse

from swift_dss.client.formats.contract import BadFile
from swift_dss.client.formats.plan import Limits

GARBAGE = b'\xa5' * MIB


def tool(name):
    path = shutil.which(name, path=os.environ['PATH'] + ':/sbin:/usr/sbin')
    return path or pytest.skip('%s is not installed' % name)


def run(*words, code=(0,)):
    done = subprocess.run([tool(words[0]), *map(str, words[1:])],
                          capture_output=True, text=True)
    assert done.returncode in code, done.stdout + done.stderr
    return done.stdout + done.stderr


def overwrite_cold(path, ranges):
    """Garbage where the plan says cold."""
    size = os.path.getsize(path)
    at = 0
    with open(path, 'r+b') as opened:
        for start, length in [*ranges, (size, 0)]:
            opened.seek(at)
            for piece in range(at, start, MIB):
                opened.write(GARBAGE[:min(MIB, start - piece)])
            at = start + length


@pytest.fixture(scope='module')
def tree(tmp_path_factory):
    """Directories, a long name, a link, a file in many pieces."""
    root = tmp_path_factory.mktemp('tree')
    for number in range(40):
        folder = root / ('folder-%d' % number)
        folder.mkdir()
        for file in range(20):
            (folder / ('file-%d' % file)).write_bytes(
                b'x' * (100 if file else 300000))
    (root / 'link').symlink_to('to/' * 50)
    big = root / 'big'
    with open(big, 'wb') as out:
        # Holes make its extents many.
        for number in range(2000):
            out.seek(number * 16384)
            out.write(b'y' * 4096)
    return root


@pytest.mark.parametrize('options', [
    [], ['-O', '^64bit,^metadata_csum'], ['-t', 'ext3'], ['-t', 'ext2'],
    ['-b', '1024'], ['-O', 'orphan_file']], ids=str)
def test_a_check_of_ext_reads_hot_bytes_only(tmp_path, classify, tree,
                                             options):
    image = tmp_path / 'disk.img'
    sparse(image, 256 * MIB, ())
    run('mkfs.ext4', '-q', '-F', '-d', tree, *options, image)
    made = classify(image, limits=Limits(share=0.05))
    assert made.format_name == 'disk' and made.plan.left_out == 0
    said = run('e2fsck', '-fn', image)
    overwrite_cold(image, made.plan.ranges)
    assert run('e2fsck', '-fn', image) == said
    if not options:
        assert made.plan.hot_bytes <= 0.02 * made.size
    # And not by chance.
    overwrite_cold(image, [(0, 1024)])
    run('e2fsck', '-fn', image, code=(4, 8, 12))


def test_a_check_of_xfs_reads_hot_bytes_only(tmp_path, classify):
    image = tmp_path / 'disk.img'
    sparse(image, 320 * MIB, ())
    prototype = tmp_path / 'proto'
    lines = ['/dev/null', '0 0', 'd--755 0 0']
    (tmp_path / 'data').write_bytes(b'x' * 20000)
    for number in range(100):
        lines.append('folder-%d d--755 0 0' % number)
        lines += ['file-%d ---644 0 0 %s' % (file, tmp_path / 'data')
                  for file in range(10)]
        lines.append('$')
    lines += ['link l--777 0 0 %s' % ('to/' * 50), '$', '$']
    prototype.write_text('\n'.join(lines) + '\n')
    run('mkfs.xfs', '-q', '-f', '-p', prototype, image)
    made = classify(image, limits=Limits(share=0.5))
    assert made.format_name == 'disk' and made.plan.left_out == 0
    assert made.plan.hot_bytes < 0.5 * made.size
    run('xfs_repair', '-nf', image)
    overwrite_cold(image, made.plan.ranges)
    run('xfs_repair', '-nf', image)


def test_ntfs(tmp_path, classify):
    ntfs(tmp_path / 'f')
    made = classify(tmp_path / 'f')
    assert made.format_name == 'disk'
    for offset, length in ((4 * 4096, 4 * 4096), (1000 * 4096, 4 * 4096),
                           (2000 * 4096, 3 * 4096), (made.size - 512, 512)):
        assert any(start <= offset and offset + length <= start + size
                   for start, size in made.plan.ranges), offset
    assert made.plan.hot_bytes <= 0.02 * made.size


@pytest.mark.parametrize('kind', ['mbr', 'logical', 'gpt'])
def test_a_file_system_in_a_partition(tmp_path, classify, tree, kind):
    inner = tmp_path / 'inner'
    sparse(inner, 128 * MIB, ())
    run('mkfs.ext4', '-q', '-F', '-d', tree, inner)
    size, start, sectors = 140 * MIB, 4096, 128 * MIB // 512
    pieces = {'mbr': [(0, mbr((0x83, start, sectors)))],
              'logical': [(0, mbr((5, 2048, sectors + 2048))),
                          (2048 * 512, mbr((0x83, 2048, sectors)))],
              'gpt': gpt(start, sectors, size)}[kind]
    sparse(tmp_path / 'f', size, [
        *pieces, (start * 512, inner.read_bytes())])
    made = classify(tmp_path / 'f', limits=Limits(share=0.05))
    own = classify(inner, limits=Limits(share=0.05))
    assert made.format_name == 'disk'
    for offset, length in own.plan.ranges:
        assert any(at <= start * 512 + offset and
                   start * 512 + offset + length <= at + size
                   for at, size in made.plan.ranges)
    assert made.plan.hot_bytes < own.plan.hot_bytes + 3 * MIB


def test_a_file_system_in_qcow2(tmp_path, classify, tree):
    inner = tmp_path / 'inner'
    sparse(inner, 128 * MIB, ())
    run('mkfs.ext4', '-q', '-F', '-d', tree, inner)
    path = tmp_path / 'f.qcow2'
    l2 = qcow2(path, inner)
    made = classify(path, limits=Limits(share=0.5))
    assert made.format_name == 'qcow2'
    overwrite_cold(path, made.plan.ranges)
    # The disk again, of what is left of its image.
    with open(path, 'rb') as source, open(inner, 'r+b') as out:
        for number, entry in enumerate(l2[:128 * MIB // 65536]):
            source.seek(entry & 0xfffffffffffe00)
            out.seek(number * 65536)
            out.write(source.read(65536) if entry else bytes(65536))
    run('e2fsck', '-fn', inner)


@pytest.mark.parametrize('raw, said', [
    (b'QFI\xfb' + bytes(200), 'qcow2 header at 4: has version 0'),
    (struct.pack('>4sIQIIQIIQQIIQ', b'QFI\xfb', 2, 0, 0, 16, 1 << 40, 0,
                 1 << 30, 0, 0, 0, 0, 0), 'claims an L1 table of'),
    (struct.pack('>4sIQIIQIIQQIIQ', b'QFI\xfb', 2, 0, 0, 16, 1 << 40, 0,
                 100, 65536, 0, 0, 0, 0), 'qcow2 L1 table at 65536'),
    (b'XFSB' + bytes(1000), 'XFS superblock at 0'),
    (bytes(3) + b'NTFS    ' + bytes(1000), 'NTFS boot sector at 11'),
    (bytes(1080) + b'\x53\xef' + bytes(2000), 'ext4 superblock at 1024'),
    (mbr((0xee, 1, 10)) + bytes(2000), 'GPT header at 512'),
    (mbr((5, 1000, 10)) + bytes(2000), 'logical partition at 512000')])
def test_damage_is_named(tmp_path, classify, raw, said):
    (tmp_path / 'f').write_bytes(raw)
    with pytest.raises(BadFile, match=said):
        classify(tmp_path / 'f')
