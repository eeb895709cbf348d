"""Counters of each class, in sysfs as in messages."""

from __future__ import annotations

import dss_lab

from swift_dss.block import table


def test_sysfs_tells_what_the_messages_tell():
    report = dss_lab.found('dss_counters.py')
    assert report['names'] == sorted(
        ['device'] + ['class%d' % number for number in range(32)])
    stats = table.parse_stats(report['stats'])
    latency = table.parse_latency(report['latency'])
    for class_id in (11, 25):
        lines = report['class%d' % class_id].splitlines()
        assert table.parse_stats(lines[0]).classes[class_id] == \
            stats.classes[class_id]
        assert table.parse_latency('\n'.join(lines[1:])) == [
            row for row in latency if row.class_id == class_id]
        assert stats.classes[class_id]['write_sectors'] == 8 * class_id
    # A class that nobody used has its file, and no histogram.
    assert len(report['class9'].splitlines()) == 1
    assert table.parse_stats(report['device']).device == stats.device
    assert report['after_reload'] == report['names']
    assert not report['after']
    before, after = report['reset']
    assert before['stage_waits']
    assert [after[name] for name in ('stage_waits', 'grouped')] == [0, 0]
