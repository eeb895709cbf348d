"""Arrow and ORC: a schema is read from hot bytes only."""

from __future__ import annotations

import struct

import pytest
from support.format_files import MIB, Recorder

from swift_dss.client.formats.contract import BadFile

numpy = pytest.importorskip('numpy')
pyarrow = pytest.importorskip('pyarrow')
ipc = pytest.importorskip('pyarrow.ipc')
orc = pytest.importorskip('pyarrow.orc')


@pytest.fixture(scope='module')
def table():
    return pyarrow.table({
        'id': numpy.arange(4 << 20),
        'x': numpy.random.default_rng(5).random(4 << 20)})


@pytest.fixture(scope='module')
def arrow_path(tmp_path_factory, table):
    path = tmp_path_factory.mktemp('a') / 't.arrow'
    words = pyarrow.array(['word-%d' % (number % 100)
                           for number in range(4 << 20)]).dictionary_encode()
    table = table.append_column('word', words)
    with ipc.new_file(str(path), table.schema) as out:
        out.write_table(table, max_chunksize=1 << 18)
    return path


@pytest.fixture(scope='module')
def orc_path(tmp_path_factory, table):
    path = tmp_path_factory.mktemp('o') / 't.orc'
    orc.write_table(pyarrow.concat_tables([table] * 2), str(path),
                    compression='uncompressed', stripe_size=8 * MIB)
    return path


def test_arrow(arrow_path, classify):
    made = classify(arrow_path)
    assert made.format_name == 'arrow' and made.size > 64 * MIB
    assert made.plan.hot_bytes <= 0.02 * made.size
    assert made.plan.left_out == 0
    read = Recorder(arrow_path)
    opened = ipc.open_file(read)
    assert opened.schema.names == ['id', 'x', 'word']
    assert opened.num_record_batches == 16
    assert read.reads and read.cold(made.plan.ranges) == []


def test_orc(orc_path, classify):
    made = classify(orc_path)
    assert made.format_name == 'orc' and made.size > 64 * MIB
    assert made.plan.hot_bytes <= 0.02 * made.size
    assert len(made.plan.ranges) > 3 and made.plan.left_out == 0
    read = Recorder(orc_path)
    assert orc.ORCFile(read).schema.names == ['id', 'x']
    assert read.reads and read.cold(made.plan.ranges) == []


def test_damage_of_arrow_is_named(tmp_path, arrow_path, classify):
    schema = pyarrow.schema([('a', pyarrow.int64())])
    with ipc.new_file(str(tmp_path / 'f'), schema) as out:
        out.write_table(pyarrow.table({'a': [1]}))
    raw = (tmp_path / 'f').read_bytes()
    length, = struct.unpack('<i', raw[-10:-6])
    start = len(raw) - 10 - length
    for damaged, said in (
            (raw[:-10] + struct.pack('<i', -5) + raw[-6:],
             'Arrow footer length at .* is -5'),
            (raw[:start] + b'\xff' * 4 + raw[start + 4:],
             'Arrow footer at .*names a place outside')):
        (tmp_path / 'f').write_bytes(damaged)
        with pytest.raises(BadFile, match=said):
            classify(tmp_path / 'f')


def test_damage_of_orc_is_named(tmp_path, classify):
    orc.write_table(pyarrow.table({'a': [1]}), str(tmp_path / 'f'))
    raw = (tmp_path / 'f').read_bytes()
    (tmp_path / 'f').write_bytes(raw[:-30] + bytes(29) + raw[-1:])
    with pytest.raises(BadFile, match='ORC footer'):
        classify(tmp_path / 'f')
