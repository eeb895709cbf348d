"""The gateway in the running cluster, seen from the bucket's side."""

from __future__ import annotations

import boto3
import pytest
from botocore.config import Config
from support import data_files, drop_local, md5, pattern, tier, wait_until
from swiftclient import ClientException

from swift_dss.aio import layout
from swift_dss.gateway.form import metadata

pytestmark = pytest.mark.cluster

MIB = 1024 * 1024


@pytest.fixture
def bucket(cluster):
    """The bucket as its owner sees it."""
    account, user, key = layout.CLOUD_USER
    client = boto3.client(
        's3', endpoint_url=cluster.conf.cloud_url, region_name='us-east-1',
        aws_access_key_id='%s:%s' % (account, user),
        aws_secret_access_key=key,
        config=Config(s3={'addressing_style': 'path'}))

    return Bucket(client)


class Bucket:
    """Call it with an object's hash for the keys of its versions."""

    def __init__(self, client):
        self.client = client

    def __call__(self, object_hash):
        pages = self.client.get_paginator('list_objects_v2').paginate(
            Bucket=layout.CLOUD_BUCKET)
        return sorted(row['Key'] for page in pages
                      for row in page.get('Contents', ())
                      if object_hash in row['Key'])


class Thing:
    """One object and what is known of it."""

    def __init__(self, cluster, swift, container, size, name='o'):
        self.cluster = cluster
        self.swift = swift
        self.container = container
        self.name = name
        self.body = pattern(size, container + name)
        policy = swift.head_container(container)['x-storage-policy']
        swift.put_object(container, name, self.body)
        files = data_files(cluster, 'AUTH_test', container, name,
                           layout.POLICIES.index(policy))
        assert len(files) == 3
        self.object_hash = files[0].object_hash
        self.path = '/AUTH_test/%s/%s' % (container, name)

    def get(self, **headers):
        return self.swift.get_object(
            self.container, self.name, headers=headers)[1]

    def only_in_s3(self):
        """Wait for the upload, then drop all local bytes."""
        drop_local(self.cluster, self.path)
        assert all(not row['ssd'] and not row['hdd']
                   for row in self.rows())

    def rows(self):
        return tier(self.cluster, 'ls', '--container',
                    'AUTH_test/' + self.container)

    def all_remote(self):
        rows = self.rows()
        return len(rows) == 3 and all(row['on_remote'] for row in rows)


@pytest.mark.parametrize('size', [5000, 20 * MIB + 11])
def test_an_object_goes_to_s3_and_comes_back(
        cluster, swift, any_container, bucket, size):
    thing = Thing(cluster, swift, any_container, size)
    thing.only_in_s3()
    keys = [key for key in bucket(thing.object_hash)
            if not key.endswith(('.sums', '.meta'))]
    fragments = swift.head_container(any_container)[
        'x-storage-policy'] == 'dss-ec'
    assert len(keys) == (3 if fragments else 1)
    middle = size // 2
    assert thing.get(Range='bytes=%d-%d' % (middle, middle + 99)) == (
        thing.body[middle:middle + 100])
    assert thing.get() == thing.body
    assert thing.get() == thing.body, 'and again, partly local'


def test_the_bucket_alone_says_what_an_object_is(
        cluster, swift, container, bucket):
    name = 'caf\u00e9/1'
    thing = Thing(cluster, swift, container, 5000, name)
    wait_until(thing.all_remote, 60)
    key, = bucket(thing.object_hash)
    head = bucket.client.head_object(Bucket=layout.CLOUD_BUCKET, Key=key)
    record = metadata.decode({meta.lower(): value for meta, value
                              in head['Metadata'].items()})
    assert record.metadata['name'] == '/AUTH_test/%s/%s' % (container, name)
    assert record.etag == md5(thing.body) == head['ETag'].strip('"')
    assert key.endswith(record.version.key)


def test_deleted_objects_leave_the_bucket(
        cluster, swift, container, bucket):
    thing = Thing(cluster, swift, container, 5000)
    wait_until(thing.all_remote, 60)
    swift.delete_object(container, thing.name)
    # The cluster's configuration has a delay, of seconds.
    wait_until(lambda: not bucket(thing.object_hash), 120)


def test_a_write_is_acknowledged_and_then_refused_by_the_quota(
        cluster, swift, container, bucket):
    """rclone 9099: Swift's quotas speak before the acknowledgement, and
    nothing of what they refuse stays here or goes to S3."""
    swift.post_container(container, {'X-Container-Meta-Quota-Bytes': '1000'})
    with pytest.raises(ClientException) as refused:
        swift.put_object(container, 'too-large', b'x' * 2000)
    assert refused.value.http_status == 413
    assert data_files(cluster, 'AUTH_test', container, 'too-large', layout
                      .POLICIES.index('dss')) == []
    swift.put_object(container, 'fits', b'x' * 900)
    assert swift.get_object(container, 'fits')[1] == b'x' * 900
