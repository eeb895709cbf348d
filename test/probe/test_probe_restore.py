"""The edge is lost: what the bucket alone brings back, byte by byte."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
import time

import pytest
import swiftclient
from support import md5, pattern, quarantined, replicas, wait_until
from support.nodes.tuned_cluster import TunedCluster

from swift_dss.aio import configs, layout, processes
from swift_dss.aio.cluster import STORES
from swift_dss.client import bundles
from swift_dss.core.residency import Tier
from swift_dss.wire.settings import nodeconf

CLASSES = """
[class:0]
name = unclassified
rank = 0
[class:21]
name = small
rank = 100
bundle = true
[class:22]
name = cloud
rank = 500
"""


class Edge(TunedCluster):
    """A cluster that sends all it gets to S3, small things in bundles."""

    options = {
        'tier': {'interval_seconds': '1', 'min_demote_bytes': '0'},
        'gateway': {'remote_after_seconds': '0', 'delete_delay_seconds': '0',
                    'take_over_seconds': '3', 'bundle_age_seconds': '1'}}

    def _configure(self):
        super()._configure()
        configs.write(self.conf, {'etc/dss-classes.conf': CLASSES,
                                  'etc/dss-rules.conf': ''})


@pytest.fixture(scope='module')
def edge():
    with Edge.started('dss-edge-', 20080) as made:
        yield made


def gateway(edge, *arguments, code=0):
    """What ``swift-dss gateway ARGUMENTS --json`` answers."""
    from swift_dss.cli import main as cli
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(['gateway', arguments[0], '--json', '--config',
                           edge.conf.path('etc', 'dss.conf')]
                          + list(arguments[1:]))
    assert status == code, err.getvalue() or out.getvalue()
    return json.loads(out.getvalue())


def lose(edge):
    """Everything but configuration, rings and the cloud is gone; the
    servers of a new edge start on empty disks."""
    names = [name for name, _ in STORES]
    processes.end(edge.conf.root, names + ['tierd'])
    for kind in ('devices', 'hdd'):
        for device in edge.conf.device_names:
            folder = edge.conf.path(kind, device)
            for entry in os.listdir(folder):
                path = os.path.join(folder, entry)
                if entry == '.dss-capacity':
                    continue
                shutil.rmtree(path) if os.path.isdir(path) \
                    else os.unlink(path)
    shutil.rmtree(edge.conf.run)
    os.makedirs(edge.conf.path('run', 'recon'))
    for name in names:
        edge.spawn(name)
    ports = [edge.conf.base_port + offset for _, offset in STORES]
    wait_until(lambda: all(map(processes.listening, ports)), 120, 'servers')
    edge.spawn('tierd')
    wait_until(lambda: processes.listening_unix(
        edge.conf.path('run', 'admin.sock')), 120, 'tierd')


def state_of(edge):
    """Whatever a restore may write: files of devices, and the node's state.
    The servers themselves rewrite some of it all the time."""
    kept = {}
    for kind in ('devices', 'hdd', 'state'):
        for folder, _, names in os.walk(edge.conf.path(kind)):
            for name in names:
                if name.endswith(('.data', '.meta', '.ts', '.json')):
                    path = os.path.join(folder, name)
                    with open(path, 'rb') as source:
                        kept[path] = md5(source.read())
    return kept, edge.connection().get_account()[1]


class Wrote:
    """What clients wrote, and what they may read again."""

    def __init__(self, swift):
        self.swift = swift
        self.bodies = {}

    def put(self, container, name, size, class_name, **headers):
        body = pattern(size, container + name)
        headers['X-DSS-Object-Class'] = class_name
        self.swift.put_object(container, name, body, headers=headers,
                              content_type='text/x-%s' % class_name)
        self.bodies[container, name] = body

    def headers(self):
        headers = {}
        for container, name in self.bodies:
            head = self.swift.head_object(container, name)
            headers[container, name] = {
                key: head.get(key) for key in (
                    'etag', 'content-length', 'content-type',
                    'x-timestamp', 'x-object-meta-colour',
                    'x-dss-object-class', 'last-modified')}
        return headers


def write_all(swift):
    wrote = Wrote(swift)
    swift.put_container('plain', headers={
        'X-Container-Read': '.r:*,.rlistings', 'X-Container-Meta-Owner': 'us',
        'X-DSS-Container-Class': 'cloud'})
    swift.put_container('frags', headers={'X-Storage-Policy': 'dss-ec'})
    swift.put_container('kept', headers={'X-Versions-Enabled': 'true'})
    for number in range(12):
        wrote.put('plain', 'dir/caf\u00e9 %d' % number, 3000 + number,
                  'small', **{'X-Object-Meta-Colour': 'red'})
    wrote.put('plain', 'empty', 0, 'small')
    wrote.put('plain', 'large', 9 << 20, 'cloud')
    wrote.put('plain', 'gone', 4000, 'small')
    wrote.put('plain', 'gone-too', 400000, 'cloud')
    wrote.put('frags', 'shards', 300000, 'cloud')
    wrote.put('frags', 'little', 2000, 'small')
    wrote.put('kept', 'doc', 5000, 'small')
    wrote.bodies['kept', 'doc'] = b'the second version'
    swift.put_object('kept', 'doc', b'the second version')
    return wrote


@pytest.mark.root
def test_a_lost_edge_comes_back_from_the_bucket_alone(edge):
    swift = edge.connection()
    wrote = write_all(swift)
    swift.delete_object('plain', 'gone')
    swift.delete_object('plain', 'gone-too')
    del wrote.bodies['plain', 'gone'], wrote.bodies['plain', 'gone-too']
    paths = ['/AUTH_test/%s/%s' % name for name in wrote.bodies]
    wait_until(lambda: all(
        replica.residency.remote or not replica.residency.content_length
        for path in paths for replica in replicas(edge, path)), 120,
        'all of it in S3')
    # A POST after the upload.
    swift.post_object('plain', 'large', {
        'X-Object-Meta-Colour': 'blue', 'Content-Type': 'text/x-new'})
    swift.post_object('plain', 'dir/caf\u00e9 3', {
        'X-Object-Meta-Colour': 'green'})
    before = wrote.headers()
    listing = {container: [
        (row['name'], row['bytes'], row['hash'], row['content_type'])
        for row in swift.get_container(container)[1]]
        for container in ('plain', 'frags', 'kept')}
    versions = swift.get_container('kept', query_string='versions')[1]

    def told():
        """Deletes, renewed records, containers and an object without a
        byte, of which no record says so, are in the bucket."""
        rows = {}
        for row in gateway(edge, 'ls'):
            rows.setdefault(row['name'], set()).add(
                row['metadata'].get('X-Object-Meta-Colour'))
        return '/AUTH_test/plain/gone' not in rows and \
            '/AUTH_test/plain/gone-too' not in rows and \
            '/AUTH_test/plain/empty' in rows and \
            rows['/AUTH_test/plain/large'] == {'blue'} and \
            rows['/AUTH_test/plain/dir/caf\u00e9 3'] == {'green'} and \
            len(gateway(edge, 'ls', '--places')) >= 4
    wait_until(told, 120, 'the bucket knows all')
    lose(edge)
    before_it = state_of(edge)
    planned = gateway(edge, 'restore', '--dry-run')
    assert state_of(edge) == before_it
    began = time.monotonic()
    report = gateway(edge, 'restore')
    took = time.monotonic() - began
    assert report['failed'] == 0 and report['written'] == report['versions']
    assert report['places'] >= 4
    assert planned['written'] == report['versions'] > 0
    assert planned == dict(report, dry_run=True)
    swift = edge.connection()
    wrote.swift = swift
    after = wrote.headers()
    assert after == before
    account, rows = swift.get_account()
    assert {row['name'] for row in rows} >= {'plain', 'frags', 'kept'}
    head = swift.head_container('plain')
    assert head['x-container-read'] == '.r:*,.rlistings'
    assert head['x-container-meta-owner'] == 'us'
    assert head['x-dss-container-class'] == 'cloud'
    assert swift.head_container('frags')['x-storage-policy'] == 'dss-ec'
    for container, wanted in listing.items():
        assert [(row['name'], row['bytes'], row['hash'],
                 row['content_type'])
                for row in swift.get_container(container)[1]] == wanted
    assert swift.get_container('kept', query_string='versions')[
        1] == versions
    stubs = [stub for path in paths for stub in replicas(edge, path)]
    assert stubs and all(
        stub.residency.tiers == Tier.REMOTE for stub in stubs
        if stub.residency.content_length)
    for (container, name), body in wrote.bodies.items():
        assert md5(swift.get_object(container, name)[1]) == md5(body), name
    old = [row['version_id'] for row in versions if not row['is_latest']]
    assert swift.get_object('kept', 'doc', query_string='version-id='
                            + old[0])[1] == pattern(5000, 'keptdoc')
    assert not quarantined(edge)
    # Again: nothing is left to do, and nothing changes.
    again = gateway(edge, 'restore', '--from-start')
    assert again['written'] == 0 and again['failed'] == 0
    assert wrote.headers() == before
    print('figure: restore of %d versions, %d bytes: %.1f s, %d problems' % (
        report['versions'], report['length'], took, report['failed']))


@pytest.mark.root
def test_what_was_restored_is_verified_and_drained_both_ways(edge):
    """After the test above: stubs of everything, some of them filled."""
    swift = edge.connection()
    paths = {container: '/AUTH_test/%s/%s' % (container, row['name'])
             for container in ('plain', 'frags') for row in
             swift.get_container(container)[1]}
    assert paths
    report = gateway(edge, 'verify', '--read', '--records')
    assert report['problems'] == 0 and report['dirty'] == 0
    assert report['unknown'] == 0 and report['stale'] == 0
    assert report['read_bytes'] > 9 << 20 and report['remote'] > 40
    # Out: everything here, as stock Swift wants it.
    if gateway(edge, 'drain', '--to', 'remote')['moved']:
        assert gateway(edge, 'verify')['stubs'] > 40
    gateway(edge, 'verify', '--stock', code=1)
    out = gateway(edge, 'drain', '--to', 'local')
    assert out['failures'] == 0
    assert gateway(edge, 'verify', '--stock')['stubs'] == 0
    assert gateway(edge, 'drain', '--to', 'local')['moved'] == 0
    stock_reads_all(edge)
    # The new edge keeps the old bundles: what dies now stays dead.
    swift.delete_object('plain', 'dir/caf\u00e9 5')
    wait_until(lambda: '/AUTH_test/plain/dir/caf\u00e9 5' not in {
        row['name'] for row in gateway(edge, 'ls')}, 60)
    made_beside_the_bucket(edge, swift)
    # A key that is lost shows, by name.
    # (What is left of a lost bundle may be written anew beside its repair.)
    lost = next(row for row in gateway(
        edge, 'ls', '--container', 'AUTH_test/plain')
        if '/bundles/' not in '/' + row['key'])
    account, user, key = layout.CLOUD_USER
    cloud = swiftclient.Connection(
        authurl=edge.conf.cloud_url + '/auth/v1.0',
        user='%s:%s' % (account, user), key=key)
    cloud.delete_object(layout.CLOUD_BUCKET, lost['key'])
    report = gateway(edge, 'verify', code=1)
    assert report['problems'] and all(
        'is not in the bucket' in text for text in report['said'])
    assert report['repairable'] == report['problems']
    # And comes back from what is here.
    done = gateway(edge, 'verify', '--local', '--repair')['repair']['done']
    assert set(done) == {'sent'}
    report = gateway(edge, 'verify', '--read', '--local')
    assert report['problems'] == 0 and report['here_bytes'] > 9 << 20


def made_beside_the_bucket(edge, swift):
    """Objects that an application bundled in the cloud come in."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            with open(os.path.join(folder, 'in-%d' % number), 'wb') as out:
                out.write(pattern(3000 + number, 'cloud'))
        to = os.path.join(folder, 'to')
        assert bundles.main([
            'bundle', folder, '--to', to, '--account', 'AUTH_test',
            '--container', 'incoming', '--class-id', '21']) == 0
        account, user, key = layout.CLOUD_USER
        cloud = swiftclient.Connection(
            authurl=edge.conf.cloud_url + '/auth/v1.0',
            user='%s:%s' % (account, user), key=key)
        with open(edge.conf.path('etc', 'dss.conf')) as source:
            prefix = nodeconf.parse(source.read()).gateway.prefix
        for path, _, names in os.walk(to):
            for name in names:
                with open(os.path.join(path, name), 'rb') as source:
                    cloud.put_object(
                        layout.CLOUD_BUCKET, '%sbundles/%s/%s' % (
                            prefix, os.path.basename(path), name),
                        source.read())
    part = ['restore', '--container', 'AUTH_test/incoming']
    planned = gateway(edge, *part, '--dry-run')
    report = gateway(edge, *part)
    assert planned == dict(report, dry_run=True)
    assert (report['written'], report['failed']) == (3, 0)
    assert [row['name'] for row in swift.get_container('incoming')[1]] == [
        'in-0', 'in-1', 'in-2']
    for number in range(3):
        head, body = swift.get_object('incoming', 'in-%d' % number)
        assert body == pattern(3000 + number, 'cloud')
        assert head['x-dss-object-class'] == '21'


def stock_reads_all(edge):
    """By Swift's own metadata, every data file is whole and right."""
    from swift.obj.diskfile import read_metadata
    read = 0
    for path in all_data_files(edge):
        metadata = read_metadata(path)
        with open(path, 'rb') as source:
            data = source.read()
        assert len(data) == int(metadata['Content-Length']), path
        assert md5(data) == metadata['ETag'], path
        read += 1
    assert read > 40


def all_data_files(edge):
    for device in edge.conf.device_names:
        for folder, _, names in os.walk(edge.conf.path('devices', device)):
            for name in names:
                if name.endswith('.data'):
                    yield os.path.join(folder, name)
