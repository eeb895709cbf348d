"""What S3 holds is read back before somebody needs it."""

from __future__ import annotations

import os

import pytest
from fault.test_gateway_faults import Rig
from support import pattern, wait_until
from support.edges.faulty_s3 import FaultyS3
from support.edges.s3_servers import BUCKET

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.spans import ClassMap

MIB = 1024 * 1024
TABLE = ClassTable.of([ClassSpec(0, 'plain', 0),
                       ClassSpec(1, 'small', 1, bundle=True)])


class Bucket:
    """A rig whose versions are in S3 and here."""

    def __init__(self, real, root):
        self._real = real
        self.faulty = FaultyS3(real)
        self.rig = Rig(self.faulty, root, table=TABLE,
                       scrub_bytes_per_second=1 << 40,
                       bundle_age_seconds=0.2, read_timeout_seconds=10.0)
        self.bodies = {}
        for name, size, class_id in (('one', 50000, 0),
                                     ('parts', 5 * MIB + 999, 0),
                                     ('tiny', 2000, 1)):
            body = pattern(size, name)
            version = self.rig.local.put(
                name, body, class_map=ClassMap.uniform(class_id))
            self.bodies[version] = body
            self.rig.gateway.enqueue_upload(version, '7')
        self.rig.settle()

    def rot(self, version):
        """A bit flips in the bucket, where no digest is told of it."""
        remote = self.rig.local.residency(version).remote
        path = os.path.join(self._real.root, 'data', BUCKET, remote.key)
        with open(path, 'r+b') as target:
            target.seek(remote.offset + 1000)
            byte = target.read(1)
            target.seek(remote.offset + 1000)
            target.write(bytes((byte[0] ^ 4,)))

    def scrub(self):
        """One pass; what it counted."""
        rows = [(number, version, '7') for number, version
                in enumerate(self.bodies, 1)]
        notes = []
        before = self.rig.gateway.parts.mend.scrubber.status()['passes']
        self.rig.gateway.parts.mend.scrubber.start(
            lambda after: [row for row in rows if row[0] > after], 0,
            notes.append)
        scrubber = self.rig.gateway.parts.mend.scrubber
        wait_until(lambda: scrubber.status()['passes']
                   > before, 60, 'a pass is over')
        assert notes == [len(rows), 0], 'it can be gone on with'
        return self.rig.gateway.status()['scrub']

    def close(self):
        self.rig.gateway.stop()
        self.faulty.stop()


@pytest.fixture
def bucket(real, tmp_path):
    made = Bucket(real, tmp_path)
    yield made
    made.close()


def test_what_is_right_is_read_and_left_alone(bucket):
    since = len(bucket.faulty.requests)
    counts = bucket.scrub()
    assert (counts['versions'], counts['wrong']) == (3, 0)
    assert counts['bytes'] == sum(map(len, bucket.bodies.values()))
    assert {request.method for request in bucket.faulty.requests[since:]} \
        == {'GET'}


def test_what_rotted_is_sent_anew_where_it_is_whole(bucket):
    for version in bucket.bodies:
        bucket.rot(version)
    counts = bucket.scrub()
    assert (counts['wrong'], counts['sent_anew']) == (3, 3)
    bucket.rig.local.room = False
    for version, body in bucket.bodies.items():
        assert not bucket.rig.local.residency(version).remote.in_bundle
        bucket.rig.local.drop_local(version)
        assert bucket.rig.fetch(version)[1].data == body


def test_what_is_only_there_is_told_and_not_touched(bucket):
    version = next(iter(bucket.bodies))
    bucket.rig.local.drop_local(version)
    bucket.rot(version)
    before = bucket.rig.local.residency(version)
    counts = bucket.scrub()
    assert (counts['wrong'], counts['sent_anew']) == (1, 0)
    assert bucket.rig.local.residency(version) == before


def test_while_s3_is_away_nothing_is_called_wrong(bucket, monkeypatch):
    monkeypatch.setattr('swift_dss.gateway.mend.scrub._AGAIN_SECONDS', 0.05)
    armed = bucket.faulty.arm('503', lambda r: r.method == 'GET', times=12)
    counts = bucket.scrub()
    assert armed.fired == 12
    assert (counts['versions'], counts['wrong']) == (3, 0)
