"""Drives are lost, unmounted and served by stock Swift.

Each test takes something away from the running cluster as an operator's
bad day would, and puts it back.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from http.client import HTTPConnection

import pytest
from support import (
    data_files, drop_local, pattern, quarantined, replicas, tier, wait_until)

from swift_dss.aio import processes, storage
from swift_dss.core.residency import Tier
from swift_dss.io.capacity import Capacity

pytestmark = [pytest.mark.cluster]

SIZE = 600 * 1000 + 1


def _put(cluster, swift, container, count, size=SIZE):
    bodies = {}
    for number in range(count):
        name = 'o%d' % number
        bodies[name] = pattern(size, container + name)
        swift.put_object(container, name, bodies[name],
                         headers={'X-DSS-Object-Class': 'silver'})
    return bodies


def _all_read(swift, container, bodies):
    for name, body in bodies.items():
        assert swift.get_object(container, name)[1] == body, name


def _path(container, name):
    return '/AUTH_test/%s/%s' % (container, name)


@pytest.fixture
def loops(cluster):
    """Skips where there are no file systems to take away."""
    if cluster.conf.storage != 'loops':
        pytest.skip('folders cannot be unmounted')


def test_a_lost_ssd_is_rebuilt_by_replication(cluster, swift, container):
    """A third are whole, a third on the HDD, a third only in S3."""
    bodies = _put(cluster, swift, container, 9)
    tier(cluster, 'settle')
    for number in (3, 4, 5):
        tier(cluster, 'demote', _path(container, 'o%d' % number))
    for number in (6, 7, 8):
        drop_local(cluster, _path(container, 'o%d' % number))
    lost = 'd1'
    before = {name for name in bodies for found in
              data_files(cluster, 'AUTH_test', container, name)
              if found.device == lost}
    assert before, 'nothing lies on the drive that is lost'
    # The drive comes back empty: its objects are gone, and its HDD's too.
    shutil.rmtree(cluster.conf.path('devices', lost, 'objects'))
    shutil.rmtree(cluster.conf.path('hdd', lost, 'data', '0'),
                  ignore_errors=True)

    def rebuilt():
        cluster.run_once('object-replicator')
        now = {name for name in bodies for found in
               data_files(cluster, 'AUTH_test', container, name)
               if found.device == lost}
        return now >= before
    wait_until(rebuilt, 120, 'all %d objects on %s' % (len(before), lost))
    for name in before:
        found = [one for one in replicas(cluster, _path(container, name))
                 if one.device == lost]
        assert len(found) == 1
        # What came is this node's own: no byte on an HDD file that is not
        # here, and the class came along.
        assert found[0].residency.tiers & (Tier.SSD | Tier.HDD)
        assert found[0].class_map.class_at(0) == 26
    assert not quarantined(cluster)
    _all_read(swift, container, bodies)
    # The rebuilt copies alone are enough.
    others = [one.path for name in before
              for one in replicas(cluster, _path(container, name))
              if one.device != lost]
    for path in others:
        os.rename(path, path + '.away')
    try:
        for name in before:
            assert swift.get_object(container, name)[1] == bodies[name]
    finally:
        for path in others:
            os.rename(path + '.away', path)


def _direct_get(cluster, found, name, path):
    """One object server's own answer for one device."""
    connection = HTTPConnection('127.0.0.1', cluster.conf.object_port,
                                timeout=30)
    try:
        connection.request(
            'GET', '/%s/%s%s' % (found.device, found.partition, path),
            headers={'X-Backend-Storage-Policy-Index': str(found.policy)})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_an_unmounted_hdd_is_unavailable_and_nothing_is_quarantined(
        cluster, swift, container, loops):
    bodies = _put(cluster, swift, container, 6)
    tier(cluster, 'settle')
    for name in bodies:
        tier(cluster, 'demote', _path(container, name))
    away = 'd3'
    mount = cluster.conf.path('hdd', away)
    image = cluster.conf.path('images', 'hdd-%s.img' % away)
    there = [(name, found) for name in bodies for found in
             data_files(cluster, 'AUTH_test', container, name)
             if found.device == away]
    assert there, 'nothing lies on the drive that is unmounted'

    # The daemon and the server may hold it open for a moment.
    wait_until(lambda: _unmounted(mount), 30, mount + ' unmounted')
    try:
        for name, found in there:
            status, _body = _direct_get(cluster, found, name,
                                        _path(container, name))
            assert status == 507
        # Other replicas answer for it.
        _all_read(swift, container, bodies)
        cluster.run_once('object-auditor')
        assert not quarantined(cluster)
        assert not os.listdir(mount), 'written into the empty mount point'
    finally:
        storage.run('mount', '-t', 'xfs', '-o', 'noatime',
                    storage.loops(cluster.conf.root)[image], mount)
    assert Capacity(mount, away).check()

    def served():
        return all(_direct_get(cluster, found, name, _path(container, name))
                   == (200, bodies[name]) for name, found in there)
    wait_until(served, 30, 'served from %s again' % away)


def _unmounted(mount):
    done = subprocess.run(['umount', mount], capture_output=True)
    return done.returncode == 0


@pytest.mark.damage
def test_a_stock_object_server_over_our_files_never_lies(
        cluster, swift, any_container):
    """Stock Swift may refuse a stub; it must not send a wrong byte."""
    bodies = _put(cluster, swift, any_container, 6)
    policy = 1 if swift.head_container(any_container)[
        'x-storage-policy'] == 'dss-ec' else 0
    tier(cluster, 'settle')
    files = {name: data_files(cluster, 'AUTH_test', any_container, name,
                              policy) for name in bodies}
    ours = {name: [_direct_get(cluster, found, name,
                               _path(any_container, name))[1]
                   for found in files[name]] for name in bodies}
    for number in (2, 3):
        tier(cluster, 'demote', _path(any_container, 'o%d' % number))
    for number in (4, 5):
        drop_local(cluster, _path(any_container, 'o%d' % number))
    saved = {found.path: _saved(found.path)
             for group in files.values() for found in group}
    stub_conf = _stock_conf(cluster)
    processes.end(cluster.conf.root, ['object-server'])
    try:
        child = processes.spawn(
            cluster.conf.root, 'object-server',
            os.path.join(cluster.conf.log, 'stock-object-server.log'),
            ['-m', 'swift_dss.aio.run', os.path.dirname(stub_conf),
             'object-server', stub_conf])
        wait_until(lambda: processes.listening(cluster.conf.object_port),
                   30, 'the stock server')
        for name, group in files.items():
            for found, expected in zip(group, ours[name]):
                status, body = _direct_get(cluster, found, name,
                                           _path(any_container, name))
                if name in ('o0', 'o1'):
                    assert (status, body) == (200, expected), name
                else:
                    assert status in (404, 503), (name, status)
        processes.kill(cluster.conf.root, ['object-server'], signal.SIGTERM)
        child.wait()
    finally:
        processes.end(cluster.conf.root, ['object-server'])
        for path, kept in saved.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if not os.path.exists(path):
                os.link(kept, path)
            os.unlink(kept)
        for device in cluster.conf.device_names:
            shutil.rmtree(cluster.conf.path('devices', device,
                                            'quarantined'),
                          ignore_errors=True)
        cluster.restart('object-server')
    # It refused, and lost nothing by it.
    _all_read(swift, any_container, bodies)


def _saved(path):
    """A second name for a data file that stock Swift will take away."""
    kept = os.path.join(
        path.split('/objects')[0],
        'kept-%s-%s' % (path.split('/')[-2], os.path.basename(path)))
    os.link(path, kept)
    return kept


def _stock_conf(cluster):
    """The object server's configuration without us."""
    folder = cluster.conf.path('etc-stock')
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cluster.conf.etc, folder)
    for name, old, new in (
            ('object-server.conf', 'egg:swift_dss#object',
             'egg:swift#object'),
            ('object-server.conf', cluster.conf.etc, folder),
            ('swift.conf', 'egg:swift_dss#dss.fs',
             'egg:swift#replication.fs'),
            ('swift.conf', 'egg:swift_dss#dss_ec.fs',
             'egg:swift#erasure_coding.fs')):
        path = os.path.join(folder, name)
        with open(path) as source:
            text = source.read()
        assert old in text
        with open(path, 'w') as out:
            out.write(text.replace(old, new))
    return os.path.join(folder, 'object-server.conf')
