"""A node's figures in short, as its daemon writes them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from swift_dss.core.errors import DamagedRecord
from swift_dss.wire.node import summary
from swift_dss.wire.node.summary import Class, Device, Summary

NAMES = some.text(max_size=20)
TEXTS = some.lists(NAMES, max_size=3).map(tuple)
SIZES = some.integers(0, 1 << 60)
TIMES = some.floats(0, 1e12)
DEVICES = some.builds(Device, TEXTS, SIZES, SIZES, SIZES, SIZES, SIZES, SIZES,
                      TIMES, SIZES, SIZES, SIZES)
CLASSES = some.builds(Class, NAMES, some.integers(-5, 300), SIZES, SIZES,
                      SIZES, SIZES, SIZES, SIZES, SIZES, SIZES)
SUMMARIES = some.builds(
    Summary, TIMES, NAMES, TIMES, NAMES, some.booleans(), SIZES, SIZES, TEXTS,
    some.dictionaries(NAMES, DEVICES, max_size=3),
    some.dictionaries(some.integers(0, 31), CLASSES, max_size=3))


@given(SUMMARIES)
def test_what_is_read_is_what_was_written(said):
    assert summary.decode(summary.encode(said)) == said


def _one():
    return summary.values(Summary(
        1.0, 'n1', 2.0, '', True, 0, 0, (),
        {'sda': Device((), 1, 2, 3, 4, 5, 6, 7.0, 8, 9, 10)},
        {9: Class('gold', 20, 1, 2, 3, 4, 5, 6, 7, 8)}))


@pytest.mark.parametrize('path, value, said', [
    (('at',), 'now', 'at is not a number'),
    (('host',), None, 'host is not a text'),
    (('is_remote_well',), 1, 'is_remote_well is not true or false'),
    (('uploads',), -1, 'uploads is not a whole number'),
    (('notes',), 'x', 'notes is no list of texts'),
    (('notes',), [1], 'notes is no list of texts'),
    (('devices',), [], 'devices is not an object'),
    (('devices', 'sda'), 3, 'sda is not an object'),
    (('devices', 'sda', 'ssd'), 1.5, 'devices sda: ssd'),
    (('devices', 'sda', 'troubles'), {}, 'troubles is no list'),
    (('classes', '99'), {}, "'99' is no class"),
    (('classes', '9', 'rank'), None, 'rank'),
    (('classes', '9', 'hits'), True, 'classes 9: hits')])
def test_what_is_not_one_is_refused_with_the_field(path, value, said):
    values = json.loads(json.dumps(_one()))
    inner = values
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(DamagedRecord, match=said):
        summary.decode(json.dumps(values).encode())
