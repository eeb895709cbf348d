"""``gateway verify --repair``: what can be put right is, the rest is told."""

from __future__ import annotations

import hashlib
import os

import pytest
from functional.test_gateway_relocate import SIZE, Node
from support import md5, wait_until
from support.edges.s3_servers import BUCKET, VersityServer
from support.nodes.sample_node import PARTITION, read_version
from swift.obj.diskfile import read_metadata, write_metadata

from swift_dss.core.errors import BadConfig
from swift_dss.core.residency import Tier
from swift_dss.gateway.link.client import S3Client
from swift_dss.tier.walk.drain import Drainer
from swift_dss.tier.walk.repair import Mender


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


class Edge(Node):
    """A node whose objects are in S3 and here: three on the SSD, one on
    the HDD, one only in S3."""

    names = ('rotten', 'lost', 'right', 'on hdd', 'away')

    def __init__(self, root, server):
        super().__init__(root, server, remote_after_seconds='0')
        self.places, self.digests = {}, {}
        for number, name in enumerate(self.names):
            self.places[name] = self.put(number)
            self.digests[name] = md5(self.bodies[-1][1])
        wait_until(lambda: all(self.residency(name).remote
                               for name in self.names), 60, 'all in S3')
        local = self.daemon.node.local
        for name in ('on hdd', 'away'):
            version = self.places[name].version
            local.demote(version, self.places[name].partition,
                         to_hdd=name == 'on hdd')
        assert self.residency('on hdd').tiers == Tier.HDD | Tier.REMOTE
        assert self.residency('away').tiers == Tier.REMOTE

    def residency(self, name):
        place = self.places[name]
        return self.daemon.node.local.describe(place.version,
                                          place.partition).residency

    def key(self, name):
        return self.residency(name).remote.key

    def lose(self, name):
        self.server.client().delete_object(Bucket=BUCKET,
                                           Key=self.key(name))

    def rot(self, name):
        """A bit flips in the bucket, where no digest is told of it."""
        flip(os.path.join(self.server.root, 'data', BUCKET, self.key(name)))

    def here(self, name):
        """MD5 of the bytes that the device has, by the record alone."""
        return md5(read_version(self.places[name], {}))

    def in_s3(self, name):
        return md5(self.server.body(self.key(name)))

    def capacity_file(self, name):
        place = self.places[name]
        return place.capacity.file_path(place.version)


def flip(path):
    with open(path, 'r+b') as target:
        target.seek(SIZE // 2)
        byte = target.read(1)
        target.seek(SIZE // 2)
        target.write(bytes((byte[0] ^ 8,)))


@pytest.fixture
def edge(server, tmp_path):
    made = Edge(str(tmp_path), server)
    yield made
    made.daemon.stop()


def test_what_s3_lacks_is_sent_anew_only_if_asked(edge):
    assert edge.cli('verify', '--read', '--local') == (0, {
        'versions': 5, 'stubs': 2, 'dirty': 0, 'remote': 5,
        'read_bytes': 5 * SIZE, 'here_bytes': 4 * SIZE, 'keys': edge.cli(
            'verify')[1]['keys'], 'unknown': 0, 'stale': 0,
        'quarantined': 0, 'quarantined_keys': 0, 'problems': 0,
        'repairable': 0, 'said': []})
    key = edge.key('away')
    edge.rot('rotten')
    for name in ('lost', 'on hdd', 'away'):
        edge.lose(name)
    bucket = edge.remote()
    code, report = edge.cli('verify', '--read')
    assert (code, report['problems'], report['repairable']) == (1, 4, 3)
    assert edge.remote() == bucket, 'looking changes nothing'
    code, report = edge.cli('verify', '--read', '--repair')
    assert code == 1, report['repair']
    assert report['repair']['done'] == {'sent': 3, 'failed': 1}
    assert len(report['repair']['failed']) == 1
    assert 'o4' in report['repair']['failed'][0]
    for name in ('rotten', 'lost', 'right', 'on hdd'):
        assert edge.in_s3(name) == edge.digests[name]
        assert edge.here(name) == edge.digests[name]
    # What only S3 had is still said to be there: nobody knows better.
    assert edge.residency('away').remote.key == key
    edge.server.client().put_object(Bucket=BUCKET, Key=key,
                                    Body=edge.bodies[4][1])
    code, report = edge.cli('verify', '--read', '--local', '--repair')
    assert (code, report['repair']['done']) == (0, {})


def test_what_came_after_the_bucket_was_listed_is_not_missed(
        edge, monkeypatch):
    hidden = {edge.key('right'), edge.key('lost')}
    listing = S3Client.listing
    monkeypatch.setattr(S3Client, 'listing', lambda *args: (
        listed for listed in listing(*args) if listed.key not in hidden))
    code, report = edge.cli('verify', '--read')
    assert (code, report['problems'], report['remote']) == (0, 0, 5)
    edge.lose('lost')
    code, report = edge.cli('verify')
    assert (code, report['problems']) == (1, 1)
    assert edge.key('lost') in report['said'][0]


def test_what_is_wrong_here_is_fetched_anew(edge):
    flip(edge.places['rotten'].data_file())
    flip(edge.capacity_file('on hdd'))
    assert edge.here('rotten') != edge.digests['rotten']
    code, report = edge.cli('verify', '--read')
    assert code == 0, 'only --local looks at the devices'
    code, report = edge.cli('verify', '--local')
    assert (code, report['problems'], report['repairable']) == (1, 2, 2)
    code, report = edge.cli('verify', '--local', '--repair')
    assert (code, report['repair']['done']) == (0, {'fetched': 2})
    for name in ('rotten', 'on hdd'):
        assert edge.here(name) == edge.digests[name]
    os.unlink(edge.capacity_file('on hdd'))
    code, report = edge.cli('verify', '--local', '--repair')
    assert (code, report['repair']['done']) == (0, {'fetched': 1})
    assert edge.here('on hdd') == edge.digests['on hdd']
    assert edge.cli('verify', '--local')[0] == 0


@pytest.mark.parametrize('twin', [False, True], ids=['ours', 'twin'])
def test_wrong_bytes_stay_until_s3_is_proven(edge, twin):
    """The last that is left of a version, however wrong, is not dropped;
    a repair that takes the record's word is caught."""
    flip(edge.places['lost'].data_file())
    wrong = edge.here('lost')
    edge.lose('lost')
    if twin:
        edge.daemon.node.gateway.prove = lambda local: None
    code, report = edge.cli('verify', '--local', '--repair')
    assert code == 1 and report['repair']['done']['failed']
    if twin:
        assert edge.residency('lost').tiers == Tier.REMOTE
    else:
        assert edge.here('lost') == wrong


def test_an_older_record_is_renewed(edge):
    # The bucket's records name no partition: it has to follow from the hash.
    number = next(number for number in range(100, 10000)
                  if PARTITION in {str(int(hashlib.md5(
                      b'o%d' % number).hexdigest()[:8], 16) >> (32 - power))
                      for power in range(33)})
    edge.places['new'] = edge.put(number)
    wait_until(lambda: edge.residency('new').remote, 60, 'it is in S3')
    path = edge.places['new'].data_file()
    with open(path, 'r+b') as data:
        write_metadata(data, dict(read_metadata(data),
                                  **{'X-Object-Meta-Colour': 'red'}))
    assert edge.cli('verify', '--records')[1]['stale'] == 1
    code, report = edge.cli('verify', '--records', '--repair')
    assert (code, report['repair']['done']) == (0, {'renewed': 1})
    wait_until(lambda: not edge.cli('verify', '--records')[1]['stale'], 30,
               'the bucket knows')


def test_a_request_that_names_no_version_is_refused(edge):
    node = edge.daemon.node
    mender = Mender(node.local, node.gateway, node.keepers, Drainer(
        node.local, node.gateway, node.relocator))
    right = ['sda', 0, 'a' * 32, '1700000000.00000', None, '7']
    assert mender.run('remote', [right], lambda said: None)['done'] == {
        'obsolete': 1}
    for wrong in ('x', right[:5], [1, 2, 3, 4, 5, 6], *(
            right[:at] + [value] + right[at + 1:] for at, value in enumerate(
                ('a/b', '0', '../' + 'a' * 29, '1', 'x', '../7')))):
        with pytest.raises(BadConfig, match='names no version'):
            mender.run('remote', [wrong], lambda said: None)
    with pytest.raises(BadConfig, match='is none of'):
        mender.run('nothing', [], lambda said: None)
