"""The main job: to SSD, to HDD, to S3, and back, byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import (
    await_remote, drop_local, pattern, replicas, tier, tier_command,
    wait_until)
from swiftclient.exceptions import ClientException

from swift_dss.core.residency import STUB_SURPLUS, Tier

pytestmark = pytest.mark.cluster

SIZE = 3 * 1024 * 1024 + 17


def _swift(cluster, *arguments, cwd=None):
    """The ``swift`` command line client."""
    done = subprocess.run(
        [sys.executable, '-m', 'swiftclient.shell',
         '-A', cluster.conf.auth_url, '-U', 'test:tester', '-K', 'testing']
        + list(arguments), cwd=cwd, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _path(container, name):
    return '/AUTH_test/%s/%s' % (container, name)


def _tiers(cluster, path):
    return {replica.residency.tiers for replica in replicas(cluster, path)}


def test_from_the_command_line_all_the_way_and_back(
        cluster, any_container, tmp_path):
    body = pattern(SIZE, any_container)
    (tmp_path / 'sunset.jpg').write_bytes(body)
    _swift(cluster, 'upload', '-H', 'X-DSS-Object-Class: gold',
           any_container, 'sunset.jpg', cwd=str(tmp_path))
    path = _path(any_container, 'sunset.jpg')

    on_disk = replicas(cluster, path)
    assert len(on_disk) == 3
    for replica in on_disk:
        assert replica.residency.tiers & Tier.SSD
        assert replica.class_map.class_at(0) == 25
        assert os.path.getsize(replica.path) == replica.content_length

    # The daemon hears of an upload a moment after the client's answer.
    tier_command(cluster, 'settle')
    tier_command(cluster, 'demote', path)
    for replica in replicas(cluster, path):
        assert not replica.residency.tiers & Tier.SSD
        assert replica.residency.tiers & Tier.HDD
        assert os.path.getsize(replica.path) \
            == replica.content_length + STUB_SURPLUS
        # Its blocks are gone, not only its mark set.
        on_disk_bytes = os.stat(replica.path).st_blocks * 512
        assert on_disk_bytes < replica.content_length // 10
    assert _swift(cluster, 'download', any_container, 'sunset.jpg',
                  '-o', '-') == body

    drop_local(cluster, path)
    assert _swift(cluster, 'download', any_container, 'sunset.jpg',
                  '-o', '-') == body

    def refilled():
        return any(tiers & (Tier.SSD | Tier.HDD)
                   for tiers in _tiers(cluster, path))
    wait_until(refilled, 30, 'local bytes after the read')
    assert _swift(cluster, 'download', any_container, 'sunset.jpg',
                  '-o', '-') == body


def test_through_s3_with_the_class_in_the_metadata(cluster, swift, s3,
                                                   container):
    body = pattern(SIZE, 's3')
    s3.put_object(Bucket=container, Key='sunset.jpg', Body=body,
                  Metadata={'dss-class': 'gold'})
    path = _path(container, 'sunset.jpg')
    assert {replica.class_map.class_at(0)
            for replica in replicas(cluster, path)} == {25}
    headers = swift.head_object(container, 'sunset.jpg')
    assert headers['x-dss-object-class'] == '25'
    drop_local(cluster, path)
    got = s3.get_object(Bucket=container, Key='sunset.jpg',
                        Range='bytes=100000-2000000')
    assert got['Body'].read() == body[100000:2000001]
    got = s3.get_object(Bucket=container, Key='sunset.jpg')
    assert got['Body'].read() == body


@pytest.mark.parametrize('first, last', [
    (0, 0), (0, 99), (4095, 4096), (SIZE - 1, SIZE - 1),
    (1 << 20, (2 << 20) + 5), (SIZE - 70000, SIZE + 70000)])
def test_ranges_of_an_object_that_is_only_in_s3(
        cluster, swift, any_container, first, last):
    body = pattern(SIZE, 'ranges')
    swift.put_object(any_container, 'o', body,
                     headers={'X-DSS-Object-Class': 'silver'})
    drop_local(cluster, _path(any_container, 'o'))
    _headers, got = swift.get_object(any_container, 'o', headers={
        'Range': 'bytes=%d-%d' % (first, last)})
    assert got == body[first:last + 1]


def test_head_post_copy_and_listing_do_not_bring_bytes_back(
        cluster, swift, any_container):
    body = pattern(SIZE, 'quiet')
    swift.put_object(any_container, 'o', body,
                     headers={'X-DSS-Object-Class': 'bronze'})
    path = _path(any_container, 'o')
    drop_local(cluster, path)
    headers = swift.head_object(any_container, 'o')
    assert int(headers['content-length']) == SIZE
    swift.post_object(any_container, 'o', {'X-Object-Meta-Colour': 'red'})
    assert swift.head_object(any_container, 'o')[
        'x-object-meta-colour'] == 'red'
    _headers, rows = swift.get_container(any_container)
    assert [row['bytes'] for row in rows] == [SIZE]
    assert _tiers(cluster, path) == {Tier.REMOTE}
    assert swift.get_object(any_container, 'o')[1] == body


def test_many_readers_of_one_remote_object_cause_one_fill(
        cluster, swift, container):
    body = pattern(8 * 1024 * 1024, 'herd')
    swift.put_object(container, 'herd', body,
                     headers={'X-DSS-Object-Class': 'gold'})
    path = _path(container, 'herd')
    stubs = drop_local(cluster, path)
    key = stubs[0].residency.remote.key
    log = os.path.join(cluster.conf.log, 'cloud-object-server.log')
    begin = os.path.getsize(log)

    def read(_number):
        connection = cluster.connection()
        try:
            return connection.get_object(container, 'herd')[1] == body
        finally:
            connection.close()
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))
    with open(log) as source:
        source.seek(begin)
        gets = [line for line in source
                if '"GET /' in line and key in line]
    # Three replicas may each be asked; each fills once, in parts. Eight
    # readers that were not joined would cost eight whole reads.
    sent = sum(int(line.split('" ')[1].split()[1]) for line in gets)
    assert len(body) <= sent <= 3 * len(body) + 3 * 65536


def test_an_overwritten_and_a_deleted_object_never_come_back(
        cluster, swift, any_container):
    path = _path(any_container, 'o')
    swift.put_object(any_container, 'o', pattern(SIZE, 'old'),
                     headers={'X-DSS-Object-Class': 'silver'})
    drop_local(cluster, path)
    newer = pattern(SIZE, 'new')
    swift.put_object(any_container, 'o', newer,
                     headers={'X-DSS-Object-Class': 'silver'})
    assert swift.get_object(any_container, 'o')[1] == newer
    drop_local(cluster, path)
    assert swift.get_object(any_container, 'o')[1] == newer
    swift.delete_object(any_container, 'o')
    with pytest.raises(ClientException) as caught:
        swift.get_object(any_container, 'o')
    assert caught.value.http_status == 404
    assert replicas(cluster, path) == []


def test_the_daemon_may_die_at_any_time(cluster, swift, any_container):
    from swift_dss.aio import processes
    body = pattern(SIZE, 'daemon')
    swift.put_object(any_container, 'o', body,
                     headers={'X-DSS-Object-Class': 'gold'})
    processes.kill(cluster.conf.root, ['tierd'])
    try:
        # Without the daemon: writes go on, and so do local reads.
        swift.put_object(any_container, 'p', body,
                         headers={'X-DSS-Object-Class': 'gold'})
        assert swift.get_object(any_container, 'o')[1] == body
        assert swift.get_object(any_container, 'p')[1] == body
    finally:
        cluster.restart('tierd')
    # What it did not hear it finds in the spool.
    for name in ('o', 'p'):
        drop_local(cluster, _path(any_container, name))
        assert swift.get_object(any_container, name)[1] == body


def test_cloud_down_reads_fail_clearly_and_writes_go_on(
        cluster, swift, any_container):
    body = pattern(SIZE, 'cloud')
    swift.put_object(any_container, 'away', body,
                     headers={'X-DSS-Object-Class': 'silver'})
    drop_local(cluster, _path(any_container, 'away'))
    cluster.stop_cloud()
    try:
        connection = cluster.connection()
        connection.retries = 0
        begin = time.monotonic()
        with pytest.raises(ClientException) as caught:
            connection.get_object(any_container, 'away')
        assert caught.value.http_status == 503
        headers = {name.lower(): value for name, value
                   in caught.value.http_response_headers.items()}
        assert int(headers['retry-after']) > 0
        assert time.monotonic() - begin < 30
        # HEAD needs no byte of it.
        assert connection.head_object(any_container, 'away')
        swift.put_object(any_container, 'here', body,
                         headers={'X-DSS-Object-Class': 'gold'})
        assert swift.get_object(any_container, 'here')[1] == body
        connection.close()
    finally:
        cluster.start_cloud()

    def readable():
        try:
            return swift.get_object(any_container, 'away')[1]
        except ClientException as err:
            assert err.http_status == 503
            return None
    assert wait_until(readable, 90, 'readable again') == body
    await_remote(cluster, _path(any_container, 'here'), 120)


def test_range_classes_place_each_part_of_an_object(cluster, swift,
                                                    container):
    """I-frames on the SSD, the rest on the HDD: per-span demotion."""
    body = pattern(2 * 1024 * 1024, 'video')
    swift.put_object(container, 'clip', body, headers={
        'X-DSS-Object-Class': 'bronze',
        'X-DSS-Range-Class': '0-65536-gold,1048576-65536-gold'})
    on_disk = replicas(cluster, _path(container, 'clip'))
    assert len(on_disk) == 3
    for replica in on_disk:
        assert replica.class_map.class_at(0) == 25
        assert replica.class_map.class_at(65536) == 27
        assert replica.class_map.class_at(1048576) == 25
    assert swift.get_object(container, 'clip')[1] == body


def test_status_counts_what_the_disks_hold(cluster, swift, container):
    swift.put_object(container, 'o', pattern(100000, 'count'),
                     headers={'X-DSS-Object-Class': '9'})
    tier(cluster, 'settle')
    rows = tier(cluster, 'ls', '--container', 'AUTH_test/' + container)
    assert len(rows) == 3
    for row in rows:
        assert row['name'] == _path(container, 'o')
        assert row['size'] == 100000
        assert [counts['class_id'] for counts in row['classes']] == [9]
    counted = tier(cluster, 'status')['classes']['9']
    assert counted['objects'] == 3
    assert counted['total'] == 300000
