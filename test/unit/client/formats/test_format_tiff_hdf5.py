"""TIFF and HDF5: tags and metadata are read from hot bytes only."""

from __future__ import annotations

import struct

import pytest
from support.format_files import MIB, Recorder

from swift_dss.client.formats.contract import BadFile

numpy = pytest.importorskip('numpy')


@pytest.mark.parametrize('options', [
    {}, {'bigtiff': True}, {'byteorder': '>'}, {'tile': (256, 256)},
    {'subifds': 2, 'tile': (256, 256)}], ids=str)
def test_tags_of_a_tiff(tmp_path, classify, options):
    tifffile = pytest.importorskip('tifffile')
    path = tmp_path / 'f.tif'
    picture = numpy.random.default_rng(5).integers(
        0, 255, (4096, 4096), dtype='uint8')
    with tifffile.TiffWriter(path, bigtiff=options.get('bigtiff', False),
                             byteorder=options.get('byteorder')) as out:
        shape = {'tile': options['tile']} if 'tile' in options else {}
        out.write(picture, subifds=options.get('subifds', 0),
                  description='some words ' * 50, **shape)
        for number in range(options.get('subifds', 0)):
            out.write(picture[::2 << number, ::2 << number], subfiletype=1,
                      **shape)
        for _ in range(3):
            out.write(picture, **shape)
    made = classify(path)
    assert made.format_name == 'tiff' and made.size >= 64 * MIB
    assert made.plan.hot_bytes <= 0.02 * made.size
    read = Recorder(path)
    with tifffile.TiffFile(read) as opened:
        for page in opened.pages:
            assert page.tags['ImageWidth'].value == 4096
            assert page.dataoffsets and page.databytecounts
            for inner in page.pages or ():
                assert inner.dataoffsets
    assert read.reads and read.cold(made.plan.ranges) == []


def tiff(entries, following=0, count=None):
    body = b''.join(struct.pack('<HHII', *entry) for entry in entries)
    return b'II*\0' + struct.pack('<IH', 8, len(
        entries) if count is None else count) + body + struct.pack(
            '<I', following) + bytes(100)


@pytest.mark.parametrize('raw, said', [
    (tiff([(256, 4, 1000, 50)]), 'TIFF tag 256 at 50: claims 4000 bytes'),
    (tiff([], 99999), 'TIFF directory at 99999: claims 2 bytes'),
    (tiff([], count=60000), 'TIFF directory at 10: claims 720004 bytes'),
    (tiff([(330, 1, 60, 30)]), 'TIFF tag 330 at 30: has no offsets'),
    (b'II*\0', 'TIFF header at 0: claims 8 bytes')])
def test_damage_of_a_tiff_is_named(tmp_path, classify, raw, said):
    (tmp_path / 'f').write_bytes(raw)
    with pytest.raises(BadFile, match=said):
        classify(tmp_path / 'f')


def test_directories_in_a_circle_end(tmp_path, classify):
    (tmp_path / 'f').write_bytes(tiff([(330, 4, 1, 8)], 8))
    assert classify(tmp_path / 'f').format_name == 'tiff'


def look(h5py, opened):
    """As programs list a file: names, shapes, attributes, chunks."""
    seen = []

    def visit(name, thing):
        seen.append((name, dict(thing.attrs)))
        if isinstance(thing, h5py.Dataset):
            seen.append((thing.shape, thing.dtype))
            if thing.chunks:
                seen.append(thing.id.get_num_chunks())
    opened.visititems(visit)
    return seen


@pytest.mark.parametrize('libver', ['earliest', 'latest'])
def test_metadata_of_hdf5(tmp_path, classify, libver):
    h5py = pytest.importorskip('h5py')
    path = tmp_path / 'f.h5'
    with h5py.File(path, 'w', libver=libver) as out:
        for number in range(8):
            group = out.create_group('group-%d' % number)
            group.attrs['unit'] = 'kelvin'
            data = group.create_dataset('values', (1 << 20,), 'f8',
                                        chunks=(1 << 14,))
            data[:] = numpy.arange(1 << 20)
            group.create_dataset('plain', data=numpy.arange(1 << 17))
    made = classify(path)
    assert made.format_name == 'hdf5' and made.size > 64 * MIB
    assert made.plan.hot_bytes <= 0.02 * made.size
    read = Recorder(path)
    with h5py.File(read, 'r') as opened:
        assert len(look(h5py, opened)) == 48
    assert read.reads and read.cold(made.plan.ranges) == []
    # Values are cold.
    read = Recorder(path)
    with h5py.File(read, 'r') as opened:
        assert opened['group-3/values'][5] == 5
    assert read.cold(made.plan.ranges)


def test_damage_of_hdf5_is_named(tmp_path, classify):
    h5py = pytest.importorskip('h5py')
    with h5py.File(tmp_path / 'f', 'w') as out:
        out['a'] = numpy.arange(1000)
    raw = (tmp_path / 'f').read_bytes()
    (tmp_path / 'f').write_bytes(raw[:200])
    with pytest.raises(BadFile, match='HDF5 metadata at'):
        classify(tmp_path / 'f')
