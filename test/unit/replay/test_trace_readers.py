"""Readers of trace formats: what they read, and what they say is wrong."""

import bz2
import gzip
import lzma
import shutil
import struct
import subprocess

import pytest

from swift_dss.core.errors import BadConfig
from swift_dss.replay.traces import model, native, readers
from swift_dss.replay.traces.model import BadTrace


def put(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


NATIVE = ('# swift-dss trace 1\n'
          '0 REST.PUT.OBJECT acct/a 1000\n'
          '1.5 GET acct/a 1000 100 299\n'
          '2 HEAD acct/a 1000\n'
          '2 get other/b 50 25\n'
          '\n'
          '3 DELETE acct/a 1000 0 999 7\n')


def test_native_lines(tmp_path):
    trace = readers.read_file(put(tmp_path, 't', NATIVE), keep_names=True)
    assert trace.verbs.tolist() == [1, 0, 0, 2]
    assert trace.at_ms.tolist() == [0, 1.5, 2, 3]
    assert trace.starts.tolist() == [0, 100, 0, 0]
    assert trace.lengths.tolist() == [1000, 200, 50, 1000]
    assert trace.class_ids.tolist() == [0, 0, 25, 7]
    assert trace.objects.tolist() == [0, 0, 1, 0]
    assert trace.object_names == ['acct/a', 'other/b']
    assert trace.account_names == ['acct', 'other']
    assert trace.accounts.tolist() == [0, 0, 1, 0]
    assert trace.unit_bytes == 0 and trace.timed


def test_what_is_written_is_what_was_read(tmp_path):
    trace = readers.read_file(put(tmp_path, 't', NATIVE), keep_names=True)
    again = native.read(
        [line.encode() + b'\n' for line in native.lines_of(trace)], 'again',
        keep_names=True)
    for column in ('at_ms', 'verbs', 'objects', 'starts', 'lengths',
                   'sizes', 'class_ids', 'accounts'):
        assert getattr(again, column).tolist() == \
            getattr(trace, column).tolist()
    assert again.object_names == trace.object_names


def test_lines_out_of_order_are_put_in_order(tmp_path):
    trace = readers.read_file(put(
        tmp_path, 't', '5 GET a 1\n3 GET b 2\n4 GET a 1\n'))
    assert trace.at_ms.tolist() == [3, 4, 5]
    assert trace.sizes.tolist() == [2, 1, 1]


@pytest.mark.parametrize('line, said', [
    ('x GET a 1', "line 2: ms: 'x' is not a number of milliseconds"),
    ('-1 GET a 1', 'line 2: ms'),
    ('1 STEAL a 1', "line 2: verb: 'STEAL' is not one of GET"),
    ('1 GET a 1k', "line 2: size: '1k' is not a whole number of 0.."),
    ('1 GET a 9 5 3', 'line 2: end: 3 is before the start, 5'),
    ('1 GET a 9 0 9', 'line 2: end: 9 is not inside the object of 9'),
    ('1 GET a 9 0 8 32', "line 2: class: '32' is not a whole number of "
     '0..31'),
    ('1 GET a 9 -1 8', 'line 2: start'),
    ('1 GET a', 'line 2: 3 fields, not ms verb'),
    ('1 GET a 1 2 3 4 5', 'line 2: 8 fields'),
])
def test_a_bad_native_line_is_named_with_its_field(tmp_path, line, said):
    path = put(tmp_path, 't', '0 GET a 10\n%s\n' % line)
    with pytest.raises(BadTrace) as caught:
        readers.read_file(path)
    assert said in str(caught.value) and str(caught.value).startswith(path)
    assert caught.value.exit_code == 65


def test_arc(tmp_path):
    trace = readers.read_file(put(
        tmp_path, 'p.lis', '110765 64 0 0\n110888 1 0 1\n'))
    assert (trace.starts[0], trace.lengths[0]) == (110765 * 512, 64 * 512)
    assert trace.unit_bytes == 4096 and not trace.timed
    assert trace.sizes[0] == 110889 * 512
    pages = readers.read_file(put(tmp_path, 'o.lis', '1 1 0 0\n2 1 0 1\n'))
    assert pages.unit_bytes == 512
    spaced = model.spread(trace, 100.0)
    assert spaced.at_ms.tolist() == [0, 10]


CLOUDPHYSICS = ('version,time,op,size,lbn\n1,5633898,2a,512,42932745\n'
                '1,5633899,28,6656,40409911\n1,5633899,35,0,0\n')


def test_cloudphysics(tmp_path):
    trace = readers.read_file(put(tmp_path, 'c.csv', CLOUDPHYSICS))
    assert trace.verbs.tolist() == [1, 0]
    assert trace.lengths.tolist() == [512, 6656]
    assert trace.starts.tolist() == [42932745 * 512, 40409911 * 512]
    assert trace.at_ms[1] - trace.at_ms[0] == 1000


def test_msr(tmp_path):
    trace = readers.read_file(put(
        tmp_path, 'm.csv',
        '128166372003061629,hm,1,Read,383496192,32768,413\n'
        '128166372013061629,hm,0,Write,4096,512,10\n'))
    assert trace.verbs.tolist() == [0, 1]
    assert trace.objects.tolist() == [0, 1]
    assert trace.at_ms.tolist() == [0, 1000]
    assert trace.account_names == ['hm']


def test_adaptsize_keeps_an_objects_first_size(tmp_path):
    trace = readers.read_file(put(
        tmp_path, 'a.trace', '1 0 68\n2 1 7454\n3 0 99\n'))
    assert trace.sizes.tolist() == [68, 7454, 68]
    assert trace.unit_bytes == 0 and not trace.timed


def oracle(rows):
    return b''.join(struct.pack('<IQIq', *row) for row in rows)


def test_oracle_general(tmp_path):
    trace = readers.read_file(put(
        tmp_path, 'w.oracleGeneral', oracle(
            [(5, 1 << 40, 100, 2), (6, 7, 200, -2), (6, 1 << 40, 300, -2)])))
    assert trace.objects.tolist() == [0, 1, 0]
    assert trace.sizes.tolist() == [100, 200, 100]
    # Those of one second are spread over it.
    assert trace.at_ms.tolist() == [5000, 6000, 6500]


def test_oracle_general_says_where_it_is_cut_off_or_goes_back(tmp_path):
    whole = oracle([(5, 1, 100, 2), (6, 1, 100, -2)])
    with pytest.raises(BadTrace, match='record 2: cut off after 23 of 24'):
        readers.read_file(put(tmp_path, 'w.oracleGeneral', whole[:-1]))
    with pytest.raises(BadTrace, match='record 2: time: 4 is before'):
        readers.read_file(put(tmp_path, 'x.oracleGeneral', oracle(
            [(5, 1, 100, 2), (4, 1, 100, -2)])))


@pytest.mark.parametrize('name, data, said', [
    ('x.lis', '1 2 3\n', 'line 1: 3 fields, not start_block'),
    ('x.lis', '1 0 0 0\n', "line 1: n_blocks: '0' is not a whole number"),
    ('x.csv', 'version,time,op,size,lbn\n1,2,2a,x,1\n', 'line 2: size'),
    ('x.csv', 'version,time,op,size,lbn\n1,2,zz,1,1\n', 'line 2: op'),
    ('x.csv', '1,hm,0,Steal,1,1,1\n', "line 1: Type: 'Steal'"),
    ('x.csv', '1,hm,0,Read,1,0,1\n', 'line 1: Size'),
    ('x', '1 2 0\n', 'line 1: size'),
    ('x', '', 'no requests in it'),
    ('x', '# nothing\n', 'no requests in it'),
    ('x', 'Lorem ipsum\n', 'line 1:'),
])
def test_a_bad_line_of_any_format_is_named(tmp_path, name, data, said):
    with pytest.raises(BadTrace) as caught:
        readers.read_file(put(tmp_path, name, data))
    assert said in str(caught.value)


def test_packed_traces_are_read_as_streams(tmp_path):
    raw = NATIVE.encode()
    plain = readers.read_file(put(tmp_path, 't', raw))
    packed = [('t.gz', gzip.compress(raw)), ('t.xz', lzma.compress(raw))]
    assert shutil.which('zstd'), 'the tests need the program zstd'
    packed.append(('t.zst', subprocess.run(
        ['zstd', '-qc'], input=raw, stdout=subprocess.PIPE,
        check=True).stdout))
    for name, data in packed:
        trace = readers.read_file(put(tmp_path, name, data))
        assert trace.lengths.tolist() == plain.lengths.tolist()
        with pytest.raises(BadTrace) as caught:
            readers.read_file(put(tmp_path, 'cut' + name, data[:-7]))
        assert 'damaged' in str(caught.value)


def test_what_cannot_be_opened_or_told_is_said(tmp_path):
    with pytest.raises(BadTrace, match='No such file'):
        readers.read_file(str(tmp_path / 'none'))
    with pytest.raises(BadTrace, match='of no format that can be told'):
        readers.read_file(put(tmp_path, 'b', bz2.compress(b'x')))
    with pytest.raises(BadConfig, match='--format: x is not one of auto'):
        readers.read_file(put(tmp_path, 't', NATIVE), 'x')


def test_traces_are_joined_with_accounts_of_their_own(tmp_path):
    trace = readers.read_file(put(tmp_path, 't', NATIVE))
    both = model.joined([trace, trace])
    assert len(both) == 8
    assert sorted(set(both.accounts.tolist())) == [0, 1, 2, 3]
    assert sorted(set(both.objects.tolist())) == [0, 1, 2, 3]
    with pytest.raises(BadConfig, match='cannot be replayed together'):
        model.joined([trace, readers.read_file(put(
            tmp_path, 'p.lis', '1 1 0 0\n'))])
