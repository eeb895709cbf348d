"""The bed: a cluster of many nodes on one machine."""

from __future__ import annotations

import os

import pytest
from beds import bed
from support import md5, pattern, wait_until

from swift_dss.aio import layout

pytestmark = [pytest.mark.cluster, pytest.mark.root]


@pytest.fixture(scope='module')
def made():
    """Three nodes; tests leave them in working order."""
    if os.geteuid() != 0:
        pytest.skip('needs root')
    with bed(nodes=3) as one:
        yield one


@pytest.mark.parametrize('policy', layout.POLICIES)
def test_every_policy_gives_back_what_it_got(made, policy):
    client = made.client()
    client.container('all-' + policy, policy)
    body = pattern(300000, policy)
    assert client.put('all-%s/o' % policy, body).status == 201
    reply = client.get('all-%s/o' % policy)
    assert (reply.status, md5(reply.body)) == (200, md5(body))
    path = '/AUTH_test/all-%s/o' % policy
    files = [one for one in made.files(path) if one.kind == 'data']
    assert sorted(one.node for one in files) == ['n1', 'n2', 'n3']
    assert {one.policy for one in files} == {made.policy_of(
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
    assert [one.node for one in made.files(path)] == [node]
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


def test_a_partition_is_silent_and_heals(made):
    client = made.client()
    client.container('apart')
    client.put('apart/o', b'still')
    made.partition('n3', ['p1'])
    try:
        with pytest.raises(OSError, match='timed out|No route'):
            with made.inside('p1'):
                made.network.connect('p1', (
                    made.plan.address('n3'),
                    made.node('n3').conf.container_port), 1.0)
        assert client.get('apart/o').body == b'still'
        # Nobody else was cut.
        made.network.connect('n1', (
            made.plan.address('n3'),
            made.node('n3').conf.container_port), 1.0).close()
    finally:
        made.heal('n3')
    assert made.network.cuts() == {}
    made.network.connect('p1', (
        made.plan.address('n3'),
        made.node('n3').conf.container_port), 5.0).close()


def test_nodes_have_options_of_their_own(made):
    made.set_options({'gateway': {'remote_after_seconds': '77'}}, ['n2'])
    with open(made.node('n2').conf.path('etc', 'dss.conf')) as source:
        assert 'remote_after_seconds = 77' in source.read()
    with open(made.node('n1').conf.path('etc', 'dss.conf')) as source:
        assert 'remote_after_seconds = 77' not in source.read()
    made.set_options({'gateway': {'remote_after_seconds': '2'}}, ['n2'])
    assert made.status()['n2']['tierd']


def test_the_operators_tools_run_as_a_node(made):
    done = made.tool('n1', 'tier', 'status', '--json', '--config', '{conf}')
    assert done.returncode == 0, done.stderr
    assert '"d1"' in done.stdout
