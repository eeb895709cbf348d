"""Files of every format that is classified, and how programs open them.

A file is made in ``size`` bytes, about; it is opened by its own library, from
a file object that may be an object of a cluster. A check of a disk's image
needs a file: it gets one whose hot bytes are read from the object, and whose
other bytes are garbage, so that a check which passes has read no other.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from typing import Any, Callable, Iterator, List, NamedTuple, Sequence, Tuple

from support.disk_images import qcow2
from support.format_files import MIB, sparse

_PATH = os.environ['PATH'] + ':/sbin:/usr/sbin'
_GARBAGE = b'\xa5' * MIB
_ROWS = 1 << 17

#: (offset, bytes) of the hot parts of a file.
Ranges = Sequence[Tuple[int, int]]


class Opening(NamedTuple):
    """One format.

    :param needs: modules and programs
    :param write: makes a file of about so many bytes at a path
    :param look: opens it, from a file object, its size and its hot ranges,
        and says what it saw
    :param why_more: '' or the reason why more than 2 % of it is hot
    """

    format_name: str
    needs: Tuple[str, ...]
    write: Callable[[pathlib.Path, int], None]
    look: Callable[[Any, int, Ranges], Any]
    why_more: str = ''

    def lacking(self) -> str:
        """What it needs and is not here; '' if all is."""
        return ', '.join(
            need for need in self.needs
            if shutil.which(need, path=_PATH) is None
            and not _is_module(need))


def _is_module(name: str) -> bool:
    return '.' not in name and importlib.util.find_spec(name) is not None


def _blocks(size: int) -> Iterator[Any]:
    """Tables of 2 MiB."""
    import numpy
    import pyarrow
    random = numpy.random.default_rng(5)
    for start in range(0, size // 16, _ROWS):
        yield pyarrow.table({'id': numpy.arange(start, start + _ROWS),
                             'x': random.random(_ROWS)})


def _write_parquet(path: pathlib.Path, size: int) -> None:
    from pyarrow import parquet
    tables = _blocks(size)
    first = next(tables)
    with parquet.ParquetWriter(path, first.schema, compression='none',
                               use_dictionary=False,
                               write_page_index=True) as out:
        out.write_table(first)
        for table in tables:
            out.write_table(table)


def _look_parquet(source: Any, _size: int, _hot: Ranges) -> Any:
    from pyarrow import parquet
    opened = parquet.ParquetFile(source)
    return opened.schema_arrow.names, opened.metadata.num_rows


def _write_orc(path: pathlib.Path, size: int) -> None:
    from pyarrow import orc
    with orc.ORCWriter(str(path), compression='uncompressed',
                       stripe_size=4 * MIB) as out:
        # Numbers in a row take no room.
        for table in _blocks(2 * size):
            out.write(table)


def _look_orc(source: Any, _size: int, _hot: Ranges) -> Any:
    from pyarrow import orc
    opened = orc.ORCFile(source)
    return opened.schema.names, opened.nrows


def _write_arrow(path: pathlib.Path, size: int) -> None:
    from pyarrow import ipc
    tables = _blocks(size)
    first = next(tables)
    with ipc.new_file(str(path), first.schema) as out:
        out.write_table(first)
        for table in tables:
            out.write_table(table)


def _look_arrow(source: Any, _size: int, _hot: Ranges) -> Any:
    from pyarrow import ipc
    opened = ipc.open_file(source)
    return opened.schema.names, opened.num_record_batches


def _write_zip(path: pathlib.Path, size: int) -> None:
    with zipfile.ZipFile(path, 'w') as made:
        for number in range(size // MIB):
            with made.open('dir/member-%d' % number, 'w') as member:
                member.write(os.urandom(MIB))


def _look_zip(source: Any, _size: int, _hot: Ranges) -> Any:
    return zipfile.ZipFile(source).namelist()


def _write_tar(path: pathlib.Path, size: int) -> None:
    import io
    with tarfile.open(path, 'w') as made:
        for number in range(size // (8 * MIB)):
            info = tarfile.TarInfo('dir/member-%d' % number)
            info.size = 8 * MIB
            made.addfile(info, io.BytesIO(os.urandom(8 * MIB)))


def _look_tar(source: Any, _size: int, _hot: Ranges) -> Any:
    with tarfile.open(fileobj=source) as opened:
        return opened.getnames()


def _write_film(path: pathlib.Path, size: int) -> None:
    """Four seconds of noise, again and again."""
    import av
    import numpy
    noise = numpy.random.default_rng(5).integers(
        0, 255, (360, 640, 3), dtype='uint8')
    with av.open(str(path), 'w') as made:
        stream: Any = made.add_stream('mpeg4', rate=24)
        stream.width, stream.height, stream.bit_rate = 640, 360, 20000000
        packets = [packet for number in range(96)
                   for packet in stream.encode(av.VideoFrame.from_ndarray(
                       numpy.roll(noise, number, axis=1), format='rgb24'))]
        packets += stream.encode()
        total = sum(packet.size for packet in packets)
        for turn in range(-(-size // total)):
            for number, packet in enumerate(packets):
                copy = av.Packet(bytes(packet))
                copy.stream, copy.time_base = stream, packet.time_base
                copy.is_keyframe = packet.is_keyframe
                copy.pts = copy.dts = turn * len(packets) + number
                copy.duration = 1
                made.mux(copy)


def _look_film(source: Any, _size: int, _hot: Ranges) -> Any:
    import av
    with av.open(source) as opened:
        frame = next(opened.decode(video=0))
        return frame.width, frame.height


def _write_tiff(path: pathlib.Path, size: int) -> None:
    import numpy
    import tifffile
    picture = numpy.random.default_rng(5).integers(
        0, 255, (4096, 4096), dtype='uint8')
    with tifffile.TiffWriter(path, bigtiff=True) as out:
        for _ in range(max(1, size // (20 * MIB))):
            out.write(picture, subifds=1, tile=(256, 256))
            out.write(picture[::2, ::2], subfiletype=1, tile=(256, 256))


def _look_tiff(source: Any, _size: int, _hot: Ranges) -> Any:
    import tifffile
    with tifffile.TiffFile(source) as opened:
        return [(page.shape, len(page.dataoffsets),
                 [len(inner.dataoffsets) for inner in page.pages or ()])
                for page in opened.pages]


def _write_hdf5(path: pathlib.Path, size: int) -> None:
    import h5py
    import numpy
    values = numpy.random.default_rng(5).random(MIB)
    with h5py.File(path, 'w') as out:
        for number in range(size // (8 * MIB)):
            out.create_dataset('group-%d/values' % number, data=values,
                               chunks=(1 << 14,)).attrs['unit'] = 'kelvin'


def _look_hdf5(source: Any, _size: int, _hot: Ranges) -> Any:
    import h5py
    seen: List[Any] = []

    def visit(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset):
            seen.append((name, thing.shape, thing.attrs['unit'],
                         thing.id.get_num_chunks()))
    with h5py.File(source, 'r') as opened:
        opened.visititems(visit)
    return seen


def _run(*words: Any, folder: Any = None) -> str:
    done = subprocess.run(
        [shutil.which(words[0], path=_PATH) or words[0],
         *map(str, words[1:])], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, '%s: %s%s' % (
        words[0], done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def _tree(root: pathlib.Path, size: int) -> None:
    """Folders of files that fill half of a disk."""
    each = max(1, size // MIB // 8)
    for number in range(4):
        folder = root / ('folder-%d' % number)
        folder.mkdir()
        for file in range(each):
            (folder / ('file-%d' % file)).write_bytes(os.urandom(MIB))


def _write_ext4(path: pathlib.Path, size: int) -> None:
    sparse(path, size, ())
    with tempfile.TemporaryDirectory(dir=path.parent) as root:
        _tree(pathlib.Path(root), size)
        _run('mkfs.ext4', '-q', '-F', '-d', root, path)


def _write_xfs(path: pathlib.Path, size: int) -> None:
    sparse(path, max(size, 320 * MIB), ())
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        data = pathlib.Path(folder, 'data')
        data.write_bytes(os.urandom(MIB))
        files = ['file-%d ---644 0 0 %s' % (number, data)
                 for number in range(size // MIB // 2)]
        prototype = pathlib.Path(folder, 'prototype')
        prototype.write_text('\n'.join([
            '/dev/null', '0 0', 'd--755 0 0', 'folder d--755 0 0', *files,
            '$', '$']) + '\n')
        _run('mkfs.xfs', '-q', '-f', '-p', prototype, path)


def _write_ntfs(path: pathlib.Path, size: int) -> None:
    sparse(path, size, ())
    _run('mkntfs', '-q', '-F', '-f', path)
    with tempfile.NamedTemporaryFile(dir=path.parent) as data:
        data.write(os.urandom(MIB))
        data.flush()
        for number in range(min(16, size // MIB // 2)):
            _run('ntfscp', '-q', path, data.name, 'file-%d' % number)


def _write_qcow2(path: pathlib.Path, size: int) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        inner = pathlib.Path(folder, 'disk')
        _write_ext4(inner, 2 * size)
        qcow2(path, inner)


def _rebuilt(source: Any, size: int, hot: Ranges,
             target: pathlib.Path) -> None:
    """A file of the hot bytes of ``source``; garbage else."""
    at = 0
    with target.open('wb') as out:
        for start, length in [*hot, (size, 0)]:
            for piece in range(at, start, MIB):
                out.write(_GARBAGE[:min(MIB, start - piece)])
            source.seek(start)
            left = length
            while left:
                data = source.read(min(left, MIB))
                assert data, 'the object ends at %d' % source.tell()
                out.write(data)
                left -= len(data)
            at = start + length


def _checked(*commands: Sequence[str]
             ) -> Callable[[Any, int, Ranges], Any]:
    """Runs commands on the image that is rebuilt of hot bytes."""
    def look(source: Any, size: int, hot: Ranges) -> Any:
        with tempfile.TemporaryDirectory(dir='/var/tmp') as folder:
            image = pathlib.Path(folder, 'image')
            _rebuilt(source, size, hot, image)
            return [_run(*words, image.name, folder=folder)
                    for words in commands][-1]
    return look


def _look_qcow2(source: Any, size: int, hot: Ranges) -> Any:
    """As qemu-img convert makes a disk of it, and then a check."""
    with tempfile.TemporaryDirectory(dir='/var/tmp') as folder:
        image = pathlib.Path(folder, 'image')
        _rebuilt(source, size, hot, image)
        disk = pathlib.Path(folder, 'disk')
        _flat(image, disk)
        return _run('e2fsck', '-fn', disk.name, folder=folder)


def _flat(image: pathlib.Path, disk: pathlib.Path) -> None:
    import struct
    with image.open('rb') as source, disk.open('wb') as out:
        header = source.read(72)
        bits, total = struct.unpack_from('>IQ', header, 20)
        tables, l1_at = struct.unpack_from('>I', header, 36)[0], \
            struct.unpack_from('>Q', header, 40)[0]
        cluster = 1 << bits
        out.truncate(total)
        source.seek(l1_at)
        for number, table in enumerate(struct.unpack(
                '>%dQ' % tables, source.read(8 * tables))):
            source.seek(table & ~(1 << 63))
            entries = struct.unpack('>%dQ' % (cluster // 8),
                                    source.read(cluster))
            for index, entry in enumerate(entries):
                if entry:
                    source.seek(entry & 0xfffffffffffe00)
                    out.seek((number * cluster // 8 + index) * cluster)
                    out.write(source.read(cluster))


OPENINGS = {
    'parquet': Opening('parquet', ('pyarrow', 'numpy'), _write_parquet,
                       _look_parquet),
    'orc': Opening('orc', ('pyarrow', 'numpy'), _write_orc, _look_orc),
    'arrow': Opening('arrow', ('pyarrow', 'numpy'), _write_arrow,
                     _look_arrow),
    'zip': Opening('zip', (), _write_zip, _look_zip),
    'tar': Opening('tar', (), _write_tar, _look_tar),
    'mp4': Opening('mp4', ('av', 'numpy'), _write_film, _look_film),
    'mkv': Opening('video', ('av', 'numpy'), _write_film, _look_film),
    'avi': Opening('video', ('av', 'numpy'), _write_film, _look_film),
    'ts': Opening('video', ('av', 'numpy'), _write_film, _look_film),
    'tif': Opening('tiff', ('tifffile', 'numpy'), _write_tiff, _look_tiff),
    'h5': Opening('hdf5', ('h5py', 'numpy'), _write_hdf5, _look_hdf5),
    'ext4': Opening('disk', ('mkfs.ext4', 'e2fsck'), _write_ext4,
                    _checked(('e2fsck', '-fn'))),
    'xfs': Opening('disk', ('mkfs.xfs', 'xfs_repair'), _write_xfs,
                   _checked(('xfs_repair', '-nf')),
                   'its log is 64 MiB, and a check reads it'),
    'ntfs': Opening('disk', ('mkntfs', 'ntfscp', 'ntfsfix', 'ntfsls'),
                    _write_ntfs, _checked(
                        ('ntfsfix', '-n'), ('ntfsls', '-f'))),
    'qcow2': Opening('qcow2', ('mkfs.ext4', 'e2fsck'), _write_qcow2,
                     _look_qcow2),
}
