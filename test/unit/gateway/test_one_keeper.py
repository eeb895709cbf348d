"""After a restore each bundle has one keeper: two would drop each other's
members."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swift_dss.core.residency import RemoteCopy
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.form.metadata import RemoteRecord
from swift_dss.gateway.restore.adopt import Adoption
from swift_dss.gateway.restore.catalog import Held
from swift_dss.gateway.restore.write import Target
from swift_dss.wire import classmap

KEY = 'p/bundles/abc/1700000000.00000-abc'
VERSION = VersionId('', 0, 'a' * 32, '1700000000.00000')


def held(number, version):
    return Held(RemoteRecord(
        replace(version, object_hash='%032x' % number), 10, 'e' * 32,
        {'name': '/a/c/o%d' % number}, classmap.encode(ClassMap.uniform(1))),
        RemoteCopy('s3', KEY, 'e' * 32, 0.0, 100 + 10 * number), number, 10,
        ({'seal': ''}, 1000))


@pytest.mark.parametrize('rank, frag_index, keeps', [
    (0, None, True), (1, None, False), (2, None, False), (2, 2, True)])
def test_the_first_primary_of_the_first_member_keeps_it(
        tmp_path, rank, frag_index, keeps):
    book = Book(str(tmp_path / 'bundles.db'))
    try:
        adoption = Adoption(lambda device: book, 1.0)
        version = replace(VERSION, frag_index=frag_index)
        # Of the second member this node is the first primary.
        for number, mine in ((0, rank), (1, 0)):
            adoption.see(held(number, version), [Target('sda', 7, mine)])
        adoption.flush()
        assert adoption.adopted == int(keeps)
        assert book.has_bundle(KEY) is keeps
    finally:
        book.close()


def test_of_several_shards_one_keeps_it_and_the_other_leans_on_it(tmp_path):
    books = {device: Book(str(tmp_path / (device + '.db')))
             for device in ('sda', 'sdb')}
    try:
        adoption = Adoption(books.get, 1.0)
        for number in (0, 1):
            adoption.see(held(number, VERSION), [
                Target('sda', 7, 1), Target('sdb', 7, 0)])
        adoption.flush()
        assert adoption.adopted == 1
        assert not books['sda'].has_bundle(KEY)
        assert list(books['sda'].leaned_on()) == [KEY]
        assert books['sdb'].has_bundle(KEY)
        assert list(books['sdb'].leaned_on()) == []
        assert {device for _, device, _ in books['sda'].leaners(
            KEY, ('', ''), 10)} == {'sda'}
    finally:
        for book in books.values():
            book.close()
