"""Parquet: a schema is read from hot bytes only."""

from __future__ import annotations

import struct

import pytest
from support.format_files import MIB, Recorder

from swift_dss.client.formats.contract import BadFile, Wish
from swift_dss.core.errors import BadClassInput

numpy = pytest.importorskip('numpy')
pyarrow = pytest.importorskip('pyarrow')
parquet = pytest.importorskip('pyarrow.parquet')


@pytest.fixture(scope='module')
def path(tmp_path_factory):
    """80 MiB in 10 row groups, with page indexes."""
    made = tmp_path_factory.mktemp('p') / 't.parquet'
    noise = numpy.random.default_rng(5)
    table = pyarrow.table({
        'id': numpy.arange(1 << 20), 'x': noise.random(1 << 20),
        'deep': pyarrow.array([[number] for number in range(1 << 20)])})
    table = pyarrow.concat_tables([table] * 4)
    parquet.write_table(table, made, row_group_size=1 << 19,
                        compression='none', use_dictionary=False,
                        write_page_index=True)
    return made


def test_opening_reads_hot_bytes_only(path, classify):
    made = classify(path)
    assert made.format_name == 'parquet' and made.size > 64 * MIB
    assert made.plan.hot_bytes <= 0.02 * made.size
    for opening in (parquet.read_schema, parquet.read_metadata):
        read = Recorder(path)
        assert opening(read)
        assert read.reads and read.cold(made.plan.ranges) == []


def test_chosen_columns_are_hot(path, classify):
    for names, columns in ((('x',), ['x']), (('deep', 'id'), ['deep', 'id'])):
        made = classify(path, wish=Wish(names))
        read = Recorder(path)
        parquet.ParquetFile(read).read(columns=columns)
        assert read.cold(made.plan.ranges) == []
        assert made.plan.hot_bytes < 0.75 * made.size
    # Of the others the values are cold.
    read = Recorder(path)
    parquet.ParquetFile(read).read(columns=['x'])
    assert read.cold(made.plan.ranges)


def test_a_column_that_is_not_there(path, classify):
    with pytest.raises(BadClassInput, match="--columns.*no column 'y'"):
        classify(path, wish=Wish(('y',)))


def test_page_indexes_are_hot(path, classify):
    made = classify(path)
    last = max(column.data_page_offset + column.total_compressed_size
               for group in range(8) for column in [
                   parquet.read_metadata(path).row_group(group).column(at)
                   for at in range(3)])
    assert any(start <= last and start + length == made.size
               for start, length in made.plan.ranges)


def test_a_footer_of_a_megabyte(tmp_path, classify):
    table = pyarrow.table({'column-%d' % number: [1]
                           for number in range(8000)})
    parquet.write_table(table, tmp_path / 't')
    made = classify(tmp_path / 't')
    read = Recorder(tmp_path / 't')
    assert len(parquet.read_schema(read)) == 8000
    assert read.cold(made.plan.ranges) == []


@pytest.mark.parametrize('change, said', [
    (lambda raw: raw[:-8] + struct.pack('<I', len(raw)) + b'PAR1',
     'Parquet footer length at .* is .* in a file of'),
    (lambda raw: raw[:-300] + bytes(292) + raw[-8:], 'Parquet footer at'),
    (lambda raw: raw[:-8] + bytes(4) + b'PAR1', 'Parquet footer at')])
def test_damage_is_named(tmp_path, classify, change, said):
    parquet.write_table(pyarrow.table({'a': [1]}), tmp_path / 't')
    (tmp_path / 't').write_bytes(change((tmp_path / 't').read_bytes()))
    with pytest.raises(BadFile, match=said):
        classify(tmp_path / 't', 'parquet')
