"""Raw traces of page numbers, four bytes each."""

import json
import struct

import pytest

from swift_dss.cli import main
from swift_dss.replay.traces import readers
from swift_dss.replay.traces.model import BadTrace


@pytest.fixture
def file_of(tmp_path):
    def write(*numbers, tail=b'', name='x.int32'):
        path = tmp_path / name
        path.write_bytes(struct.pack('<%di' % len(numbers), *numbers) + tail)
        return str(path)
    return write


def test_each_number_is_a_page_that_is_read(file_of):
    trace = readers.read_file(file_of(7, 3, 7, 2147483647))
    assert trace.starts.tolist() == [
        number * 4096 for number in (7, 3, 7, 2147483647)]
    assert set(trace.lengths.tolist()) == {4096}
    assert set(trace.sizes.tolist()) == {2147483648 * 4096}
    assert trace.unit_bytes == 4096 and not trace.timed
    assert set(trace.verbs.tolist()) == {0}


def test_it_is_replayed_and_its_copy_too(file_of, tmp_path, capsys):
    source = file_of(1, 2, 1, 3, 1, 2, name='ids.bytes')
    copy = str(tmp_path / 'copy')
    assert main.main(['trace', 'make', source, '--format', 'int32',
                      '-o', copy]) == 0
    capsys.readouterr()
    hits = []
    for arguments in ([source, '--format', 'int32'], [copy]):
        assert main.main(['replay', *arguments, '--strategy', 'lru',
                          '--cache', '8k', '--json', '-']) == 0
        run, = json.loads(capsys.readouterr().out)['runs']
        hits.append(run['hit_ratio'])
    assert hits[0] == hits[1] == pytest.approx(2 / 6, rel=1e-4)


@pytest.mark.parametrize('numbers, tail, said', [
    ((1, 2), b'abc', 'record 3: cut off after 3 of 4 bytes'),
    ((1, -2), b'', 'record 2: id: -2 is less than 0'),
    ((), b'', 'no requests in it')])
def test_a_bad_record_is_named(file_of, numbers, tail, said):
    with pytest.raises(BadTrace) as caught:
        readers.read_file(file_of(*numbers, tail=tail))
    assert said in str(caught.value)
