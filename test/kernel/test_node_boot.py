"""A node boots: its twelve caches are there before their file systems, warm,
and nobody gave a command. Half of a minute to two for each boot."""

from __future__ import annotations

import hashlib
import os

import booted
import node_guest
import pytest

from swift_dss.block.lab import cache, stock

pytestmark = pytest.mark.slow

NAMES = node_guest.NAMES


@pytest.fixture(autouse=True, scope='module')
def _can_boot():
    packages = cache.missing(stock.COMMANDS + booted.COMMANDS)
    if packages:
        pytest.skip('no node can be booted here: apt-get install %s'
                    % ' '.join(packages))
    if os.geteuid():
        pytest.skip('files of a node belong to root')


@pytest.fixture(scope='module')
def filled(tmp_path_factory):
    """A node, shut down after its caches were made; and what it told."""
    node = booted.Node.installed(str(tmp_path_factory.mktemp('node')))
    return node, node.boot('fill')


@pytest.fixture
def twin(filled, tmp_path):
    """The same node, which a test may spoil."""
    return filled[0].copy(str(tmp_path))


@pytest.fixture(scope='module')
def seen(filled, tmp_path_factory):
    """What two boots made of it: one after a stop, one after a power cut."""
    node = filled[0].copy(str(tmp_path_factory.mktemp('seen')))
    return {'stop': node.boot('cut'), 'power cut': node.boot('look')}


def digest(name, version=1):
    return hashlib.sha256(node_guest.contents(name, version)).hexdigest()


def ours(name):
    return '/dev/mapper/' + name


def test_what_is_not_to_be_lost_is_on_the_ssd_alone(filled):
    dirty = filled[1]['found']
    assert sorted(dirty) == NAMES
    assert min(dirty[name] for name in node_guest.BY_UUID) \
        >= node_guest.FILE_BYTES


@pytest.mark.parametrize('after', ['stop', 'power cut'])
def test_all_caches_are_mounted(seen, after):
    report = seen[after]
    assert {name: cache['device']
            for name, cache in report['found'].items()} == {
        name: ours(name) for name in NAMES}
    # Debian's own backup of a list of packages has no folder here.
    assert [line for line in report['failed']
            if not line.startswith('dpkg-db-backup.')] == []


@pytest.mark.parametrize('after', ['stop', 'power cut'])
def test_caches_have_the_right_bytes_and_are_warm(seen, after):
    for name, device in seen[after]['found'].items():
        assert device['sha256'] == digest(name), name
        assert device['hits'] and not device['misses'], (name, device)
        if name in node_guest.BY_UUID:
            assert device['dirty_bytes'] >= node_guest.FILE_BYTES


def test_without_the_generator_none_is_mounted(twin):
    twin.forget(node_guest.GENERATOR)
    caches = twin.boot('spoilt')['found']
    assert [cache['device'] for cache in caches.values()] == [''] * len(NAMES)


def test_without_the_rule_file_systems_of_hdds_are_mounted(twin):
    """Their bytes are old ones; no SSD is found by its cache's UUID."""
    twin.forget(node_guest.RULE)
    caches = twin.boot('spoilt')['found']
    for name, device in caches.items():
        if name in node_guest.BY_UUID:
            assert device['device'] not in ('', ours(name))
            assert device['sha256'] == digest(name, 0), name
        else:
            assert device['device'] == ours(name)
            assert device['sha256'] == digest(name)
