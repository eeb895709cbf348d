"""Classes arrive at the block layer, span by span, both ways."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Iterator, Tuple

import pytest
from kernel_view import (
    CLASS_MAP, MIB, SIZE, loop_xfs, observe, table, why_not, wrong_rows)
from support.nodes.object_node import running_node

from swift_dss.core.spans import ClassMap

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(bool(why_not()), reason=why_not())]


@pytest.fixture(scope='module')
def disk() -> Iterator[Tuple[str, str]]:
    with tempfile.TemporaryDirectory(dir='/var/tmp') as folder:
        with loop_xfs(folder) as mounted:
            yield mounted


def test_every_span_arrives_with_its_class(disk: Any) -> None:
    mount, device = disk
    with running_node(os.path.join(mount, 'ioprio'),
                      carrier='ioprio') as node:
        seen = observe(node, device)
    for line in table(seen).splitlines():
        print('figure: ' + line)
    assert wrong_rows(seen) == 0
    assert [sum(span.length for span, _hints in rows)
            for rows in seen.values()] == [SIZE, SIZE]


def test_what_is_read_ahead_has_the_class_of_the_object(
        disk: Any) -> None:
    """One class from end to end: here the kernel reads ahead of the
    event loop."""
    mount, device = disk
    with running_node(os.path.join(mount, 'ahead'),
                      carrier='ioprio') as node:
        seen = observe(node, device, ClassMap.uniform(5), 8 * MIB)
    assert wrong_rows(seen) == 0
    assert [span.length for span, _hints in seen['GET']] == [8 * MIB]


def test_a_carrier_that_carries_nothing_is_seen_as_such(
        disk: Any) -> None:
    """The wrong twin: same bytes, and no class at the disk."""
    mount, device = disk
    with running_node(os.path.join(mount, 'null'), carrier='null') as node:
        seen = observe(node, device)
    assert wrong_rows(seen) == 2 * len(list(CLASS_MAP.split(0, SIZE)))
