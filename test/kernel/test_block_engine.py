"""Swift's object server on XFS over dm-dss: engine ``block``."""

from __future__ import annotations

import guests
import pytest

DEVICES = ('ssd=sata-ssd:128M', 'hdd=hdd:512M')
SIZE = 256 * 1024


@pytest.fixture(scope='module')
def said():
    """What each step of ``block_engine.py`` gave in a guest."""
    return guests.found('block_engine.py', devices=DEVICES, memory='1500M',
                        timeout=1800)


def moved(said, since, until, class_id, name):
    """How far a counter of the kernel went."""
    none = {name: 0}
    return said[until].get(class_id, none)[name] - said[since].get(
        class_id, none)[name]


def test_requests_are_served(said):
    assert said['put'] == {'5': 201, '2': 201}
    assert said['get'] == {'5': [200, True, 'block'],
                           '2': [200, True, 'block']}
    assert said['head'] == 'block'


@pytest.mark.parametrize('class_id', ['5', '2'])
def test_data_reaches_the_kernel_with_its_class(said, class_id):
    assert moved(said, 'before', 'after_put', class_id,
                 'written_bytes') >= SIZE
    assert moved(said, 'after_put', 'after_get', class_id,
                 'read_bytes') >= SIZE


def test_kernel_places_by_class(said):
    assert moved(said, 'before', 'after_put', '5', 'bytes') >= SIZE
    assert moved(said, 'after_put', 'after_get', '5', 'read_hits') > 0
    # Where a file begins or ends, a chunk has other bytes too, and may be
    # on the SSD for their sake.
    assert said['after_get']['2']['bytes'] <= 2 * 65536 < SIZE
    assert said['after_get']['2']['bypasses']['never'] > 0


def test_metadata_of_the_file_system_has_its_own_class(said):
    assert moved(said, 'before', 'after_get', '1', 'written_bytes') > 0


def test_daemon_shows_the_kernels_counters(said):
    device, = said['status']['devices']
    assert (device['engine'], device['hdd_state'], device['ssd_state']) == \
        ('block', 'none', 'ready')
    assert device['block']['name'] == 'fast'
    assert device['block']['classes']['5']['written_bytes'] >= SIZE
    # All local bytes are the file system's; none went to a capacity tier.
    assert device['totals']['ssd'] == 2 * SIZE
    assert device['totals']['hdd'] == 0
    code, out, err = said['tier_status']
    assert (code, 'fast, by class' in out) == (0, True), err
    assert 'swift_dss_block_class_written_bytes{class="five",device="sda"}' \
        in said['page']


def test_changed_class_table_reaches_the_kernel_whole(said):
    rows = said['rows_of_bad_file'].split()
    assert '7,57,always,back,0,65536,1,0,-,65536' in rows
    changed = said['rows'].split()
    assert '7,59,always,back,0,65536,1,0,-,65536' in changed
    assert len(changed) == len(rows)
    # Each class of the table, and the cold copies of those that have some.
    assert [row.split(',')[-2] for row in changed].count('passing') == \
        len(changed) - 8 == 5


def test_daemon_does_not_do_the_kernels_work(said):
    code, _out, err = said['demote']
    assert (code, 'the kernel moves its bytes' in err) == (1, True), err


def test_check_finds_the_cache_of_a_device_and_misses_it(said):
    code, findings = said['check']
    assert (code, [finding['text'] for finding in findings
                   if finding['about'] == 'dm-dss']) == (0, ['sda is on fast'])
    code, findings = said['check_without']
    missed, = (finding for finding in findings
               if finding['about'] == 'dm-dss')
    assert (code, missed['level'], missed['text']) == (
        78, 'error', 'no dm-dss device is under /run/node/devices/sda')
    assert 'swift-dss block attach' in missed['instead']


def test_all_bytes_are_on_the_hdd_in_the_end(said):
    code, _out, err = said['remove']
    assert code == 0, err
    assert said['on_origin'] == {'5': True, '2': True}
