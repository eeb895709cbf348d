"""The bed: a cluster of many nodes on one machine."""

from __future__ import annotations

import calendar
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from email.utils import parsedate_to_datetime

import pytest
from support import first_line_with, manual, md5, pattern, wait_until
from support.nodes.beds import ask, bed

from swift_dss.aio import layout, processes, storage
from swift_dss.aio.bed import plan
from swift_dss.aio.bed.network import Network
from swift_dss.cli import main as cli
from swift_dss.core.errors import DssError

pytestmark = [pytest.mark.cluster, pytest.mark.root]


@pytest.fixture(scope='module')
def made():
    """Three nodes; tests leave them in working order."""
    if os.geteuid() != 0:
        pytest.skip('needs root')
    with bed(nodes=3, options={
            'gateway': {'take_over_seconds': '8'}}) as new_bed:
        yield new_bed


@pytest.mark.parametrize('policy', layout.POLICIES)
def test_every_policy_gives_back_what_it_got(made, policy):
    client = made.client()
    client.container('all-' + policy, policy)
    body = pattern(300000, policy)
    assert client.put('all-%s/o' % policy, body).status == 201
    reply = client.get('all-%s/o' % policy)
    assert (reply.status, md5(reply.body)) == (200, md5(body))
    path = '/AUTH_test/all-%s/o' % policy
    files = [file for file in made.files(path) if file.kind == 'data']
    assert sorted(file.node for file in files) == ['n1', 'n2', 'n3']
    assert {file.policy for file in files} == {made.policy_of(
        'all-' + policy)}


def test_the_first_primary_sends_the_object_and_the_s3_says_so(made):
    client = made.client()
    client.container('once')
    client.put('once/o', pattern(100000))
    path = '/AUTH_test/once/o'
    object_hash = made.hash_of(path)
    puts = wait_until(lambda: made.s3.requests('PUT', object_hash), 30)
    assert [asked['node'] for asked in puts] == made.primaries(path)[:1]
    assert puts[0]['sent'] == 100000 and puts[0]['status'] == 200


def test_one_object_server_can_be_written_past_the_proxies(made):
    client = made.client()
    client.container('one')
    path = '/AUTH_test/one/o'
    node = made.primaries(path)[1]
    reply = made.direct(node, 'PUT', path, headers={
        'X-Timestamp': '1700000000.00000',
        'Content-Type': 'text/plain'}, body=b'here alone')
    assert reply.status == 201
    assert [file.node for file in made.files(path)] == [node]
    assert made.direct(node, 'GET', path).body == b'here alone'
    others = set(made.plan.nodes) - {node}
    assert {made.direct(other, 'HEAD', path).status
            for other in others} == {404}


def test_a_node_that_was_killed_comes_back_with_its_bytes(made):
    client = made.client()
    client.container('killed')
    client.put('killed/o', b'before')
    assert made.kill('n2') >= 4
    assert made.status()['n2']['tierd'] == []
    assert client.get('killed/o').body == b'before'
    made.revive('n2')
    assert all(made.status()['n2'].values())
    assert made.direct('n2', 'GET', '/AUTH_test/killed/o').body == b'before'


def _reaches(made, member, other):
    node = made.node(other)
    try:
        made.network.connect(
            member, (node.address, node.conf.container_port), 1.0).close()
    except OSError:
        return False
    return True


def test_a_partition_is_silent_and_heals(made):
    client = made.client()
    client.container('apart')
    client.put('apart/o', b'still')
    made.partition('n3', ['p1', 'n1'])
    try:
        assert not _reaches(made, 'p1', 'n3')
        assert not _reaches(made, 'n1', 'n3')
        # Nobody else was cut.
        assert _reaches(made, 'n2', 'n3') and _reaches(made, 'p1', 'n2')
        assert client.get('apart/o').body == b'still'
    finally:
        made.heal('n3')
    assert made.network.cuts() == {}
    assert _reaches(made, 'p1', 'n3') and _reaches(made, 'n1', 'n3')


def test_who_is_cut_from_the_s3_leaves_the_upload_to_another(made):
    client = made.client()
    client.container('uploads')
    path = '/AUTH_test/uploads/o'
    first, second, _third = made.primaries(path)
    made.partition(first, ['s3'])
    try:
        assert client.put('uploads/o', pattern(5000)).status == 201
        puts = wait_until(lambda: made.s3.requests(
            'PUT', made.hash_of(path)), 40)
    finally:
        made.heal(first)
    assert [asked['node'] for asked in puts] == [second]


def test_a_fault_of_the_s3_is_seen_by_the_node_that_it_is_for(made):
    client = made.client()
    client.container('faulty')
    path = '/AUTH_test/faulty/o'
    first = made.primaries(path)[0]
    made.s3.fault('503', node=first, methods='PUT', times=1,
                  keys='*%s*' % made.hash_of(path))
    client.put('faulty/o', pattern(5000))
    puts = wait_until(lambda: [
        asked for asked in made.s3.requests('PUT', made.hash_of(path))
        if asked['status'] == 200], 60)
    assert puts[0]['node'] == first
    refused = made.s3.requests('PUT', made.hash_of(path))[0]
    assert (refused['node'], refused['status'], refused['fault']) == (
        first, 503, '503')
    assert made.s3.faults() == []


def _stamp(line):
    return calendar.timegm(time.strptime(line[:19], '%Y-%m-%d %H:%M:%S'))


def test_a_clock_is_wrong_on_its_node_alone(made):
    client = made.client()
    client.container('skewed')
    client.put('skewed/o', b'x')
    path = '/AUTH_test/skewed/o'

    def says(node):
        return parsedate_to_datetime(made.direct(
            node, 'HEAD', path).headers['date']).timestamp()
    made.skew('n2', 300)
    try:
        assert says('n2') - time.time() == pytest.approx(300, abs=10)
        assert says('n1') - time.time() == pytest.approx(0, abs=10)
        log = made.node('n2').conf.path('log', 'object-server.log')
        part = made.locate(path)[0].partition
        assert _stamp(first_line_with(log, 'HEAD /d1/%d%s' % (
            part, path))) > time.time() + 200
        # A node that starts has its clock from the beginning.
        made.kill('n2')
        made.revive('n2')
        assert says('n2') - time.time() == pytest.approx(300, abs=10)
    finally:
        made.skew('n2', 0)
    assert says('n2') - time.time() == pytest.approx(0, abs=10)


def test_a_stock_node_runs_swift_alone_and_serves_what_is_whole(made):
    client = made.client()
    client.container('stock')
    client.put('stock/o', b'ours')
    made.stock('n1')
    try:
        status = made.status()['n1']
        assert 'tierd' not in status and status['object-server']
        head = made.direct('n1', 'HEAD', '/AUTH_test/stock/o')
        assert head.status == 200
        assert 'x-backend-dss-tier' not in head.headers
        assert client.put('stock/theirs', b'stock').status == 201
    finally:
        made.stock('n1', False)
    assert made.status()['n1']['tierd']
    head = made.direct('n1', 'HEAD', '/AUTH_test/stock/theirs')
    assert head.headers['x-backend-dss-tier'] == 'ssd'
    assert made.quarantined() == []


@pytest.fixture
def aio(made, capsys):
    """``swift-dss aio WORDS`` on the bed, run in here: (code, output)."""
    def run(*words):
        capsys.readouterr()
        code = cli.main(['aio', *words, '--root', made.plan.root])
        captured = capsys.readouterr()
        return code, captured.out + captured.err
    return run


def tried(aio, page):
    """Run "Try it on a bed" of a page on this bed: (a command, its output).

    The bed runs already, and goes on running.
    """
    for command in manual.commands(
            manual.SOURCE / 'howto' / page, 'Try it on a bed'):
        assert command.words[:2] == ['swift-dss', 'aio']
        if command.words[2] not in ('start', 'stop'):
            code, said = aio(*command.words[2:])
            assert code == 0, (command, said)
            yield ' '.join(command.words[2:]), said


def test_a_lost_drive_is_empty_under_running_servers(made, aio):
    client = made.client()
    client.container('drive')
    client.put('drive/o', b'three copies')
    before = made.status()['n3']
    marker = made.node('n3').conf.path('hdd', 'd1')
    made.lose_drive('n3', 'd1', 'ssd', replace=False)
    assert made.direct('n3', 'GET', '/AUTH_test/drive/o').status == 507
    replaced = tried(aio, 'replace-ssd.rst')
    assert next(replaced)[0] == 'node lose-drive n3 d1 --what ssd'
    assert made.direct('n3', 'GET', '/AUTH_test/drive/o').status == 404
    assert [command for command, _said in replaced] == ['rebalance']
    assert made.direct('n3', 'GET', '/AUTH_test/drive/o').status == 200
    assert [command for command, _said in tried(
        aio, 'replace-hdd.rst')] == [
            'node lose-drive n3 d1 --what hdd', 'rebalance']
    assert os.path.ismount(marker) and os.listdir(marker)
    assert client.get('drive/o').body == b'three copies'
    assert made.status()['n3'] == before


def _all_there(made, bodies):
    client = made.client()
    return sum(client.get(name).body == body
               for name, body in bodies.items())


def test_nodes_come_and_go_and_every_object_stays(made, aio):
    client = made.client()
    bodies = {}
    for policy in layout.POLICIES:
        client.container('moves-' + policy, policy)
        for number in range(8):
            name = 'moves-%s/o%d' % (policy, number)
            bodies[name] = pattern(20000, name)
            assert client.put(name, bodies[name]).status == 201
    commands = tried(aio, 'add-remove-node.rst')
    command, said = next(commands)
    assert command == 'node add' and said.split()[-1] == 'n4'
    made.plan = plan.load(made.plan.root)
    # It may have looked whose bucket it is.
    assert made.files('/AUTH_test/' + name) and '200' not in \
        made.s3.counts().get('n4', {}).get('PUT', {}).get('status', {})
    assert next(commands)[0] == 'rebalance'
    assert _all_there(made, bodies) == len(bodies)
    for name in bodies:
        path = '/AUTH_test/' + name
        policy = made.policy_of(name.partition('/')[0])
        assert sorted(file.node for file in made.files(path)) == sorted(
            made.primaries(path, policy))
    assert [command for command, _said in commands] == [
        'node remove n4', 'rebalance']
    made.plan = plan.load(made.plan.root)
    assert made.plan.nodes == ['n1', 'n2', 'n3']
    assert 'n4' not in made.network.members()
    assert not processes.find(made.plan.path('n4'))
    assert _all_there(made, bodies) == len(bodies)
    assert made.quarantined() == []


def test_another_machine_takes_a_nodes_place(made, aio):
    client = made.client()
    bodies = {}
    for tier in ('ssd', 'hdd', 'remote'):
        client.container(tier)
        for number in range(6):
            name = '%s/o%d' % (tier, number)
            bodies[name] = pattern(20000, name)
            assert client.put(name, bodies[name]).status == 201

    def tiers():
        return {(name, file.node): file.tiers for name in bodies
                for file in made.files('/AUTH_test/' + name)
                if file.kind == 'data'}

    def moved():
        for node in made.plan.nodes:
            for tier in ('hdd', 'remote'):
                ask(made, node, 'demote', to=tier,
                    container='AUTH_test/' + tier)
        return all(name.partition('/')[0] in where.split('+')
                   and ('ssd' in where) == name.startswith('ssd')
                   for (name, _node), where in tiers().items())
    wait_until(moved, 120)
    before = tiers()
    made.s3.counts(reset=True)
    commands = tried(aio, 'replace-node.rst')
    assert next(commands)[0] == 'node replace n3'
    assert not any(node == 'n3' for _name, node in tiers())
    assert [command for command, _said in commands] == ['rebalance']
    # Bytes arrive on the SSD, whatever tier of the sender has them.
    assert set(tiers()) == set(before)
    assert [where for (name, node), where in sorted(tiers().items())
            if node == 'n3' and name.startswith('remote/')] == ['remote'] * 6
    assert [request for request in made.s3.requests()
            if request['operation'] == 'GET'
            and '.dss' not in request['key']] == []
    assert _all_there(made, bodies) == len(bodies)
    assert made.quarantined() == []


def test_nodes_have_options_of_their_own(made):
    made.set_options({'gateway': {'remote_after_seconds': '77'}}, ['n2'])
    with open(made.node('n2').conf.path('etc', 'dss.conf')) as source:
        assert 'remote_after_seconds = 77' in source.read()
    with open(made.node('n1').conf.path('etc', 'dss.conf')) as source:
        assert 'remote_after_seconds = 77' not in source.read()
    made.set_options({'gateway': {'remote_after_seconds': '2'}}, ['n2'])
    assert made.status()['n2']['tierd']


def test_a_pass_that_fails_says_which_and_why(made):
    node = made.node('n1')
    node.run_once('object-replicator', 'container-replicator')
    conf = node.conf.path('etc', 'container-server.conf')
    os.rename(conf, conf + '.away')
    try:
        with pytest.raises(DssError) as failed:
            node.run_once('account-replicator', 'container-replicator')
    finally:
        os.rename(conf + '.away', conf)
    assert 'container-replicator ended with' in str(failed.value)
    assert conf in str(failed.value)


def test_the_operators_tools_run_as_a_node(made):
    for words in ((), ('--config', '{conf}')):
        done = made.tool('n1', 'tier', 'status', '--json', *words)
        assert done.returncode == 0, done.stderr
        assert '"d1"' in done.stdout


def test_what_a_drain_would_do_is_said_and_not_done(made):
    client = made.client()
    client.container('would')
    assert client.put('would/o', pattern(50000)).status == 201

    def told(*words):
        done = made.tool('n1', 'gateway', *words, '--dry-run', '--json')
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    for words in (('drain', '--to', 'remote'),
                  ('relocate', '--container', 'AUTH_test/would')):
        # The index hears of an upload a moment later.
        wait_until(lambda words=words: told(*words)['moves'] >= 1, 60)
        said = told(*words)
        assert said['dry_run'] and said['freed_bytes'] >= 50000
    done = made.tool('n1', 'gateway', 'drain', '--to', 'local', '--dry-run')
    assert 'would drain: ' in done.stdout and done.returncode == 0
    head = made.direct('n1', 'HEAD', '/AUTH_test/would/o')
    assert 'ssd' in head.headers['x-backend-dss-tier']


def _cluster(made, node='n1'):
    done = made.tool(node, 'tier', 'status', '--cluster', '--json')
    assert done.stdout, done.stderr
    return done.returncode, {
        told['address']: told for told in json.loads(done.stdout)['nodes']}


def test_every_node_knows_how_all_are(made):
    client = made.client()
    client.container('seen')
    assert client.put('seen/o', pattern(70000)).status == 201
    addresses = {name: made.node(name).address for name in made.plan.nodes}
    wait_until(lambda: _cluster(made)[0] == 0, 60)
    for name in made.plan.nodes:
        code, nodes = _cluster(made, name)
        assert code == 0 and set(nodes) == set(addresses.values())
        assert all(told['state'] == 'well' and list(
            told['summary']['devices']) == ['d1']
            for told in nodes.values()), nodes
    made.kill('n2')
    made.stock('n3')
    try:
        code, nodes = _cluster(made)
        assert code == 1 and nodes[addresses['n1']]['answers']
        assert nodes[addresses['n2']]['state'] == 'no answer'
        assert 'stock Swift' in nodes[addresses['n3']]['why']
        shown = made.tool('n1', 'tier', 'status', '--cluster').stdout
        assert '1 of 3 answer' in shown and addresses['n2'] in shown
    finally:
        made.stock('n3', False)
        made.revive('n2')
    wait_until(lambda: _cluster(made)[0] == 0, 60)


def test_swift_recon_sees_our_object_servers_as_its_own(made):
    for name in made.plan.nodes:
        made.node(name).run_once('object-replicator')
    done = made.run('n1', [
        os.path.join(os.path.dirname(sys.executable), 'swift-recon'),
        'object', '--swiftdir', made.node('n1').conf.path('etc'),
        '--replication', '--unmounted', '--diskusage'],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert 'on 3 hosts (object)' in done.stdout
    assert '[replication_failure]' in done.stdout, done.stdout
    assert 'No hosts returned valid data' not in done.stdout
    # A line a host that does not answer, or has a drive unmounted.
    assert '-> http' not in done.stdout and 'Not mounted' not in done.stdout
    # Drives by how full they are: one or two rows of it.
    assert sum(map(int, re.findall(r'^ +[0-9]+% +([0-9]+) \*', done.stdout,
                                   re.M))) == 3, done.stdout


def _aio(*words, **options):
    return subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main', 'aio', *words],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=120, **options)


def test_commands_run_inside_and_outside_reaches_nothing(made):
    root = made.plan.root
    done = _aio('exec', '--root', root, '--', 'swift', 'stat')
    assert 'AUTH_test' in done.stdout, done.stderr
    conf = made.member('p1').conf
    health = conf.s3_url + '/healthcheck'
    with made.inside('p1'), urllib.request.urlopen(health) as answer:
        assert answer.read() == b'OK'
    # Whatever is at that address outside, it is no server of ours.
    try:
        with urllib.request.urlopen(health, timeout=1.0) as answer:
            assert answer.read() != b'OK'
    except OSError:
        pass
    done = _aio('exec', '--root', root, '--member', 'n2', '--', 'ip',
                '-brief', 'address')
    assert made.plan.address('n2') in done.stdout
    assert made.plan.address('n1') not in done.stdout


def test_status_says_who_runs_and_who_does_not(made, aio):
    code, said = aio('status', '--json')
    report = json.loads(said)
    assert code == 0 and report['running'] and set(report['members']) == {
        'n1', 'n2', 'n3', 'p1', 's3'}
    assert aio('node', 'kill', 'n2')[0] == 0
    code, said = aio('status')
    assert code == 1 and 'NOT RUNNING' in said
    assert aio('node', 'start', 'n2')[0] == 0
    assert aio('status')[0] == 0
    assert aio('node', 'run', 'n2', 'object-updater')[0] == 0
    assert 'object-server' in aio('logs', '-n', '1')[1]


def test_a_partition_has_verbs(made, aio):
    assert aio('node', 'partition', 'n1', '--from', 's3,n2')[0] == 0
    report = json.loads(aio('status', '--json')[1])
    assert sorted(report['cuts']) == ['n1', 'n2', 's3']
    assert 'n2 does not reach 10.77.0.1' in aio('status')[1]
    assert aio('node', 'heal', 'n2')[0] == 0
    assert sorted(made.network.cuts()) == ['n1', 's3']
    assert aio('node', 'heal')[0] == 0
    assert made.network.cuts() == {}


def test_the_s3_has_verbs(made, aio):
    assert aio('s3', 'fault', 'slow', '--ms', '1', '--node', 'n1')[0] == 0
    assert [fault['node'] for fault in made.s3.faults()] == ['n1']
    assert '"slow"' in aio('s3', 'faults')[1]
    assert aio('s3', 'heal') == (0, '1 faults gone\n')
    client = made.client()
    client.container('counted')
    client.put('counted/o', b'x')
    path = '/AUTH_test/counted/o'
    first = made.primaries(path)[0]
    wait_until(lambda: made.s3.requests('PUT', made.hash_of(path)), 30)
    counts = json.loads(aio('s3', 'counts', '--json')[1])
    assert counts[first]['PUT']['requests'] > 0
    assert '%-8s PUT' % first in aio('s3', 'counts')[1]


@pytest.mark.parametrize('words, said', [
    (('node', 'kill', 'n9'), 'there are n1, n2, n3'),
    (('node', 'remove', 'n1'), 'three replicas need three'),
    (('node', 'partition', 'n1', '--from', 'moon'), "no 'moon'"),
    (('node', 'lose-drive', 'n1', 'd7'), 'it has d1'),
    (('node', 'version', 'n1', '/nowhere'), '/nowhere: no version'),
    (('node', 'version', 's3', '/nowhere'), 's3 runs nothing of ours'),
    (('start', '--nodes', '3'), 'already'),
    (('start',), 'a bed is in'),
])
def test_what_cannot_be_done_is_refused_with_the_reason(
        made, aio, words, said):
    code, answer = aio(*words)
    assert code == 78 and said in answer
    assert aio('status')[0] == 0


def _left_of(root):
    """Namespaces, mounts, loop devices and processes of a bed."""
    network = Network(root)
    return (network.members(), storage.mounts(root), storage.loops(root),
            processes.living(lambda marked: marked.startswith(root)))


def _assert_logs_alone(root):
    assert not any(_left_of(root))
    # The logs say what there was.
    assert {name for _folder, folders, _names in os.walk(root)
            for name in folders} == {'n1', 'n2', 'n3', 'p1', 's3', 'log'}
    assert {os.path.splitext(name)[1]
            for _folder, _folders, names in os.walk(root)
            for name in names} == {'.log'}


def test_a_start_that_was_killed_is_cleared_by_stop():
    root = tempfile.mkdtemp(prefix='dss-bed-', dir='/var/tmp')
    try:
        start = subprocess.Popen(
            [sys.executable, '-m', 'swift_dss.cli.main', 'aio', 'start',
             '--nodes', '3', '--root', root], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)
        wait_until(lambda: len(_left_of(root)[3]) > 2, 60,
                   'processes of three members')
        start.kill()
        start.wait()
        assert all(_left_of(root))
        done = _aio('stop', '--root', root)
        assert done.returncode == 0, done.stderr
        _assert_logs_alone(root)
    finally:
        _aio('stop', '--root', root)
        shutil.rmtree(root, ignore_errors=True)


def test_rings_may_have_names_and_nothing_is_left_of_a_bed():
    with bed(nodes=3, hostnames=True, zones=2, options={
            'gateway': {'take_over_seconds': '2'}}) as named:
        root = named.plan.root
        client = named.client()
        client.container('named')
        body = pattern(100000)
        assert client.put('named/o', body).status == 201
        assert client.get('named/o').body == body
        path = '/AUTH_test/named/o'
        wait_until(lambda: named.s3.requests(
            'PUT', named.hash_of(path)), 30)
        # A drive can be taken away, though each process has its mounts.
        named.lose_drive('n2', 'd1')
        assert named.direct('n2', 'GET', path).status == 404
        with open(named.plan.path('etc', 'hosts')) as hosts:
            assert 'n3.bed.example' in hosts.read()
        assert all(_left_of(root))
        named.stop()
        _assert_logs_alone(root)


def test_without_rsync_it_names_the_package(monkeypatch, capsys):
    """Container databases would be lost with a drive."""
    which = shutil.which
    monkeypatch.setattr(shutil, 'which', lambda tool, *options:
                        None if tool == 'rsync' else which(tool, *options))
    monkeypatch.setattr(os, 'geteuid', lambda: 0)
    monkeypatch.setattr(storage, 'why_no_loops', lambda: '')
    assert cli.main(['aio', 'start', '--nodes', '3', '--root',
                     '/var/tmp/no-such-bed']) == 78
    assert 'rsync is not installed (package rsync)' in \
        capsys.readouterr().err
    assert not os.path.exists('/var/tmp/no-such-bed')


def test_without_root_it_says_that_it_needs_root(monkeypatch, capsys):
    monkeypatch.setattr(os, 'geteuid', lambda: 1000)
    assert cli.main(['aio', 'start', '--nodes', '3', '--root',
                     '/var/tmp/no-such-bed']) == 78
    assert 'needs root' in capsys.readouterr().err
    assert not os.path.exists('/var/tmp/no-such-bed')
