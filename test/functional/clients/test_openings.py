"""Files of each format are opened with no byte from HDD or S3.

Each file is uploaded with the class section that ``swift-dss classify``
gives. Its cold bytes are on the HDD alone first, and then in S3 alone. Its own
library opens it through ``dss://``, and the node counts no read that was not
from the SSD alone, and no byte from S3.

XFS is left out: no file of a test's size has 2 % hot (its log is 64 MiB).
"""

from __future__ import annotations

import pathlib
from typing import Any, Iterator

import pytest
from support.format_files import MIB
from support.nodes import evicting
from support.nodes.evicting import BOX, hot_ranges
from support.openings import OPENINGS

fsspec = pytest.importorskip('fsspec')
pytest.importorskip('aiohttp')

pytestmark = pytest.mark.cluster

#: Without a byte of an object: S3's answers to uploads of others.
ANSWERS_BYTES = 4096
#: Of a file, where 32 MiB is too small for 2 %.
SIZES = {'mkv': 64 * MIB, 'ext4': 48 * MIB, 'ntfs': 64 * MIB,
         'qcow2': 64 * MIB}


@pytest.fixture(scope='module')
def made() -> Iterator[Any]:
    with evicting.started() as new:
        yield new


@pytest.fixture(scope='module')
def fs(made: Any) -> Any:
    return fsspec.filesystem(
        'dss', auth_url=made.conf.auth_url, user='test:tester',
        key='testing')


@pytest.mark.parametrize('name', sorted(set(OPENINGS) - {'xfs'}))
def test_no_byte_of_hdd_or_s3_opens_it(
        made: Any, fs: Any, tmp_path: pathlib.Path, name: str) -> None:
    opening = OPENINGS[name]
    if opening.lacking():
        pytest.skip('needs ' + opening.lacking())
    path = tmp_path / ('f.' + name)
    opening.write(path, SIZES.get(name, 32 * MIB))
    said = made.upload(path)
    assert said['format'] == opening.format_name
    assert said['hot_bytes'] <= 0.02 * said['size']
    ranges = hot_ranges(said)
    with path.open('rb') as source:
        expected = opening.look(source, said['size'], ranges)
    path.unlink()
    place = '%s/%s' % (BOX, path.name)
    for where in ('HDD', 'S3'):
        if where == 'S3':
            made.to_s3(path.name, said)
        before = made.counts()
        with fs.open(place) as opened:
            assert opening.look(opened, said['size'], ranges) == expected
        after = made.counts()
        assert after.reads > before.reads
        assert after.slow_bytes == before.slow_bytes, where
        assert after.s3_bytes < before.s3_bytes + ANSWERS_BYTES
    fs.rm(place)


def test_a_cold_byte_is_counted(
        made: Any, fs: Any, tmp_path: pathlib.Path) -> None:
    """Else the counts above could be 0 whatever is read."""
    path = tmp_path / 'f.zip'
    OPENINGS['zip'].write(path, 32 * MIB)
    said = made.upload(path)
    middle = said['size'] // 2
    place = '%s/%s' % (BOX, path.name)
    counts = [made.counts()]
    fs.cat_file(place, start=middle, end=middle + 10)
    counts.append(made.counts())
    made.to_s3(path.name, said)
    before = made.counts()
    fs.cat_file(place, start=middle, end=middle + 10)
    after = made.counts()
    assert counts[1].slow_bytes > counts[0].slow_bytes
    assert counts[1].s3_bytes == counts[0].s3_bytes
    assert after.slow_bytes > before.slow_bytes
    assert after.s3_bytes > before.s3_bytes
    fs.rm(place)
