"""A bucket that was copied calls the same bytes by other ETags."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import memory_s3
import pytest

sys.path.insert(0, os.path.dirname(__file__))

from test_gateway_deletes import Cluster

from swift_dss.wire.records.proof import ProofRequest


@pytest.fixture
def solo(tmp_path):
    made = Cluster(tmp_path, 1)
    yield made
    made.stop()


def test_a_version_is_read_back_once_and_then_known(solo, monkeypatch):
    version = solo.put('o')
    gateway, disk = solo.gateways[0], solo.disks[0]
    inner = memory_s3._md5
    monkeypatch.setattr(memory_s3, '_md5', lambda data: inner(data) + '-1')
    reads = []
    for _ in range(3):
        gateway.witness._answers.clear()  # another day
        del solo.s3.asked[:]
        gateway.witness.proven(disk.describe(version, '7'))
        reads.append(sum(verb == 'GET' and not key.endswith('.sums')
                         for verb, key in solo.s3.asked))
    assert reads == [1, 0, 0]
    # Its stub may go to another node.
    reply = gateway.prove_arrival(ProofRequest(
        replace(version, device='sdb'), '7',
        disk.describe(version, '7').etag, disk.residency(version)))
    assert reply.status == 200
