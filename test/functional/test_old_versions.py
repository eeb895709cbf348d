"""A bucket that keeps what is deleted: we say so, and can clear it up."""

from __future__ import annotations

import pytest
from functional.test_gateway_relocate import Node
from support import wait_until
from support.edges.s3_servers import BUCKET, VersityServer

from swift_dss.gateway.collect import old_versions
from swift_dss.gateway.link.client import MARKS, S3Client, S3Rejected


@pytest.fixture(scope='module')
def server():
    made = VersityServer(versioning=True)
    made.client().put_bucket_versioning(
        Bucket=BUCKET, VersioningConfiguration={'Status': 'Enabled'})
    yield made
    made.close()


@pytest.fixture
def node(tmp_path, server):
    """Three objects: one is there, one was deleted, one was sent twice."""
    made = Node(str(tmp_path / 'n'), server)
    for number in range(3):
        made.put(number)
    made.daemon.node.gateway.hurry()
    wait_until(lambda: len(made.remote()) == 3, 60, 'all are in S3')
    client = server.client()
    made.stays, made.deleted, made.twice = sorted(made.remote())
    client.delete_object(Bucket=BUCKET, Key=made.deleted)
    body = client.get_object(Bucket=BUCKET, Key=made.twice)['Body'].read()
    client.put_object(Bucket=BUCKET, Key=made.twice, Body=body)
    yield made
    made.daemon.stop()


def listed(node):
    """(versions, markers) that the bucket has of our keys."""
    answer = node.server.client().list_object_versions(
        Bucket=BUCKET, Prefix=node.prefix)

    def ours(kind):
        return [row['Key'] for row in answer.get(kind, ())
                if not row['Key'].endswith(MARKS)]
    return ours('Versions'), ours('DeleteMarkers')


def test_it_is_said_that_deleted_keys_stay(node):
    wait_until(lambda: node.daemon.upkeep.status()['gateway']['versioning']
               == 'Enabled', 30)
    code, said = node.cli('status')
    assert (code, said['versioning'], said['state']) == (0, 'Enabled', 'ours')


def test_a_dry_run_counts_and_changes_nothing(node):
    before = listed(node)
    assert (len(before[0]), len(before[1])) == (4, 1)
    code, said = node.cli('gc', '--versions', '--dry-run')
    assert code == 0
    assert (said['versions'], said['markers'], said['removed']) == (2, 1, 0)
    assert said['length'] == 200000
    assert listed(node) == before


def test_old_versions_and_markers_go_and_nothing_comes_back(node):
    code, said = node.cli('gc', '--versions')
    assert (code, said['removed'], said['failed']) == (0, 3, 0)
    assert listed(node) == (sorted([node.stays, node.twice]), [])
    assert sorted(node.remote()) == sorted([node.stays, node.twice])
    code, said = node.cli('gc', '--versions')
    assert (said['versions'], said['markers'], said['removed']) == (0, 0, 0)


def test_a_version_that_cannot_go_keeps_the_marker_that_hides_it(
        node, monkeypatch):
    really = S3Client.delete_version
    size = {old.version: old.size for old in S3Client.versions(
        node.daemon.node.gateway.parts.client, node.prefix)}

    def refuse(client, key, version):
        if key == node.deleted and size[version]:
            raise S3Rejected('locked')
        really(client, key, version)
    monkeypatch.setattr(S3Client, 'delete_version', refuse)
    code, said = node.cli('gc', '--versions')
    assert (code, said['failed']) == (1, 1)
    assert node.deleted not in node.server.list_keys(), 'it would be back'
    assert listed(node)[1] == [node.deleted]


def test_wrong_twin_that_takes_the_marker_first_brings_it_back(
        node, monkeypatch):
    """In the order of the listing the marker comes first."""
    monkeypatch.setattr(old_versions, 'reversed', list, raising=False)
    seen = []
    really = S3Client.delete_version

    def look(client, key, version):
        really(client, key, version)
        seen.append(node.deleted in node.server.list_keys())
    monkeypatch.setattr(S3Client, 'delete_version', look)
    node.cli('gc', '--versions')
    assert any(seen)
