"""Bundles outlive crashes and full disks in the middle of book-keeping."""

from __future__ import annotations

import contextlib
import os

import pytest
from test_bundles_of_others import NAMES, Nodes

from swift_dss.core.errors import TierUnavailable
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.restore.adopt import Adoption
from swift_dss.gateway.restore.catalog import Catalog
from swift_dss.gateway.restore.write import Target


@pytest.fixture
def nodes(tmp_path):
    made = Nodes(tmp_path)
    yield made
    made.stop()


def names_in_the_bucket(gateway):
    """Those that a restore would bring back."""
    return sorted({one.name for one in Catalog(
        gateway._conf, gateway._client).walk()})


class Died(BaseException):
    """A process that was killed."""


def _fails_at_write(book, monkeypatch, verb, number, how):
    """At write ``number`` of the next call of a verb, once; the list gets
    what was thrown."""
    inner, do, thrown, left = book._write, getattr(book, verb), [], [0]

    def write(*args):
        left[0] -= 1
        if left[0] == 0:
            thrown.append(how)
            raise how
        return inner(*args)

    def doing(*args, **kwargs):
        left[0] = 0 if thrown else number
        try:
            return do(*args, **kwargs)
        finally:
            left[0] = 0
    monkeypatch.setattr(book, '_write', write)
    monkeypatch.setattr(book, verb, doing)
    return thrown


@pytest.mark.parametrize('number', (1, 2))
def test_a_full_disk_in_a_rewrite_leaves_every_member_readable(
        nodes, monkeypatch, number):
    versions = nodes.put(NAMES)
    thrown = _fails_at_write(
        nodes.gateways[0]._bundler._book, monkeypatch, 'seal', number,
        TierUnavailable('bundle book: database or disk is full'))
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(2000, 5.0)
    # A seal is one write: there is no second one that could fail.
    assert len(thrown) == (number == 1)
    for version, name in zip(versions[:3], NAMES):
        nodes.read(0, version, name)


def test_an_error_behind_the_seal_gives_up_no_sealed_bundle(
        nodes, monkeypatch):
    versions = nodes.put(NAMES)
    book = nodes.gateways[0]._bundler._book
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
        nodes, monkeypatch, number):
    versions = nodes.put(NAMES)
    nodes.delete(versions[0])
    thrown = _fails_at_write(nodes.gateways[0]._bundler._book, monkeypatch,
                             'bury', number, Died())
    with contextlib.suppress(Died):
        nodes.run(200)
    assert len(thrown) == (number == 1)
    nodes.gateways.pop(0).stop()
    gateway = nodes.gateway(0)
    nodes.run(3600, 30.0)
    assert names_in_the_bucket(gateway) == [
        '/a/c/' + one for one in NAMES[1:]]


@pytest.mark.parametrize('number', (1, 2, 3))
@pytest.mark.parametrize('how', (Died(), TierUnavailable('disk is full')))
@pytest.mark.parametrize('again', (False, True))
def test_a_bundle_that_is_being_adopted_outlives_a_crash(
        nodes, monkeypatch, number, how, again):
    versions = nodes.put(NAMES)
    # The node is lost, and its names are restored into a new book.
    gateway = nodes.gateways.pop(0)
    gateway.stop()
    path, = map(str, nodes.root.rglob('bundles.db'))
    os.unlink(path)
    book = Book(path)
    with monkeypatch.context() as patched:
        thrown = _fails_at_write(book, patched, 'adopt', number, how)
        with contextlib.suppress(type(how)):
            _adopt_all(gateway, book)
    assert len(thrown) == (number == 1)
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
    for held in Catalog(gateway._conf, gateway._client).walk():
        adoption.see(held, [Target('sda', 7, 0)])
    adoption.flush()
