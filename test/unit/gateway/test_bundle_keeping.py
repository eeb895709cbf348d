"""One thing that fails holds no other part of the keeping up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_bundles_and_crashes import names_in_the_bucket
from test_bundles_of_others import NAMES, Nodes

from swift_dss.core.errors import TierUnavailable
from swift_dss.gateway.link.client import S3Rejected


@pytest.fixture
def nodes(tmp_path):
    made = Nodes(tmp_path)
    yield made
    made.stop()


def _lose_drive(nodes, monkeypatch, name):
    """As for a drive that is not mounted."""
    disk, inner = nodes.disks[0], nodes.disks[0].describe

    def describe(version, partition):
        if version.device == name:
            raise TierUnavailable('/srv/node/%s is not mounted' % name)
        return inner(version, partition)
    monkeypatch.setattr(disk, 'describe', describe)


def _sent(nodes):
    return sum(verb == 'PUT' and key.endswith('.since')
               for verb, key in nodes.s3.asked)


def test_a_renewal_on_a_dead_drive_holds_nothing_else_up(
        nodes, monkeypatch):
    versions = nodes.put(NAMES)
    _lose_drive(nodes, monkeypatch, 'sdz')
    gateway = nodes.gateways[0]
    gateway.enqueue_renewals([(replace(
        versions[5], object_hash='f' * 32, device='sdz'), '7')])
    for version in versions[:3]:
        nodes.delete(version)
    nodes.run(3600, 60.0)
    assert names_in_the_bucket(gateway) == ['/a/c/' + name
                                            for name in NAMES[3:]]
    # It is noted, and tried again.
    assert len(gateway.parts.book.due_renewals(
        nodes.now + 700, 9)) == 1
    assert 'sdz' in gateway.status()['bundles']['last_error']


@pytest.mark.parametrize('how', (S3Rejected('no'), RuntimeError('a bug')))
@pytest.mark.parametrize('work', ('renewer.run', 'keeper.drop',
                                  'keeper.rewrap'))
def test_a_part_of_the_keeping_that_fails_keeps_no_other_from_work(
        nodes, monkeypatch, work, how):
    versions = nodes.put(NAMES)
    owner, verb = work.split('.')

    def fails():
        raise how
    monkeypatch.setattr(getattr(nodes.gateways[0].parts.bundles, owner),
                        verb, fails)
    nodes.delete(versions[0])
    nodes.run(3600, 60.0)
    assert names_in_the_bucket(nodes.gateways[0]) == [
        '/a/c/' + name for name in NAMES[1:]]


def test_what_left_the_node_is_not_said_again_and_again(nodes):
    versions = nodes.put(NAMES)
    gateway = nodes.gateways[0]
    nodes.disks[0].post(versions[0], {'X-Object-Meta-Colour': 'blue'})
    gateway.enqueue_renewals([(versions[0], '7')])
    # Its partition moves away before the bucket was told.
    gateway.parts.bundles.renewer.run()
    nodes.travel(versions[0], NAMES[0])
    nodes.disks[0].unlink(versions[0])
    nodes.run(3600, 30.0)
    assert _sent(nodes) == 0
    assert not gateway.parts.book.untold()


def test_what_cannot_be_read_now_is_said_when_it_can(nodes, monkeypatch):
    versions = nodes.put(NAMES)
    gateway = nodes.gateways[0]
    nodes.disks[0].post(versions[0], {'X-Object-Meta-Colour': 'blue'})
    assert gateway.parts.book.renew(versions[0].key)
    nodes.delete(versions[1])
    with monkeypatch.context() as patched:
        _lose_drive(nodes, patched, 'sda')
        nodes.run(7200, 30.0)
    # The delete, once; and the colour is still to be said.
    assert _sent(nodes) == 1
    assert '/a/c/o1' not in names_in_the_bucket(gateway)
    assert gateway.parts.book.untold()
    nodes.run(1200, 30.0)
    assert _sent(nodes) == 2
    assert not gateway.parts.book.untold()


def test_a_hundred_bundles_that_are_put_off_starve_no_other(
        nodes, monkeypatch):
    gateway = nodes.gateways[0]
    book = gateway.parts.book
    others = [nodes.put(['m%d' % number, 'n%d' % number])[0]
              for number in range(101)]
    versions = nodes.put(['last%d' % number for number in range(8)])
    _lose_drive(nodes, monkeypatch, 'sda')
    for version in others:
        book.renew(version.key)
    nodes.delete(versions[0])
    nodes.run(3600, 60.0)
    assert '/a/c/last0' not in names_in_the_bucket(gateway)
