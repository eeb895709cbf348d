"""S08-S10, S16: TLS, keys that rotate, tenants apart, and a secret that
never shows."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import subprocess
import sys
import urllib.request
import uuid

import pytest
from support import md5, wait_until
from support.edges.s3_servers import BUCKET, VersityServer
from support.nodes.daemon_node import DaemonProcess, write_node
from support.nodes.gateway_node import (
    Collector, CountingMetrics, FixedRanks, FolderVersions, OnlyHere,
    conf_for)

from swift_dss.aio import processes
from swift_dss.cli.main import main
from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.wire.control import FetchRequest

LOG = logging.getLogger('test.security')
SMALL_TABLE = ClassTable.of([ClassSpec(0, 'plain', 0, bundle=True)])


def certificate(folder, address, name):
    """A self-signed certificate for an address; (certificate, key)."""
    cert, key = (os.path.join(str(folder), name + ending)
                 for ending in ('.crt', '.key'))
    subprocess.run(
        ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes',
         '-days', '2', '-subj', '/CN=' + name, '-addext',
         'subjectAltName = IP:' + address, '-keyout', key, '-out', cert],
        check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, timeout=60)
    return cert, key


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


@pytest.fixture(scope='module')
def tls(tmp_path_factory):
    """(url of a TLS server over the same bucket, certificate, folder)."""
    folder = tmp_path_factory.mktemp('tls')
    cert, key = certificate(folder, '127.0.0.1', 'right')
    plain = VersityServer()
    port = processes.free_base_port(1, first=27480)
    with open(os.path.join(str(folder), 'log'), 'wb') as log:
        process = subprocess.Popen(
            [plain.binary, '--port', '127.0.0.1:%d' % port, '--cert', cert,
             '--key', key, '--quiet', 'posix',
             os.path.join(plain.root, 'data')],
            env=dict(os.environ, ROOT_ACCESS_KEY=plain.access_key,
                     ROOT_SECRET_KEY=plain.secret_key),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    wait_until(lambda: processes.listening(port), 30, 'TLS server')
    yield plain, 'https://127.0.0.1:%d' % port, cert, folder
    process.terminate()
    process.wait(30)
    plain.close()


class Node:
    """A gateway over a folder."""

    def __init__(self, server, root, table=None, url='', **options):
        options.setdefault('prefix', 't-%s/' % uuid.uuid4().hex[:8])
        self.conf = conf_for(server, str(root), url, **options)
        self.prefix = options['prefix']
        self.local = FolderVersions(str(root))
        self.metrics = CountingMetrics()
        self.gateway = Gateway(
            self.conf, lambda: table or ClassTable(), self.local, LOG,
            self.metrics,
            outside=Outside(
                ranks=FixedRanks(), primaries=OnlyHere(self.local)))
        self.gateway.start()

    def remote(self, version):
        return self.local.residency(version).remote is not None


# -- TLS --------------------------------------------------------------------

def test_a_self_signed_server_is_refused_and_hears_nothing(
        tls, nodes, tmp_path):
    plain, url, _cert, _folder = tls
    node = nodes(plain, tmp_path / 'n', url=url)
    version = node.local.put('secret.txt', b'for nobody else')
    node.gateway.enqueue_upload(version, '7')
    wait_until(lambda: 'SSLError' in str(node.gateway.status()), 30)
    assert not node.remote(version)
    assert plain.list_keys() == []


def test_with_its_certificate_it_is_accepted(tls, nodes, tmp_path):
    plain, url, cert, _folder = tls
    node = nodes(plain, tmp_path / 'n', url=url, ca_bundle=cert)
    version = node.local.put('secret.txt', b'over TLS' * 100000)
    node.gateway.enqueue_upload(version, '7')
    wait_until(lambda: node.remote(version), 60)
    assert md5(plain.body(node.local.residency(version).remote.key)) == \
        md5(b'over TLS' * 100000)


def test_the_certificate_of_another_machine_is_refused(
        tls, nodes, tmp_path):
    plain, url, _cert, folder = tls
    other, _ = certificate(folder, '127.0.0.9', 'other')
    node = nodes(plain, tmp_path / 'n', url=url, ca_bundle=other)
    version = node.local.put('secret.txt', b'for nobody else')
    node.gateway.enqueue_upload(version, '7')
    wait_until(lambda: 'SSLError' in str(node.gateway.status()), 30)
    assert not node.remote(version)


# -- keys -------------------------------------------------------------------

def test_keys_rotate_without_a_restart(server, nodes, tmp_path):
    node = nodes(server, tmp_path / 'n')
    path = node.conf.gateway.secret_file
    with open(path) as source:
        right = source.read()

    def rename_in(text):
        secret_fd = os.open(path + '.new', os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(secret_fd, 'w') as out:
            out.write(text)
        os.rename(path + '.new', path)

    rename_in('access_key = gateway\nsecret_key = revoked-yesterday\n')
    version = node.local.put('a', b'x' * 1000)
    node.gateway.enqueue_upload(version, '7')
    wait_until(lambda: '403' in str(node.gateway.status()), 30)
    assert 'revoked-yesterday' not in str(node.gateway.status())
    rename_in(right)
    wait_until(lambda: node.remote(version), 60)


# -- tenants ----------------------------------------------------------------

def test_no_byte_of_a_tenant_leaves_with_another_s(server, nodes, tmp_path):
    """S08-S10: canaries through bundles, cache and fetches ahead."""
    node = nodes(server, tmp_path / 'n', SMALL_TABLE,
                 bundle_age_seconds=0.5)
    tenants = ['tenant%d' % number for number in range(3)]
    versions = {}
    for number in range(60):
        tenant = tenants[number % 3]
        canary = ('canary-%s-%s;' % (tenant, uuid.uuid4().hex)).encode()
        body = canary * 30
        version = node.local.put(
            'o%d' % number, body, class_map=ClassMap.uniform(0),
            metadata={'name': '/AUTH_%s/c/o%d' % (tenant, number)})
        versions[version] = (tenant, body)
        node.gateway.enqueue_upload(version, '7')
    wait_until(lambda: all(map(node.remote, versions)), 90, 'all in S3')
    keys = {node.local.residency(version).remote.key for version in versions}
    assert len(keys) < len(versions) / 2, 'they were to be bundled'
    scanned = foreign = 0
    for key in server.list_keys():
        if not key.startswith(node.prefix):
            continue
        body = server.body(key)
        scanned += len(body)
        foreign += len(set(re.findall(rb'canary-(tenant\d)', body))) > 1
    for version, (tenant, body) in versions.items():
        node.local.drop_local(version)
        sink = Collector()
        assert node.gateway.fetch(FetchRequest(
            version, '7', 0, len(body), 0, 10.0, True), sink)
        scanned += len(sink.data)
        foreign += set(re.findall(rb'canary-(tenant\d)', sink.data)) != {
            tenant.encode()}
        assert sink.data == body
    print('S08: %d keys and %d reads, %d bytes scanned, %d foreign' % (
        len(keys), len(versions), scanned, foreign))
    assert foreign == 0


def test_a_bundle_of_two_tenants_would_be_seen():
    """The wrong twin of the scan above."""
    mixed = b'canary-tenant0-x;canary-tenant1-y;'
    assert len(set(re.findall(rb'canary-(tenant\d)', mixed))) > 1


# -- the planted secret -----------------------------------------------------

SECRET = 'S16planted%s' % uuid.uuid4().hex


def planted(root, server, url):
    os.makedirs(os.path.join(root, 'devices', 'sda'))
    secret = os.path.join(root, 'the-secret')
    secret_fd = os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(secret_fd, 'w') as out:
        out.write('access_key = %sid\nsecret_key = %s\n' % (SECRET, SECRET))
    return write_node(root, {
        'io': {'carrier': 'null'}, 'dss': {'log_level': 'DEBUG'},
        'tier': {'prometheus_port': processes.free_base_port(
            1, first=27580)},
        'gateway': {'enabled': 'true', 'url': url, 'bucket': BUCKET,
                    'prefix': 's16/', 'secret_file': secret,
                    'connect_timeout_seconds': '1',
                    'read_timeout_seconds': '2'}})


def everything(root, process):
    """(where, bytes) of all that somebody else could come to see."""
    for name in ('cmdline', 'environ'):
        with open('/proc/%d/%s' % (process.process.pid, name),
                  'rb') as source:
            yield name, source.read()
    yield 'status', json.dumps(process.ask({'verb': 'status'})).encode()
    with open(os.path.join(root, 'dss.conf')) as source:
        port = re.search(r'prometheus_port = (\d+)', source.read()).group(1)
    for page in ('metrics', '', 'status.json'):
        with contextlib.suppress(OSError):
            yield 'page /' + page, urllib.request.urlopen(
                'http://127.0.0.1:%s/%s' % (port, page), timeout=10).read()
    for verb in ('policy', 'advise', 'ls', 'relocate'):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(out):
            main(['gateway', verb, '--config',
                  os.path.join(root, 'dss.conf')] + (
                      ['--device', 'sda'] if verb == 'relocate' else []))
        yield 'gateway ' + verb, out.getvalue().encode()
    for folder, _, files in os.walk(root):
        for file in files:
            if file != 'the-secret':
                with contextlib.suppress(OSError), open(os.path.join(
                        folder, file), 'rb') as source:
                    yield file, source.read()


def hits(root, process):
    places, scanned = [], 0
    for where, data in everything(root, process):
        scanned += len(data)
        if SECRET.encode() in data:
            places.append(where)
    return places, scanned


@pytest.mark.parametrize('url', ['refusing', 'http://127.0.0.1:9'])
def test_a_planted_secret_is_nowhere_to_be_seen(server, tmp_path, url):
    """S16: a server that says 403, and one that is not there."""
    root = str(tmp_path / 'n')
    planted(root, server, server.url if url == 'refusing' else url)
    process = DaemonProcess(root)
    log = os.path.join(root, 'stderr.log')
    # Appended to, or the daemon's next line lies over the twin's.
    with open(log, 'ab') as stderr:
        process.process = subprocess.Popen(
            [sys.executable, '-m', 'swift_dss.tier.main', '--config',
             os.path.join(root, 'dss.conf')], stderr=stderr,
            env=dict(os.environ, BOTO_LOG='1'))
    try:
        def asked():
            with contextlib.suppress(OSError):
                return process.ask({'verb': 'status'})['gateway']
            assert process.process.poll() is None
            return None

        assert wait_until(asked, 30)
        places, scanned = hits(root, process)
        print('S16: %d bytes scanned, %d hits' % (scanned, len(places)))
        assert places == []
        # The wrong twin: a log line as others have written it.
        with open(log, 'ab') as leak:
            leak.write(b'PUT with key ' + SECRET.encode())
        assert hits(root, process)[0] == ['stderr.log']
    finally:
        process.stop()
