"""Price lists: presets with date and source, and files that are whole."""

import json

import pytest

from swift_dss.cli import main
from swift_dss.core.errors import BadConfig
from swift_dss.replay import latency
from swift_dss.replay.prices import PRESETS, prices

OURS = {'name': 'ours', 'date': '2026-03', 'source': 'contract 4711',
        'ssd_gb_month': 0.03, 'hdd_gb_month': 0.01, 's3_gb_month': 0.021,
        'get_1000': 0.0004, 'put_1000': 0.005, 'gb_out': 0.05, 'gb_in': 0}


@pytest.fixture
def file_of(tmp_path):
    def write(said):
        path = tmp_path / 'prices.json'
        path.write_text(said if isinstance(said, str) else json.dumps(said))
        return str(path)
    return write


@pytest.mark.parametrize('name', PRESETS)
def test_every_preset_says_when_and_whose(name):
    assert prices(name).name == name
    assert prices(name).date == '2025-11'
    assert 'us-east-1' in prices(name).source


def test_the_first_preset_is_what_clouds_cost_without_a_list():
    cloud = prices('aws').of(latency.S3)
    for name in ('get_dollars', 'put_dollars', 'out_dollars', 'in_dollars'):
        assert getattr(cloud, name) == pytest.approx(
            getattr(latency.S3, name)), name


def test_a_file_of_your_own(file_of):
    ours = prices(file_of(OURS))
    assert ours.source == 'contract 4711'
    assert ours.room('ssd', 2e9) == pytest.approx(0.06)
    assert ours.room('s3', 1e9) == pytest.approx(0.021)
    cloud = ours.of(latency.S3_2016)
    assert cloud.get == latency.S3_2016.get
    assert (cloud.get_dollars, cloud.out_dollars) == (
        pytest.approx(4e-7), pytest.approx(5e-11))


@pytest.mark.parametrize('said, text', [
    ('{', 'prices.json: '), ([], 'not an object of name, date'),
    ({**OURS, 'more': 1}, 'not an object of'),
    ({key: OURS[key] for key in OURS if key != 'date'}, 'all of them'),
    ({**OURS, 'source': ' '}, "source: ' ' is not a text"),
    ({**OURS, 'date': 2026}, 'date: 2026 is not a text'),
    ({**OURS, 'gb_out': -1}, 'gb_out: -1 is not a number of at least 0'),
    ({**OURS, 'get_1000': 'free'}, "get_1000: 'free' is not a number"),
    ({**OURS, 'gb_in': True}, 'gb_in: True is not a number')])
def test_a_file_that_is_not_whole_is_refused(file_of, said, text):
    with pytest.raises(BadConfig) as caught:
        prices(file_of(said))
    assert text in str(caught.value)


def trace_file(tmp_path, *lines):
    path = tmp_path / 'x.trace'
    path.write_text('# swift-dss trace 2\n' + '\n'.join(lines) + '\n')
    return str(path)


def month_of(capsys, *arguments):
    assert main.main(['replay', *arguments, '--strategy', 'lru', '--cache',
                      '1g', '--json', '-']) == 0
    report = json.loads(capsys.readouterr().out)
    return report, report['runs'][0]['month']


def test_a_month_is_the_trace_over_and_over_and_its_room(
        file_of, tmp_path, capsys):
    day = trace_file(tmp_path, '0 GET a 2000000000',
                     '86400000 PUT b 500000000')
    report, month = month_of(
        capsys, day, '--prices', file_of(dict(OURS, gb_in=0.02)),
        '--hdd', '10g')
    assert report['prices']['source'] == 'contract 4711'
    assert month == pytest.approx({
        'times': 30, 'requests': 30 * (0.0004 + 0.005) / 1000,
        'bytes': 30 * (2 * 0.05 + 0.5 * 0.02),
        'ssd': (1 << 30) / 1e9 * 0.03, 'hdd': 10 * (1 << 30) / 1e9 * 0.01,
        's3': 2.5 * 0.021, 'total': month['total']}, rel=1e-4)
    assert month['total'] == pytest.approx(sum(
        month[name] for name in ('requests', 'bytes', 'ssd', 'hdd', 's3')))
    # The list goes before the cloud's prices.
    assert report['runs'][0]['dollars'] == pytest.approx(
        0.0000054 + 0.1 + 0.01, rel=1e-4)


def test_without_times_a_month_has_its_room_alone(tmp_path, capsys):
    _, month = month_of(capsys, trace_file(
        tmp_path, '# untimed', '0 GET a 1000', '5 GET b 1000'),
        '--prices', 'aws')
    assert month['requests'] is month['total'] is None
    assert month['ssd'] == pytest.approx(
        (1 << 30) / 1e9 * 0.08, rel=1e-4)


def test_people_see_the_month_with_date_and_source(tmp_path, capsys):
    day = trace_file(tmp_path, '0 GET a 2000000000', '86400000 GET b 5')
    for more in ((), ('--recommend', '--budget', '1g')):
        assert main.main(['replay', day, '--strategy', 'lru', '--prices',
                          'aws-ia', '--cache', '1g', *more]) == 0
        shown = capsys.readouterr().out
        assert ('a month with its room' if more else '30.0 times the trace, '
                'in dollars (aws-ia: AWS list prices') in shown
    assert main.main(['replay', day, '--strategy', 'lru']) == 0
    assert 'A month' not in capsys.readouterr().out
