"""The one way into quarantine: asked, decided, and done if nothing changed."""

from __future__ import annotations


import pytest

from support.nodes.gateway_node import CountingMetrics, FolderVersions

from swift_dss.core.errors import RemoteUnavailable, VersionGone
from swift_dss.core.residency import RemoteCopy
from swift_dss.gateway.form import verify
from swift_dss.gateway.link.client import S3Head
from swift_dss.gateway.peers.aside import Asides
from swift_dss.gateway.peers.primaries import (
    Primaries, RingPrimaries, Wanted, looks_at)
from swift_dss.strategy.agreement import Answer, Aside

BODY = b'body' * 1000
COPY = RemoteCopy('s3', 'p/key', 'e', 1.0)


class Others(Primaries):
    """What other nodes say."""

    def __init__(self):
        self.says = []
        self.asked = []

    def ask(self, wanted, records=False):
        raise AssertionError('nobody decides by claims')

    def prove(self, wanted):
        self.asked.append(wanted)
        return self.says


class Versions(FolderVersions):
    """A device with a quarantine, that may fail as a whole."""

    needed = 1
    fails = False

    def __init__(self, root):
        super().__init__(root)
        self.aside = []

    def copies_needed(self, version):
        return self.needed

    def is_failing(self, device):
        return self.fails

    def put_aside(self, version, partition, residency):
        if self.residency(version) != residency:
            raise ValueError('another one')
        self.aside.append(version)


class Node:

    def __init__(self, root):
        self.local, self.others = Versions(root), Others()
        self.metrics, self.keys = CountingMetrics(), {}
        self.asides = Asides(self.local, self.others, self.metrics, self)
        self.version = self.local.put('o', BODY)
        self.stamp = self.version.timestamp

    def head(self, key):
        """S3's answer."""
        answer = self.keys.get(key, False)
        if isinstance(answer, Exception):
            raise answer
        return S3Head(1, 'e', {}) if answer else None

    def put_aside(self):
        return self.asides.put_aside(self.local.describe(self.version, '7'))


@pytest.fixture
def node(tmp_path):
    return Node(str(tmp_path))


def test_what_another_primary_has_proven_goes(node):
    node.others.says = [None, Answer(node.stamp, '', True, '', True)]
    assert node.put_aside() is Aside.YES
    assert node.local.aside == [node.version]
    assert node.others.asked == [Wanted(node.version, '/a/c/o')]
    assert node.metrics.counters == {'gateway.aside.yes': 1}


@pytest.mark.parametrize('says', [
    [], [None, None], [Answer('1700000000.00000', '', True)]])
def test_what_nobody_has_stays(node, says):
    node.others.says = says
    assert node.put_aside() is Aside.NOBODY
    assert not node.local.aside
    assert node.metrics.counters == {'gateway.aside.nobody': 1}


@pytest.mark.parametrize('key, verdict', [
    (True, Aside.YES), (False, Aside.NOBODY),
    (RemoteUnavailable('away', 1), Aside.NOBODY)])
def test_a_key_of_others_is_asked_for(node, key, verdict):
    node.others.says = [Answer(node.stamp, 'p/other')]
    node.keys['p/other'] = key
    assert node.put_aside() is verdict
    assert bool(node.local.aside) is (verdict is Aside.YES)


def test_where_there_is_no_s3_no_key_helps(node):
    node.others.says = [Answer(node.stamp, 'p/other')]
    asides = Asides(node.local, node.others, node.metrics)
    assert asides.put_aside(node.local.describe(
        node.version, '7')) is Aside.NOBODY


def test_the_own_lost_key_is_no_other_one(node):
    node.local.record_remote(node.version, '7', COPY)
    node.keys[COPY.key] = True
    node.others.says = [Answer(node.stamp, COPY.key)]
    assert node.put_aside() is Aside.NOBODY


def test_nobody_reads_for_a_device_that_fails(node):
    node.local.fails = True
    node.others.says = [Answer(node.stamp, '', True, '', True)]
    assert node.put_aside() is Aside.FAILING
    assert not node.local.aside and not node.others.asked


def test_what_has_changed_meanwhile_stays(node):
    node.others.says = [Answer(node.stamp, '', True, '', True)]
    seen = node.local.describe(node.version, '7')
    node.local.record_remote(node.version, '7', COPY)
    with pytest.raises(VersionGone):
        node.asides.put_aside(seen)
    assert not node.local.aside


# -- proofs of devices of one node -------------------------------------------


class OneNode:
    """Ranks of a node that has every primary."""

    def __init__(self, *devices):
        self.devices = devices

    def primaries(self, policy, object_hash):
        return '7', [{'device': name} for name in self.devices]

    def is_here(self, node):
        return True


@pytest.fixture
def replicas(tmp_path):
    local = FolderVersions(str(tmp_path))
    versions = [local.put('o', BODY, device=name)
                for name in ('sda', 'sdb', 'sdc')]
    return local, versions, RingPrimaries(
        OneNode('sda', 'sdb', 'sdc'), looks_at(local),
        is_sound=lambda version, partition: verify.is_sound(
            local, version, partition))


def proven(primaries, version):
    return [answer.is_proven for answer in primaries.prove(
        Wanted(version, '/a/c/o'))]


def test_the_device_that_asks_proves_nothing_for_itself(replicas):
    _local, (first, second, _), primaries = replicas
    assert proven(primaries, first) == [False, True, True]
    assert proven(primaries, second) == [True, False, True]


def test_bytes_that_are_wrong_prove_nothing(replicas):
    local, (first, second, third), primaries = replicas
    local.corrupt(second)
    assert proven(primaries, first) == [False, False, True]
    local.record_remote(third, '7', COPY)
    local.drop_local(third)
    assert proven(primaries, first) == [False, False, False]


def test_an_older_version_proves_nothing(replicas):
    local, (first, _, _), primaries = replicas
    newer = local.put('o', BODY, '1800000000.00000', 'sda')
    assert proven(primaries, newer) == [False, False, False]
    assert [answer.timestamp for answer in primaries.prove(Wanted(newer))] \
        == [newer.timestamp, first.timestamp, first.timestamp]


def test_no_proof_is_asked_for_where_nobody_decides(replicas):
    _local, (first, _, _), primaries = replicas
    assert [answer.is_proven for answer in primaries.ask(
        [Wanted(first)], True)[0]] == [False] * 3
