"""Real S3 servers for tests, on loopback, gone when the test is.

``VersityServer`` is versitygw over a folder; its binary is taken from
``SWIFT_DSS_VERSITYGW``, else from a cache folder outside the checkout, else
built there with ``go install`` (some minutes, once). ``SwiftServer`` is a
second Swift with s3api, the one of the all-in-one cluster. ``MinioServer``
is there for who sets ``SWIFT_DSS_MINIO`` to its binary, or to ``build``: that
takes most of an hour. A server that cannot be had is a failure of the test,
never a skip.
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
from swift_dss.gateway.link.client import MARKS

VERSITYGW = 'v1.8.0'
MINIO = 'v0.0.0-20260212201848-7aac2a2c5b7c'
BUCKET = 'dss-test'
#: Building versitygw takes five minutes on two cores, MinIO ten times that;
#: leave room.
BUILD_SECONDS = 1800
_MINIO_SECONDS = 7200


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
    return _given(given) if given else _cached(
        'github.com/versity/versitygw/cmd/versitygw', VERSITYGW,
        BUILD_SECONDS)


def minio() -> str:
    """The same of MinIO, for who asks for it by ``SWIFT_DSS_MINIO``."""
    asked = os.environ['SWIFT_DSS_MINIO']
    return _cached('github.com/minio/minio', MINIO, _MINIO_SECONDS) \
        if asked == 'build' else _given(asked)


def _given(path: str) -> str:
    assert os.access(path, os.X_OK), 'no such binary: %s' % path
    return path


def _cached(package: str, version: str, seconds: int) -> str:
    name = package.rpartition('/')[2]
    cache = os.path.join(
        os.environ.get('XDG_CACHE_HOME')
        or os.path.expanduser('~/.cache'), 'swift-dss',
        '%s-%s' % (name, version))
    binary = os.path.join(cache, name)
    os.makedirs(cache, exist_ok=True)
    # One process builds; others that want it meanwhile wait for it.
    with open(os.path.join(cache, 'lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.access(binary, os.X_OK):
            _build(cache, package, version, seconds)
    return binary


def _build(cache: str, package: str, version: str, seconds: int) -> None:
    assert shutil.which('go'), (
        '%s is not in %s and there is no go to build it' % (package, cache))
    done = subprocess.run(
        ['go', 'install', '%s@%s' % (package, version)],
        env=dict(os.environ, GOBIN=cache), timeout=seconds,
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
        listed: List[str] = []
        for page in self.client().get_paginator(
                'list_objects_v2').paginate(Bucket=BUCKET):
            # Our marks are no keys of versions: nobody counts them.
            listed += [item['Key'] for item in page.get('Contents', ())
                       if not item['Key'].endswith(MARKS)]
        return listed

    def uploads(self) -> List[str]:
        """Ids of multipart uploads that were begun and not finished."""
        answer = self.client().list_multipart_uploads(Bucket=BUCKET)
        return [item['UploadId'] for item in answer.get('Uploads', ())]

    def body(self, key: str) -> bytes:
        """The bytes of a key."""
        answer = self.client().get_object(Bucket=BUCKET, Key=key)
        return bytes(answer['Body'].read())


class _BinaryServer(S3Server):
    """A server that is one program over a folder of its own."""

    def __init__(self, root: Optional[str] = None) -> None:
        self.root = root or scratch_dir()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self.port = processes.free_base_port(1, first=27080)
        self.url = 'http://127.0.0.1:%d' % self.port
        self.data = os.path.join(self.root, 'data')
        os.makedirs(self.data, exist_ok=True)
        self.start()
        self.client().create_bucket(Bucket=BUCKET)

    @property
    def pid(self) -> int:
        """Of the server, which MUST run."""
        assert self._process is not None
        return self._process.pid

    def command(self) -> List[str]:
        """What is run."""
        raise NotImplementedError

    def environment(self) -> Dict[str, str]:
        """What it finds in its environment besides ours."""
        raise NotImplementedError

    def answers(self) -> bool:
        """True once it takes requests."""
        return _listens(self.port)

    def start(self) -> None:
        with open(os.path.join(self.root, 'log'), 'ab') as log:
            self._process = subprocess.Popen(
                self.command(), env=dict(os.environ, **self.environment()),
                stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT)
        process = self._process
        wait_until(lambda: process.poll() is not None or self.answers(),
                   60, self.name + ' listens')
        assert process.poll() is None, self.name + ' ended; see its log'

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


class VersityServer(_BinaryServer):
    """versitygw.

    :param checksum_etags: answer with ETags that are no MD5s
    :param versioning: buckets may keep old versions
    """

    name = 'versitygw'
    access_key = 'gateway'
    secret_key = 'gateway-secret-key'

    def __init__(self, checksum_etags: bool = False,
                 root: Optional[str] = None,
                 versioning: bool = False) -> None:
        self._versioning = versioning
        self.binary = versitygw()
        self._checksum_etags = checksum_etags
        super().__init__(root)

    def command(self) -> List[str]:
        return [self.binary, '--port', '127.0.0.1:%d' % self.port,
                '--quiet', '--keep-alive', 'posix',
                *['--data-integrity-etag'] * self._checksum_etags,
                *self._versions(), self.data]

    def _versions(self) -> List[str]:
        if not self._versioning:
            return []
        folder = os.path.join(self.root, 'versions')
        os.makedirs(folder, exist_ok=True)
        return ['--versioning-dir', folder]

    def environment(self) -> Dict[str, str]:
        return {'ROOT_ACCESS_KEY': self.access_key,
                'ROOT_SECRET_KEY': self.secret_key}


class MinioServer(_BinaryServer):
    """MinIO with one drive."""

    name = 'minio'
    access_key = 'gateway'
    secret_key = 'gateway-secret-key'

    def __init__(self, root: Optional[str] = None) -> None:
        self.binary = minio()
        # It opens its files past the page cache.
        super().__init__(root or tempfile.mkdtemp(prefix='dss-s3-',
                                                  dir='/var/tmp'))

    def command(self) -> List[str]:
        return [self.binary, 'server', '--quiet', '--address',
                '127.0.0.1:%d' % self.port, '--config-dir',
                os.path.join(self.root, 'conf'), self.data]

    def environment(self) -> Dict[str, str]:
        return {'MINIO_ROOT_USER': self.access_key,
                'MINIO_ROOT_PASSWORD': self.secret_key,
                'MINIO_BROWSER': 'off', 'MINIO_UPDATE': 'off',
                'MINIO_CI_CD': '1'}

    def answers(self) -> bool:
        import http.client
        if not _listens(self.port):
            return False
        asked = http.client.HTTPConnection('127.0.0.1', self.port, timeout=5)
        try:
            asked.request('GET', '/minio/health/live')
            return asked.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            asked.close()


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
