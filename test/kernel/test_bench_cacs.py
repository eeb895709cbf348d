"""CACS case 1, tiny: the whole path of three set-ups."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from swift_dss.bench.lab import cacs_lab
from swift_dss.wire.settings import classtable

PLAN = cacs_lab.Plan(objects=6, reads=6, scale=0.25, share=0.6, clients=4,
                     stage=60, setups=('classes', 'warm'), jobs=1,
                     timeout=1500.0)
#: Comes faster than the daemon looks, on SSDs that a third of it fills.
FLOOD = replace(PLAN, objects=30, share=0.3, clients=16, setups=('file',))
SAMPLE = pathlib.Path(__file__).parents[2] / 'etc/dss-classes.conf-sample'
#: Ids of the cold copies of each class.
PASSING = classtable.parse(SAMPLE.read_text(), SAMPLE.name).passing
SECTOR, PAGE = 512, 4096


@pytest.fixture(scope='module')
def phases():
    """Of each set-up."""
    report, = cacs_lab.measure_seeds(PLAN, [PLAN.seed], print)
    assert cacs_lab.failures(report) == 0
    return {row['setup']: row['phases'] for row in report['setups']}


def written(phases, class_id):
    """Bytes that came to the caches in the upload, under a class."""
    return SECTOR * phases['upload']['cache'].get(
        str(class_id), {'write_sectors': 0})['write_sectors']


def sizes(unit=1):
    """Of one copy of all objects of each class, in whole units."""
    by_id = {}
    for obj in cacs_lab.objects_of(PLAN):
        by_id[obj.class_id] = by_id.get(obj.class_id, 0) + \
            -(-obj.size // unit) * unit
    return by_id


@pytest.mark.parametrize('setup', PLAN.setups)
def test_all_is_uploaded_and_downloaded(phases, setup):
    upload = phases[setup]['upload']
    assert upload['bytes'] == sum(sizes().values())
    assert upload['requests'] == 6
    assert phases[setup]['download']['requests'] == 6
    assert upload['disks']['fast']['write_bytes'] > 0
    assert upload['mean_ms'] > 0


def test_classes_reach_the_cache_below_swift(phases):
    for class_id, size in sizes().items():
        # Three replicas, all of them under their class.
        assert written(phases['classes'], class_id) >= 3 * size
    assert not any(written(phases['classes'], class_id)
                   for class_id in PASSING.values())


def test_two_of_three_copies_reach_it_under_a_class_of_their_own(phases):
    for class_id, size in sizes(PAGE).items():
        assert size <= written(phases['warm'], class_id) < 2 * size
        assert written(phases['warm'], PASSING[class_id]) >= \
            2 * sizes()[class_id]


def test_a_flood_goes_past_a_full_ssd_to_the_hdd():
    report, = cacs_lab.measure_seeds(FLOOD, [FLOOD.seed], print)
    assert cacs_lab.failures(report) == 0
    upload = report['setups'][0]['phases']['upload']
    written = {kind: disks['write_bytes'] + disks['later_write_bytes']
               for kind, disks in upload['disks'].items()}
    room = FLOOD.devices * (cacs_lab.cache_bytes(FLOOD)
                            - cacs_lab.JOURNAL_BYTES)
    assert written['slow'] >= 3 * upload['bytes'] - room > 0
