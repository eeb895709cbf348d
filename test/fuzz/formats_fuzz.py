"""Damaged files for every classifier of file formats.

Small files are mutated as they are. Of an image of a disk the input is a list
of patches: three bytes say which byte of its metadata becomes which.
"""

from __future__ import annotations

import io
import os
import shutil
import struct
import subprocess
import tarfile
import tempfile
import zipfile
from typing import Callable, Dict, Iterator, List, Tuple

from parser_fuzz import Target
from support.disk_images import gpt, mbr, ntfs, qcow2
from support.format_files import MIB, box, film, full, sparse

from swift_dss.client.formats import known
from swift_dss.client.formats.contract import Reader
from swift_dss.client.formats.plan import Limits
from swift_dss.client.formats.readers import Cached, FileReader

_BLOCK = 4096
#: A patch: which byte of the metadata, and its value.
_PATCH = struct.Struct('>HB')


class Image(Reader):
    """An image of which the blocks that are not zero are in memory."""

    def __init__(self, path: str) -> None:
        super().__init__(os.path.getsize(path))
        self._blocks: Dict[int, bytes] = {}
        self.patches: Dict[int, int] = {}
        with open(path, 'rb') as opened:
            for number in range(-(-self.size // _BLOCK)):
                raw = opened.read(_BLOCK)
                if any(raw):
                    self._blocks[number] = raw
            self.places = list(self._metadata(FileReader(opened)))

    def read(self, offset: int, length: int) -> bytes:
        """With the patches."""
        end = min(self.size, offset + length)
        parts = []
        at = offset
        while at < end:
            number, start = divmod(at, _BLOCK)
            size = min(end - at, _BLOCK - start)
            parts.append(self._blocks.get(number, bytes(_BLOCK))[
                start:start + size])
            at += size
        made = bytearray(b''.join(parts))
        for place, value in self.patches.items():
            if offset <= place < end:
                made[place - offset] = value
        return bytes(made)

    def _metadata(self, reader: Reader) -> Iterator[int]:
        """Places of bytes of metadata that are not zero, or beside one."""
        plan = known.classify(reader, limits=Limits(share=1.0)).plan
        for start, length in plan.ranges:
            for number in range(start // _BLOCK,
                                (start + length - 1) // _BLOCK + 1):
                raw = self._blocks.get(number, b'')
                for at, byte in enumerate(raw):
                    if byte or at < 128:
                        yield number * _BLOCK + at


def _judge(reader: Reader, name: str) -> None:
    made = known.classify(reader, name)
    at = 0
    for offset, length in made.plan.ranges:
        assert offset >= at and length > 0
        at = offset + length
    assert at <= reader.size and len(made.plan.ranges) <= 1023


def _of_bytes(name: str) -> Callable[[bytes], None]:
    def run(raw: bytes) -> None:
        _judge(Cached(len(raw), lambda start, end: raw[start:end]), name)
    return run


def _of_image(path: str, name: str) -> Callable[[bytes], None]:
    image = Image(path)

    def run(raw: bytes) -> None:
        image.patches = {
            image.places[which * len(image.places) >> 16]: value
            for which, value in _PATCH.iter_unpack(
                raw[:len(raw) // 3 * 3][:96])}
        _judge(image, name)
    return run


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as made:
        made.writestr('a', 'text')
        made.writestr('b/c', 'more text')
        made.comment = b'words'
    return out.getvalue()


def _zip64() -> bytes:
    raw = _zip()[:-27]
    directory = raw.index(b'PK\1\2')
    return raw + struct.pack(
        '<4sQ2H2L4Q', b'PK\6\6', 44, 45, 45, 0, 0, 2, 2,
        len(raw) - directory, directory) + struct.pack(
            '<4sLQL', b'PK\6\7', 0, len(raw), 1) + struct.pack(
                '<4s4H2LH', b'PK\5\6', 0, 0, 65535, 65535, 0xffffffff,
                0xffffffff, 0)


def _tar(kind: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=kind) as made:
        for name in ('a', 'b' * 120, 'c'):
            info = tarfile.TarInfo(name)
            info.size = 3
            made.addfile(info, io.BytesIO(b'abc'))
    return out.getvalue()[:6144]


def _mp4(folder: str) -> bytes:
    path = os.path.join(folder, 'f.mp4')
    film(path, frames=48, frame_bytes=100, every=5)
    with open(path, 'rb') as opened:
        return opened.read()


def _fragments() -> bytes:
    return box(b'ftyp', b'iso5') + box(b'sidx', bytes(30)) + (
        box(b'moof', bytes(40)) + box(b'mdat', bytes(50))) * 3 + box(
            b'moov', box(b'trak', box(b'mdia', full(b'hdlr', 0, raw=b'vide'),
                                      box(b'minf', box(
                                          b'stbl', full(b'stz2', 8, 2),
                                          full(b'stsc', 1, 1, 2, 1),
                                          full(b'co64', 1, 0, 50),
                                          full(b'stss', 1, 2))))))


def _tiff(order: str, is_big: bool) -> bytes:
    head = b'II' if order == '<' else b'MM'
    if is_big:
        return head + struct.pack(order + 'HHHQ', 43, 8, 0, 16) + struct.pack(
            order + 'QHHQQHHQQQ', 2, 256, 3, 1, 5, 324, 16, 4, 80, 0
            ) + bytes(100)
    return head + struct.pack(order + 'HIH', 42, 8, 3) + struct.pack(
        order + 'HHIIHHIIHHIII', 256, 3, 1, 5, 273, 4, 4, 60, 330, 4, 2, 80,
        0) + bytes(100)


def _arrow() -> bytes:
    blocks = struct.pack('<I', 2) + struct.pack('<qi4xq', 8, 16, 24) \
        + struct.pack('<qi4xq', 48, 16, 8)
    table = struct.pack('<HHHHHH', 12, 20, 0, 0, 0, 12)
    footer = struct.pack('<I', 16) + table + struct.pack(
        '<i12xI', 12, 4) + blocks
    return b'ARROW1\0\0' + bytes(64) + footer + struct.pack(
        '<i', len(footer)) + b'ARROW1'


def _made_by(folder: str, name: str, size: int, *words: str) -> str:
    path = os.path.join(folder, name)
    sparse(path, size, ())
    program = shutil.which(words[0], path=os.environ['PATH'] + ':/usr/sbin')
    if program is None:
        return ''
    subprocess.run([program, *words[1:], path], check=True,
                   capture_output=True)
    return path


def _images(folder: str) -> Iterator[Tuple[str, str, str]]:
    """(name of the target, format, path)."""
    ext4 = _made_by(folder, 'ext4', 8 * MIB, 'mkfs.ext4', '-q', '-F',
                    '-d', os.path.dirname(os.path.abspath(__file__)))
    ext2 = _made_by(folder, 'ext2', 4 * MIB, 'mkfs.ext4', '-q', '-F', '-t',
                    'ext2')
    xfs = _made_by(folder, 'xfs', 320 * MIB, 'mkfs.xfs', '-q', '-f')
    for name, path in (('ext4', ext4), ('ext2', ext2), ('xfs', xfs)):
        if path:
            yield name, 'disk', path
    path = os.path.join(folder, 'ntfs')
    ntfs(path, 16 * MIB)
    yield 'ntfs', 'disk', path
    for name, pieces in (
            ('gpt', gpt(2048, 1024, 2 * MIB)),
            ('mbr', [(0, mbr((5, 64, 2000), (0x83, 2048, 900))),
                     (64 * 512, mbr((0x83, 64, 500), (5, 700, 700))),
                     (764 * 512, mbr((0x83, 64, 500)))])):
        path = os.path.join(folder, name)
        sparse(path, 2 * MIB, pieces)
        yield name, 'disk', path
    if ext4:
        path = os.path.join(folder, 'qcow2')
        qcow2(path, ext4)
        yield 'qcow2', 'qcow2', path


def targets() -> List[Target]:
    """Every parser of ours, with good files."""
    made = [
        Target('zip', _of_bytes('zip'), (_zip(), _zip64())),
        Target('tar', _of_bytes('tar'), (
            _tar(tarfile.GNU_FORMAT), _tar(tarfile.PAX_FORMAT))),
        Target('tiff', _of_bytes('tiff'), tuple(
            _tiff(order, is_big) for order in '<>'
            for is_big in (False, True))),
        Target('arrow', _of_bytes('arrow'), (_arrow(),))]
    with tempfile.TemporaryDirectory() as folder:
        made.append(Target('mp4', _of_bytes('mp4'), (
            _mp4(folder), _fragments())))
        made += [Target(name, _of_image(path, kind), (
            b'', b'\0\0\1', b'\x10\0\xff\x80\0\x7f'))
            for name, kind, path in _images(folder)]
    return made
