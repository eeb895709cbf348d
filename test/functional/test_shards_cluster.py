"""A whole Swift whose tier daemon is two processes, and S3 behind it.

Three policies, bundles, a shard killed under readers, devices that move
while objects are in S3 alone, deletes after it, and one process again.
"""

from __future__ import annotations

import concurrent.futures
import configparser
import contextlib
import os
import signal
import threading
import uuid
from typing import Any, Dict, Iterator, List, Tuple

import boto3
import pytest
from botocore.config import Config
from support import md5, pattern, quarantined, tier, wait_until
from support.nodes.tuned_cluster import TunedCluster

from swift_dss.aio import layout
from swift_dss.cli.ask import ask, read_conf, result
from swift_dss.cli.main import main as cli
from swift_dss.gateway.link.client import MARKS
from swift_dss.wire.node import shards

pytestmark = pytest.mark.cluster

ACCOUNT = 'AUTH_test'
#: Policy, class, number and size of what is stored: own keys and bundles.
KINDS = (('dss', '0', 12, 60000), ('dss-ec', '0', 6, 90000),
         ('dss', 'small', 24, 3000))
CLASSES = '''
[class:30]
name = small
rank = 30
bundle = true
'''


class Divided(TunedCluster):
    """A cluster whose daemon has two shards."""

    options = {
        'tier': {'shards': '2', 'clean_after_seconds': '1',
                 'min_demote_bytes': '1024', 'interval_seconds': '1'},
        'gateway': {'remote_after_seconds': '1', 'delete_delay_seconds': '2',
                    'bundle_age_seconds': '1'}}

    def _configure(self) -> None:
        super()._configure()
        with open(self.conf.path('etc', 'dss-classes.conf'), 'a',
                  encoding='ascii') as target:
            target.write(CLASSES)

    def divide(self, wish: str) -> None:
        """Have the daemon find another wish in its file."""
        path = self.conf.path('etc', 'dss.conf')
        parser = configparser.ConfigParser(interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read(path)
        parser['tier']['shards'] = wish
        with open(path, 'w', encoding='utf-8') as target:
            parser.write(target)


@pytest.fixture
def divided() -> Iterator[Divided]:
    with Divided.started('dss-sh-', 19980) as made:
        yield made


class Things:
    """Objects of all kinds, and what they must read as."""

    def __init__(self, cluster: Divided) -> None:
        self.cluster = cluster
        self._here = threading.local()
        self.bodies: Dict[Tuple[str, str], bytes] = {}
        self.containers: List[str] = []
        for policy, class_, number, size in KINDS:
            container = 'sh-%s' % uuid.uuid4().hex[:8]
            self.containers.append(container)
            self.client.put_container(container, headers={
                'X-Storage-Policy': policy})
            for at in range(number):
                name = 'o%02d' % at
                body = pattern(size, container + name)
                self.client.put_object(container, name, body, headers={
                    'X-DSS-Object-Class': class_})
                self.bodies[container, name] = body

    @property
    def client(self) -> Any:
        if not hasattr(self._here, 'client'):
            self._here.client = self.cluster.connection()
        return self._here.client

    def rows(self) -> List[Dict[str, Any]]:
        return [row for container in self.containers for row in tier(
            self.cluster, 'ls', '--container', '%s/%s' % (
                ACCOUNT, container))]

    def are_in_s3(self) -> bool:
        rows = self.rows()
        return len(rows) == 3 * len(self.bodies) and all(
            row['on_remote'] for row in rows)

    def leave(self) -> None:
        """No byte stays on this cluster."""
        wait_until(self.are_in_s3, 120, 'all of it in S3')

        def gone() -> bool:
            for container in self.containers:
                # A bundle that was written anew has another key: who has
                # not heard yet asks S3 first, and names that one.
                with contextlib.suppress(AssertionError):
                    tier(self.cluster, 'demote', '--to', 'remote',
                         '--container', '%s/%s' % (ACCOUNT, container))
            return all(not row['ssd'] and not row['hdd']
                       for row in self.rows())
        wait_until(gone, 60, 'no byte here')

    def wrong(self) -> List[Tuple[str, str]]:
        """Those that cannot be read, or read as something else."""
        def is_wrong(where: Tuple[str, str]) -> bool:
            try:
                return md5(self.client.get_object(*where)[1]) != md5(
                    self.bodies[where])
            except Exception:
                return True
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return [where for where, bad in zip(
                self.bodies, pool.map(is_wrong, self.bodies)) if bad]


def _shards(cluster: Divided) -> List[Dict[str, Any]]:
    shards: List[Dict[str, Any]] = tier(cluster, 'status').get('shards', [])
    return shards


def _keys(cluster: Divided) -> List[str]:
    account, user, key = layout.CLOUD_USER
    client = boto3.client(
        's3', endpoint_url=cluster.conf.cloud_url, region_name='us-east-1',
        aws_access_key_id='%s:%s' % (account, user),
        aws_secret_access_key=key,
        config=Config(s3={'addressing_style': 'path'}))
    pages = client.get_paginator('list_objects_v2').paginate(
        Bucket=layout.CLOUD_BUCKET)
    return [row['Key'] for page in pages
            for row in page.get('Contents', ())]


def test_a_swift_with_shards(divided: Divided) -> None:
    things = Things(divided)
    before = _shards(divided)
    assert len(before) == 2 and all(shard['devices'] for shard in before)
    things.leave()

    # A shard dies while its objects are read from S3.
    os.kill(before[0]['pid'], signal.SIGKILL)
    assert things.wrong() == []
    wait_until(lambda: all(shard['answers'] for shard in _shards(divided)), 60,
               'the shard is back')
    assert sum(shard['restarts'] for shard in _shards(divided)) == 1
    things.leave()

    # Every device changes sides, while nothing but S3 has the bytes.
    divided.divide('%s; %s' % tuple(
        ' '.join(shard['devices']) for shard in reversed(before)))
    result(ask(read_conf(divided.conf.path('etc', 'dss.conf')),
               {'verb': 'reload'}))
    assert [shard['devices'] for shard in _shards(divided)] == [
        shard['devices'] for shard in reversed(before)]
    wait_until(lambda: not tier(divided, 'status')['rebuild_needed'], 60,
               'the devices are read')
    assert len(things.rows()) == 3 * len(things.bodies)
    assert things.wrong() == []

    # What is deleted leaves S3, whoever sent it there.
    for container, name in list(things.bodies):
        if int(name[1:]) % 2:
            things.client.delete_object(container, name)
            del things.bodies[container, name]
    wait_until(lambda: not tier(divided, 'status')['gateway']['deletes'],
               120, 'the deletes are done')
    assert things.wrong() == []

    # One process has everything again.
    divided.divide('1')
    divided.restart('tierd')
    assert _shards(divided) == []
    assert not os.path.exists(divided.conf.path('run', shards.FILE))
    wait_until(lambda: not tier(divided, 'status')['rebuild_needed'], 60,
               'the devices are read')
    things.leave()
    assert things.wrong() == []
    for container, name in list(things.bodies):
        things.client.delete_object(container, name)
        del things.bodies[container, name]

    wait_until(lambda: not tier(divided, 'status')['gateway']['deletes'],
               120, 'the deletes are done')
    # What the second shard kept and sent apart has no keeper any more.
    assert cli(['gateway', 'gc', '--all', '--absent', '--config',
                divided.conf.path('etc', 'dss.conf')]) == 0
    assert [key for key in _keys(divided) if not key.startswith(
        (*MARKS, 'accounts/', 'containers/'))] == []
    assert quarantined(divided) == []
