"""Class names, patterns, and what a HEAD says."""

from __future__ import annotations

import pytest

from swift_dss.client.fs import errors
from swift_dss.client.fs.classing import Names, Patterns

INFO = {'dss': {'classes': {'gold': 25, 'user1': 11}, 'max_spans': 10,
                'pinning': ['gold']}}


def test_names_are_the_clusters():
    names = Names(INFO)
    assert [names.id_of(text) for text in ('gold', ' GOLD ', '3', 31, 0)] \
        == [25, 25, 3, 31, 0]
    assert names.max_spans == 10
    assert names.pinning == ('gold',)


@pytest.mark.parametrize('class_name', ['', 'platinum', '32', 32, -1, '٣'])
def test_what_is_no_class_is_refused(class_name):
    with pytest.raises(ValueError):
        Names(INFO).id_of(class_name)


def test_a_swift_without_classes_is_named():
    with pytest.raises(OSError, match='no classes'):
        Names({'swift': {}})


def test_the_first_pattern_that_fits_counts():
    patterns = Patterns({'*/zarr.json': 'metadata', 'c/*': 'gold',
                         '*.parquet': 'auto'})
    assert [patterns.class_of(path) for path in (
        'c/a/zarr.json', 'c/x.parquet', 'd/x.parquet', 'd/x')] == [
            'metadata', 'gold', 'auto', None]


@pytest.mark.parametrize('status, kind', [
    (404, FileNotFoundError), (401, PermissionError), (403, PermissionError),
    (412, FileExistsError), (504, TimeoutError), (400, OSError),
    (507, OSError), (418, OSError)])
def test_a_status_is_the_error_of_a_file(status, kind):
    error = errors.error_of(status, 'PUT', 'c/o', b'the reason\nmore')
    assert type(error) is kind
    assert error.filename == 'dss://c/o'
    assert 'PUT was answered %d: the reason' % status in str(error)
    assert 'more' not in str(error)
