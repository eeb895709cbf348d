"""Versions that a restore writes: beside what is there, and as stubs."""

from __future__ import annotations

import hashlib
import logging
import os
from types import SimpleNamespace

import pytest
from support.nodes.daemon_node import write_policies
from swift.common import storage_policy, utils
from swift.obj.diskfile import read_metadata

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.form.metadata import RemoteRecord, own_key
from swift_dss.gateway.restore.catalog import Held
from swift_dss.gateway.restore.planned import PlannedWriter
from swift_dss.gateway.restore.write import Target, Writer
from swift_dss.io import residency_store

OLD, NOW, NEW = ('17000000%d0.00000' % number for number in range(3))
BODY = b'x' * 5000
ETAG = hashlib.md5(BODY).hexdigest()
TARGET = Target('sda', 7, 0)
#: Policy 3.
CODED = '''[storage-policy:3]
name = coded
policy_type = erasure_coding
diskfile_module = egg:swift_dss#dss_ec.fs
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 2
ec_num_parity_fragments = 1
'''


class Node:
    """A node with one device, that is to get versions back."""

    def __init__(self, root):
        self.device = os.path.join(root, 'devices', 'sda')
        os.makedirs(self.device)
        write_policies(root)
        with open(os.path.join(root, 'swift.conf'), 'a',
                  encoding='ascii') as conf:
            conf.write(CODED)
        self.writer, self.planned = (kind(
            NodeConf(devices=os.path.join(root, 'devices'), swift_dir=root,
                     run_dir=root, mount_check=False),
            SimpleNamespace(ring=lambda name: None),
            logging.getLogger('stub-writer'), ('127.0.0.1',))
            for kind in (Writer, PlannedWriter))

    def restore(self, name='o', policy=0, index=None, at=NOW, dry_run=False,
                **posted):
        version = VersionId('', policy, utils.hash_path('a', 'c', name), at,
                            index)
        writer = self.planned if dry_run else self.writer
        return writer.write(Held(RemoteRecord(
            version, len(BODY), ETAG, {
                'name': '/a/c/' + name, 'X-Timestamp': at,
                'Content-Type': 'a/b', **{
                    key.replace('_', '-'): value
                    for key, value in posted.items()}}, ''), RemoteCopy(
                    's3', own_key('p/', version), ETAG, 0.0)), TARGET)

    def all_files(self):
        return sorted(os.path.join(folder, name)
                      for folder, _, names in os.walk(self.device)
                      for name in names)

    def folder(self, name='o', datadir='objects'):
        object_hash = utils.hash_path('a', 'c', name)
        return os.path.join(self.device, datadir, '7', object_hash[-3:],
                            object_hash)


@pytest.fixture
def node(tmp_path, monkeypatch):
    # The writer sets these; other tests have others.
    monkeypatch.setattr(storage_policy, '_POLICIES',
                        storage_policy._POLICIES)
    for name in ('HASH_PATH_SUFFIX', 'HASH_PATH_PREFIX', 'SWIFT_CONF_FILE'):
        monkeypatch.setattr(utils, name, getattr(utils, name))
    return Node(str(tmp_path))


def test_it_is_a_stub_from_its_first_instant(node):
    assert node.restore()
    name, = os.listdir(node.folder())
    assert name == NOW + '.data'
    path = os.path.join(node.folder(), name)
    assert os.stat(path).st_size == len(BODY) + 1
    with open(path, 'rb') as source:
        residency = residency_store.judge(source.fileno(), len(BODY))
    assert residency.tiers == Tier.REMOTE and residency.remote.etag == ETAG
    assert not node.restore(), 'it is there'


LATER = {'X_Timestamp': '1700000015.00000', 'X_Object_Meta_Colour': 'blue'}
TYPED = {'X_Timestamp': '1700000013.00000', 'X_Object_Meta_Colour': 'red',
         'Content_Type_Timestamp': '1700000013.00000',
         'Content_Type': 'c/d'}


@pytest.mark.parametrize('told', [
    ({}, TYPED, LATER), (LATER, TYPED, {}), (LATER, {}, TYPED),
    (TYPED, LATER, {})])
def test_of_many_records_of_a_version_the_newest_count(node, told):
    for posted in told:
        node.restore(**posted)
    names = sorted(os.listdir(node.folder()))
    assert [name.rpartition('.')[2] for name in names] == ['data', 'meta']
    metadata = read_metadata(os.path.join(node.folder(), names[1]))
    assert metadata['X-Object-Meta-Colour'] == 'blue'
    assert metadata['Content-Type'] == 'c/d'
    assert not any(node.restore(**posted) for posted in told)


@pytest.mark.parametrize('there, is_written', [
    (OLD + '.data', True), (OLD + '.ts', True), (NOW + '.ts', False),
    (NEW + '.data', False), (NEW + '.ts', False)])
def test_nothing_comes_back_over_what_is_newer(node, there, is_written):
    os.makedirs(node.folder())
    open(os.path.join(node.folder(), there), 'w').close()
    assert node.restore() is is_written
    assert os.path.exists(os.path.join(
        node.folder(), NOW + '.data')) is is_written


@pytest.mark.parametrize('posted', [{}, LATER])
@pytest.mark.parametrize('there, is_written', [
    ('#0.data', False), ('#1.data', True)])
def test_a_fragment_that_is_not_durable_keeps_its_bytes(
        node, posted, there, is_written):
    """Nobody has proven those of an upload that may have failed."""
    folder = node.folder(datadir='objects-3')
    os.makedirs(folder)
    path = os.path.join(folder, NOW + there)
    with open(path, 'wb') as target:
        target.write(BODY)
    assert node.restore(policy=3, index=0, **posted) is is_written
    with open(path, 'rb') as source:
        assert source.read() == BODY
    assert os.path.exists(os.path.join(
        folder, NOW + '#0#d.data')) is is_written


def test_no_stub_lies_in_a_policy_of_stock_swift(node):
    with pytest.raises(BadConfig, match='not ours'):
        node.restore(policy=2)
    assert os.listdir(node.device) == []


#: Records as a bucket may have them of one object, in the order of a walk.
WALKS = [
    [{}, {}], [{}, LATER, LATER, TYPED], [TYPED, {}, LATER], [LATER, {}],
    [{'at': OLD}, {}, {'at': NEW}], [{'at': NEW}, {}, {'at': OLD}],
    [{}, {'at': NEW}, LATER], [{'policy': 3, 'index': 0}, {}, {
        'policy': 3, 'index': 1}, {'policy': 3, 'index': 0}]]


@pytest.mark.parametrize('walk', WALKS)
@pytest.mark.parametrize('there', ['', OLD + '.ts', NOW + '.ts', 'stub',
                                   'posted'])
def test_a_dry_run_says_what_the_restore_then_writes(node, walk, there):
    os.makedirs(node.folder())
    if there.endswith('.ts'):
        open(os.path.join(node.folder(), there), 'w').close()
    elif there:
        assert node.restore(**(TYPED if there == 'posted' else {}))
    before = node.all_files()
    planned = [node.restore(dry_run=True, **record) for record in walk]
    looked = node.planned.look(VersionId(
        'sda', 0, utils.hash_path('a', 'c', 'o'), NOW, None), '7').timestamp
    assert node.all_files() == before
    assert [node.restore(**record) for record in walk] == planned
    assert node.writer.look(VersionId(
        'sda', 0, utils.hash_path('a', 'c', 'o'), NOW, None),
        '7').timestamp == looked
    # Another dry run, in a process of its own, has nothing to do.
    assert not any(node.restore(**record) for record in walk)


def test_a_dry_run_refuses_as_the_restore_does(node):
    with pytest.raises(BadConfig, match='not ours'):
        node.restore(policy=2, dry_run=True)
    os.rmdir(node.device)
    with pytest.raises(TierUnavailable, match='not mounted'):
        node.restore(dry_run=True)
