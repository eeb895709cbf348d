"""Stubs move from node to node as stubs: no byte of S3 moves with them."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from support import md5, pattern
from support.nodes.moving_nodes import (
    Daemon, fragment, make_ring, one_pass, put_fragment, record_of,
    running_nodes, send_to_s3, tagged_headers)
from support.nodes.object_node import ObjectNode
from swift.obj.diskfile import read_metadata

from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire import names
from swift_dss.wire.records import proof

REMOTE = RemoteCopy('s3', 'k', 'e' * 32, 1.0)
COUNT = 8
SIZE = 3000000
#: SSD, HDD, and both at once.
MIXED = ClassMap.from_spans(
    [Span(0, 1200000, 1), Span(1200000, 1000000, 2)], 3)


@pytest.fixture(scope='module')
def nodes() -> Iterator[List[ObjectNode]]:
    root = tempfile.mkdtemp(prefix='dss-move-', dir='/dev/shm')
    with running_nodes(root, [['sda'], ['sdb', 'sdc', 'sdd'], ['sde']],
                       ['egg:swift_dss#object', 'egg:swift_dss#object',
                        'egg:swift#object']) as made:
        yield made


@pytest.fixture
def stem(request: Any) -> str:
    return str(request.node.name)


@pytest.fixture
def s3() -> Dict[str, bytes]:
    return {}


@pytest.fixture
def daemon(nodes: List[ObjectNode],
           s3: Dict[str, bytes]) -> Iterator[Daemon]:
    """The one of the node that gets something."""
    with Daemon(nodes[1], s3) as made:
        yield made


def _stubs(node: ObjectNode, stem: str, partition: int,
           s3: Dict[str, bytes], ranges: Any = (),
           class_map: ClassMap = MIXED) -> Dict[str, bytes]:
    made = {}
    for number in range(COUNT):
        name = '%s-%d' % (stem, number)
        made[name] = pattern(SIZE + number, name)
        assert node.request('PUT', name, made[name], dict(
            tagged_headers(class_map), **{'X-Object-Meta-Color': 'red'}),
            partition=partition).status == 201
        s3[send_to_s3(node.data_file_in(name, partition),
                      ranges)] = made[name]
    return made


def _join(nodes: List[ObjectNode]) -> Tuple[ObjectNode, ObjectNode]:
    make_ring(nodes, 2, [(nodes[0], 'sda', 1), (nodes[1], 'sdb', 1)])
    return nodes[0], nodes[1]


def test_a_node_that_joins_gets_records_and_asks_s3_once_each(
        nodes: List[ObjectNode], stem: str, s3: Dict[str, bytes],
        daemon: Daemon) -> None:
    here, there = _join(nodes)
    made = _stubs(here, stem, 1, s3)
    one_pass(here, 1)

    assert len(daemon.proofs) == COUNT and not daemon.fetches
    for name, body in made.items():
        path = there.data_file_in(name, 1, device='sdb')
        record = record_of(path)
        assert record.tiers == Tier.REMOTE
        assert record.remote is not None
        assert record.remote.key in s3 and record.remote.verified_at == 2.0
        assert os.stat(path).st_blocks < 64
        answer = there.request('GET', name, device='sdb', partition=1)
        assert answer.body == body
        assert answer.headers['etag'] == '"%s"' % md5(body)
        assert answer.headers['x-object-meta-color'] == 'red'
        assert any(header.startswith(names.SYSMETA_MAP.lower())
                   for header in answer.headers)
        assert not any('dss-stub' in header for header in answer.headers)

    del daemon.proofs[:]
    assert 'hashed, 0.00% synced' in one_pass(here, 1)
    assert not daemon.proofs


def test_what_s3_does_not_prove_is_refused_and_stays(
        nodes: List[ObjectNode], stem: str, s3: Dict[str, bytes],
        daemon: Daemon) -> None:
    here, there = nodes[:2]
    make_ring(nodes, 1, [(here, 'sda', 0), (there, 'sdb', 1)])
    made = _stubs(here, stem, 2, s3)
    missing = sorted(made)[::2]
    for key, body in list(s3.items()):
        if body in (made[name] for name in missing):
            del s3[key]
    one_pass(here, 2)
    for name in made:
        came = there.request('HEAD', name, device='sdb', partition=2)
        assert came.status == (404 if name in missing else 200)
        assert os.path.exists(here.data_file_in(name, 2))


def test_a_handoff_gives_up_no_bytes_that_s3_has_lost(
        nodes: List[ObjectNode], stem: str, s3: Dict[str, bytes]) -> None:
    """The primary has stubs of the same versions; of one it has the bytes."""
    here, there = nodes[:2]
    make_ring(nodes, 1, [(here, 'sda', 0), (there, 'sdb', 1)])
    made = {'%s-%d' % (stem, number): pattern(
        70000 + number, stem) for number in range(COUNT)}
    for number, (name, body) in enumerate(made.items()):
        for node, device in ((here, 'sda'), (there, 'sdb')):
            assert node.request('PUT', name, body, dict(
                tagged_headers(ClassMap.uniform(1)), **{
                    'X-Timestamp': '17000000%02d.00000' % number}),
                device=device, partition=5).status == 201
        if number:
            s3[send_to_s3(there.data_file_in(name, 5, device='sdb'))] = body
    assert len(s3) == COUNT - 1
    lost = s3.popitem()
    with Daemon(here, s3) as mine:
        for expected in (COUNT - 1, 2 * (COUNT - 1)):
            one_pass(here, 5)
            assert len(mine.proofs) == expected
            assert all(proof.leaves for proof in mine.proofs)
            assert all(os.path.exists(here.data_file_in(name, 5))
                       for name in made)
        s3.update([lost])
        files = [here.data_file_in(name, 5) for name in made]
        one_pass(here, 5)
        assert not any(map(os.path.exists, files))
    for name in made:
        assert there.request('HEAD', name, device='sdb',
                             partition=5).status == 200


def test_many_refusals_do_not_end_a_session(
        nodes: List[ObjectNode], stem: str, s3: Dict[str, bytes],
        daemon: Daemon) -> None:
    """Swift hangs up after a hundred failures; these are no failures of
    the peer."""
    here, there = _join(nodes)
    made = []
    for number in range(230):
        name = '%s-%d' % (stem, number)
        made.append(name)
        assert here.request('PUT', name, b'x' * 5000, tagged_headers(
            ClassMap.uniform(1)), partition=3).status == 201
        if number % 46:
            send_to_s3(here.data_file_in(name, 3))
    one_pass(here, 3)
    for name in made[::46]:
        assert there.request('HEAD', name, device='sdb',
                             partition=3).status == 200


def test_what_a_stub_has_here_is_read_from_s3_there(
        nodes: List[ObjectNode], stem: str, s3: Dict[str, bytes],
        daemon: Daemon) -> None:
    """A byte of it may have rotted, and only the whole has a digest."""
    here, there = _join(nodes)
    made = _stubs(here, stem, 4, s3, [(500000, 300000), (2100000, 200000)])
    for name, body in made.items():
        with open(here.data_file_in(name, 4), 'rb+') as target:
            target.seek(7)
            target.write(bytes([body[7] ^ 1]))
    one_pass(here, 4)

    assert len(daemon.proofs) == COUNT and not daemon.fetches
    for name, body in made.items():
        record = record_of(there.data_file_in(name, 4, device='sdb'))
        assert [(extent.length, extent.tiers)
                for extent in record.extents] == [(len(body), Tier.REMOTE)]
        assert there.request('GET', name, device='sdb',
                             partition=4).body == body


def test_what_only_an_hdd_that_is_away_has_stays_in_s3(
        nodes: List[ObjectNode], stem: str, s3: Dict[str, bytes],
        daemon: Daemon) -> None:
    here, there = _join(nodes)
    made = _stubs(here, stem, 5, s3, [(500000, 300000)])
    hdds = [os.path.join(here.root, 'hdd', 'sda'),
            os.path.join(there.root, 'hdd', 'sdb')]
    for hdd in hdds:
        os.rename(hdd, hdd + '.away')
    try:
        one_pass(here, 5)
        for name, body in made.items():
            record = record_of(there.data_file_in(name, 5, device='sdb'))
            assert record.tiers == Tier.REMOTE
            assert there.request('GET', name, device='sdb',
                                 partition=5).body == body
    finally:
        for hdd in hdds:
            os.rename(hdd + '.away', hdd)


def test_a_stock_server_gets_whole_objects(
        nodes: List[ObjectNode], stem: str, s3: Dict[str, bytes]) -> None:
    here, stock = nodes[0], nodes[2]
    make_ring(nodes, 2, [(here, 'sda', 1), (stock, 'sde', 1)])
    made = _stubs(here, stem, 6, s3)
    with Daemon(here, s3) as daemon:
        one_pass(here, 6)
    assert len(daemon.fetches) == COUNT
    for name, body in made.items():
        path = stock.data_file_in(name, 6, device='sde')
        assert os.stat(path).st_size == len(body)
        assert stock.request('GET', name, device='sde',
                             partition=6).body == body


@pytest.mark.parametrize('policy', [0, 1])
def test_a_stock_server_stores_no_stub_for_data(
        nodes: List[ObjectNode], stem: str, policy: int) -> None:
    """One that is taken for ours by mistake."""
    body = pattern(SIZE)
    remote = Residency.whole(SIZE).with_remote(REMOTE)
    sent = proof.encode_stub(remote.drop(0, SIZE, Tier.SSD))
    headers = {names.BACKEND_STUB: str(SIZE), 'ETag': md5(body)}
    if policy:
        headers.update({'X-Object-Sysmeta-Ec-Frag-Index': '1',
                        'X-Object-Sysmeta-Ec-Etag': 'e'})
    answer = nodes[2].request('PUT', stem, sent, headers, policy=policy,
                              device='sde', partition=7)
    assert answer.status == 422
    assert not [name for _, _, files in os.walk(nodes[2].hash_dir(
        stem, policy, 'sde', 7)) for name in files]


def test_who_is_no_session_of_ssync_sends_no_stub(
        nodes: List[ObjectNode], stem: str, daemon: Daemon) -> None:
    body = pattern(SIZE)
    remote = Residency.whole(SIZE).with_remote(REMOTE)
    answer = nodes[1].request(
        'PUT', stem, proof.encode_stub(remote.drop(0, SIZE, Tier.SSD)),
        {names.BACKEND_STUB: str(SIZE), 'ETag': md5(body)}, device='sdb')
    assert answer.status == 422 and not daemon.proofs


def test_a_fragment_goes_home_as_a_stub(
        nodes: List[ObjectNode], stem: str, s3: Dict[str, bytes],
        daemon: Daemon) -> None:
    here, there = nodes[:2]
    home = make_ring(nodes, 3, [
        (here, 'sda', 0), (there, 'sdb', 1), (there, 'sdc', 1),
        (there, 'sdd', 1)])[5][1]
    made = {}
    for number in range(COUNT):
        name = '%s-%d' % (stem, number)
        made[name] = pattern(SIZE, name)
        archive = put_fragment(here, name, made[name], 1, 'sda', 5,
                               here.timestamp())
        s3[send_to_s3(here.data_file_in(name, 5, 1))] = archive

    one_pass(here, 5, 'object-reconstructor')

    assert len(daemon.proofs) == COUNT and not daemon.fetches
    for name, body in made.items():
        path = there.data_file_in(name, 5, 1, home)
        assert path.endswith('#1#d.data')
        assert record_of(path).tiers == Tier.REMOTE
        assert there.request(
            'GET', name, policy=1, device=home,
            partition=5).body == fragment(body, 1)
        assert not os.path.exists(here.hash_dir(name, 1, 'sda', 5))



def _two_fragments(there: ObjectNode, stem: str, partition: int,
                   homes: List[str], s3: Dict[str, bytes],
                   daemon: Daemon) -> Dict[str, bytes]:
    """Objects whose fragments 0 and 1 are stubs, while nobody has 2 but
    S3."""
    made = {}
    for number in range(COUNT):
        name = '%s-%d' % (stem, number)
        made[name] = pattern(SIZE, name)
        timestamp = there.timestamp()
        for index in range(3):
            archive = put_fragment(there, name, made[name], index,
                                   homes[index], partition, timestamp)
            path = there.data_file_in(name, partition, 1, homes[index])
            with open(path, 'rb') as source:
                metadata = read_metadata(source)
            key = send_to_s3(path)
            s3[key], daemon.metadata[key] = archive, metadata
        shutil.rmtree(there.hash_dir(name, 1, homes[2], partition))
    return made


def test_a_lost_fragment_is_found_in_s3_and_not_rebuilt(
        nodes: List[ObjectNode], stem: str, s3: Dict[str, bytes],
        daemon: Daemon) -> None:
    there = nodes[1]
    homes = make_ring(nodes, 3, [(there, 'sdb', 1), (there, 'sdc', 1),
                                 (there, 'sdd', 1)])[6]
    made = _two_fragments(there, stem, 6, homes, s3, daemon)

    one_pass(there, 6, 'object-reconstructor')

    assert len(daemon.proofs) == COUNT and not daemon.fetches
    for name, body in made.items():
        path = there.data_file_in(name, 6, 1, homes[2])
        assert path.endswith('#2#d.data')
        assert record_of(path).tiers == Tier.REMOTE
        answer = there.request('GET', name, policy=1, device=homes[2],
                               partition=6)
        assert answer.body == fragment(body, 2)
        assert answer.headers['x-object-sysmeta-ec-etag'] == md5(body)


def test_a_fragment_that_s3_never_got_is_rebuilt(
        nodes: List[ObjectNode], stem: str, s3: Dict[str, bytes],
        daemon: Daemon) -> None:
    there = nodes[1]
    homes = make_ring(nodes, 3, [(there, 'sdb', 1), (there, 'sdc', 1),
                                 (there, 'sdd', 1)])[7]
    made = _two_fragments(there, stem, 7, homes, s3, daemon)
    for key in [key for key in s3 if key.endswith('#2')]:
        del s3[key]

    one_pass(there, 7, 'object-reconstructor')

    for name, body in made.items():
        assert there.request('GET', name, policy=1, device=homes[2],
                             partition=7).body == fragment(body, 2)
