"""What a comparison hands to a repair: each once, and in an order."""

from __future__ import annotations

from swift_dss.core.version import VersionId
from swift_dss.tier.index.noted import (
    LOCAL, PAGE, RECORD, REMOTE, KeyList, WrongList)


def version(device='sda', number=0, frag=None):
    return VersionId(device, 1, '%032x' % number, '1700000000.00000', frag)


def test_what_s3_lacks_is_one_for_all_devices_and_a_device_is_not():
    with WrongList() as wrong:
        for device in ('sda', 'sdb'):
            wrong.add(REMOTE, version(device), '7')
            wrong.add(LOCAL, version(device), '7')
            wrong.add(REMOTE, version(device), '7')
        assert len(wrong) == 3
        assert list(wrong.pages()) == [
            (REMOTE, [['', 1, '%032x' % 0, '1700000000.00000', None, '7']]),
            (LOCAL, [[device, 1, '%032x' % 0, '1700000000.00000', None, '7']
                     for device in ('sda', 'sdb')])]


def test_fragments_and_versions_are_apart():
    with WrongList() as wrong:
        for frag in (None, 0, 3):
            wrong.add(REMOTE, version(frag=frag), '7')
        (_, page), = wrong.pages()
        assert [row[4] for row in page] == [None, 0, 3]


def test_pages_are_of_one_kind_and_s3_comes_first():
    with WrongList() as wrong:
        for number in range(PAGE + 1):
            wrong.add(RECORD, version(number=number), '7')
        wrong.add(LOCAL, version(), '7')
        wrong.add(REMOTE, version(), '7')
        assert [(kind, len(page)) for kind, page in wrong.pages()] == [
            (REMOTE, 1), (LOCAL, 1), (RECORD, PAGE), (RECORD, 1)]


def test_old_records_are_no_problems():
    with WrongList() as wrong:
        for kind in (REMOTE, REMOTE, LOCAL, RECORD):
            wrong.add(kind, version(), '7')
        assert wrong.problems == 3


def test_a_key_is_used_once_and_the_others_are_told():
    with KeyList() as keys:
        for key in 'abc':
            keys.add(key, 5, 'etag')
        assert keys.find('a') == (5, 'etag') and keys.find('d') is None
        assert [keys.use(key) for key in 'aabd'] == [True, False, True, False]
        assert list(keys.unused()) == [('c', 5)]
