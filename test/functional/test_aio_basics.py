"""The cluster itself: every server answers, every policy keeps bytes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest
from support import data_files, pattern, wait_until
from support.edges import raw_http
from swift.common import constraints

from swift_dss.aio import layout, processes

pytestmark = pytest.mark.cluster


def _aio(*arguments):
    return subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main', 'aio'] +
        list(arguments), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=60)


def test_status_says_that_everything_runs(cluster):
    done = _aio('status', '--json', '--root', cluster.conf.root)
    assert done.returncode == 0, done.stdout
    report = json.loads(done.stdout)
    assert report['running']
    assert set(report['processes']) == set(cluster.expected())


def test_a_second_start_in_the_same_root_is_refused(cluster):
    done = _aio('start', '--root', cluster.conf.root, '--no-demo')
    assert done.returncode == 78
    assert 'running in %s already' % cluster.conf.root in done.stderr
    assert 'proxy-server' in processes.find(cluster.conf.root)


def test_taken_ports_are_refused_before_anything_is_made(
        cluster, tmp_path):
    root = tmp_path / 'r'
    done = _aio('start', '--root', str(root), '--no-demo', '--base-port',
                str(cluster.conf.base_port))
    assert done.returncode == 78
    assert 'ports' in done.stderr and 'are taken' in done.stderr
    assert not processes.find(str(root))
    assert not root.exists()


def test_env_names_what_a_client_needs(cluster):
    done = _aio('env', '--root', cluster.conf.root)
    exports = dict(line[len('export '):].split('=', 1)
                   for line in done.stdout.splitlines())
    assert exports['ST_AUTH'] == cluster.conf.auth_url
    assert exports['AWS_ENDPOINT_URL'] == cluster.conf.s3_url


@pytest.mark.parametrize('policy', layout.POLICIES)
@pytest.mark.parametrize('size', [0, 1, 4096, 3 * 1024 * 1024 + 17])
def test_every_policy_gives_back_what_it_got(cluster, swift, policy, size):
    name = 'basics-' + policy
    swift.put_container(name, headers={'X-Storage-Policy': policy})
    body = pattern(size, policy)
    swift.put_object(name, 'o%d' % size, body)
    headers, got = swift.get_object(name, 'o%d' % size)
    assert got == body
    assert int(headers['content-length']) == size
    files = data_files(cluster, 'AUTH_test', name, 'o%d' % size,
                       layout.POLICIES.index(policy))
    assert len({file.device for file in files}) == 3


def test_s3_and_swift_see_the_same_object(swift, s3):
    s3.create_bucket(Bucket='basics-s3')
    s3.put_object(Bucket='basics-s3', Key='a/b c', Body=b'both ways')
    assert swift.get_object('basics-s3', 'a/b c')[1] == b'both ways'
    swift.put_object('basics-s3', 'from-swift', b'and back')
    got = s3.get_object(Bucket='basics-s3', Key='from-swift')
    assert got['Body'].read() == b'and back'


def test_a_killed_server_is_seen_and_can_be_restarted(cluster, swift):
    processes.end(cluster.conf.root, ['account-server'])
    done = _aio('status', '--root', cluster.conf.root)
    assert done.returncode == 1
    assert 'account-server           NOT RUNNING' in done.stdout
    cluster.restart('account-server')
    assert _aio('status', '--root', cluster.conf.root).returncode == 0


def test_workers_of_the_proxy_share_what_object_servers_say(cluster, swift):
    swift.put_container('shares-' + layout.POLICIES[0], headers={
        'X-Storage-Policy': layout.POLICIES[0]})
    swift.put_object('shares-' + layout.POLICIES[0], 'o', b'x')
    folder = os.path.join(cluster.conf.run, 'proxy')
    wait_until(lambda: os.path.isdir(folder) and any(
        not name.endswith('.lock') for name in os.listdir(folder)), 10,
               'an answer is kept')
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


@pytest.mark.parametrize('policy', layout.POLICIES)
def test_what_is_too_large_for_swift_gets_swifts_own_answer(
        cluster, swift, policy):
    # Not a 507 of ours, after which clients try again.
    name = 'large-' + policy
    swift.put_container(name, headers={'X-Storage-Policy': policy})
    answer = raw_http.request(
        cluster.conf.proxy_port, 'PUT', '/v1/AUTH_test/%s/o' % name,
        [('X-Auth-Token', swift.get_auth()[1]),
         ('Content-Length', str(constraints.MAX_FILE_SIZE + 1))])
    assert answer.status == 413
    assert b'too large' in answer.body.lower()
