"""Samples of native traces that are read as streams."""

import io
import json

import pytest

from swift_dss.cli import main
from swift_dss.replay.traces import (
    generators, native, readers, sampling, streaming)
from swift_dss.replay.traces.model import BadTrace, numpy

if not native.HAS_SLICES:
    pytest.skip('lines.c was not compiled: no compiler, or no Python.h',
                allow_module_level=True)
np = numpy()
HEAD = b'# swift-dss trace 2\n'
#: As most lines are, and as few are.
ODD = HEAD + '''# ranked 3 1
# parts 65536
0 GET a/x 100

1.25 GET b 100 7
2 PUT a/x 90 10 19
# a word
3\tDELETE a/x 90
3 get c 0
4 GET \N{SNOWMAN}/x 5 0 4 2
4 HEAD b 100
4 REST.GET.OBJECT b 100
1e1 GET b 100 0 99 31
11. GET %s 12345678901234 5 12345678901233 1
12 GET b 100'''.replace('%s', 'long' * 90).encode()


class Dribble(io.BytesIO):
    """A stream that gives some bytes at a time."""

    def read(self, size=-1):
        return super().read(min(size, 41) if size > 0 else 41)


def joined(stream):
    parts = list(native.slices(stream, 'here'))
    return parts[-1][0], {
        name: np.concatenate([rows[name] for _, rows in parts])
        for name in parts[0][1]}


@pytest.mark.parametrize('stream', [io.BytesIO, Dribble])
def test_slices_have_the_columns_of_the_whole(stream):
    whole = native.read(io.BytesIO(ODD), 'odd', keep_names=True)
    meaning, rows = joined(stream(ODD))
    assert (meaning.ranked, meaning.part_bytes) == ([3, 1], 65536)
    for name in ('at_ms', 'verbs', 'starts', 'lengths', 'sizes', 'class_ids'):
        assert rows[name].tolist() == getattr(whole, name).tolist(), name
    # Names are alike where their hashes are.
    for numbers, hashes in ((whole.objects, rows['objects']),
                            (whole.accounts, rows['accounts'])):
        pairs = set(zip(numbers.tolist(), hashes.tolist()))
        assert len(pairs) == len(set(numbers.tolist())) == \
            len(set(hashes.tolist()))


def test_slices_know_clients():
    text = HEAD + b'# clients\n0 GET a 9 0 8 1 7\n1 get a 9 0 8 1 6\n'
    assert joined(io.BytesIO(text))[1]['clients'].tolist() == [7, 6]


@pytest.mark.parametrize('line', [
    b'0 GET a', b'x GET a 1', b'-1 GET a 1', b'1e99 GET a 1', b'0 GOT a 1',
    b'0 GET a -1', b'0 GET a 99999999999999999999', b'0 GET a 5 3 2',
    b'0 GET a 5 0 5', b'0 GET a 5 32', b'0 GET \xff 5', b'0 GET a 5 0 4 1 1',
    b'0 GET a 5 0 4 1 1 1', b'0.0.0 GET a 5', b'. GET a 5', b'0 GET a 1x',
    b'0 GET a 5 99999999999999 99999999999999'])
def test_a_line_that_cannot_be_read_is_named_as_ever(line):
    text = HEAD + b'0 GET b 7\n' * 3 + line + b'\n0 GET b 7\n'
    with pytest.raises(BadTrace) as whole:
        native.read(io.BytesIO(text), 'here')
    with pytest.raises(BadTrace) as sliced:
        joined(Dribble(text))
    assert str(sliced.value) == str(whole.value)
    assert 'line 5' in str(whole.value)


def replayed(capsys, *options):
    assert main.main(['replay', *options, '--json', '-', '--cache', '9%',
                      '--strategy', 'lru,class']) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope='module')
def path(tmp_path_factory):
    target = tmp_path_factory.mktemp('traces') / 'zipf.trace'
    trace = generators.generate(
        'gen:zipf,requests=30000,objects=6000,sigma=1,writes=0.05')
    target.write_text('\n'.join(native.lines_of(trace)))
    return str(target)


@pytest.mark.parametrize('options', [
    [], ['--limit', '12345'], ['--classes', 'size:32k,64k'],
    ['--classes', 'none'], ['--format', 'native', '--write', 'around']])
def test_a_streamed_sample_of_all_gives_the_figures_of_the_whole(
        path, options, capsys):
    whole = replayed(capsys, path, *options)
    sample = replayed(capsys, path, '--sample', '1', *options)
    assert sample['sample']['share'] == 1
    for name in ('requests', 'asked_bytes', 'footprint_bytes', 'classes'):
        assert sample[name] == whole[name], name
    for row, other in zip(sample['runs'], whole['runs']):
        for name in ('reads', 'hit_ratio', 'byte_hit_ratio'):
            assert row[name] == pytest.approx(other[name]), name
            for class_id in row['classes']:
                assert row['classes'][class_id][name] == pytest.approx(
                    other['classes'][class_id][name])
        assert (row['gets'], row['puts']) == (other['gets'], other['puts'])


def test_a_sample_that_chooses_its_share_keeps_few_of_a_long_trace(
        path, monkeypatch):
    monkeypatch.setattr(sampling, 'AUTO_REQUESTS', 2000)
    monkeypatch.setattr(sampling, 'AUTO_OBJECTS', 300)
    thinner = sampling.Thinner(0)
    kept = []
    trace = readers.read_file(path)
    for begin in range(0, len(trace), 1000):
        thinner.take({name: getattr(trace, name)[begin:begin + 1000]
                      for name in sampling.COLUMNS})
        kept.append(thinner.kept)
    columns, sample = thinner.sample()
    # Of 30,000.
    assert max(kept) < 12000
    assert sample.share == pytest.approx(300 / len(
        np.unique(trace.objects)), rel=0.1)
    assert len(np.unique(columns['objects'])) == pytest.approx(300, rel=0.1)
    assert sample.requests == 30000
    assert sample.moved_bytes == int(trace.lengths.sum())
    # The objects of a sample that knew its share from the start.
    again = sampling.thinned(trace, sample.share)[0]
    assert again.objects.tolist() == columns['objects'].tolist()


def test_requests_out_of_order_are_put_in_order(tmp_path):
    path = tmp_path / 'mixed.trace'
    path.write_bytes(HEAD + b'9 GET a 5 1\n3 GET b 6 2\n8 GET a 5 1\n')
    trace, sample = streaming.sampled(str(path), 1.0, 1, 1000.0,
                                      lambda rows: rows)
    assert trace.at_ms.tolist() == [3, 8, 9]
    assert trace.objects.tolist() == [0, 1, 1]
    assert sample.groups[1] == sample.groups[2]


def test_one_without_times_has_those_of_the_rate(tmp_path):
    path = tmp_path / 'untimed.trace'
    path.write_bytes(HEAD + b'# untimed\n' + b'9 GET a 5 1\n' * 3)
    trace, _ = streaming.sampled(str(path), 1.0, 1, 500.0,
                                 lambda rows: rows)
    assert trace.at_ms.tolist() == [0, 2, 4] and not trace.timed


@pytest.mark.parametrize('text, said', [
    (HEAD, 'no requests in it'),
    (HEAD + b'#' * 9000 + b'\n# unit 512\n0 GET a 512\n',
     'unit: stands behind too many other lines')])
def test_a_stream_that_is_no_sample_is_refused(tmp_path, text, said):
    path = tmp_path / 'bad.trace'
    path.write_bytes(text)
    with pytest.raises(BadTrace, match=said):
        streaming.sampled(str(path), 1.0, 1, 1000.0, lambda rows: rows)


@pytest.mark.parametrize('text', [
    HEAD + b'# unit 512\n0 GET a 512\n', b'0 GET a 512\n', b'1 a 512\n'])
def test_all_else_is_read_as_a_whole(tmp_path, text):
    path = tmp_path / 'other.trace'
    path.write_bytes(text)
    assert streaming.sampled(str(path), 1.0, 1, 1000.0,
                             lambda rows: rows) is None
