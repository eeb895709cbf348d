"""Bad input of a replay: the error names field, position and reason."""

import pytest

from swift_dss.cli import main

GEN = 'gen:cacs,requests=300,objects=60'
HUGE = '9' * 20


@pytest.mark.parametrize('options, said', [
    (['--metadata', '-5'], '--metadata: -5 is not at least 0'),
    (['--jobs', '0'], '--jobs: 0 is not at least 1'),
    (['--jobs', '-2'], '--jobs: -2 is not at least 1'),
    (['--seed', '-1'], '--seed: -1 is not at least 0'),
    (['--upload-seconds', '-5'], '--upload-seconds: -5 is not a number'),
    (['--upload-seconds', 'nan'], '--upload-seconds: nan is not a number'),
    (['--upload-seconds', 'inf'], '--upload-seconds: inf is not a number'),
    (['--rate', '-1'], '--rate: -1 is not above 0'),
    (['--rate', 'nan'], '--rate: nan is not above 0'),
    (['--limit', '-3'], '--limit: -3 is not at least 1'),
    (['--hdd', '5%,6%'], '--hdd: 5%,6%: takes one size, not 2'),
    (['--hdd', '-1'], "--hdd: '-1' is not a number of bytes"),
    (['--hdd', '0'], "--hdd: '0' is not a number of bytes"),
    (['--recommend', '--budget', '5%,6%'], '--budget: 5%,6%: takes one'),
    (['--cache=-1%'], "--cache: '-1%' is not a share"),
    (['--cache', 'nan%'], "--cache: 'nan%' is not a share"),
    (['--cache', '1%,'], "--cache: '' is not a number of bytes"),
    (['--unit', '-1'], "--unit: '-1' is not a number of bytes"),
    (['--prefetch-bytes', '0'], "--prefetch-bytes: '0' is not"),
    (['--prefetch', 'psychic'], '--prefetch: psychic is not one of'),
    (['--classes', 'size:'], "--classes: '' is not a number of bytes"),
    (['--classes', 'region:99'], "region: '99' is not a whole number"),
    (['--classes', 'rules:/nowhere'], '--classes: /nowhere: No such file'),
    (['--table', '/nowhere'], '--table: /nowhere: No such file'),
    (['--floors', '9=nan'], "--floors: '9=nan' is not CLASS=SHARE"),
    (['--recommend', '--cost', 'dollars'], '--cost: no daemon weighs'),
    (['--admit', 'all,second:0'], "--admit: 'second:0' is not all"),
    (['--weights', '9=-1'], "--weights: '9=-1' is not CLASS=W"),
    (['--cloud', '/nowhere'], '--cloud: /nowhere is none of'),
    (['--recommend', '--goal', 'p99:none'], "no request of the trace has"),
    (['--json', '/nowhere/x.json'], '/nowhere/x.json: No such file'),
])
def test_a_bad_option_is_named(options, said, capsys):
    assert main.main(['replay', GEN, *options]) in (65, 78)
    error = capsys.readouterr().err
    assert said in error and error.count('\n') == 1


def test_json_that_cannot_be_written_is_said_before_the_trace_is_read(
        capsys):
    assert main.main(['replay', '/no-trace', '--json', '/nowhere/x']) == 78
    assert '/nowhere/x' in capsys.readouterr().err


def test_a_format_that_is_none_is_named(capsys):
    assert main.main(['replay', '/no-trace', '--format', 'tarot']) == 78
    assert '--format: tarot is not one of auto' in capsys.readouterr().err


@pytest.mark.parametrize('name, line, said', [
    ('x.lis', '0 1000000000 0 0', 'n_blocks: 1000000000 is more than 2097152'),
    ('x.lis', '%s 1 0 0' % HUGE, 'start_block: %s is more than' % HUGE),
    ('x.lis', '99999999999999 1 0 0', 'start_block: 99999999999999 is more'),
    ('x.lis', '-1 1 0 0', "start_block: '-1' is not a whole number"),
    ('x.csv', '1,5,28,2000000000,1', 'size: 2000000000 is more than'),
    ('x.csv', '1,5,28,512,%s' % HUGE, 'lbn: %s is more than' % HUGE),
    ('x.csv', '1,%s,28,512,1' % HUGE, 'time: %s is more than' % HUGE),
    ('m.csv', '1,h,0,Read,%s,1,1' % HUGE, 'Offset: %s is more' % HUGE),
    ('m.csv', '1,h,0,Read,1,2000000000,1', 'Size: 2000000000 is more'),
    ('m.csv', '1,h,x,Read,1,1,1', "DiskNumber: 'x' is not a whole number"),
    ('a.txt', '1 1 %s' % HUGE, 'size: %s is more than' % HUGE),
    ('n.txt', '1 GET a %s' % HUGE, "size: '%s' is not a whole" % HUGE),
    ('n.txt', 'nan GET a 1', "ms: 'nan' is not a number"),
    ('n.txt', '1 GET a 9 0 9', 'end: 9 is not inside the object'),
])
def test_a_bad_line_is_named(name, line, said, tmp_path, capsys):
    path = tmp_path / name
    path.write_text(line + '\n')
    assert main.main(['replay', str(path), '--format', {
        'x.lis': 'arc', 'x.csv': 'cloudphysics', 'm.csv': 'msr',
        'a.txt': 'adaptsize', 'n.txt': 'native'}[name]]) == 65
    error = capsys.readouterr().err
    assert '%s: line 1: %s' % (path, said) in error


def test_more_accesses_than_memory_holds_are_refused_beforehand(capsys):
    """One read of 8 GiB, in units of a byte."""
    assert main.main(['replay', 'gen:zipf,requests=1,objects=1,size=%d'
                      % (8 << 30), '--unit', '1']) == 78
    error = capsys.readouterr().err
    assert 'accesses of units of 1 byte' in error
    assert 'say a larger --unit, or --limit' in error
    assert error.count('\n') == 1
