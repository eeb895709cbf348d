"""Bundles that leave, or fail, while the keys of the key file rotate."""

from __future__ import annotations

import base64
import os

import pytest
from test_bundles_of_others import NAMES, Nodes


def write_keys(path, active, *ids):
    """The same id gives the same key."""
    lines = ['active = %s' % active] + ['key %s = %s' % (
        name, base64.b64encode(name.encode().ljust(32, b'!')).decode())
        for name in ids]
    with open(path + '.new', 'w', opener=lambda name, flags: os.open(
            name, flags, 0o600)) as target:
        target.write('\n'.join(lines) + '\n')
    os.rename(path + '.new', path)


class SealedNodes(Nodes):
    """Both nodes read one key file."""

    def gateway(self, number, **conf):
        self.keys = str(self.root / 'keys')
        if not os.path.exists(self.keys):
            write_keys(self.keys, 'k1', 'k1')
        return super().gateway(number, **dict(conf, key_file=self.keys))

    def rekey(self, versions):
        for version in versions:
            self.gateways[0].rekey(version, '7')
        self.gateways[0].rekey_bundles()

    def left(self):
        return self.gateways[0].bundles_to_rekey()


@pytest.fixture
def nodes(tmp_path):
    made = SealedNodes(tmp_path)
    yield made
    made.stop()


def test_a_bundle_that_leaves_is_read_after_its_key_left_the_file(nodes):
    versions = nodes.put(NAMES)
    nodes.travel(versions[0], NAMES[0])
    old, = nodes.bundles()
    write_keys(nodes.keys, 'k2', 'k1', 'k2')
    nodes.rekey(versions)
    # Less than delete_delay_seconds: the old bundle is still there.
    nodes.run(8, 1.0)
    assert old in nodes.bundles() and len(nodes.bundles()) == 2
    assert not nodes.left()
    # It moved away: nothing of this node has its bytes.
    nodes.disks[0].unlink(versions[0])
    write_keys(nodes.keys, 'k2', 'k2')
    nodes.run(100)
    assert old not in nodes.bundles()
    nodes.read(1, versions[0], NAMES[0])
    nodes.read(0, versions[1], NAMES[1])


def test_the_old_key_is_needed_until_every_bundle_is_rewrapped(nodes):
    versions = nodes.put(NAMES)
    old, = nodes.bundles()
    for version in versions:
        nodes.delete(version)
    for _ in range(60):
        nodes.run(1, 1.0)
        if nodes.gateways[0].status()['bundles']['leaving']:
            break
    write_keys(nodes.keys, 'k2', 'k1', 'k2')
    assert nodes.left() == 1, 'it leaves, and must be read first'
    nodes.run(2, 1.0)
    assert not nodes.left() and old in nodes.bundles()
    write_keys(nodes.keys, 'k2', 'k2')
    nodes.run(30)
    assert not nodes.bundles()


def test_a_bundle_whose_key_is_missing_stops_no_other(nodes):
    first = nodes.put(NAMES[:3])
    lost, = nodes.bundles()
    for version in first:
        nodes.delete(version)
    nodes.run(6, 1.0)
    # Before anything could be rewrapped.
    write_keys(nodes.keys, 'k2', 'k2')
    second = nodes.put(NAMES[3:])
    other, = set(nodes.bundles()) - {lost}
    for version in second:
        nodes.delete(version)
    nodes.run(100)
    assert nodes.bundles() == [lost], other
    assert "no key 'k1'" in nodes.gateways[0].status()['bundles'][
        'last_error']
    # And it goes once its key is there again.
    write_keys(nodes.keys, 'k2', 'k1', 'k2')
    nodes.run(1300)
    assert not nodes.bundles()
