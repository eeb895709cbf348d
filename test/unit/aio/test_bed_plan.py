"""What a bed may be asked to be, and what its members are told."""

from __future__ import annotations

import configparser
import dataclasses

import pytest

from swift_dss.aio.bed import configure, http, look, plan, rings
from swift_dss.core.errors import BadConfig
from swift_dss.wire.settings import nodeconf

MADE = plan.new('/r', 4, 2)


@pytest.mark.parametrize('change, said', [
    ({'root': '/' + 'x' * 90}, 'sockets'),
    ({'nodes': []}, '--nodes 0'),
    ({'proxies': []}, '--proxies 0'),
    ({'nodes': ['n1'], 'drives': 2}, 'three replicas'),
    ({'ssd_bytes': 1 << 20}, '320 MiB'),
    ({'zones': 5}, '1 to 4'),
])
def test_what_cannot_work_is_refused_with_the_reason(change, said):
    with pytest.raises(BadConfig, match=said):
        plan.check(dataclasses.replace(MADE, **change))


@pytest.mark.parametrize('nodes, drives', [(1, 3), (2, 2), (3, 1), (9, 1)])
def test_few_nodes_have_drives_for_three_replicas(nodes, drives):
    made = plan.new('/r', nodes)
    assert made.drives == drives
    plan.check(made)


def test_a_plan_comes_back_as_it_was_saved(tmp_path):
    made = dataclasses.replace(
        MADE, root=str(tmp_path), skew={'n2': -5.0}, waiting=['n4'])
    plan.save(made)
    assert plan.load(str(tmp_path)) == made
    assert (tmp_path / plan.BED_FILE).stat().st_mode & 0o077 == 0


def test_no_bed_is_said_with_the_way_to_start_one(tmp_path):
    with pytest.raises(BadConfig, match='aio start --nodes'):
        plan.load(str(tmp_path))


def test_every_member_has_an_address_of_its_own():
    addresses = [MADE.address(member) for member in MADE.members]
    assert len(set(addresses)) == len(addresses) == 7


def test_nodes_are_dealt_to_the_zones_that_were_asked_for():
    assert [MADE.zone(node) for node in MADE.nodes] == [1, 2, 3, 4]
    two = dataclasses.replace(MADE, zones=2)
    assert [two.zone(node) for node in two.nodes] == [1, 2, 1, 2]


def _written(made, node, tmp_path):
    moved = dataclasses.replace(made, root=str(tmp_path))
    configure.configure(moved, node)
    return (tmp_path / node / 'etc')


def test_options_of_a_node_go_before_those_of_all(tmp_path):
    made = dataclasses.replace(
        MADE, options={'gateway': {'remote_after_seconds': '7',
                                   'uploads': '2'}},
        node_options={'n2': {'gateway': {'remote_after_seconds': '9'}}})
    read = {}
    for node in ('n1', 'n2'):
        text = (_written(made, node, tmp_path) / 'dss.conf').read_text()
        read[node] = nodeconf.parse(text).gateway
    assert read['n1'].remote_after_seconds == 7
    assert read['n2'].remote_after_seconds == 9
    assert {conf.uploads for conf in read.values()} == {2}
    # What nobody named has the ages of a bed.
    assert {conf.take_over_seconds for conf in read.values()} == {25}


def test_members_agree_on_the_hash_and_the_tokens(tmp_path):
    hashes, tokens = set(), set()
    for member in ('n1', 'n3', 'p1', 'p2'):
        etc = _written(MADE, member, tmp_path)
        # Else every section would have what DEFAULT says.
        parser = configparser.ConfigParser(
            interpolation=None, default_section='none')
        parser.read([etc / 'swift.conf', etc / 'proxy-server.conf'])
        hashes.add(tuple(parser['swift-hash'].values()))
        tokens.add(parser['filter:tempauth']['fernet_key_aio'])
    assert len(hashes) == len(tokens) == 1


def test_a_stock_node_has_nothing_of_ours(tmp_path):
    stock = dataclasses.replace(MADE, stock=['n2'])
    etc = _written(stock, 'n2', tmp_path)
    for name in ('swift.conf', 'object-server.conf'):
        assert 'swift_dss' not in (etc / name).read_text()
    ours = _written(stock, 'n1', tmp_path)
    assert 'swift_dss#dss.fs' in (ours / 'swift.conf').read_text()


def _ring(made, name='object'):
    ring = look.Ring(made.path('etc'), ring_name=name)
    return {(device['ip'], device['port']): device['parts_wanted']
            if 'parts_wanted' in device else device['weight']
            for device in ring.devs if device}


@pytest.fixture
def ringed(tmp_path):
    """A plan with rings, and a swift.conf for who reads them."""
    made = dataclasses.replace(MADE, root=str(tmp_path))
    rings.rebalance(made)
    configure.configure(made, 'n1')
    return made


def test_rings_name_a_port_for_each_device(tmp_path):
    made = dataclasses.replace(MADE, root=str(tmp_path), drives=2)
    rings.rebalance(made)
    configure.configure(made, 'n1')
    places = look.locate(made, '/a/c/o')
    assert len({place.node for place in places[:3]}) == 3
    assert {(place.device, place.port) for place in places} == {
        ('d1', 6210), ('d2', 6211)}
    assert {place.port for place in look.locate(made, '/a/c')} == {6202}
    assert {place.port for place in look.locate(made, '/a')} == {6203}


def test_every_drive_is_a_primary_or_a_handoff(ringed):
    places = look.locate(ringed, '/a/c/o', 1)
    assert [place.primary for place in places] == [0, 1, 2, None]
    assert sorted(place.node for place in places) == ringed.nodes


def test_unchanged_rings_stay_as_they_are(ringed):
    before = look.locate(ringed, '/a/c/o')
    assert set(rings.rebalance(ringed).values()) == {0.0}
    assert look.locate(ringed, '/a/c/o') == before


def test_a_node_that_leaves_keeps_a_place_without_partitions(ringed):
    ringed.leaving.append('n1')
    moved = rings.rebalance(ringed)
    assert 0.2 < moved['object'] < 0.5
    for name in ('o%d' % number for number in range(50)):
        places = look.locate(ringed, '/a/c/' + name)
        assert 'n1' not in {place.node for place in places[:3]}
    assert ('10.77.0.1', 6210) in _ring(ringed)
    ringed.nodes.remove('n1')
    ringed.leaving.clear()
    rings.rebalance(ringed)
    assert ('10.77.0.1', 6210) not in _ring(ringed)


def test_a_node_that_waits_gets_its_share_at_the_next_rebalance(ringed):
    ringed.nodes.append('n5')
    moved = rings.rebalance(ringed)
    assert moved['object-1'] == pytest.approx(0.2, abs=0.05)
    assert ('10.77.0.5', 6210) in _ring(ringed)


def test_a_host_is_named_in_hosts(tmp_path):
    made = dataclasses.replace(MADE, root=str(tmp_path), hostnames=True)
    (tmp_path / 'etc').mkdir()
    configure.write_hosts(made)
    lines = (tmp_path / 'etc' / 'hosts').read_text().splitlines()
    assert '10.77.0.3 n3.bed.example' in lines
    assert made.door_url == 'http://s3.bed.example:9100'


def test_a_cut_answer_is_no_answer():
    assert http.Reply(200, {}, b'x').ok
    assert not http.Reply(200, {}, b'x', cut=True).ok
    assert not http.Reply(404, {}, b'').ok


def test_a_node_runs_the_daemon_of_its_version(tmp_path):
    entry = tmp_path / 'swift_dss-1.dist-info'
    entry.mkdir()
    (entry / 'METADATA').write_text('Name: swift-dss\nVersion: 1\n')
    made = dataclasses.replace(MADE, versions={'n2': str(tmp_path)})
    assert made.daemon('n1') == 'swift_dss.tier.main'
    with pytest.raises(BadConfig, match='swift-dss-tierd'):
        made.daemon('n2')
    (entry / 'entry_points.txt').write_text(
        '[console_scripts]\nswift-dss-tierd = swift_dss.old.place:main\n')
    assert made.daemon('n2') == 'swift_dss.old.place'
