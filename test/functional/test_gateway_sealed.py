"""Encryption on our side: no plaintext in the bucket, and all of it back."""

from __future__ import annotations

import base64
import os
import zlib

import pytest
from functional import test_gateway_bundles
from support import pattern, wait_until
from support.edges.s3_servers import BUCKET

from swift_dss.core.errors import BadConfig
from swift_dss.core.residency import Tier
from swift_dss.gateway.form import encrypt
from swift_dss.gateway.restore.catalog import (
    Catalog, Held, Unreadable, open_client)

MIB = 1 << 20
#: What the nodes of these tests are.
Node = test_gateway_bundles.Node
CANARY = 'canary-%s-canary' % 'x9Kq'
BODY = CANARY.encode() * 64
SIZES = {'small': 5000, 'large': 3 * MIB + 11, 'parts': 12 * MIB + 5}


def write_keys(path, active, *ids):
    """The same id gives the same key; the file is replaced, as one does."""
    lines = ['active = %s' % active] + ['key %s = %s' % (
        name, base64.b64encode(name.encode().ljust(32, b'!')).decode())
        for name in ids]
    with open(path + '.new', 'w', opener=lambda name, flags: os.open(
            name, flags, 0o600)) as target:
        target.write('\n'.join(lines) + '\n')
    os.rename(path + '.new', path)
    return path


def bodies():
    return {'%s-%s' % (CANARY, name): (BODY + pattern(size, name))[:size]
            for name, size in SIZES.items()}


def put_all(node):
    return {name: node.put(name, body, metadata={
        'name': '/acc-%s/con-%s/%s' % (CANARY, CANARY, name),
        'X-Object-Meta-Secret': CANARY})
        for name, body in bodies().items()}


def seen_in_bucket(node):
    """Everywhere that the canary shows, raw or packed."""
    client = node.server.client()
    keys = []
    for key in node.listed():
        answer = client.get_object(Bucket=BUCKET, Key=key)
        raw = answer['Body'].read()
        meta = ''.join(value for name, value in sorted(
            answer['Metadata'].items()) if name[-1].isdigit())
        views = [key.encode(), raw, repr(answer['Metadata']).encode(),
                 unpacked(raw)]
        try:
            views.append(unpacked(base64.b64decode(meta)))
        except ValueError:
            pass
        if any(CANARY.encode() in view for view in views):
            keys.append(key)
    return keys


def unpacked(raw):
    """All that zlib finds in some bytes, wherever it begins."""
    pieces = []
    at = raw.find(b'\x78')
    while at >= 0 and at < len(raw) and len(pieces) < 2000:
        if raw[at + 1:at + 2] in (b'\x01', b'\x5e', b'\x9c', b'\xda'):
            try:
                pieces.append(zlib.decompressobj().decompress(
                    raw[at:at + 65536], 65536))
            except zlib.error:
                pass
        at = raw.find(b'\x78', at + 1)
    return b''.join(pieces)


@pytest.mark.parametrize('sealed', [True, False], ids=['sealed', 'open'])
def test_the_bucket_sees_no_plaintext(server, tmp_path, nodes, sealed):
    """The canary's wrong twin: without keys it shows in every key."""
    keys = write_keys(str(tmp_path / 'keys'), 'k1', 'k1') if sealed else ''
    node = nodes(server, tmp_path / 'node', key_file=keys)
    versions = put_all(node)
    node.upload(versions.values())
    for version in versions.values():
        node.local.post(version, {'X-Object-Meta-Later': CANARY + CANARY})
        node.gateway.enqueue_renewals([(version, '7')])
    wait_until(lambda: len([key for key in node.listed() if key.endswith(
        ('.meta', '.since'))]) == 3, 30)
    keys = seen_in_bucket(node)
    if not sealed:
        assert len(keys) >= 6, keys
        return
    assert not keys
    for name, body in bodies().items():
        version = versions[name]
        node.local.drop_local(version)
        middle = len(body) // 2
        assert node.fetch(version, middle, 99) == body[middle:middle + 99]
        assert node.fetch(version) == body
        assert node.local.residency(version).bytes_on(
            Tier.HDD) == len(body)
    held = {member.name: member for member in Catalog(
        node.conf.gateway, open_client(node.conf.gateway)).walk()}
    assert len(held) == 3
    for name, version in versions.items():
        own = held['/acc-%s/con-%s/%s' % (CANARY, CANARY, name)]
        mine = node.local.residency(version).remote
        assert (own.remote.key, own.remote.offset, own.remote.seal) == (
            mine.key, mine.offset, mine.seal)
        assert own.record.metadata['X-Object-Meta-Later'] == CANARY * 2


def test_keys_rotate(server, tmp_path, nodes):
    path = write_keys(str(tmp_path / 'keys'), 'k1', 'k1')
    node = nodes(server, tmp_path / 'node', key_file=path)
    # One alone would share no bundle.
    all_bodies = dict(bodies(), second=b's' * 900)
    old = {name: node.put(name, body) for name, body in all_bodies.items()}
    node.upload(old.values())
    write_keys(path, 'k2', 'k1', 'k2')
    new = node.put('new', b'n' * 700000)
    node.upload([new])

    def ids():
        return {name: node.local.residency(version).remote.seal.split(
            '.')[1] for name, version in dict(old, new=new).items()}
    assert ids() == dict(dict.fromkeys(old, 'k1'), new='k2')
    for version in old.values():
        node.gateway.rekey(version, '7')
    node.gateway.rekey_bundles()
    wait_until(lambda: not node.gateway.bundles_to_rekey()
               and set(ids().values()) == {'k2'}, 60)
    # The old key may go now, here and in what the bucket alone says.
    write_keys(path, 'k2', 'k2')
    wait_until(lambda: len(node.bundles()) == 1, 60, 'the old bundle went')
    for name, body in all_bodies.items():
        node.local.drop_local(old[name])
        assert node.fetch(old[name]) == body
    entries = list(Catalog(node.conf.gateway, open_client(
        node.conf.gateway)).walk())
    assert len(entries) == 5 and all(isinstance(entry, Held)
                                     for entry in entries)
    # And with a key that is not there nothing is made up.
    write_keys(path, 'k3', 'k3')
    entries = list(Catalog(node.conf.gateway, open_client(
        node.conf.gateway)).walk())
    assert entries and all(isinstance(entry, Unreadable)
                           and 'k2' in entry.reason for entry in entries)


def test_moved_and_changed_blocks_are_never_let_out(
        server, tmp_path, nodes):
    path = write_keys(str(tmp_path / 'keys'), 'k1', 'k1')
    node = nodes(server, tmp_path / 'node', key_file=path,
                 part_bytes=64 * MIB)
    body = pattern(3 * MIB, 'blocks')
    version = node.put('blocks', body)
    node.upload([version])
    node.local.drop_local(version)
    key = node.local.residency(version).remote.key
    client = server.client()
    answer = client.get_object(Bucket=BUCKET, Key=key)
    raw, meta = answer['Body'].read(), answer['Metadata']
    size = encrypt.SEALED_BLOCK_BYTES
    for spoilt in (raw[size:2 * size] + raw[:size] + raw[2 * size:],
                   raw[:5] + bytes([raw[5] ^ 1]) + raw[6:]):
        client.put_object(Bucket=BUCKET, Key=key, Body=spoilt,
                          Metadata=meta)
        with pytest.raises(AssertionError, match='503|cut short|None'):
            node.fetch(version)
    client.put_object(Bucket=BUCKET, Key=key, Body=raw, Metadata=meta)
    assert node.fetch(version) == body


@pytest.mark.parametrize('text', [
    '', 'active = k1\n', 'active = k1\nkey k1 = short\n',
    'key k1 = %s\n' % ('A' * 43 + '='), 'nonsense\n',
    'active = k1\nkey k1 = AAAA\n'])
def test_a_key_file_that_cannot_be_used_is_refused(tmp_path, text):
    path = str(tmp_path / 'keys')
    with open(path, 'w', opener=lambda name, flags: os.open(
            name, flags, 0o600)) as target:
        target.write(text)
    with pytest.raises(BadConfig) as caught:
        encrypt.KeyFile(path).check()
    assert 'AAAA' not in str(caught.value)


def test_a_key_file_that_others_can_read_is_refused(tmp_path):
    path = write_keys(str(tmp_path / 'keys'), 'k1', 'k1')
    encrypt.KeyFile(path).check()
    os.chmod(path, 0o644)
    with pytest.raises(BadConfig, match='too open'):
        encrypt.KeyFile(path).check()
