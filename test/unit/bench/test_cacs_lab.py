"""What CACS in the laboratory is told to do, and what is made of it."""

import dataclasses
import json
import math

import pytest

from swift_dss.bench.lab import (
    cacs_bound, cacs_lab, cacs_lab_figures, cacs_lab_guest, cacs_lab_plot,
    cacs_lab_text, cacs_rows)
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
        which: cacs_lab_figures.summary(phase(which, factor))
        for which in cacs_lab.PHASES}} for name, factor in slower.items()]


def test_bound_is_the_bytes_and_the_ways_that_no_ssd_spares_the_hdds():
    objects = [dataclasses.replace(obj, size=1000000, class_name='user%d' % (
        1 + at % 2)) for at, obj in enumerate(cacs_lab.objects_of(PLAN)[:4])]
    # Of 12 copies of 1 MB the SSDs take 3, and 4 HDDs the others: 9 MB at
    # 175 MB/s of each, and 9 ways of 9.5 ms and half a turn.
    bound = cacs_bound.upload(objects, 3, 3000000, 4, 'hdd')
    assert (bound.copies, bound.hdd_bytes) == (9, 9000000)
    assert bound.streaming == pytest.approx(4 / (9 / 175 / 4))
    assert bound.seeking == pytest.approx(
        4 / (9 / 175 / 4 + 9 / 4 * (9.5 + 8.333333 / 2) / 1000), rel=1e-4)
    # One copy of each of 3 is warm: the last of the lower class is not.
    bound = cacs_bound.download(objects, [0, 3, 3, 1], 3000000, 4, 'hdd')
    assert (bound.copies, bound.hdd_bytes) == (2, 2000000)
    assert bound.seeking == pytest.approx(
        4 / (2 / 175 / 4 + 2 / 4 * (8.5 + 8.333333 / 2) / 1000), rel=1e-4)


def test_bound_of_another_disk_follows_its_parameters():
    objects = cacs_lab.objects_of(PLAN)
    slow, fast = (cacs_bound.upload(objects, 3, 0, 4, preset).streaming
                  for preset in ('hdd', 'hdd,outer_rate=350000000'))
    assert fast == pytest.approx(2 * slow)


def test_seeds_are_told_by_median_and_extremes():
    reports = [cacs_lab.report(dataclasses.replace(PLAN, seed=seed), setups(
        classes=slower, ssd=0.5)) for seed, slower in (
            (1, 1.0), (2, 0.5), (3, 2.0))]
    rows = {(row['phase'], row['setup']): row['values']
            for row in cacs_rows.spread(reports)}
    assert rows['upload', 'classes']['mb_per_second'] == [2.0, 4.0, 1.0]
    assert rows['upload', 'classes']['of_ssd'] == [0.5, 1.0, 0.25]
    told = cacs_rows.text(reports)
    assert '2.0 (1.0 - 4.0)' in told and '50 (25 - 100)' in told
    assert told.count('bound of the HDDs in upload') == 3


@pytest.mark.parametrize('row', cacs_rows.ROWS)
def test_every_row_can_be_measured(row):
    plan = cacs_lab.Plan(**cacs_rows.ROWS[row])
    cacs_lab.check(plan)
    for setup in plan.setups:
        assert cacs_lab.devices_of(plan, setup)


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
    assert kinds['scattered'] == kinds['hdd']
    assert kinds['ssd'] == ['ssd-d%d=sata-ssd' % at for at in (1, 2, 3, 4)]
    assert kinds['lru'] == kinds['classes'] == kinds['bcache']
    assert kinds['lru'][:2] == ['slow-d1=hdd', 'fast-d1=sata-ssd']


def test_all_setups_do_the_same_with_what_is_below():
    jobs = {setup: cacs_lab.job_of(PLAN, setup)
            for setup in cacs_lab.SETUPS}
    assert [jobs[setup].pop('strategy') for setup in (
        'scattered', 'hdd', 'lru', 'classes', 'ssd')] == [
            '', '', 'lru', 'strict', '']
    for setup in cacs_lab.THIRD_PARTIES:
        third = jobs.pop(setup)
        assert third.pop('target') == setup
        assert third.pop('strategy') == ''
        # Beside its cache dm-cache has its metadata.
        # Its journal is as large on sectors of 4 KiB; the SSD has room for it.
        more = third.pop('journal_bytes') - jobs['hdd']['journal_bytes']
        assert (more > 0) is (setup == 'dm-writecache')
        assert third.pop('room_bytes') - more >= cacs_lab.cache_bytes(PLAN)
        assert {**third, 'target': ''} == {
            name: value for name, value in jobs['hdd'].items()
            if name not in ('room_bytes', 'strategy', 'journal_bytes')}
    assert [setup for setup, job in jobs.items()
            if not job.pop('placement')] == ['scattered']
    assert jobs.pop('scattered') == jobs['hdd']
    assert jobs['hdd'] == jobs['lru'] == jobs['classes'] == jobs['ssd']
    assert len(jobs['hdd']['reads']) == 80
    assert set(jobs['hdd']['reads']) <= set(range(50))
    json.dumps(jobs)


def test_only_what_was_answered_counts():
    summary = cacs_lab_figures.summary(phase())
    assert (summary['requests'], summary['failures']) == (2, 1)
    assert summary['mb_per_second'] == 2.0
    assert summary['request_mb_per_second'] == 10.0
    assert summary['mean_ms'] == pytest.approx(200.0)
    assert summary['classes']['user1']['requests'] == 2
    assert summary['classes']['user7']['requests'] == 0
    assert math.isnan(summary['classes']['user7']['mean_ms'])
    assert set(summary['kinds']) == {'files', 'video'}


def test_crowds_are_judged_each_by_its_own_time():
    told = phase()
    told['requests'].append(request('pictures user2', 1.0, 2000000))
    summary = cacs_lab_figures.summary(told, crowds=True)
    assert summary['kinds']['pictures']['mb_per_second'] == 2.0
    assert summary['kinds']['files']['mb_per_second'] == pytest.approx(4 / 0.3)
    assert summary['mb_per_second'] == pytest.approx(2 + 4 / 0.3)


def test_each_kind_gets_a_crowd_only_where_it_was_asked_for():
    objects = cacs_lab.objects_of(PLAN)
    everybody, = cacs_lab_guest.crowds({'crowds': False}, objects)
    assert everybody == objects
    crowds = cacs_lab_guest.crowds({'crowds': True}, objects)
    assert [len({obj.kind for obj in crowd}) for crowd in crowds] == \
        [1] * len({obj.kind for obj in objects})
    assert sum(map(len, crowds)) == len(objects)


def test_disks_are_added_up_by_role_and_over_the_phase_alone():
    slow = cacs_lab_figures.summary(phase())['disks']['slow']
    assert (slow['disks'], slow['reads'], slow['write_bytes']) == (2, 8, 100)
    assert slow['busy'] == 0.25
    assert slow['later_write_bytes'] == 60


def test_what_the_caches_counted_before_does_not_count():
    assert cacs_lab_figures.summary(phase())['cache'] == {'11': {'hits': 6}}


def test_goals_are_met_or_missed():
    goals = {row['name']: row for row in cacs_lab.goals(
        setups(hdd=9.0, lru=5.2, classes=1.0, ssd=0.9))}
    assert goals['upload bandwidth / LRU']['ours'] == pytest.approx(5.2)
    assert goals['upload bandwidth / LRU']['met']
    assert goals['LRU upload latency / ours']['ours'] == pytest.approx(5.2)
    assert not goals['LRU upload latency / ours']['met']
    assert goals['upload bandwidth / SSD only']['ours'] == pytest.approx(0.9)


def test_placement_is_judged_by_hdds_alone():
    goals = {row['name']: row for row in cacs_lab.goals(
        setups(scattered=1.4, hdd=1.0))}
    assert list(goals) == ['HDDs: upload bandwidth / as Swift has files',
                           'HDDs: download bandwidth / as Swift has files']
    assert all(row['ours'] == pytest.approx(1.4) and row['met']
               for row in goals.values())


def test_what_was_not_run_has_no_goal():
    names = {row['name'] for row in cacs_lab.goals(
        setups(classes=1.0, ssd=1.0))}
    assert names == {'upload bandwidth / SSD only',
                     'download bandwidth / SSD only'}
    assert cacs_lab.goals(setups(lru=1.0)) == []


def test_report_is_told_counted_and_drawn(tmp_path):
    pytest.importorskip('matplotlib')
    report = cacs_lab.report(PLAN, setups(
        scattered=9.5, hdd=9.0, lru=3.0, classes=1.0, ssd=0.5))
    assert cacs_lab.failures(report) == 10
    told = cacs_lab_text.text(report)
    assert 'missed' in told and 'met' in told
    assert sum(line.startswith('classes ') for line in
               told.splitlines()) == 2 + 4
    path = tmp_path / 'plot.png'
    cacs_lab_plot.draw(report, str(path))
    assert path.read_bytes().startswith(b'\x89PNG')


@pytest.mark.parametrize('change, said', [
    ({'setups': ('tape',)}, 'tape'), ({'objects': 0}, '--objects 0'),
    ({'scale': 0.0001}, 'not 1 MiB of SSD'), ({'clients': -1}, '--clients')])
def test_a_plan_that_cannot_be_measured_is_refused(change, said):
    with pytest.raises(BadConfig, match=said):
        cacs_lab.check(dataclasses.replace(PLAN, **change))
