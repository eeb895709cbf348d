"""What S3 must say before the last local bytes of a version leave."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.clocks import ClockOf

from support.nodes.gateway_node import CountingMetrics, FolderVersions

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import RemoteCorrupt
from swift_dss.core.residency import RemoteCopy
from swift_dss.gateway.around import Around
from swift_dss.gateway.link.client import S3Head
from swift_dss.gateway.mend.repair import Repaired
from swift_dss.gateway.mend.witness import ANSWER_SECONDS, Asker, Means
from swift_dss.gateway.ports import NotProven
from swift_dss.io.workers import inline

BODY = b'body'
ETAG = hashlib.md5(BODY).hexdigest()
COPY = RemoteCopy('s3', 'p/key', ETAG, 1.0)


class Node:
    """One version that is here and in S3, and who asks for it."""

    def __init__(self, root, *specs):
        self.now = 1000.0
        self.head = S3Head(len(BODY), ETAG, {})
        self.asked = self.sent = self.repaired = 0
        self.local = FolderVersions(root)
        self.version = self.local.put('o', BODY)
        self.local.record_remote(self.version, '7', COPY)
        self.means = Means(
            book=SimpleNamespace(size_of=lambda key: None),
            jobs=SimpleNamespace(insist=self._send),
            parking=SimpleNamespace(take_out=lambda version: None),
            repairs=SimpleNamespace(repair=self._repair),
            repairer=SimpleNamespace(follow=lambda local: False),
            prefix=SimpleNamespace(require_for_proof=lambda: None))
        self.asker = Asker(
            Around(GatewayConf(endpoint='s3', prefix='p/'),
                   lambda: ClassTable.of(specs), CountingMetrics(),
                   logging.getLogger('asking-again'),
                   clock=ClockOf(self), pool=inline),
            SimpleNamespace(head=self._head), self.local, self.means)

    def prove(self):
        return self.asker.proven(self.local.describe(self.version, '7'))

    def _head(self, key):
        assert key == COPY.key
        self.asked += 1
        return self.head

    def _send(self, version, partition, class_id):
        self.sent += 1

    def _repair(self, copies):
        self.repaired += 1
        raise RemoteCorrupt('wrong')


@pytest.fixture
def node(tmp_path):
    return Node(str(tmp_path))


def test_what_is_there_as_recorded_is_proven(node):
    assert node.prove() == COPY
    assert (node.asked, node.sent, node.repaired) == (1, 0, 0)


def test_an_answer_is_believed_for_a_while(node):
    assert node.prove() == COPY
    node.head = None
    node.now += ANSWER_SECONDS - 1
    assert node.prove() == COPY and node.asked == 1
    node.now += 1
    with pytest.raises(NotProven):
        node.prove()
    assert node.sent == 1
    assert node.local.residency(node.version).remote is None


@pytest.mark.parametrize('head', [
    S3Head(len(BODY) + 1, ETAG, {}), S3Head(len(BODY), 'e' * 32, {})])
def test_other_bytes_under_the_key_are_no_copy(node, head):
    node.head = head
    with pytest.raises(RemoteCorrupt):
        node.prove()
    assert node.repaired == 1


def test_what_is_archived_is_no_copy(node):
    node.head = S3Head(len(BODY), ETAG, {}, 'DEEP_ARCHIVE')
    with pytest.raises(NotProven):
        node.prove()
    assert not node.sent


def test_a_copy_at_another_endpoint_is_not_asked_for_here(node):
    node.local.record_remote(node.version, '7', replace(
        COPY, endpoint='other'))
    with pytest.raises(NotProven):
        node.prove()
    assert not node.asked and not node.sent


def test_a_prefix_of_others_is_not_leaned_on(node):
    def foreign():
        raise NotProven('not ours', 1)
    node.means.prefix.require_for_proof = foreign
    with pytest.raises(NotProven):
        node.prove()
    assert not node.asked


def test_a_copy_that_was_put_right_is_the_new_one(node):
    def repair(copies):
        node.local.record_remote(*copies[0], new)
        return Repaired.SENT
    new = replace(COPY, key='p/other')
    node.head = S3Head(1, ETAG, {})
    node.means.repairs.repair = repair
    assert node.prove() == new


def right(node, head):
    """S3 says ``head`` of the key, and its bytes prove right."""
    node.head = head
    node.means.repairs.repair = lambda copies: Repaired.RIGHT


def test_the_record_takes_a_new_name_of_bytes_that_proved_right(node):
    renamed = replace(COPY, etag='e' * 32 + '-1')
    right(node, S3Head(len(BODY), renamed.etag, {}))
    assert node.prove() == renamed
    assert node.local.residency(node.version).remote == renamed


def test_the_record_takes_no_name_of_a_key_of_another_size(node):
    """It was overwritten between the two requests."""
    right(node, S3Head(len(BODY) + 1, 'e' * 32, {}))
    assert node.prove() == COPY
    assert node.local.residency(node.version).remote == COPY


def test_what_others_have_as_stubs_goes_on_the_same_proof(node):
    assert node.asker.kept(node.local.describe(node.version, '7')) == COPY
    assert (node.asked, node.sent) == (1, 0)


def test_what_no_record_says_is_in_s3_is_sent_before_it_goes(node):
    """It stood in for another node, and has not heard of S3's copy."""
    node.local.forget_remote(node.version, '7')
    for sent in (1, 2):
        with pytest.raises(NotProven):
            node.asker.kept(node.local.describe(node.version, '7'))
        assert (node.asked, node.sent) == (0, sent)


@pytest.fixture
def staying(tmp_path):
    """The class of the version here keeps it on this cluster."""
    node = Node(str(tmp_path), ClassSpec(
        0, 'stays', 10, remote=RemoteMode.NEVER))
    node.local.forget_remote(node.version, '7')
    return node


def test_what_stays_by_an_old_class_is_looked_for_and_not_sent(staying):
    """Its node stood in for another, and missed the POST of a class."""
    def follow(local):
        staying.local.record_remote(staying.version, '7', COPY)
        return True
    staying.means.repairer.follow = follow
    assert staying.asker.kept(
        staying.local.describe(staying.version, '7')) == COPY
    assert (staying.asked, staying.sent) == (1, 0)


def test_what_stays_and_is_not_in_s3_keeps_its_bytes(staying):
    with pytest.raises(NotProven, match='not in S3 yet'):
        staying.asker.kept(staying.local.describe(staying.version, '7'))
    assert staying.sent == 0
