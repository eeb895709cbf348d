"""What the bucket hears of POSTs of a version that has a key of its own."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from test_bundle_keys import write_keys
from test_gateway_deletes import OLD, Cluster

from swift_dss.gateway.form import metadata
from swift_dss.gateway.restore.catalog import Catalog, Held
from swift_dss.gateway.ports import Upload
from swift_dss.wire import names, registers
from swift_dss.wire.layout import remote_key

POSTED, LATER = '1700000050.00000', '1700000060.00000'
#: Too long for user metadata of S3: the record lies beside the key.
LONG = {'X-Object-Meta-Long': 'x%dy' * 900 % tuple(range(900))}


@pytest.fixture(params=[False, True], ids=['plain', 'sealed'])
def pair(request, tmp_path):
    conf = {}
    if request.param:
        conf['key_file'] = str(tmp_path / 'keys')
        write_keys(conf['key_file'], 'k1', 'k1')
    made = Cluster(tmp_path, nodes=2, **conf)
    made.sealed = request.param
    yield made
    made.stop()


def put(pair, headers=()):
    return [disk.put('o', b'body', OLD, metadata=dict(headers))
            for disk in pair.disks][0]


def posted(pair, number, version, colour, at=POSTED):
    pair.disks[number].post(version, {
        'X-Object-Meta-Colour': colour, 'X-Timestamp': at})


def sent(pair, number, version):
    """A job of the node, to its end."""
    pair.gateways[number].enqueue_uploads([Upload(version, '7', True)])
    pair.run(0)
    assert pair.disks[number].residency(version).remote is not None


def renewed(pair, number, version):
    pair.gateways[number].enqueue_renewals([(version, '7')])
    pair.run(3000, 100.0)


def colour(pair):
    """What a restore would find."""
    gateway = pair.gateways[0]
    held, = Catalog(gateway.parts.conf, gateway.parts.client).walk()
    assert isinstance(held, Held), held
    return held.record.metadata.get('X-Object-Meta-Colour')


def beside(version):
    return remote_key('p/', version) + metadata.META_SUFFIX


def puts(pair):
    return sum(verb == 'PUT' for verb, _ in pair.s3.asked)


@pytest.mark.parametrize('headers', [{}, LONG], ids=['inline', 'beside'])
def test_what_finds_its_bytes_there_says_what_it_knows(pair, headers):
    """A node sent them, and its record was never written; its replica hears
    of no POST any more."""
    version = put(pair, headers)
    sent(pair, 0, version)
    posted(pair, 1, version, 'blue')
    sent(pair, 1, version)
    assert colour(pair) == 'blue'


@pytest.mark.parametrize('headers', [{}, LONG], ids=['inline', 'beside'])
def test_what_finds_its_bytes_there_takes_nothing_back(pair, headers):
    version = put(pair, headers)
    posted(pair, 0, version, 'blue')
    sent(pair, 0, version)
    posted(pair, 0, version, 'green', LATER)
    renewed(pair, 0, version)
    assert colour(pair) == 'green'
    sent(pair, 1, version)
    assert colour(pair) == 'green'


def test_where_the_record_says_it_already_nothing_is_written(pair):
    version = put(pair)
    posted(pair, 0, version, 'blue')
    posted(pair, 1, version, 'blue')
    sent(pair, 0, version)
    written = puts(pair)
    sent(pair, 1, version)
    assert puts(pair) == written and beside(version) not in pair.s3.keys


def test_of_two_that_renew_the_later_one_takes_nothing_back(pair):
    version = put(pair)
    for number in (0, 1):
        sent(pair, number, version)
    posted(pair, 0, version, 'green', LATER)
    renewed(pair, 0, version)
    posted(pair, 1, version, 'blue')
    renewed(pair, 1, version)
    assert colour(pair) == 'green'


def test_what_another_node_has_said_is_not_said_again(pair):
    version = put(pair)
    for number in (0, 1):
        sent(pair, number, version)
        posted(pair, number, version, 'blue')
    renewed(pair, 0, version)
    written = puts(pair)
    assert colour(pair) == 'blue'
    renewed(pair, 1, version)
    assert puts(pair) == written


@pytest.mark.parametrize('planting', ['unsealed', 'other bytes', 'nothing'])
def test_what_is_not_the_version_s_record_is_replaced(pair, planting):
    version = put(pair)
    sent(pair, 0, version)
    posted(pair, 0, version, 'green', LATER)
    planted = metadata.record_of(pair.disks[0].describe(version, '7'))
    planted['metadata'] = dict(planted['metadata'], **{
        'X-Object-Meta-Colour': 'evil', 'X-Timestamp': '1700000099.00000'})
    if planting == 'other bytes':
        planted['etag'] = 32 * '0'
    if planting == 'unsealed' and not pair.sealed:
        pytest.skip('nothing tells it from one of ours')
    pair.s3.keys[beside(version)] = (
        b'' if planting == 'nothing' else metadata.pack(planted), {})
    renewed(pair, 0, version)
    assert colour(pair) == 'green'


@pytest.mark.parametrize('spoilt', [1, 2])
@pytest.mark.parametrize('is_first', [True, False])
def test_a_record_that_s3_spoils_hides_no_version(pair, spoilt, is_first):
    """Its node may never try again: the version moves on."""
    version = put(pair)
    sent(pair, 0, version)
    if not is_first:
        posted(pair, 0, version, 'red')
        renewed(pair, 0, version)
    put_object, left = pair.s3.put_object, [spoilt]

    def spoil(**options):
        said = put_object(**options)
        if options['Key'] == beside(version) and left[0]:
            left[0] -= 1
            pair.s3.keys[options['Key']] = b'spoilt', {}
        return said

    pair.s3.put_object = spoil
    posted(pair, 0, version, 'green', LATER)
    pair.gateways[0].enqueue_renewals([(version, '7')])
    pair.run(6, 6.0)
    assert left[0] < spoilt
    # What the record in the key says, where nothing else can be had.
    assert colour(pair) == (
        'red' if spoilt == 1 and not is_first else None)
    left[0] = 0
    pair.run(3000, 100.0)
    assert colour(pair) == 'green'


@pytest.mark.parametrize('first, second', [(1, 2), (2, 1)])
def test_of_two_classes_of_one_time_a_record_has_one_and_its_map(
        first: int, second: int) -> None:
    def record(class_id: int) -> Dict[str, Any]:
        return {'map': str(class_id), 'metadata': dict(
            registers.to_metadata(registers.Registers(
                '0000000003.00000', {}, '0000000005.00000',
                {names.TRANSIENT_MAP: str(class_id)})), name='/a/c/o')}
    both = metadata.merged(record(first), record(second))
    assert both == metadata.merged(record(second), record(first))
    assert both['map'] == both['metadata'][names.TRANSIENT_MAP]
