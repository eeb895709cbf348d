"""Case 2: what is directed where, and whose time a kind's figures are of."""

from __future__ import annotations

import dataclasses
import json

import pytest

from swift_dss.bench import cacs
from swift_dss.bench.lab import cacs_lab_plot, cacs_traffic
from swift_dss.core.errors import BadConfig

PLAN = cacs_traffic.Plan(counts=(20, 10, 4, 3))


def request(kind, at, seconds, count, status=201):
    return {'label': '%s user1' % kind, 'status': status, 'at': at,
            'seconds': seconds, 'bytes': count}


def phase(slower=1.0):
    return {'requests': [
        request(kind, 0.5, number * slower, 2000000)
        for number, kind in enumerate(cacs_traffic.KINDS, 1)]}


def report(*setups):
    return {'plan': dataclasses.asdict(PLAN), 'data_bytes': 1000,
            'setups': [{'setup': name, 'disks': {}, 'kinds':
                        cacs_traffic.kinds(phase(2.0 if name == 'hdd'
                                                 else 1.0))}
                       for name in setups]}


def test_each_run_directs_one_kind_more():
    classes = [cacs_traffic.job_of(PLAN, setup)['ssd_classes']
               for setup in cacs_traffic.SETUPS]
    assert classes == [[], [], [11], [11, 12], [11, 12, 13], [11, 12, 13, 14]]
    assert cacs_traffic.job_of(PLAN, 'hdd')['strategy'] == ''
    json.dumps(cacs_traffic.job_of(PLAN, '+music'))


def test_large_objects_have_the_class_of_their_kind():
    videos = cacs.of_kind('video', 40, 1, 0.1)
    assert len(videos) == 40
    assert {obj.class_id for obj in videos} == {14}
    assert any(obj.size > cacs.large_bytes(0.1) for obj in videos)
    assert videos == cacs.of_kind('video', 40, 1, 0.1)
    assert videos != cacs.of_kind('video', 40, 2, 0.1)


def test_every_disk_has_room_for_its_part_of_the_copies():
    total = sum(obj.size for obj in cacs_traffic.objects_of(PLAN))
    assert cacs_traffic.disk_mib(PLAN) * 4 << 20 >= 2 * 3 * total
    assert len(cacs_traffic.devices_of(PLAN, 'hdd')) == 4
    assert len(cacs_traffic.devices_of(PLAN, '+files')) == 8


def test_a_kinds_bandwidth_is_over_its_own_time():
    kinds = cacs_traffic.kinds(phase())
    assert kinds['files']['mb_per_second'] == pytest.approx(2 / 1.5)
    assert kinds['video']['mb_per_second'] == pytest.approx(2 / 4.5)


def test_what_failed_is_counted():
    broken = phase()
    broken['requests'].append(request('music', 0, 1, 5, 503))
    assert cacs_traffic.failures({'setups': [
        {'kinds': cacs_traffic.kinds(broken)}]}) == 1


def test_table_has_the_speed_up_and_the_published_one():
    text = cacs_traffic.text(report('hdd', '+files'))
    line, = (line for line in text.splitlines() if '+files' in line)
    assert line.split()[-3:] == ['1.67', '3.5', '0']
    # Without the run to compare with there is none.
    assert ' - ' in cacs_traffic.text(report('+files'))


def test_plot_is_drawn(tmp_path):
    path = tmp_path / 'traffic.png'
    cacs_lab_plot.traffic(report('hdd', 'none', '+files'), str(path))
    assert path.stat().st_size > 1000


@pytest.mark.parametrize('changes, message', [
    ({'setups': ('+vmdk',)}, '--setups: .vmdk is not one of'),
    ({'counts': (1, 2, 3)}, '--counts: 4 numbers'),
    ({'counts': (1, 2, 3, 0)}, '--counts: 4 numbers'),
    ({'scale': 0.0}, '--scale 0.0: more than 0')])
def test_plan_that_cannot_be_measured_is_refused(changes, message):
    with pytest.raises(BadConfig, match=message):
        cacs_traffic.check(dataclasses.replace(PLAN, **changes))
