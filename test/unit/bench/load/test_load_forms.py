"""Benchmarks of warp and workloads of COSBench, as scenarios."""

from __future__ import annotations

import collections
import json
import math

import pytest

from swift_dss.bench.load import report
from swift_dss.bench.load.objects import Objects
from swift_dss.bench.load.plot import curve
from swift_dss.bench.load.forms.reading import MAX_CHARACTERS, parse
from swift_dss.bench.load.scenario import BadScenario, Scenario, Size
from swift_dss.cli import main
from swift_dss.core.errors import BadClassInput

WARP = '''warp:
  api: v1
  benchmark: mixed
  quiet: true
  remote:
    host: ['10.0.0.1:9000']
    access-key: key
  params:
    duration: 1m30s
    concurrent: 8
    objects: 40
    distribution:
      get: 45.0
      stat: 30
      put: 15.0
      delete: 5
    obj:
      size: 100KiB
      rand-size: false
      part-size:
      class: gold
      ranges: [0-1k-silver]
    autoterm:
      enabled: true
  bench-data: lines
  io:
    md5: true
    disable-sha256-payload: true
  advanced:
    full: true
'''
COSBENCH = '''<?xml version="1.0" encoding="UTF-8" ?>
<workload name="mine">
  <storage type="swift" config="policy=ec" />
  <workflow>
    <workstage name="init">
      <work type="init" workers="1" config="cprefix=ours;containers=r(1,4)"/>
    </workstage>
    <workstage name="prepare">
      <work type="prepare" workers="2"
        config="cprefix=ours;containers=r(1,4);objects=r(1,5);sizes=c(64)KB"/>
    </workstage>
    <workstage name="main">
      <work name="main" workers="8" runtime="30" rampup="5">
        <operation type="read" ratio="70"
          config="cprefix=ours;containers=u(1,4);objects=u(1,5)"/>
        <operation type="write" ratio="20"
          config="containers=u(1,4);objects=u(6,9);sizes=c(64)KB"/>
        <operation type="delete" ratio="10"
          config="containers=u(1,4);objects=u(1,5)"/>
      </work>
    </workstage>
    <workstage name="cleanup">
      <work type="cleanup" config="containers=r(1,4);objects=r(1,9)"/>
    </workstage>
  </workflow>
</workload>
'''
SECOND = '''<workstage name="late">
      <work workers="3" totalOps="50">
        <operation type="write"
          config="containers=u(1,4);objects=u(1,5);sizes=c(64)KB"/>
      </work>
    </workstage>
    <workstage name="cleanup">'''


def test_a_mixed_benchmark_of_warp():
    scenario = parse(WARP, 'x.yml')
    assert scenario.sizes == (Size(
        'object', 102400, 102400, (15, 45, 0, 5, 30), 40, 'gold',
        ('0-1k-silver',)),)
    assert (scenario.users, scenario.seconds, scenario.operations,
            scenario.containers) == (
        8, 90, None, ['warp_000000_default_policy'])
    assert scenario.ignored == ('io.md5',)


@pytest.mark.parametrize('benchmark, weights, initial', [
    ('get', (0, 1, 0, 0, 0), 2500), ('stat', (0, 0, 0, 0, 1), 2500),
    ('put', (1, 0, 0, 0, 0), 0), ('mixed', (15, 45, 0, 10, 30), 2500)])
def test_what_a_benchmark_of_warp_leaves_out_is_as_warp_has_it(
        benchmark, weights, initial):
    scenario = parse('warp:\n  benchmark: %s\n' % benchmark, 'x')
    size, = scenario.sizes
    assert (size.weights, size.initial) == (weights, initial)
    assert (size.size_min, size.size_max) == (10 << 20, 10 << 20)
    assert (scenario.users, scenario.seconds) == (20, 300)


@pytest.mark.parametrize('text, count', [
    ('1B', 1), ('7', 7), ('10KB', 10000), ('10 kib', 10240), ('1.5MiB',
                                                             1572864),
    ('2G', 2 * 10 ** 9)])
def test_sizes_of_warp(text, count):
    scenario = parse(WARP.replace('100KiB', text), 'x')
    assert scenario.sizes[0].size_max == count


def test_random_sizes_are_as_many_in_each_doubling():
    size, = parse(WARP.replace('rand-size: false', 'rand-size: true').replace(
        '100KiB', '1MiB'), 'x').sizes
    assert (size.size_min, size.size_max, size.by_doubling) == (
        4096, 1 << 20, True)
    objects = Objects(Scenario('x', (size._replace(initial=4000),), 1, 1,
                               None), ['c'], 0, 1, '1')
    counts = collections.Counter(
        int(math.log2(objects.begin(target)[1]))
        for target in objects.initial())
    assert sorted(counts) == list(range(12, 20))
    assert all(400 < count < 600 for count in counts.values())
    # Nothing is below one byte.
    least, = parse(WARP.replace('rand-size: false', 'rand-size: true')
                   .replace('100KiB', '1B'), 'x').sizes
    assert (least.size_min, least.size_max) == (1, 1)


@pytest.mark.parametrize('before, after, field, line, reason', [
    ('mixed', 'list', 'warp.benchmark', 3, "'list' is none of get"),
    ('1m30s', '90', 'warp.params.duration', 9, 'no time as 30s'),
    ('1m30s', '0s', 'warp.params.duration', 9, 'no time'),
    ('concurrent: 8', 'concurrent: 0', 'warp.params.concurrent', 10,
     '0 is not in 1 to 10000'),
    ('100KiB', '100KiB,1MiB', 'warp.params.obj.size', 18, 'no single size'),
    ('100KiB', '99999999999GB', 'warp.params.obj.size', 18, 'no single size'),
    ('delete: 5', 'delete: 16', 'warp.params.distribution.delete', 16,
     'more than put'),
    ('get: 45.0', 'get: -1', 'warp.params.distribution.get', 13, 'no share'),
    ('part-size:', 'part-size: 5MiB', 'warp.params.obj.part-size', 20,
     'not made here'),
    ('[0-1k-silver]', '3', 'warp.params.obj.ranges', 22, 'OFFSET-LENGTH'),
    ('class: gold', 'class: [gold]', 'warp.params.obj.class', 21,
     'neither a name'),
    ('  quiet: true', '  quiet: [', '', 6, 'no YAML'),
    ('host: [', 'host: &a [*a, ', '', 6, 'alias')])
def test_errors_in_a_benchmark_of_warp(before, after, field, line, reason):
    assert before in WARP
    with pytest.raises(BadScenario) as caught:
        parse(WARP.replace(before, after), 'x.yml')
    assert (caught.value.field, caught.value.line) == (field, line)
    assert reason in caught.value.reason


def test_a_workload_of_cosbench():
    scenario = parse(COSBENCH, 'x.xml')
    assert scenario.sizes == (Size(
        'object', 64000, 64000, (20, 70, 0, 10, 0), 20),)
    assert (scenario.name, scenario.users, scenario.seconds,
            scenario.operations, scenario.policy) == (
        'mine', 8, 30, None, 'ec')
    assert scenario.containers == ['ours_%06d_ec' % n for n in range(4)]
    assert scenario.ignored == ('work.rampup',)


def test_a_stage_is_chosen_by_name():
    text = COSBENCH.replace('<workstage name="cleanup">', SECOND)
    with pytest.raises(BadScenario, match="--stage.*'main, late'"):
        parse(text, 'x.xml')
    with pytest.raises(BadScenario, match="called 'never'"):
        parse(text, 'x.xml', 'never')
    scenario = parse(text, 'x.xml', 'late')
    # What is there is written over.
    assert scenario.sizes[0].weights == (0, 0, 100, 0, 0)
    assert (scenario.users, scenario.operations, scenario.seconds) == (
        3, 50, None)
    for other in (WARP, '{}'):
        with pytest.raises(BadClassInput, match='--stage'):
            parse(other, 'x', 'late')


@pytest.mark.parametrize('sizes, bounds, initial', [
    ('u(1,9)KB', [(1000, 9000)], [20]),
    ('c(2)MB', [(2000000, 2000000)], [20]),
    ('h(1|4|1,4|16|3)B', [(1, 4), (4, 16)], [5, 15])])
def test_sizes_of_cosbench(sizes, bounds, initial):
    scenario = parse(COSBENCH.replace('c(64)KB', sizes), 'x')
    assert [(size.size_min, size.size_max)
            for size in scenario.sizes] == bounds
    assert [size.initial for size in scenario.sizes] == initial


def test_classes_in_a_workload_of_cosbench():
    scenario = parse(COSBENCH.replace(
        'c(64)KB', 'c(64)KB;class=gold;ranges=0-1k-silver 2k-1k-25'), 'x')
    assert (scenario.sizes[0].class_name, scenario.sizes[0].ranges) == (
        'gold', ('0-1k-silver', '2k-1k-25'))


@pytest.mark.parametrize('before, after, field, line, reason', [
    ('workload', 'job', 'job', 2, 'no <workload>'),
    ('runtime="30" ', '', 'work', 13, 'neither runtime nor totalOps'),
    ('workers="8"', 'workers="x"', 'work.workers', 13, "'x' is not in"),
    ('workers="8" ', '', 'work.workers', 13, 'missing'),
    ('type="delete"', 'type="list"', 'operation.type', 18, "'list' is none"),
    ('ratio="70"', 'ratio="-1"', 'operation.ratio', 14, 'is not in 0'),
    ('u(1,4);objects=u(1,5)"/>\n        <op', 'u(4,1);objects=u(1,5)"/>\n'
     '        <op', 'config.containers', 14, 'no selection as u(1,50)'),
    ('objects=u(6,9)', 'objects=6', 'config.objects', 16, 'no selection'),
    ('c(64)KB', 'c(6,4)KB', 'config.sizes', 9, 'no size as c(64)KB'),
    ('u(6,9);sizes=c(64)KB', 'u(6,9);sizes=c(65)KB', 'config.sizes', 16,
     'another than that of line 9'),
    ('r(1,5)', 'r(1,900000000)', 'config.objects', 9, 'at most'),
    ('c(64)KB', 'h(1|4|1,4||3)KB', 'config.sizes', 9, 'no size as c(64)KB'),
    ('c(64)KB', 'h(1|%s|3)B' % ('9' * 5000), 'config.sizes', 9, 'no size'),
    ('u(6,9)', 'u(6,%s)' % ('9' * 5000), 'config.objects', 16,
     'no selection'),
    ('cprefix=ours;containers=u', 'cprefix=a/b;containers=u',
     'config.cprefix', 14, 'no beginning'),
    ('</work>', '</wrk>', '', 20, 'no XML'),
    ('<workload', '<!DOCTYPE a [<!ENTITY b "c">]><workload', '', 2,
     'defines an entity')])
def test_errors_in_a_workload_of_cosbench(before, after, field, line, reason):
    assert before in COSBENCH
    with pytest.raises(BadScenario) as caught:
        parse(COSBENCH.replace(before, after), 'x.xml')
    assert (caught.value.field, caught.value.line) == (field, line)
    assert reason in caught.value.reason
    assert str(caught.value).startswith('x.xml, line %d' % line)


@pytest.mark.parametrize('text', [
    '', 'x', '<', '{', '<a/>', 'warp: 3', 'warp:\n- benchmark: get',
    'a: 1\nwarp:\n  benchmark: []', '\ufeff<workload/>', '<a>' * 200,
    ' ' * (MAX_CHARACTERS + 1), '\x00', 'warp: !!int x', '"\udc80'])
def test_what_is_no_scenario_is_refused(text):
    with pytest.raises(BadScenario):
        parse(text, 'x')


@pytest.mark.parametrize('name, text, operations', [
    ('x.yml', WARP.replace('100KiB', '2KiB'),
     {'create', 'read', 'head', 'delete'}),
    ('x.xml', COSBENCH.replace('c(64)KB', 'c(2)KB;class=gold'),
     {'create', 'read', 'delete'})])
def test_both_forms_are_run(server, tmp_path, name, text, operations):
    pytest.importorskip('hdrh')
    (tmp_path / name).write_text(text)
    out, lines = tmp_path / 'out.json', tmp_path / 'lines.csv'
    assert main.main([
        'load', str(tmp_path / name), '--auth', server.url + '/auth/v1.0',
        '--user', 'a:b', '--key', 'c', '-o', '120', '--processes', '1',
        '--json', str(out), '--csv', str(lines)]) == 0
    made = json.loads(out.read_text())
    # As warp calls them.
    assert {line.split('\t')[2]
            for line in lines.read_text().splitlines()[1:]} == {
        {'create': 'PUT', 'read': 'GET', 'head': 'STAT',
         'delete': 'DELETE'}[operation] for operation in operations}
    assert {row['operation'] for row in made['rows']} == operations
    assert (made['failures'], made['wrong'], made['operations']) == (
        0, 0, 120)
    assert all(headers['X-DSS-Object-Class'] == '25'
               for method, path, headers in server.asked
               if method == 'PUT' and '/' in path)
    asked = collections.Counter(method for method, _, _ in server.asked)
    assert bool(asked['HEAD']) == ('head' in operations)
    assert server.objects == server.containers == {}


def test_tails_are_drawn_beside_those_of_a_run_before(server, tmp_path):
    pytest.importorskip('hdrh')
    pytest.importorskip('matplotlib')
    scenario = tmp_path / 'x.yml'
    scenario.write_text(WARP.replace('100KiB', '2KiB'))
    words = ['load', str(scenario), '--auth', server.url + '/auth/v1.0',
             '--user', 'a:b', '--key', 'c', '-o', '300', '--processes', '1']
    before, after = str(tmp_path / 'before.json'), str(tmp_path / 'now.json')
    assert main.main([*words, '--json', before]) == 0
    server.delay = lambda method, path: 0.01 * (method == 'GET')
    picture = tmp_path / 'tails.svg'
    assert main.main([*words, '--json', after, '--compare', before,
                      '--plot', str(picture)]) == 0
    drawn = picture.read_text()
    for text in ('create', 'read', 'head', 'delete', 'gold+ranges ssd',
                 'Latencies of warp mixed; broken lines'):
        assert text in drawn
    rows = {row['operation']: row
            for row in report.read(after)['rows']}
    times, shares = curve(rows['read']['hdr'])
    assert times == sorted(times) and times[0] >= 10
    assert shares == sorted(shares, reverse=True) and 0 < shares[-1] < 0.05
    # One request takes the longest.
    assert shares[-1] == pytest.approx(1 / rows['read']['count'])


def test_files_that_cannot_be_written_are_refused_before_the_load(
        server, tmp_path, capsys):
    pytest.importorskip('hdrh')
    pytest.importorskip('matplotlib')
    scenario = tmp_path / 'x.yml'
    scenario.write_text(WARP)
    for option in ('--json', '--csv', '--plot'):
        assert main.main([
            'load', str(scenario), '--storage-url', server.storage_url,
            option, str(tmp_path / 'none' / 'x.png')]) == 78
        assert 'No such file' in capsys.readouterr().err
    assert not server.asked


def test_a_histogram_that_is_none_is_refused(tmp_path):
    pytest.importorskip('hdrh')
    file = tmp_path / 'x.json'
    for text in ('', '!!!!', 'HISTFAAAACd42pJpmSzMwMBgwAABzFAaAAsZAF0='):
        file.write_text(json.dumps({
            'format': 'swift-dss-load', 'version': 1, 'rows': [{
                'class': '-', 'operation': 'read', 'tier': '-', 'count': 1,
                'hdr': text}]}))
        with pytest.raises(report.BadReport, match='no report of'):
            report.read(str(file))
