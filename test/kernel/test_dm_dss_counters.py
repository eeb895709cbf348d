"""Counters of each class, in sysfs as in messages."""

from __future__ import annotations

import dss_lab

from swift_dss.block import table


def test_sysfs_tells_what_the_messages_tell():
    found = dss_lab.found('dss_counters.py')
    assert found['names'] == sorted(
        ['device'] + ['class%d' % number for number in range(32)])
    stats = table.parse_stats(found['stats'])
    latency = table.parse_latency(found['latency'])
    for class_id in (11, 25):
        lines = found['class%d' % class_id].splitlines()
        assert table.parse_stats(lines[0]).classes[class_id] == \
            stats.classes[class_id]
        assert table.parse_latency('\n'.join(lines[1:])) == [
            one for one in latency if one.class_id == class_id]
        assert stats.classes[class_id]['write_sectors'] == 8 * class_id
    # A class that nobody used has its file, and no histogram.
    assert len(found['class9'].splitlines()) == 1
    assert table.parse_stats(found['device']).device == stats.device
    assert found['after_reload'] == found['names']
    assert not found['after']
