"""Python's data libraries on ``dss://``, each in its own words.

They are large and no dependency of the project: a test is skipped where
its library is not installed::

    pip install -c constraints.txt pandas pyarrow 'dask[dataframe]' zarr \
        xarray duckdb datasets
"""

from __future__ import annotations

import os
import uuid

import pytest

fsspec = pytest.importorskip('fsspec')
pytest.importorskip('aiohttp')

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

GOLD = 25


@pytest.fixture(scope='module')
def words(cluster):
    return {'auth_url': cluster.conf.auth_url, 'user': 'test:tester',
            'key': 'testing', 'classes': {'*/zarr.json': 'gold',
                                          '*.parquet': 'gold'}}


@pytest.fixture(scope='module')
def fs(words):
    return fsspec.filesystem('dss', **words)


@pytest.fixture
def box(fs):
    name = 'test-%s' % uuid.uuid4().hex[:12]
    fs.mkdir(name, policy='dss')
    yield name
    fs.rm(name, recursive=True)


def library(name):
    return pytest.importorskip(
        name, reason='%s is not installed (it is large)' % name)


def test_pandas(fs, box, words):
    pandas = library('pandas')
    library('pyarrow')
    table = pandas.DataFrame({'a': range(1000), 'b': ['x'] * 1000})
    for path, write, read in (
            ('t.csv', lambda url: table.to_csv(
                url, index=False, storage_options=words), pandas.read_csv),
            ('t.parquet', lambda url: table.to_parquet(
                url, storage_options=words), pandas.read_parquet)):
        url = 'dss://%s/%s' % (box, path)
        write(url)
        pandas.testing.assert_frame_equal(
            read(url, storage_options=words), table)
    assert fs.info(box + '/t.parquet')['dss']['class_id'] == GOLD
    assert fs.info(box + '/t.csv')['dss']['class_id'] == 0


def test_pyarrow(fs, box):
    pyarrow = library('pyarrow')
    from pyarrow import dataset
    table = pyarrow.table({'part': ['a', 'a', 'b'], 'n': [1, 2, 3]})
    dataset.write_dataset(table, box + '/set', filesystem=fs,
                          format='parquet', partitioning=['part'])
    back = dataset.dataset(box + '/set', filesystem=fs,
                           partitioning=['part'])
    assert sorted(back.to_table().column('n').to_pylist()) == [1, 2, 3]
    assert back.to_table(filter=dataset.field('part') == 'b').column(
        'n').to_pylist() == [3]
    assert {fs.info(path)['dss']['class_id']
            for path in fs.find(box + '/set')} == {GOLD}


def test_dask(box, words):
    library('dask')
    pandas = library('pandas')
    library('pyarrow')
    from dask import dataframe
    table = pandas.DataFrame({'a': range(100)})
    url = 'dss://%s/set' % box
    dataframe.from_pandas(table, npartitions=3).to_parquet(
        url, storage_options=words)
    assert dataframe.read_parquet(
        url, storage_options=words)['a'].sum().compute() == 4950


def test_zarr_and_xarray(fs, box, words):
    numpy = library('numpy')
    xarray = library('xarray')
    library('zarr')
    made = xarray.Dataset({'t': (('x', 'y'), numpy.arange(
        10000.0).reshape(100, 100))})
    url = 'dss://%s/a.zarr' % box
    made.chunk({'x': 25}).to_zarr(url, storage_options=words, mode='w')
    back = xarray.open_zarr(url, storage_options=words)
    assert float(back['t'][50, 50]) == 5050.0
    xarray.testing.assert_equal(back.load(), made)
    classes = {os.path.basename(path): fs.info(path)['dss']['class_id']
               for path in fs.find(box)}
    assert classes.pop('zarr.json') == GOLD
    assert set(classes.values()) == {0}


def test_duckdb(fs, box):
    duckdb = library('duckdb')
    connection = duckdb.connect()
    connection.register_filesystem(fs)
    url = 'dss://%s/t.parquet' % box
    connection.sql('SELECT range AS n FROM range(1000)').write_parquet(url)
    assert connection.sql("SELECT sum(n) FROM read_parquet('%s')"
                          % url).fetchall() == [(499500,)]
    assert fs.info(box + '/t.parquet')['dss']['class_id'] == GOLD


def test_hugging_face_datasets(fs, box, words):
    datasets = library('datasets')
    made = datasets.Dataset.from_dict({'n': list(range(100))})
    url = 'dss://%s/set' % box
    made.save_to_disk(url, storage_options=words)
    assert datasets.load_from_disk(
        url, storage_options=words)['n'][-1] == 99
    made.to_parquet('dss://%s/t.parquet' % box, storage_options=words)
    streamed = datasets.load_dataset(
        'parquet', data_files='dss://%s/t.parquet' % box, split='train',
        storage_options=words, streaming=True)
    assert [row['n'] for row in streamed] == list(range(100))
