"""A node that leans on a bundle reads little of it."""

from __future__ import annotations

import pytest
from test_bundle_following import Ranked
from test_bundle_keys import write_keys
from test_bundles_of_others import OLD, SMALL

from swift_dss.gateway.bundle.pack import PROOFS_META
from swift_dss.gateway.form.encrypt import SEAL_META
from swift_dss.gateway.restore.catalog import Catalog, Held
from swift_dss.gateway.ports import Upload

MANY = ['o%d' % number for number in range(60)]


@pytest.fixture(params=[False, True], ids=['plain', 'sealed'])
def nodes(request, tmp_path):
    conf = {}
    if request.param:
        conf['key_file'] = str(tmp_path / 'keys')
        write_keys(conf['key_file'], 'k1', 'k1')
    made = Ranked(tmp_path, **conf)
    made.second()
    yield made
    made.stop()


def packed(nodes):
    versions = [nodes.disks[0].put(name, name.encode(), OLD, class_map=SMALL)
                for name in MANY]
    nodes.gateways[0].enqueue_uploads(
        [Upload(version, '7', True, 1) for version in versions])
    nodes.run(60)
    assert len(nodes.bundles()) == 1
    return versions


def leaning(nodes, names):
    """(requests, bytes) of bundles until the second node names it."""
    for name in names:
        nodes.disks[1].put(name, name.encode(), OLD, class_map=SMALL)
    by_name = dict(zip(MANY, nodes.versions))
    nodes.gateways[1].enqueue_uploads(
        [Upload(by_name[name], '7', True, 1) for name in names])
    inner, read = nodes.s3.get_object, []

    def get(**options):
        said = inner(**options)
        if '/bundles/' in options['Key']:
            read.append(int(said['ContentLength']))
        return said
    nodes.s3.get_object = get
    del nodes.s3.asked[:]
    nodes.run(100)
    nodes.s3.get_object = inner
    assert nodes.keys(1, [by_name[name] for name in names]) == set(
        nodes.bundles())
    heads = sum(verb == 'HEAD' and '/bundles/' in key
                for verb, key in nodes.s3.asked)
    return heads, len(read), sum(read)


def test_one_small_read_proves_a_member_of_many(nodes):
    nodes.versions = packed(nodes)
    index = len(nodes.s3.keys[nodes.bundles()[0]][0])
    heads, gets, length = leaning(nodes, MANY[:1])
    print('figure: %d HEAD, %d GET, %d of %d bytes' % (
        heads, gets, length, index))
    assert (heads, gets) == (1, 1)
    assert length <= 20 * len(MANY) + 100
    # And of all others at a time, from memory.
    heads, gets, length = leaning(nodes, MANY[1:])
    assert gets == 0


@pytest.mark.parametrize('how', ('none', 'flipped', 'elsewhere'))
def test_without_proofs_the_index_says_it(nodes, how):
    nodes.versions = packed(nodes)
    key, = nodes.bundles()
    data, said = nodes.s3.keys[key]
    at, length = map(int, said[PROOFS_META].split('-'))
    if how == 'none':
        # As a copied bucket, or a bundle of an earlier release.
        said = {}
    elif how == 'flipped':
        data = data[:at] + bytes((data[at] ^ 1,)) + data[at + 1:]
    else:
        said = dict(said, **{PROOFS_META: '%d-%d' % (at - 7, length)})
    nodes.s3.keys[key] = data, said
    assert leaning(nodes, MANY[:3])[1] >= 2
    name = MANY[1]
    nodes.disks[1].drop_local(nodes.versions[1])
    assert name
    held = list(Catalog(nodes.gateways[1].parts.conf,
                        nodes.gateways[1].parts.client).walk())
    assert [type(member) for member in held] == [Held] * len(MANY)


def test_a_bundle_says_its_seal_where_a_head_finds_it(nodes):
    nodes.versions = packed(nodes)
    _, said = nodes.s3.keys[nodes.bundles()[0]]
    remote = nodes.disks[0].residency(nodes.versions[0]).remote
    assert remote.seal.startswith(said.get(SEAL_META, ''))
    assert bool(remote.seal) == (SEAL_META in said)
