"""What a filter finds in the index."""

from __future__ import annotations

import pytest

from swift_dss.core.version import VersionId
from swift_dss.tier.index.filters import ALL, Filter
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.rows import SpanRow, VersionRow


@pytest.fixture
def index(tmp_path):
    made = Index(str(tmp_path / 'index.db'))
    made.add([
        row(1, '/a/c/1', spans=[SpanRow(0, 9, 9, 0, 0, 9)]),
        row(2, '/a/c/2', spans=[SpanRow(5, 9, 0, 9)], pinned=True),
        row(3, '/a/cc/3', spans=[SpanRow(5, 9, 0, 0, 9)], on_remote=True),
        row(4, '/b/c/4', 'sdb', pin_rule=2),
        row(5, "/a/c'; --/5", 'sdb', pin_rule=3)])
    yield made
    made.file.close()


def row(number, name, device='sda', **options):
    return VersionRow(
        VersionId(device, 0, '%032x' % number, '1.0'), '7', 9, name,
        **options)


@pytest.mark.parametrize('wanted, expected', [
    (ALL, '12345'),
    (Filter(container='a/c'), '12'), (Filter(container='/a/c/'), '12'),
    (Filter(container='a'), '1235'), (Filter(container='a/'), '1235'),
    (Filter(container="a/c'; --"), '5'),
    (Filter(container='%'), ''),
    (Filter(device='sdb'), '45'), (Filter(device='sdc'), ''),
    (Filter(class_id=0), '1'), (Filter(class_id=5), '23'),
    (Filter(place='ssd'), '1'), (Filter(place='dirty'), '1'),
    (Filter(place='hdd'), '2'), (Filter(place='remote'), '3'),
    (Filter(pinned=True), '2'), (Filter(on_remote=True), '3'),
    (Filter(held_by=()), '24'), (Filter(held_by=(), fitting=True), '245'),
    (Filter(held_by=(0, 7)), '124'),
    (Filter(container='a/c', device='sda', class_id=5, place='hdd',
            pinned=True), '2'),
    (Filter(container='a/c', class_id=5, place='ssd'), '')])
def test_a_filter_names_what_meets_all_of_it(index, wanted, expected):
    listed = index.pages.listing(wanted, 99)
    assert [row.name[-1] for _, row in listed] == list(expected)
    assert index.pages.count(wanted) == (
        len(expected), max([row_id for row_id, _ in listed], default=0))
    pages, after = [], 0
    while True:
        page = index.pages.listing(wanted, 1, after)
        if not page:
            break
        pages += page
        after = page[-1][0]
    assert pages == listed


def test_a_place_that_is_none_never_reaches_the_index(index):
    with pytest.raises(ValueError):
        index.pages.listing(Filter(place='ssd > 0 OR 1'), 9)
