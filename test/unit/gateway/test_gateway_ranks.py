"""Ranks by a real ring."""

from __future__ import annotations

import logging
import os

import pytest
from swift.common import storage_policy, utils
from swift.common.ring import RingBuilder

from swift_dss.core.version import VersionId
from swift_dss.gateway.ranks import Ranks, ring_name

HASH = 'd41d8cd98f00b204e9800998ecf8427e'


@pytest.fixture
def swift_dir(tmp_path):
    (tmp_path / 'swift.conf').write_text(
        '[swift-hash]\nswift_hash_path_suffix = test\n'
        '[storage-policy:0]\nname = zero\ndefault = yes\n'
        '[storage-policy:1]\nname = one\n')
    before = os.path.dirname(utils.SWIFT_CONF_FILE)
    suffix, prefix = utils.HASH_PATH_SUFFIX, utils.HASH_PATH_PREFIX
    logging.getLogger('swift.ring.builder').setLevel(logging.ERROR)
    builder = RingBuilder(4, 3, 0)
    for number in range(5):
        builder.add_dev({
            'region': 1, 'zone': number, 'weight': 1, 'port': 6200,
            'ip': '10.0.0.%d' % (number // 2), 'device': 'sd%d' % number,
            'replication_ip': '10.1.0.%d' % (number // 2),
            'replication_port': 6200, 'meta': ''})
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
    found = sorted(ranks.rank(_version('sd%d' % i)) for i in range(5))
    assert found == [0, 1, 2, 3, 3]


def test_a_device_of_the_same_name_on_another_node_is_not_ours(swift_dir):
    everywhere = Ranks(swift_dir, {'10.0.0.0', '10.0.0.1', '10.0.0.2'})
    first = next('sd%d' % i for i in range(5)
                 if everywhere.rank(_version('sd%d' % i)) == 0)
    elsewhere = Ranks(swift_dir, {'192.0.2.1'})
    assert elsewhere.rank(_version(first)) == 3


def test_the_replication_address_counts_too(swift_dir):
    ranks = Ranks(swift_dir, {'10.1.0.0', '10.1.0.1', '10.1.0.2'})
    assert {ranks.rank(_version('sd%d' % i)) for i in range(5)} >= {0, 1, 2}


def test_every_fragment_is_its_devices_own(swift_dir):
    ranks = Ranks(swift_dir, set())
    assert ranks.rank(_version('sd0', 4)) == 0


def test_the_partition_comes_from_the_hash(swift_dir):
    assert Ranks(swift_dir).partition(_version('sd0')) == str(0xd)


def test_ring_names():
    assert (ring_name(0), ring_name(2)) == ('object', 'object-2')
