"""Real S3 servers for tests, on loopback, gone when the test is.

``VersityServer`` is versitygw over a folder; its binary is taken from
``SWIFT_DSS_VERSITYGW``, else from a cache folder outside the checkout, else
built there with ``go install`` (some minutes, once). ``SwiftServer`` is a
second Swift with s3api, the one of the all-in-one cluster. A server that
cannot be had is a failure of the test, never a skip.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from typing import Any, Dict, List, Optional

from support import wait_until

from swift_dss.aio import processes

VERSITYGW = 'v1.8.0'
BUCKET = 'dss-test'
#: Building versitygw takes five minutes on two cores; leave room.
BUILD_SECONDS = 1800


def scratch_dir() -> str:
    """A new folder on a file system with room for big attributes."""
    shared = '/dev/shm'
    base = shared if os.access(shared, os.W_OK) else None
    return tempfile.mkdtemp(prefix='dss-s3-', dir=base)


def versitygw() -> str:
    """Path of the binary, built if need be.

    :raises AssertionError: it is not there and cannot be built
    """
    given = os.environ.get('SWIFT_DSS_VERSITYGW')
    if given:
        assert os.access(given, os.X_OK), 'no such binary: %s' % given
        return given
    cache = os.path.join(
        os.environ.get('XDG_CACHE_HOME')
        or os.path.expanduser('~/.cache'), 'swift-dss',
        'versitygw-' + VERSITYGW)
    binary = os.path.join(cache, 'versitygw')
    os.makedirs(cache, exist_ok=True)
    # One process builds; others that want it meanwhile wait for it.
    with open(os.path.join(cache, 'lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.access(binary, os.X_OK):
            _build(cache)
    return binary


def _build(cache: str) -> None:
    assert shutil.which('go'), (
        'versitygw is not in %s and there is no go to build it' % cache)
    done = subprocess.run(
        ['go', 'install',
         'github.com/versity/versitygw/cmd/versitygw@' + VERSITYGW],
        env=dict(os.environ, GOBIN=cache), timeout=BUILD_SECONDS,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, 'go install:\n' + done.stdout[-2000:]


class S3Server:
    """What tests need of any of them."""

    name = ''
    url = ''
    access_key = ''
    secret_key = ''
    root = ''

    def start(self) -> None:
        """Listen (again), on the same port and with the same data."""
        raise NotImplementedError

    def stop(self) -> None:
        """Refuse connections from now on; the data stays."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop, and remove everything."""
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def client(self) -> Any:
        """A boto3 client of the test's own, the judge's eyes."""
        import boto3
        from botocore.config import Config
        return boto3.client(
            's3', endpoint_url=self.url, region_name='us-east-1',
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(
                s3={'addressing_style': 'path'},
                request_checksum_calculation='when_required',
                response_checksum_validation='when_required',
                retries={'total_max_attempts': 2}))

    def list_keys(self) -> List[str]:
        """All keys of the bucket."""
        found: List[str] = []
        for page in self.client().get_paginator(
                'list_objects_v2').paginate(Bucket=BUCKET):
            found += [item['Key'] for item in page.get('Contents', ())]
        return found

    def uploads(self) -> List[str]:
        """Ids of multipart uploads that were begun and not finished."""
        answer = self.client().list_multipart_uploads(Bucket=BUCKET)
        return [item['UploadId'] for item in answer.get('Uploads', ())]

    def body(self, key: str) -> bytes:
        """The bytes of a key."""
        answer = self.client().get_object(Bucket=BUCKET, Key=key)
        return bytes(answer['Body'].read())


class VersityServer(S3Server):
    """versitygw over a folder of its own.

    :param checksum_etags: answer with ETags that are no MD5s
    """

    name = 'versitygw'
    access_key = 'gateway'
    secret_key = 'gateway-secret-key'

    def __init__(self, checksum_etags: bool = False,
                 root: Optional[str] = None) -> None:
        self.root = root or scratch_dir()
        self._binary = versitygw()
        self._checksum_etags = checksum_etags
        self._process: Optional[subprocess.Popen[bytes]] = None
        self.port = processes.free_base_port(1, first=27080)
        self.url = 'http://127.0.0.1:%d' % self.port
        os.makedirs(os.path.join(self.root, 'data'), exist_ok=True)
        self.start()
        self.client().create_bucket(Bucket=BUCKET)

    def start(self) -> None:
        command = [self._binary, '--port', '127.0.0.1:%d' % self.port,
                   '--quiet', 'posix']
        if self._checksum_etags:
            command.append('--data-integrity-etag')
        command.append(os.path.join(self.root, 'data'))
        env: Dict[str, str] = dict(
            os.environ, ROOT_ACCESS_KEY=self.access_key,
            ROOT_SECRET_KEY=self.secret_key)
        with open(os.path.join(self.root, 'log'), 'ab') as log:
            self._process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT)
        process = self._process
        wait_until(lambda: process.poll() is not None or _listens(self.port),
                   30, 'versitygw listens')
        assert process.poll() is None, 'versitygw ended; see its log'

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


class SwiftServer(S3Server):
    """The second Swift of the all-in-one cluster, alone."""

    name = 'swift'

    def __init__(self) -> None:
        from swift_dss.aio import cloud, layout
        from swift_dss.aio.cluster import Cluster, printer
        self.root = scratch_dir()
        conf = cloud.prepare(self.root, 28080)
        self._cluster = Cluster(conf, printer())
        self.url = conf.cloud_url
        self.access_key = '%s:%s' % layout.CLOUD_USER[:2]
        self.secret_key = layout.CLOUD_USER[2]
        self.start()
        self.client().create_bucket(Bucket=BUCKET)

    def start(self) -> None:
        self._cluster.start_cloud()

    def stop(self) -> None:
        self._cluster.stop_cloud()


def _listens(port: int) -> bool:
    import socket
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(('127.0.0.1', port)) == 0
