"""Price lists: presets with date and source, and files that are whole."""

import json

import pytest

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
    assert prices('aws').of(latency.S3) == latency.S3


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
