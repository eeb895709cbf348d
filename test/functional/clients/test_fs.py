"""``dss://`` on a running cluster: bytes, classes, and what is left over."""

from __future__ import annotations

import asyncio
import gzip
import pickle
import uuid
from operator import methodcaller

import pytest
from support import pattern, wait_until
from support.format_files import film
from swiftclient.exceptions import ClientException

from swift_dss.cli import main
from swift_dss.client.formats import known
from swift_dss.client.formats.readers import FileReader
from swift_dss.client.fs.writing.auto import InMemory

fsspec = pytest.importorskip('fsspec')
pytest.importorskip('aiohttp')

pytestmark = pytest.mark.cluster

MIB = 1 << 20
GOLD, USER1 = 25, 11


def options(cluster, **more):
    return dict(auth_url=cluster.conf.auth_url, user='test:tester',
                key='testing', **more)


@pytest.fixture(scope='module')
def fs(cluster):
    return fsspec.filesystem('dss', **options(cluster), segment_bytes=MIB)


@pytest.fixture
def box(fs):
    """A container that leaves nothing behind, segments included."""
    name = 'test-%s' % uuid.uuid4().hex[:12]
    fs.mkdir(name, policy='dss')
    yield name
    fs.rm(name, recursive=True)
    assert segments(fs, name) == []


def segments(fs, container):
    """The segments of a container's objects."""
    fs.invalidate_cache()
    segments = container + '_segments'
    return fs.find(segments) if fs.exists(segments) else []


def class_at(fs, path, offset):
    return next(class_id for start, length, class_id in fs.classes_of(path)
                if start <= offset < start + length)


def test_classes_of_ranges_hold_across_segments(fs, box, swift):
    body = pattern(3 * MIB + 5, 'across')
    with fs.open(box + '/o', 'wb', dss_class=3) as out:
        out.write(body[:MIB - 10])
        with out.classed('gold'):
            out.write(body[MIB - 10:2 * MIB + 20])
            with out.classed(USER1):
                out.write(body[2 * MIB + 20:2 * MIB + 30])
            out.write(body[2 * MIB + 30:2 * MIB + 40])
        out.write(body[2 * MIB + 40:])
    assert fs.cat(box + '/o') == body
    assert fs.classes_of(box + '/o') == [
        (0, MIB - 10, 3), (MIB - 10, MIB + 30, GOLD),
        (2 * MIB + 20, 10, USER1), (2 * MIB + 30, 10, GOLD),
        (2 * MIB + 40, MIB - 35, 3)]
    # The same from what each segment's HEAD shows.
    shown = []
    for path in segments(fs, box):
        container, name = path.split('/', 1)
        headers = swift.head_object(container, name)
        shown.append((headers['x-dss-object-class'],
                      headers.get('x-dss-range-class')))
    assert shown == [
        ('3', '%d-10-25' % (MIB - 10)), ('25', None),
        ('3', '0-20-25,20-10-11,30-10-25'), ('3', None)]


def test_bytes_without_a_class_get_the_containers(fs, box, swift):
    swift.post_container(box, {'X-DSS-Container-Class': 'user1'})
    with fs.open(box + '/o', 'wb') as out:
        out.write(b'x' * (MIB + 10))
        with out.classed('gold'):
            out.write(b'y' * MIB)
    assert fs.classes_of(box + '/o') == [(0, MIB + 10, USER1),
                                         (MIB + 10, MIB, GOLD)]


@pytest.mark.parametrize('class_name', [None, 'user1'])
def test_more_ranges_than_a_header_holds(fs, box, class_name):
    expected = []
    with fs.open(box + '/o', 'wb', dss_class=class_name) as out:
        for number in range(900):
            out.write(b'-' * 16)
            with out.classed('gold'):
                out.write(b'+' * 16)
            expected += [(number * 32, 16, USER1 if class_name else 0),
                         (number * 32 + 16, 16, GOLD)]
    assert segments(fs, box) == []
    assert fs.classes_of(box + '/o') == expected
    assert fs.cat(box + '/o') == (b'-' * 16 + b'+' * 16) * 900


def test_classes_by_pattern(cluster, box, fs):
    own = fsspec.filesystem('dss', **options(cluster), classes={
        '*/zarr.json': 'gold', box + '/raw/*': 'user1', '*.parquet': 'auto'})
    for name, dss_class, expected in (
            ('a/zarr.json', None, GOLD), ('raw/b', None, USER1),
            ('raw/c', 'gold', GOLD), ('other', None, 0)):
        path = '%s/%s' % (box, name)
        own.pipe_file(path, b'data', dss_class=dss_class)
        assert own.info(path)['dss']['class_id'] == expected, name


@pytest.mark.parametrize('segment_bytes', [MIB, 64 * MIB])
def test_a_file_is_classified_by_its_format_as_it_is_written(
        cluster, box, segment_bytes):
    """A library writes it; its footer comes last."""
    arrow = pytest.importorskip('pyarrow')
    from pyarrow import parquet
    own = fsspec.filesystem(
        'dss', **options(cluster), segment_bytes=segment_bytes,
        classes={'*.parquet': 'auto'}, hot_class='gold')
    path = box + '/t.parquet'
    parquet.write_table(
        arrow.table({'a': [pattern(40, str(n)) for n in range(80000)]}),
        path, filesystem=own, row_group_size=20000)
    body = own.cat(path)
    expected = known.classify(InMemory(body)).plan.ranges
    assert len(body) > 2 * MIB
    spans = own.classes_of(path)
    assert [span[:2] for span in spans if span[2] == GOLD] == expected
    assert {class_id for _, _, class_id in spans} == {0, GOLD}
    assert own.info(path)['dss']['ranges'] == [
        (offset, length, GOLD) for offset, length in expected]
    assert bool(segments(own, box)) == (segment_bytes == MIB)


def test_a_file_that_is_put_is_classified_first(cluster, box, tmp_path):
    own = fsspec.filesystem(
        'dss', **options(cluster), segment_bytes=MIB,
        classes={'*.mp4': 'auto'}, hot_class='gold')
    film(tmp_path / 'film.mp4', frames=240)
    own.put_file(str(tmp_path / 'film.mp4'), box + '/f.mp4')
    body = (tmp_path / 'film.mp4').read_bytes()
    assert own.cat(box + '/f.mp4') == body
    assert [span[:2] for span in own.classes_of(box + '/f.mp4')
            if span[2] == GOLD] == known.classify(
                InMemory(body)).plan.ranges


def test_a_file_of_coroutines_is_classified_too(cluster, fs, box, tmp_path):
    film(tmp_path / 'film.mp4', frames=240)
    body = (tmp_path / 'film.mp4').read_bytes()

    async def write():
        own = fsspec.filesystem(
            'dss', **options(cluster), segment_bytes=MIB,
            asynchronous=True, skip_instance_cache=True,
            classes={'*.mp4': 'auto'}, hot_class='gold')
        async with await own.open_async(box + '/f.mp4', 'wb') as out:
            await out.write(body)
        await own.close()
    asyncio.run(write())
    assert [span[:2] for span in fs.classes_of(box + '/f.mp4')
            if span[2] == GOLD] == known.classify(
                InMemory(body)).plan.ranges


def test_a_class_that_is_none_stores_nothing(fs, box):
    with pytest.raises(ValueError, match='platinum'):
        fs.pipe_file(box + '/o', b'data', dss_class='platinum')
    with pytest.raises(ValueError, match='platinum'):
        with fs.open(box + '/o', 'wb') as out, out.classed('platinum'):
            out.write(b'data')
    assert fs.ls(box) == []


def failing(fs, path, how, words):
    with how(path, **words) as out:
        out.write(('x' if 't' in words['mode'] else b'x') * (3 * MIB))
        raise KeyError('in the block')


@pytest.mark.parametrize('words', [
    {'mode': 'wb'}, {'mode': 'wt'}, {'mode': 'wb', 'compression': 'gzip'}])
@pytest.mark.parametrize('by_url', [False, True])
def test_a_failed_block_stores_nothing(fs, box, cluster, words, by_url):
    def open_url(path, **words):
        return fsspec.open('dss://' + path, **words, **options(
            cluster, segment_bytes=MIB))
    with pytest.raises(KeyError):
        failing(fs, box + '/o', open_url if by_url else fs.open, words)
    assert not fs.exists(box + '/o')
    assert segments(fs, box) == []


def test_a_block_that_ends_well_inside_a_handler_stores(cluster, fs, box):
    try:
        raise KeyError('another error')
    except KeyError:
        with fsspec.open('dss://%s/log' % box, 'wt',
                         **options(cluster)) as out:
            out.write('it is told')
    assert fs.cat(box + '/log') == b'it is told'


def test_a_file_that_nobody_closes_stores_nothing(fs, box):
    out = fs.open(box + '/o', 'wb')
    out.write(b'x' * 2 * MIB)
    out.__del__()
    wait_until(lambda: segments(fs, box) == [])
    assert not fs.exists(box + '/o')


def test_a_refused_object_leaves_no_segments(fs, box):
    fs.pipe_file(box + '/o', b'old')
    with pytest.raises(FileExistsError):
        fs.pipe_file(box + '/o', b'x' * (2 * MIB), mode='create')
    assert fs.cat(box + '/o') == b'old'
    assert segments(fs, box) == []


def test_text_and_compression_come_back(fs, box):
    with fs.open(box + '/t', 'w', encoding='latin-1') as out:
        out.write('müde\n')
    with fs.open(box + '/t', 'r', encoding='latin-1') as text:
        assert text.read() == 'müde\n'
    with fs.open(box + '/z.gz', 'wb', compression='infer') as out:
        out.write(b'packed' * 1000)
    assert gzip.decompress(fs.cat(box + '/z.gz')) == b'packed' * 1000


def test_a_written_object_replaces_segments_too(fs, box):
    for size in (3 * MIB, 2 * MIB, 5):
        with fs.open(box + '/o', 'wb') as out:
            out.write(b'x' * size)
        assert fs.info(box + '/o')['size'] == size
        # One that fits a segment has none.
        assert len(segments(fs, box)) == (0 if size < MIB else size // MIB)


def test_copies_have_segments_and_classes_of_their_own(fs, box):
    with fs.open(box + '/o', 'wb') as out:
        out.write(b'x' * MIB)
        with out.classed('gold'):
            out.write(b'y' * MIB)
    fs.cp(box + '/o', box + '/copy')
    assert len(segments(fs, box)) == 4
    before = fs.classes_of(box + '/o')
    fs.rm(box + '/o')
    assert len(segments(fs, box)) == 2
    assert fs.cat(box + '/copy') == b'x' * MIB + b'y' * MIB
    assert fs.classes_of(box + '/copy') == before


def test_manifests_of_manifests(fs, box, monkeypatch):
    from swift_dss.client.fs.store import Store
    info = Store.info

    async def few(self):
        return dict(await info(self), slo={'max_manifest_segments': 2})
    monkeypatch.setattr(Store, 'info', few)
    body = pattern(5 * 4096 + 7, 'nested')
    with fs.open(box + '/o', 'wb', block_size=4096) as out:
        out.write(body[:5000])
        with out.classed('gold'):
            out.write(body[5000:])
    assert fs.cat(box + '/o') == body
    assert fs.classes_of(box + '/o') == [
        (0, 5000, 0), (5000, len(body) - 5000, GOLD)]
    assert fs.reclassify(box + '/o', 'user1') == 1
    assert fs.classes_of(box + '/o') == [(0, len(body), USER1)]
    fs.cp(box + '/o', box + '/copy')
    assert fs.cat(box + '/copy') == body
    fs.pipe_file(box + '/o', b'small')
    fs.rm(box + '/copy')
    assert segments(fs, box) == []


def test_reclassify_takes_patterns(fs, box):
    fs.pipe({'%s/%s' % (box, name): b'x' for name in
             ('a/1.txt', 'a/2.txt', 'a/3.bin')})
    assert fs.reclassify(box + '/a/*.txt', 'gold') == 2
    assert [fs.info('%s/a/%s' % (box, name))['dss']['class'] for name in
            ('1.txt', '2.txt', '3.bin')] == ['gold', 'gold', '0']
    with pytest.raises(FileNotFoundError):
        fs.reclassify(box + '/b/*', 'gold')


def test_pin_gives_a_class_that_the_table_pins(cluster, fs, box, swift):
    fs.pipe_file(box + '/o', b'x')
    pinning = swift.get_capabilities()['dss']['pinning']
    if pinning:
        assert fs.pin(box + '/o') == 1
        assert fs.info(box + '/o')['dss']['class'] == pinning[0]
    else:
        with pytest.raises(OSError, match='pin = true'):
            fs.pin(box + '/o')
    assert fs.pin(box + '/o', 'gold') == 1
    assert fs.info(box + '/o')['dss']['class'] == 'gold'


def test_a_new_version_has_another_checksum_and_time(fs, box):
    fs.pipe_file(box + '/o', b'one')
    before = fs.checksum(box + '/o')
    assert fs.modified(box + '/o').utcoffset().total_seconds() == 0
    assert fs.checksum(box + '/o') == before
    fs.pipe_file(box + '/o', b'two')
    assert fs.checksum(box + '/o') != before


def test_prefetch_reads_the_ranges(fs, box):
    fs.pipe_file(box + '/o', b'x' * (2 * MIB))
    assert fs.prefetch(box + '/o', [(0, 10), (MIB - 5, MIB + 5)]) == 20
    assert fs.prefetch(box + '/o') == 2 * MIB


@pytest.mark.parametrize('cache', ['none', 'readahead', 'blockcache',
                                   'bytes', 'all'])
def test_reads_of_ranges_by_each_cache(fs, box, cache):
    body = pattern(100000, cache)
    fs.pipe_file(box + '/o', body)
    with fs.open(box + '/o', 'rb', block_size=4096,
                 cache_type=cache) as file:
        for start, count in ((99990, 50), (0, 10), (4090, 10), (50000, 9000)):
            file.seek(start)
            assert file.read(count) == body[start:start + count]


def test_cat_ranges(fs, box):
    body = pattern(10000, 'ranges')
    fs.pipe_file(box + '/o', body)
    path = box + '/o'
    assert fs.cat_ranges([path] * 4, [0, 500, -10, 20000],
                         [10, 700, None, 20010]) == [
        body[:10], body[500:700], body[-10:], b'']


def test_a_reader_sees_that_its_object_was_replaced(fs, box):
    fs.pipe_file(box + '/o', b'old' * 1000)
    with fs.open(box + '/o', 'rb', cache_type='none') as file:
        assert file.read(3) == b'old'
        fs.pipe_file(box + '/o', b'new' * 1000)
        with pytest.raises(OSError, match='replaced while it was read'):
            file.read(3)


def test_errors_are_those_of_files(cluster, fs, box):
    fs.pipe_file(box + '/o', b'x')
    for call in (lambda: fs.cat(box + '/none'), lambda: fs.ls('none'),
                 lambda: fs.pipe_file('none-%s/o' % box, b'x'),
                 lambda: fs.rm(box + '/none'),
                 lambda: fs.open(box + '/none').read()):
        with pytest.raises(FileNotFoundError):
            call()
    with pytest.raises(FileExistsError):
        fs.mkdir(box)
    with pytest.raises(OSError, match='not empty'):
        fs.rmdir(box)
    with pytest.raises(IsADirectoryError):
        fs.pipe_file(box, b'x')
    stranger = fsspec.filesystem('dss', **dict(options(
        cluster), user='test2:tester2', key='testing2'))
    account = fs.storage_options
    assert account['user'] == 'test:tester'
    with pytest.raises(FileNotFoundError):
        stranger.cat(box + '/o')
    with pytest.raises(PermissionError):
        fsspec.filesystem('dss', **dict(options(
            cluster), key='wrong')).ls('')


def test_pickled_and_in_coroutines(cluster, fs, box):
    fs.pipe_file(box + '/o', b'pickled')
    assert pickle.loads(pickle.dumps(fs)).cat(box + '/o') == b'pickled'

    async def write_and_read():
        own = fsspec.filesystem('dss', **options(cluster), segment_bytes=MIB,
                                asynchronous=True,
                                skip_instance_cache=True)
        try:
            out = await own.open_async(box + '/a', 'wb')
            async with out:
                await out.write(b'x' * MIB)
                with out.classed('gold'):
                    await out.write(b'y' * MIB)
            with pytest.raises(KeyError):
                async with await own.open_async(box + '/b', 'wb') as out:
                    await out.write(b'x' * 2 * MIB)
                    raise KeyError
            assert not await methodcaller('_exists', box + '/b')(own)
            async with await own.open_async(box + '/a') as file:
                return await file.read(3), await methodcaller(
                    '_classes_of', box + '/a')(own)
        finally:
            await own.close()
    assert asyncio.run(write_and_read()) == (
        b'xxx', [(0, MIB, 0), (MIB, MIB, GOLD)])


def test_a_transaction_publishes_all_or_nothing(fs, box):
    with pytest.raises(KeyError):
        with fs.transaction:
            with fs.open(box + '/1', 'wb') as out:
                out.write(b'x' * 2 * MIB)
            raise KeyError
    assert fs.ls(box) == []
    assert segments(fs, box) == []
    with fs.transaction:
        for name in '12':
            with fs.open('%s/%s' % (box, name), 'wb') as out:
                out.write(b'x')
        assert fs.ls(box) == []
    assert fs.ls(box, detail=False) == [box + '/1', box + '/2']


def test_directories_of_other_tools(fs, box, swift):
    swift.put_object(box, 'dir', b'', content_type='application/directory')
    swift.put_object(box, 'dir/o', b'x')
    swift.put_object(box, 'made/', b'')
    assert fs.info(box + '/dir')['type'] == 'directory'
    assert sorted((info['name'], info['type']) for info in fs.ls(box)) == [
        (box + '/dir', 'directory'), (box + '/made', 'directory')]
    assert fs.find(box) == [box + '/dir/o']
    fs.rm(box + '/made', recursive=True)
    fs.rm(box + '/dir', recursive=True)
    with pytest.raises(ClientException):
        swift.head_object(box, 'dir')


def test_names_of_all_kinds(fs, box):
    for name in ("a b/ü?c#d%2Fe+f&g=h~i'\"*[", '..hidden'):
        path = '%s/%s' % (box, name)
        fs.pipe_file(path, b'x' * (MIB + 1))
        assert fs.find(box) == [path]
        fs.cp_file(path, path + '2')
        assert fs.cat_file(path + '2') == b'x' * (MIB + 1)
        fs.rm_file(path)
        fs.rm_file(path + '2')


def test_smart_open_reads_and_writes(cluster, fs, box):
    smart_open = pytest.importorskip('smart_open')
    from smart_open import transport
    if 'dss' not in transport.SUPPORTED_SCHEMES:
        transport.register_transport('swift_dss.client.fs.transport')
    uri = 'dss://%s/o.txt' % box
    params = options(cluster, segment_bytes=MIB)
    with smart_open.open(uri, 'w', transport_params=dict(
            params, dss_class='gold')) as out:
        out.write('line 1\nline 2\n')
    assert fs.info(box + '/o.txt')['dss']['class'] == 'gold'
    with smart_open.open(uri, transport_params=params) as text:
        assert list(text) == ['line 1\n', 'line 2\n']
    with pytest.raises(KeyError):
        with smart_open.open('dss://%s/bad' % box, 'wb',
                             transport_params=params) as out:
            out.write(b'x' * 2 * MIB)
            raise KeyError
    assert not fs.exists(box + '/bad')
    assert segments(fs, box) == []


def test_a_stored_film_is_classified(fs, box, cluster, tmp_path, monkeypatch):
    film(tmp_path / 'film.mp4', frames=240)
    fs.put_file(str(tmp_path / 'film.mp4'), box + '/film.mp4', dss_class=3)
    for name, value in (('AUTH', cluster.conf.auth_url),
                        ('USER', 'test:tester'), ('KEY', 'testing')):
        monkeypatch.setenv('ST_' + name, value)
    before = fs.info(box + '/film.mp4')['etag']
    assert main.main(['classify', 'dss://%s/film.mp4' % box, '--hot', 'gold',
                      '--post']) == 0
    with open(tmp_path / 'film.mp4', 'rb') as opened:
        ranges = known.classify(FileReader(opened)).plan.ranges
    classes = fs.classes_of(box + '/film.mp4')
    assert [(offset, length) for offset, length, class_id in classes
            if class_id == GOLD] == ranges
    assert {class_id for _, _, class_id in classes} == {3, GOLD}
    assert fs.info(box + '/film.mp4')['etag'] == before
