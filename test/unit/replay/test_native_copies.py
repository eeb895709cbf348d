"""A trace and its native copy give the same figures."""

import json

import pytest

from swift_dss.cli import main
from swift_dss.core.limits import DEFAULT_PART_BYTES
from swift_dss.replay.traces import generators, model, native, readers

MIB = 1 << 20
ARC = ''.join('%d %d 0 %d\n' % (8 * (at * at % 97), 8 + at % 3, at)
              for at in range(400))
CLOUDPHYSICS = 'version,time,op,size,lbn\n' + ''.join(
    '1,%d,%s,%d,%d\n' % (5 + at // 7, ('28', '2a')[at % 5 == 0],
                         4096 + 512 * (at % 3), 8 * (at * at % 61))
    for at in range(300))
MSR = ''.join(
    '%d,h%d,%d,%s,%d,%d,9\n' % (
        10 ** 17 + 10007 * (at ^ 3), at % 2, at % 3,
        ('Read', 'Write')[at % 4 == 0], 4096 * (at * at % 53), 8192)
    for at in range(300))
ADAPTSIZE = ''.join('%d %d %d\n' % (at, at * at % 41, 100 + at % 41)
                    for at in range(300))
FILES = {'x.lis': ARC, 'x.csv': CLOUDPHYSICS, 'm.csv': MSR,
         'x.trace': ADAPTSIZE}


def source_of(name, tmp_path):
    if name.startswith('gen:'):
        return name
    path = tmp_path / name
    path.write_text(FILES[name])
    return str(path)


def report(capsys, *arguments):
    assert main.main(['replay', *arguments, '--json', '-']) == 0
    made = json.loads(capsys.readouterr().out)
    del made['trace']
    for run in made['runs']:
        for timing in [key for key in run if 'seconds' in key
                       or 'a_second' in key]:
            del run[timing]
    return made


@pytest.mark.parametrize('name, options', [
    ('x.lis', ['--rate', '50']), ('x.csv', []), ('x.csv', [
        '--prefetch', 'combined']),
    ('m.csv', ['--classes', 'account']), ('x.trace', []),
    ('gen:chains,requests=1500,clients=3,accounts=2,writes=0.1', [
        '--prefetch', 'graph']),
    ('gen:esi,requests=600,share=0.002,kinds=medium+huge', [
        '--classes', 'account']),
    ('gen:zipf,requests=900,objects=90', ['--classes', 'region:4'])])
def test_a_trace_and_its_copy_give_identical_reports(
        name, options, tmp_path, capsys):
    source, copy = source_of(name, tmp_path), str(tmp_path / 'copy')
    assert main.main(['trace', 'make', source, '-o', copy]) == 0
    first, second = (report(capsys, which, '--cache', '5%,20%', *options)
                     for which in (source, copy))
    assert first == second
    assert any(run['hit_ratio'] > 0 for run in first['runs'])


def test_a_volume_does_not_become_a_whole_object(tmp_path, capsys):
    lines = [b'%d GET v %d %d %d\n' % (at, 1 << 30, 4096 * (at % 4),
                                       4096 * (at % 4) + 4095)
             for at in range(40)]
    path = tmp_path / 'v'
    path.write_bytes(b'# swift-dss trace 2\n# unit 4096\n' + b''.join(lines))
    made = report(capsys, str(path), '--cache', '100%', '--strategy', 'lru')
    row, = made['runs']
    assert row['hit_ratio'] == pytest.approx(36 / 40)
    assert row['get_bytes'] == 4 * 4096
    assert made['footprint_bytes'] == 4 * 4096


@pytest.mark.parametrize('head, part', [
    (b'', DEFAULT_PART_BYTES), (b'# swift-dss trace 1\n', DEFAULT_PART_BYTES),
    (b'# swift-dss trace 2\n# parts 5242880\n', 5 * MIB)])
def test_ranges_of_an_object_fetch_its_parts(head, part, tmp_path, capsys):
    """Ten ranges of 64 KiB of 1 GiB cost ten parts, not ten GiB."""
    path = tmp_path / 'r'
    path.write_bytes(head + b''.join(
        b'%d GET a/o 1073741824 %d %d 25\n' % (
            1000 * at, 100 * MIB * at, 100 * MIB * at + 65535)
        for at in range(10)))
    row, = report(capsys, str(path), '--cache', '200m', '--strategy',
                  'lru')['runs']
    assert (row['gets'], row['get_bytes']) == (10, 10 * part)
    assert row['dollars'] == pytest.approx(
        10 * 0.4e-6 + 10 * part * 0.09 / 1e9, abs=1e-6)


def test_a_long_range_asks_for_each_of_its_parts(tmp_path, capsys):
    path = tmp_path / 'r'
    path.write_bytes(b'0 GET a/o 100000000 0 33554431\n')
    for options in ([], ['--hdd', '1g']):
        row, = report(capsys, str(path), '--cache', '200m', '--strategy',
                      'lru', *options)['runs']
        assert (row['gets'], row['get_bytes']) == (4, 32 * MIB)


def test_whole_objects_stay_whole(tmp_path):
    trace = native.read([b'0 GET a 99999999\n', b'1 GET a 99999999\n'], 't')
    assert trace.unit_bytes == trace.part_bytes == 0


@pytest.mark.parametrize('lines, said', [
    ('# unit 0', "line 2: unit: '0' is not a whole number of 1.."),
    ('# unit', 'line 2: unit: takes one number'),
    ('# parts 5m', "line 2: parts: '5m' is not"),
    ('# ranked 1 1', 'line 2: ranked: names a class twice'),
    ('# ranked 32', "line 2: ranked: '32'"),
    ('# clients\n0 GET a 1', 'line 3: 4 fields, not ms verb'),
    ('# clients\n0 GET a 1 0 0 1 x', "line 3: client: 'x'")])
def test_a_bad_head_is_named(lines, said, tmp_path):
    path = tmp_path / 't'
    path.write_text('# swift-dss trace 2\n%s\n0 GET a 1\n' % lines)
    with pytest.raises(model.BadTrace) as caught:
        readers.read_file(str(path))
    assert said in str(caught.value)


def test_a_newer_version_is_refused_and_an_older_one_has_comments():
    with pytest.raises(model.BadTrace, match='line 1: version 3'):
        native.read([b'# swift-dss trace 3\n', b'0 GET a 1\n'], 't')
    old = native.read([b'# swift-dss trace 1\n', b'# unit of measure\n',
                       b'0 GET a 1\n'], 't')
    assert old.unit_bytes == 0


def test_objects_are_numbered_in_the_order_of_their_times():
    trace = native.read([b'5 GET y/a 1\n', b'3 GET x/b 2\n'], 't', True)
    assert trace.object_names == ['x/b', 'y/a']
    assert trace.account_names == ['x', 'y']
    assert trace.objects.tolist() == trace.accounts.tolist() == [0, 1]
    made = generators.generate('gen:zipf,requests=50,objects=9')
    assert made.objects[0] == 0
