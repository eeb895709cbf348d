"""Ranks by a real ring."""

from __future__ import annotations

import logging
import os
import socket

import pytest
from support.clocks import StillClock
from swift.common import storage_policy, utils
from swift.common.ring import RingBuilder

from swift_dss.core.config import Shard
from swift_dss.core.version import VersionId
from swift_dss.gateway.collect.parts import PARTS
from swift_dss.gateway.peers.here import FRESH_SECONDS, Here
from swift_dss.gateway.peers.ranks import NoRing, Ranks, ring_name

HASH = 'd41d8cd98f00b204e9800998ecf8427e'


def builder_of(devices):
    """Two devices a node, by number."""
    builder = RingBuilder(4, 3, 0)
    for number in range(devices):
        builder.add_dev({
            'region': 1, 'zone': number, 'weight': 1, 'port': 6200,
            'ip': '10.0.0.%d' % (number // 2), 'device': 'sd%d' % number,
            'replication_ip': '10.1.0.%d' % (number // 2),
            'replication_port': 6200, 'meta': ''})
    return builder


@pytest.fixture
def swift_dir(tmp_path):
    (tmp_path / 'swift.conf').write_text(
        '[swift-hash]\nswift_hash_path_suffix = test\n'
        '[storage-policy:0]\nname = zero\ndefault = yes\n'
        '[storage-policy:1]\nname = one\n')
    before = os.path.dirname(utils.SWIFT_CONF_FILE)
    suffix, prefix = utils.HASH_PATH_SUFFIX, utils.HASH_PATH_PREFIX
    logging.getLogger('swift.ring.builder').setLevel(logging.ERROR)
    builder = builder_of(5)
    builder.rebalance(seed=3)
    builder.get_ring().save(str(tmp_path / 'object-1.ring.gz'))
    yield str(tmp_path)
    # Swift keeps the folder it read in globals of its own.
    utils.SWIFT_CONF_FILE = os.path.join(before, 'swift.conf')
    utils.HASH_PATH_SUFFIX, utils.HASH_PATH_PREFIX = suffix, prefix
    storage_policy.reload_storage_policies()


def _version(device, frag=None):
    return VersionId(device, 1, HASH, '1', frag)


def test_primaries_have_their_place_in_the_ring_and_handoffs_the_next(
        swift_dir):
    ips = {'10.0.0.0', '10.0.0.1', '10.0.0.2'}
    ranks = Ranks(swift_dir, ips)
    places = sorted(ranks.rank(_version('sd%d' % i)) for i in range(5))
    assert places == [0, 1, 2, 3, 3]


def test_a_device_of_the_same_name_on_another_node_is_not_ours(swift_dir):
    everywhere = Ranks(swift_dir, {'10.0.0.0', '10.0.0.1', '10.0.0.2'})
    first = next('sd%d' % i for i in range(5)
                 if everywhere.rank(_version('sd%d' % i)) == 0)
    elsewhere = Ranks(swift_dir, {'192.0.2.1'})
    assert elsewhere.rank(_version(first)) == 3


def test_a_shard_is_a_node_of_its_own(swift_dir):
    ips = {'10.0.0.0', '10.0.0.1', '10.0.0.2'}
    halves = [Ranks(swift_dir, ips, Shard(number, 2, frozenset(devices)))
              for number, devices in enumerate((
                  ('sd0', 'sd2', 'sd4'), ('sd1', 'sd3')))]
    whole = Ranks(swift_dir, ips)
    for number in range(5):
        version = _version('sd%d' % number)
        mine, other = halves[number % 2], halves[1 - number % 2]
        # To the other shard it is a handoff, as to any other node.
        assert mine.rank(version) == whole.rank(version)
        assert other.rank(version) == 3
    for node in whole.primaries(1, HASH)[1]:
        assert [half.is_here(node) for half in halves].count(True) == 1
    names = ['%03x' % number for number in range(256)]
    parts = [half.shares(names) for half in halves]
    assert sorted(parts[0] + parts[1]) == whole.shares(names) == names
    assert min(map(len, parts)) > 90


def test_the_replication_address_counts_too(swift_dir):
    ranks = Ranks(swift_dir, {'10.1.0.0', '10.1.0.1', '10.1.0.2'})
    assert {ranks.rank(_version('sd%d' % i)) for i in range(5)} >= {0, 1, 2}


def test_every_fragment_is_its_devices_own(swift_dir):
    ranks = Ranks(swift_dir, set())
    assert ranks.rank(_version('sd0', 4)) == 0


def test_the_partition_comes_from_the_hash(swift_dir):
    assert Ranks(swift_dir).partition(_version('sd0')) == str(0xd)


def test_a_swift_conf_without_a_salt_of_hashes_is_no_end(swift_dir):
    """Swift's own code would end the process, or a thread without a word."""
    with open(os.path.join(swift_dir, 'swift.conf'), 'w') as out:
        out.write('[storage-policy:0]\nname = zero\ndefault = yes\n')
    ranks = Ranks(swift_dir)
    for _ in range(2):
        with pytest.raises(NoRing, match='swift.conf cannot be used'):
            ranks.rank(_version('sd0'))
    with open(os.path.join(swift_dir, 'swift.conf'), 'a') as out:
        out.write('[swift-hash]\nswift_hash_path_suffix = test\n')
    assert ranks.partition(_version('sd0')) == str(0xd)


def test_ring_names():
    assert (ring_name(0), ring_name(2)) == ('object', 'object-2')


# -- host names ------------------------------------------------------------

@pytest.fixture
def names(monkeypatch):
    """A resolver of our own: name to addresses; what was asked."""
    known, asked = {}, []

    def getaddrinfo(host, port, *rest):
        asked.append(host)
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, 'no such name')
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, '', (address, 0))
                for address in known[host]]

    monkeypatch.setattr(socket, 'getaddrinfo', getaddrinfo)
    return known, asked


def _named_ring(folder, field):
    builder = RingBuilder(4, 3, 0)
    for number in range(3):
        addresses = {'ip': '192.0.2.%d' % number,
                     'replication_ip': '192.0.2.%d' % number}
        addresses[field] = 'node%d.example.org' % number
        builder.add_dev(dict(addresses, region=1, zone=number, weight=1,
                             port=6200, device='sda', replication_port=6200,
                             meta=''))
    builder.rebalance(seed=3)
    builder.get_ring().save(os.path.join(folder, 'object-1.ring.gz'))


@pytest.mark.parametrize('field', ['ip', 'replication_ip'])
def test_hosts_of_a_ring_may_be_names(swift_dir, names, field):
    _named_ring(swift_dir, field)
    names[0].update({'node%d.example.org' % number: [
        '198.51.100.1', '10.9.0.%d' % number] for number in range(3)})
    ranks = [Ranks(swift_dir, {'10.9.0.%d' % number}).rank(_version('sda'))
             for number in range(3)]
    assert sorted(ranks) == [0, 1, 2]


def test_the_resolver_is_not_asked_for_each_version(swift_dir, names):
    _named_ring(swift_dir, 'ip')
    names[0]['node1.example.org'] = ['10.9.0.1']
    ranks = Ranks(swift_dir, {'10.9.0.1'})
    first = ranks.rank(_version('sda'))
    before = len(names[1])
    assert [ranks.rank(_version('sda')) for _ in range(50)] == [first] * 50
    assert len(names[1]) == before <= 6


def test_a_name_that_moves_is_followed_and_a_silent_resolver_is_not(names):
    clock = StillClock()
    here = Here({'10.9.0.1'}, clock)
    assert not here.is_here('node1')
    names[0]['node1'] = ['10.9.0.1']
    assert not here.is_here('node1')
    clock.now += FRESH_SECONDS + 1
    assert here.is_here('node1')
    del names[0]['node1']
    clock.now += FRESH_SECONDS + 1
    assert here.is_here('node1')
    names[0]['node1'] = ['10.9.0.7']
    clock.now += FRESH_SECONDS + 1
    assert not here.is_here('node1')


def test_a_device_that_no_ring_places_here_is_named(swift_dir):
    ranks = Ranks(swift_dir, {'10.1.0.0'})
    assert ranks.not_in_rings(['sd0', 'sd1', 'sd2', 'spare']) == [
        'sd2', 'spare']


def test_without_a_sound_ring_no_device_is_named(swift_dir):
    ring = os.path.join(swift_dir, 'object-1.ring.gz')
    with open(ring, 'wb') as damaged:
        damaged.write(b'no ring')
    assert Ranks(swift_dir, {'10.0.0.0'}).not_in_rings(['sda']) == []
    os.unlink(ring)
    assert Ranks(swift_dir, {'10.0.0.0'}).not_in_rings(['sda']) == []


def test_each_part_of_the_bucket_has_one_node(swift_dir):
    """Of the nodes of all rings; in one of them a device was removed."""
    builder = builder_of(8)
    builder.rebalance(seed=3)
    builder.remove_dev(1)
    builder.pretend_min_part_hours_passed()
    builder.rebalance(seed=3)
    ring = builder.get_ring()
    assert None in ring.devs
    ring.save(os.path.join(swift_dir, 'object.ring.gz'))
    shares = [set(Ranks(swift_dir, {'10.0.0.%d' % number}).shares(PARTS))
              for number in range(4)]
    assert sum(map(len, shares)) == 256
    assert set.union(*shares) == set(PARTS)
    assert min(map(len, shares)) > 40
