"""Bundles outlive crashes and full disks in the middle of book-keeping."""

from __future__ import annotations

import contextlib
import os
import sqlite3

import pytest
from support.sqlite_files import SqliteFiles
from test_bundles_of_others import NAMES, NEW, OLD, SMALL, Nodes

from swift_dss.core.errors import TierUnavailable
from swift_dss.gateway.bundle import since
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.pack import BOOK_FILE
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.restore.adopt import Adoption
from swift_dss.gateway.restore.catalog import Catalog
from swift_dss.gateway.restore.write import Target
from swift_dss.io import steps


@pytest.fixture
def files(monkeypatch):
    return SqliteFiles(monkeypatch)


@pytest.fixture
def nodes(files, tmp_path):
    made = Nodes(tmp_path)
    yield made
    made.stop()


def names_in_the_bucket(gateway):
    """Those that a restore would bring back."""
    return sorted({member.name for member in Catalog(
        gateway.parts.conf, gateway.parts.client).walk()})


class Died(BaseException):
    """A process that was killed."""


FULL = sqlite3.OperationalError('database or disk is full')


def _fails_at_write(files, book, monkeypatch, verb, number, error):
    """At write ``number`` of the next calls of a verb, once."""
    do = getattr(book, verb)

    def doing(*args, **kwargs):
        if not files.failed:
            files.fail_commit(BOOK_FILE, number, error)
        try:
            return do(*args, **kwargs)
        finally:
            files.end_failing()
    monkeypatch.setattr(book, verb, doing)


@pytest.mark.parametrize('number', (1, 2))
def test_a_full_disk_in_a_rewrite_leaves_every_member_readable(
        nodes, files, monkeypatch, number):
    versions = nodes.put(NAMES)
    _fails_at_write(files, nodes.gateways[0].parts.book, monkeypatch, 'seal',
                    number, FULL)
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(2000, 5.0)
    # A seal is one write: there is no second one that could fail.
    assert files.failed == (number == 1)
    for version, name in zip(versions[:3], NAMES):
        nodes.read(0, version, name)


def test_an_error_behind_the_seal_gives_up_no_sealed_bundle(
        nodes, monkeypatch):
    versions = nodes.put(NAMES)
    book = nodes.gateways[0].parts.book
    seal, thrown = book.seal, []

    def sealed(*args, **kwargs):
        seal(*args, **kwargs)
        if not thrown:
            thrown.append(True)
            raise TierUnavailable('something behind the seal')
    monkeypatch.setattr(book, 'seal', sealed)
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(2000, 5.0)
    assert thrown
    for version, name in zip(versions[:3], NAMES):
        nodes.read(0, version, name)


@pytest.mark.parametrize('number', (1, 2))
def test_a_delete_that_a_crash_interrupted_is_told_to_the_bucket(
        nodes, files, monkeypatch, number):
    versions = nodes.put(NAMES)
    nodes.delete(versions[0])
    _fails_at_write(files, nodes.gateways[0].parts.book, monkeypatch,
                    'bury', number, Died())
    with contextlib.suppress(Died):
        nodes.run(200)
    assert files.failed == (number == 1)
    nodes.gateways.pop(0).stop()
    gateway = nodes.gateway(0)
    nodes.run(3600, 30.0)
    assert names_in_the_bucket(gateway) == [
        '/a/c/' + name for name in NAMES[1:]]


@pytest.mark.parametrize('which', range(len(NAMES)))
def test_a_delete_while_a_bundle_is_packed_costs_no_other_member(
        nodes, which):
    gateway = nodes.gateways[0]
    versions = [nodes.disks[0].put(
        name, name.encode() * 3000, OLD, class_map=SMALL) for name in NAMES]

    def delete_it(step):
        if step == 'bundle.planned':
            nodes.disks[0].tombstone(versions[which], NEW)
            nodes.disks[1].tombstone(versions[which], NEW)
            gateway.parts.book.bury([versions[which].key])

    gateway.enqueue_uploads(
        [Upload(version, '7', True, 1) for version in versions])
    steps.listen(delete_it)
    try:
        nodes.run(20)
    finally:
        steps.listen(None)
    left = NAMES[:which] + NAMES[which + 1:]
    assert names_in_the_bucket(gateway) == ['/a/c/' + name for name in left]
    # A rewrite of the bundle, and a second delete, spare the others too.
    nodes.delete(versions[which - 1])
    nodes.run(400)
    left.remove(NAMES[which - 1])
    assert names_in_the_bucket(gateway) == ['/a/c/' + name for name in left]


def test_a_living_member_that_was_noted_as_dead_is_told_again(nodes):
    """Earlier releases took the first member for one that never came."""
    versions = nodes.put(NAMES)
    gateway = nodes.gateways[0]
    book = gateway.parts.book
    member, bundle = book.find(versions[0].key)
    since.write(gateway.parts.client, since.path_of(bundle.key),
                since.Since({member.number}), since.Since())
    assert '/a/c/' + NAMES[0] not in names_in_the_bucket(gateway)
    book.renew(versions[0].key)
    nodes.run(20)
    assert names_in_the_bucket(gateway) == ['/a/c/' + name for name in NAMES]


@pytest.mark.parametrize('number', (1, 2, 3))
@pytest.mark.parametrize('error', (Died(), FULL))
@pytest.mark.parametrize('again', (False, True))
def test_a_bundle_that_is_being_adopted_outlives_a_crash(
        nodes, files, monkeypatch, number, error, again):
    versions = nodes.put(NAMES)
    # The node is lost, and its names are restored into a new book.
    gateway = nodes.gateways.pop(0)
    gateway.stop()
    path, = map(str, nodes.root.rglob('bundles.db'))
    os.unlink(path)
    book = Book(path)
    with monkeypatch.context() as patched:
        _fails_at_write(files, book, patched, 'adopt', number, error)
        with contextlib.suppress(Died, TierUnavailable):
            _adopt_all(gateway, book)
    assert files.failed == (number == 1)
    book.close()
    if again:
        book = Book(path)
        _adopt_all(gateway, book)
        book.close()
    nodes.gateway(0)
    nodes.run(120)
    for version, name in zip(versions, NAMES):
        nodes.read(0, version, name)


def _adopt_all(gateway, book):
    adoption = Adoption(lambda device: book, 1.0)
    for held in Catalog(gateway.parts.conf, gateway.parts.client).walk():
        adoption.see(held, [Target('sda', 7, 0)])
    adoption.flush()
