"""A bucket that was copied calls the same bytes by other ETags."""

from __future__ import annotations

from dataclasses import replace

import pytest

from test_gateway_deletes import Cluster

from swift_dss.wire.records.proof import ProofRequest


@pytest.fixture
def solo(tmp_path):
    made = Cluster(tmp_path, 1)
    yield made
    made.stop()


def test_a_version_is_read_back_once_and_then_known(solo, tmp_path):
    version = solo.put('o')
    disk = solo.disks[0]
    solo.s3.was_copied = True
    reads = []
    for _ in range(3):
        # A daemon that has just begun: no answer of S3 is known.
        solo.gateways[0].stop()
        gateway = solo.gateways[0] = solo.gateway(tmp_path, 0)
        del solo.s3.asked[:]
        gateway.parts.mend.witness.proven(disk.describe(version, '7'))
        reads.append(sum(verb == 'GET' and not key.endswith('.sums')
                         for verb, key in solo.s3.asked))
    assert reads == [1, 0, 0]
    # Its stub may go to another node.
    reply = gateway.prove_arrival(ProofRequest(
        replace(version, device='sdb'), '7',
        disk.describe(version, '7').etag, disk.residency(version)))
    assert reply.status == 200
