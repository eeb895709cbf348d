"""The sample of rules for programs that spread data over many objects."""

from __future__ import annotations

import pathlib

import pytest

from swift_dss.core.rules import RequestFacts
from swift_dss.strategy.classify import first_match
from swift_dss.wire.settings import classtable, rules

ETC = pathlib.Path(__file__).resolve().parents[3] / 'etc'
TABLE = classtable.parse((ETC / 'dss-classes.conf-sample').read_text())
RULES = rules.parse(
    (ETC / 'dss-rules-formats.conf-sample').read_text(), TABLE)
ULID = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
DIGEST = '0123456789abcdef' * 4


def class_of(container, name, size=1 << 20):
    rule = first_match(RequestFacts(container=container, obj=name,
                                    size=size), RULES)
    return None if rule is None else TABLE.name_of(rule.class_id)


@pytest.mark.parametrize('container, name, expected', [
    ('data', 'zarr.json', 'gold'),
    ('data', 'a.zarr/t/zarr.json', 'gold'),
    ('data', 'a.zarr/.zmetadata', 'gold'),
    ('data', 'a.zarr/t/.zarray', 'gold'),
    ('data', 'a.zarr/t/c/0/0', None),
    ('data', 'a.zarr/t/0.0', None),
    ('data', 'bizarr.json', None),
    ('restic-home', 'config', 'gold'),
    ('restic-home', 'index/' + DIGEST, 'gold'),
    ('restic', 'host/snapshots/' + DIGEST, 'gold'),
    ('restic', 'data/01/' + DIGEST, 'bronze'),
    ('borg-2', 'archives/' + DIGEST, 'gold'),
    ('borg-2', 'config/manifest', 'gold'),
    ('borg-1', 'host/index.123', 'gold'),
    ('borg-1', 'host/data/0/123', 'bronze'),
    ('velero', 'backups/daily/velero-backup.json', 'gold'),
    ('velero', 'backups/daily/daily-resource-list.json.gz', 'gold'),
    ('velero', 'backups/daily/daily.tar.gz', None),
    ('velero', 'kopia/default/kopia.repository', 'gold'),
    ('velero', 'kopia/default/q0123-s01', 'gold'),
    ('velero', 'kopia/default/xn0_0123-s01-c1', 'gold'),
    ('velero', 'kopia/default/p0123-s01', 'bronze'),
    ('loki', 'index/loki_index_19000/1-compactor.tsdb.gz', 'gold'),
    ('loki', 'fake/3f2a/18c:18d:1a2b', None),
    ('thanos', ULID + '/meta.json', 'gold'),
    ('thanos', ULID + '/index', 'gold'),
    ('thanos', ULID + '/deletion-mark.json', 'gold'),
    ('thanos', ULID + '/chunks/000001', 'silver'),
    ('mimir-blocks', 'tenant/bucket-index.json.gz', 'gold'),
    ('mimir-blocks', 'tenant/%s/index' % ULID, 'gold'),
    ('images', 'files/docker/registry/v2/repositories/a/_manifests/tags/'
     'latest/current/link', 'gold'),
    ('images', 'docker/registry/v2/blobs/sha256/01/%s/data' % DIGEST,
     'silver')])
def test_names_get_their_class(container, name, expected):
    assert class_of(container, name) == expected


def test_small_blobs_of_a_registry_are_manifests():
    name = 'docker/registry/v2/blobs/sha256/01/%s/data' % DIGEST
    assert class_of('images', name, 2000) == 'gold'
    # Of a chunked upload no size is known.
    assert class_of('images', name, None) == 'silver'
