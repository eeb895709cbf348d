"""swift-dss pack, unpack, inspect and classes, as a user runs them."""

from __future__ import annotations

import io
import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

from swift_dss.cli import main
from swift_dss.cli.progress import Bar, bytes_text
from swift_dss.client import dssio
from swift_dss.core.errors import BadClassInput
from swift_dss.core.spans import ClassMap, Span

ETC = pathlib.Path(__file__).resolve().parents[3] / 'etc'
TABLE = str(ETC / 'dss-classes.conf-sample')
DATA = bytes(at % 251 for at in range(10000))


@pytest.fixture
def room(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'data').write_bytes(DATA)
    return tmp_path


@pytest.fixture
def run(room, capsys):
    def command(*words):
        code = main.main([str(word) for word in words])
        said = capsys.readouterr()
        return types.SimpleNamespace(code=code, out=said.out, err=said.err)
    return command


@pytest.fixture
def piped(room, monkeypatch):
    """Run with stdin and stdout as pipes; gives (code, bytes out)."""
    def command(raw, *words):
        out = io.TextIOWrapper(io.BytesIO(), write_through=True)
        monkeypatch.setattr(sys, 'stdin', io.TextIOWrapper(io.BytesIO(raw)))
        monkeypatch.setattr(sys, 'stdout', out)
        code = main.main(list(words))
        return code, out.buffer.getvalue()
    return command


def test_pack_and_unpack_are_inverse(run, room):
    assert run('pack', 'data', '-o', 'd.dss', '--class-table', TABLE,
               '--class', 'user4', '--range', '0-4k-gold',
               '--range', '5000-10-26').code == 0
    assert run('unpack', 'd.dss', '-o', 'back', '--classes-out',
               'c.csv').code == 0
    assert (room / 'back').read_bytes() == DATA
    assert (room / 'c.csv').read_text() == (
        'offset,length,class\n0,4096,25\n4096,904,14\n5000,10,26\n'
        '5010,4990,14\n')
    assert run('pack', 'data', '-o', 'e.dss', '--ranges-file', 'c.csv',
               '--class', '14').code == 0
    facts = [json.loads(run('inspect', name, '--json').out)
             for name in ('d.dss', 'e.dss')]
    assert facts[0]['spans'] == facts[1]['spans']
    assert facts[0]['data_bytes'] == len(DATA)


def test_blocks(run, room):
    (room / 'b').write_text('25*2 # two\n gold, 0\n')
    packed = run('pack', 'data', '-o', 'd.dss', '--blocks', 'b',
                 '--block-size', '2560', '--class-table', TABLE)
    assert packed.code == 0, packed.err
    facts = json.loads(run('inspect', 'd.dss', '--json').out)
    assert facts['form'] == 'block' and facts['block_bytes'] == 2560
    assert [(span['length'], span['class']) for span in facts['spans']] == [
        (7680, 25), (2320, 0)]
    assert run('unpack', 'd.dss', '-o', 'back').code == 0
    assert (room / 'back').read_bytes() == DATA


def test_streams(piped, room):
    code, packed = piped(DATA, 'pack', '-', '-o', '-', '--range', '5-5-25')
    assert code == 0
    assert piped(packed, 'unpack', '-', '-o', '-') == (0, DATA)
    code, text = piped(packed, 'inspect', '-', '--json')
    assert json.loads(text)['data_bytes'] == len(DATA)
    code, packed = piped(DATA, 'pack', '-', '-o', '-', '--form', 'block',
                         '--class', '7', '--size', '10000')
    assert code == 0 and packed[2] == 1
    assert piped(packed, 'unpack', '-', '-o', '-') == (0, DATA)


def test_a_stream_of_unknown_size_has_no_block_form(piped, capfd):
    assert piped(DATA, 'pack', '-', '-o', 'x.dss', '--form', 'block')[0] == 2
    assert 'needs the size of the data in advance' in capfd.readouterr().err
    assert not os.path.exists('x.dss')


def test_a_class_section_on_its_own(run, room):
    assert run('pack', 'data', '-o', 's.dss', '--section-only',
               '--range', '0-5-3').code == 0
    facts = json.loads(run('inspect', 's.dss', '--json').out)
    assert facts['section_only'] and facts['data_bytes'] == 0
    assert (room / 's.dss').stat().st_size == facts['section_bytes']


def test_nothing_is_overwritten_without_force(run, room):
    (room / 'd.dss').write_text('mine')
    refused = run('pack', 'data', '-o', 'd.dss')
    assert refused.code == 2 and '--force replaces it' in refused.err
    assert (room / 'd.dss').read_text() == 'mine'
    assert run('pack', 'data', '-o', 'd.dss', '--force').code == 0
    assert run('unpack', 'd.dss', '-o', 'data').code == 2
    assert (room / 'data').read_bytes() == DATA


def test_a_device_is_written_and_not_replaced(run):
    before = os.stat(os.devnull).st_mode
    assert run('pack', 'data', '-o', os.devnull, '--force').code == 0
    assert os.stat(os.devnull).st_mode == before


@pytest.mark.parametrize('damage, said', [
    (lambda raw: raw[:30], ''),
    (lambda raw: raw[:100], 'ends at byte 4096 of 45'),
    (lambda raw: b'PK' + raw[2:], 'd.dss at 0: MAGIC_SIG is 504b')])
def test_a_damaged_file_leaves_nothing_behind(run, room, damage, said):
    run('pack', 'data', '-o', 'd.dss', '--range', '4000-96-3', '--range',
        '0-1-3')
    (room / 'd.dss').write_bytes(damage((room / 'd.dss').read_bytes()))
    names = set(os.listdir())
    for words in (('unpack', 'd.dss', '-o', 'x', '--classes-out', 'x.json'),
                  ('inspect', 'd.dss')):
        failed = run(*words)
        assert failed.code == 2 and said in failed.err
        assert len(failed.err.splitlines()) == 1
    assert set(os.listdir()) == names


@pytest.mark.parametrize('words, code, said', [
    (('pack', 'nope', '-o', 'x'), 74, 'nope: No such file'),
    (('pack', '.', '-o', 'x'), 74, 'Is a directory'),
    (('pack', 'data', '-o', 'no/x'), 74, 'No such file'),
    (('pack', 'data', '-o', 'x', '--class', 'gold', '--class-table',
      os.devnull), 78, 'no [class:<id>] section'),
    (('pack', 'data', '-o', 'x', '--class', '32'), 2, '--class: class id'),
    (('pack', 'data', '-o', 'x', '--range', '5-1'), 2,
     "--range at 1: '5-1' is not OFFSET-LENGTH-CLASS"),
    (('pack', 'data', '-o', 'x', '--range', '0-9-1', '--range', '8-9-2'), 2,
     '--range at 2: range 8-9 overlaps entry 1'),
    (('pack', 'data', '-o', 'x', '--range', '9999-2-1'), 2,
     'the last range ends at byte 10001, past the 10000 bytes'),
    (('pack', 'data', '-o', 'x', '--blocks', 'data'), 2,
     '--blocks: needs --block-size'),
    (('pack', 'data', '-o', 'x', '--blocks', 'data', '--block-size', '4k'),
     2, 'data at '),
    (('pack', 'data', '-o', 'x', '--block-size', '1000'), 2,
     'block size: 1000 is not a multiple of 512'),
    (('pack', 'data', '-o', 'x', '--block-size', 'big'), 2,
     "--block-size: 'big' is not a number of bytes"),
    (('unpack', 'data'), 2, 'needs -o, --classes-out or both'),
    (('unpack', 'data', '--classes-out', 'x'), 2, 'neither in .json nor'),
    (('unpack', 'data', '-o', 'x'), 2, 'data at 0: MAGIC_SIG is 0001'),
    (('classes', 'check', 'data'), 2, 'data at 128: is not UTF-8 text')])
def test_what_goes_wrong_is_one_line_and_an_exit_code(run, words, code,
                                                      said):
    failed = run(*words)
    assert failed.code == code
    assert said in failed.err
    assert len(failed.err.splitlines()) == 1
    assert os.listdir() == ['data']


def test_blocks_must_be_as_many_as_the_data_has(run, room):
    (room / 'b').write_text('1 2')
    failed = run('pack', 'data', '-o', 'x', '--blocks', 'b',
                 '--block-size', '4k')
    assert failed.code == 2
    assert 'b: has 2 classes, but 10000 bytes are 3 blocks' in failed.err


def test_inspect_prints_a_table(run):
    run('pack', 'data', '-o', 'd.dss', '--range', '0-4k-25', '--form',
        'range')
    out = run('inspect', 'd.dss', '--class-table', TABLE).out
    assert 'range form' in out and 'NUM_RANGES      1' in out
    assert out.splitlines()[-2].split() == ['0', '4096', '25', 'gold']
    assert out.splitlines()[-1].split() == [
        '4096', '5904', '0', 'unclassified']


def test_classes_check_and_show(run, room):
    checked = run('classes', 'check', TABLE, '--rules',
                  ETC / 'dss-rules.conf-sample')
    assert checked.code == 0 and '14 classes' in checked.out
    shown = run('classes', 'show', TABLE).out.splitlines()
    assert shown[0].split()[:3] == ['id', 'name', 'rank']
    assert shown[1].split()[1] == 'metadata'
    assert shown[-1].split()[1] == 'unclassified'
    rows = json.loads(run('classes', 'show', '--json', TABLE).out)
    assert [row['name'] for row in rows][1:3] == ['restored', 'gold']
    (room / 'bad.conf').write_text('[class:1]\nname = a\n')
    failed = run('classes', 'check', 'bad.conf')
    assert failed.code == 78
    assert failed.err == (
        'swift-dss classes: bad.conf: [class:1] rank: is missing\n')


def test_a_source_that_changes_its_size_is_noticed():
    for said, size in ((5, 6), (7, 6)):
        with pytest.raises(BadClassInput, match='changed its size'):
            dssio.pack(io.BytesIO(bytes(said)), io.BytesIO(),
                       ClassMap.uniform(1), size)


def test_a_file_that_appeared_meanwhile_is_not_replaced(room):
    with pytest.raises(BadClassInput, match='is there already'):
        with dssio.whole_file('out', force=False) as target:
            target.write(b'ours')
            (room / 'out').write_text('theirs')
    assert (room / 'out').read_text() == 'theirs'
    assert sorted(os.listdir()) == ['data', 'out']


def test_memory_does_not_grow_with_the_object():
    import tracemalloc

    class Zeros(io.RawIOBase):
        left = 64 << 20

        def read(self, size=-1):
            size = min(size, self.left)
            self.left -= size
            return bytes(size)

    class Sink(io.RawIOBase):
        def write(self, chunk):
            return len(chunk)

    tracemalloc.start()
    try:
        dssio.pack(Zeros(), Sink(), ClassMap((Span(0, 5, 1),), 0), 64 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_drawn_on_terminals_only(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr('time.monotonic', lambda: clock[0])
    for stream, drawn in ((Terminal(), True), (io.StringIO(), False)):
        clock[0] = 0.0
        bar = Bar('pack', 100, stream)
        bar(10)
        assert stream.getvalue() == ''
        clock[0] = 2.0
        bar(50)
        assert ('50%' in stream.getvalue()) is drawn
        bar.close()
        assert stream.getvalue().endswith('\r\x1b[K') is drawn


def test_sizes_in_words():
    assert [bytes_text(count) for count in (0, 1023, 1024, 1536 << 20)] == [
        '0 B', '1023 B', '1.0 KiB', '1.5 GiB']


def test_a_reader_that_goes_away_is_no_error(room):
    (room / 'big').write_bytes(bytes(4 << 20))
    done = subprocess.run(
        '%s -m swift_dss.cli.main pack big -o - | head -c 5 > /dev/null; '
        'exit ${PIPESTATUS[0]}' % sys.executable, shell=True,
        executable='/bin/bash', stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0
    assert b'Traceback' not in done.stderr
