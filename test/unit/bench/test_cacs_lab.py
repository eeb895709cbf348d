"""What CACS in the laboratory is told to do, and what is made of it."""

import dataclasses
import json
import math

import pytest

from swift_dss.bench.lab import cacs_lab, cacs_lab_guest, cacs_lab_plot
from swift_dss.core.errors import BadConfig

PLAN = cacs_lab.Plan(objects=50, reads=80)


def request(label, seconds, count, status=201):
    return {'label': label, 'status': status, 'at': 0.0,
            'seconds': seconds, 'bytes': count}


def counters(reads, written, busy_ms):
    return {'reads': reads, 'read_bytes': 4096 * reads, 'writes': reads,
            'write_bytes': written, 'busy_ms': busy_ms}


def phase(name='upload', slower=1.0):
    looks = [{'disks': {'slow-d1': counters(*at), 'slow-d2': counters(*at),
                        'fast-d1': counters(*at)}}
             for at in ((1, 10, 100), (5, 60, 600), (5, 90, 700))]
    for look, hits in zip(looks, (1, 4, 4)):
        look['caches'] = {name: {'classes': {'11': {'hits': hits}}}
                          for name in ('d1', 'd2')}
    return {'name': name, 'seconds': 2.0 * slower, 'requests': [
        request('files user1', 0.1 * slower, 1000000),
        request('files user1', 0.3 * slower, 3000000),
        request('video user7', 0.5 * slower, 9000000, 503)],
        'before': looks[0], 'after': looks[1], 'settled': looks[2]}


def setups(**slower):
    return [{'setup': name, 'phases': {
        which: cacs_lab.summary(phase(which, factor))
        for which in cacs_lab.PHASES}} for name, factor in slower.items()]


def test_the_caches_have_their_share_of_the_copies():
    total = sum(obj.size for obj in cacs_lab.objects_of(PLAN))
    whole = (cacs_lab.cache_bytes(PLAN) - cacs_lab.METADATA_BYTES) \
        * PLAN.devices
    assert 0.13 < whole / (3 * total) <= 0.14
    assert cacs_lab.cache_bytes(PLAN) % PLAN.chunk_bytes == 0


def test_every_setup_has_the_disks_it_says():
    kinds = {setup: [device.split(':')[0]
                     for device in cacs_lab.devices_of(PLAN, setup)]
             for setup in cacs_lab.SETUPS}
    assert kinds['hdd'] == ['ssd-d%d=hdd' % at for at in (1, 2, 3, 4)]
    assert kinds['ssd'] == ['ssd-d%d=sata-ssd' % at for at in (1, 2, 3, 4)]
    assert kinds['lru'] == kinds['classes']
    assert kinds['lru'][:2] == ['slow-d1=hdd', 'fast-d1=sata-ssd']


def test_all_setups_do_the_same_with_what_is_below():
    jobs = {setup: cacs_lab.job_of(PLAN, setup)
            for setup in cacs_lab.SETUPS}
    assert [jobs[setup].pop('strategy') for setup in (
        'hdd', 'lru', 'classes', 'ssd')] == ['', 'lru', 'strict', '']
    assert jobs['hdd'] == jobs['lru'] == jobs['classes'] == jobs['ssd']
    assert len(jobs['hdd']['reads']) == 80
    assert set(jobs['hdd']['reads']) <= set(range(50))
    json.dumps(jobs)


def test_only_what_was_answered_counts():
    found = cacs_lab.summary(phase())
    assert (found['requests'], found['failures']) == (2, 1)
    assert found['mb_per_second'] == 2.0
    assert found['request_mb_per_second'] == 10.0
    assert found['mean_ms'] == pytest.approx(200.0)
    assert found['classes']['user1']['requests'] == 2
    assert found['classes']['user7']['requests'] == 0
    assert math.isnan(found['classes']['user7']['mean_ms'])
    assert set(found['kinds']) == {'files', 'video'}


def test_crowds_are_judged_each_by_its_own_time():
    told = phase()
    told['requests'].append(request('pictures user2', 1.0, 2000000))
    found = cacs_lab.summary(told, crowds=True)
    assert found['kinds']['pictures']['mb_per_second'] == 2.0
    assert found['kinds']['files']['mb_per_second'] == pytest.approx(4 / 0.3)
    assert found['mb_per_second'] == pytest.approx(2 + 4 / 0.3)


def test_each_kind_gets_a_crowd_only_where_it_was_asked_for():
    objects = cacs_lab.objects_of(PLAN)
    one, = cacs_lab_guest.crowds({'crowds': False}, objects)
    assert one == objects
    found = cacs_lab_guest.crowds({'crowds': True}, objects)
    assert [len({obj.kind for obj in crowd}) for crowd in found] == \
        [1] * len({obj.kind for obj in objects})
    assert sum(map(len, found)) == len(objects)


def test_disks_are_added_up_by_role_and_over_the_phase_alone():
    slow = cacs_lab.summary(phase())['disks']['slow']
    assert (slow['disks'], slow['reads'], slow['write_bytes']) == (2, 8, 100)
    assert slow['busy'] == 0.25
    assert slow['later_write_bytes'] == 60


def test_what_the_caches_counted_before_does_not_count():
    assert cacs_lab.summary(phase())['cache'] == {'11': {'hits': 6}}


def test_goals_are_met_or_missed():
    found = {row['name']: row for row in cacs_lab.goals(
        setups(hdd=9.0, lru=5.2, classes=1.0, ssd=0.9))}
    assert found['upload bandwidth / LRU']['ours'] == pytest.approx(5.2)
    assert found['upload bandwidth / LRU']['met']
    assert found['LRU upload latency / ours']['ours'] == pytest.approx(5.2)
    assert not found['LRU upload latency / ours']['met']
    assert found['upload bandwidth / SSD only']['ours'] == pytest.approx(0.9)


def test_what_was_not_run_has_no_goal():
    names = {row['name'] for row in cacs_lab.goals(
        setups(classes=1.0, ssd=1.0))}
    assert names == {'upload bandwidth / SSD only',
                     'download bandwidth / SSD only'}
    assert cacs_lab.goals(setups(lru=1.0)) == []


def test_report_is_told_counted_and_drawn(tmp_path):
    pytest.importorskip('matplotlib')
    found = cacs_lab.report(PLAN, setups(
        hdd=9.0, lru=3.0, classes=1.0, ssd=0.5))
    assert cacs_lab.failures(found) == 8
    told = cacs_lab.text(found)
    assert 'missed' in told and 'met' in told
    assert sum(line.startswith('classes ') for line in
               told.splitlines()) == 2 + 4
    path = tmp_path / 'plot.png'
    cacs_lab_plot.draw(found, str(path))
    assert path.read_bytes().startswith(b'\x89PNG')


@pytest.mark.parametrize('change, said', [
    ({'setups': ('tape',)}, 'tape'), ({'objects': 0}, '--objects 0'),
    ({'scale': 0.0001}, 'not 1 MiB of SSD'), ({'clients': -1}, '--clients')])
def test_a_plan_that_cannot_be_measured_is_refused(change, said):
    with pytest.raises(BadConfig, match=said):
        cacs_lab.check(dataclasses.replace(PLAN, **change))
