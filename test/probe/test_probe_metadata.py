"""POST and COPY of versions whose bytes lie elsewhere."""

from __future__ import annotations

import pytest
from support import quarantined, wait_until
from support.rigs import remote_stubs as stubs

from swift_dss.core.residency import Tier

pytestmark = pytest.mark.cluster


def test_a_post_changes_metadata_and_nothing_else(
        any_objects, cluster, swift):
    made = any_objects.make_all(stubs.ALL_STUBS)
    recalls = stubs.cloud_reads(cluster)
    before = _states(any_objects, made)
    classes = [_class(swift, obj) for obj in made]
    for obj in made:
        swift.post_object(obj.container, obj.name,
                          {'X-Object-Meta-Colour': 'blue'})
    any_objects.settle()
    assert _states(any_objects, made) == before
    assert [_class(swift, obj) for obj in made] == classes
    assert classes == ['fast', 'fast', 'cloud', 'cloud']
    for obj in made:
        head = swift.head_object(obj.container, obj.name)
        assert head['x-object-meta-colour'] == 'blue'
    assert stubs.cloud_reads(cluster) == recalls
    for obj in made:
        assert any_objects.get(obj) == obj.body
    stubs.say('POST, %s: %d stubs, class kept, 0 recalls' % (
        any_objects.policy_name, len(before)))


def test_a_copy_of_a_stub_has_its_bytes_and_class(
        any_objects, cluster, swift):
    made = any_objects.make_all(stubs.ALL_STUBS)
    quarantines = len(quarantined(cluster))
    for obj in made:
        swift.copy_object(obj.container, obj.name,
                          '/%s/%s-copy' % (obj.container, obj.name))
        head, body = swift.get_object(obj.container, obj.name + '-copy')
        assert body == obj.body
        old = swift.head_object(obj.container, obj.name)
        for name in ('x-dss-object-class', 'x-dss-range-class',
                     'x-dss-class-name', 'etag'):
            assert head.get(name) == old.get(name), (obj.name, name)
    assert len(quarantined(cluster)) == quarantines
    stubs.say('COPY, %s: %d stubs copied whole, class kept' % (
        any_objects.policy_name, len(made)))


def test_a_reclassified_stub_goes_where_its_new_class_belongs(
        any_objects, cluster, swift):
    """HDD only and never in S3, until a POST says ``attic``."""
    obj = any_objects.make(stubs.HDD)
    swift.post_object(obj.container, obj.name,
                      {'X-DSS-Object-Class': 'attic'})
    wait_until(lambda: all(
        copy.residency.tiers == Tier.REMOTE
        for copy in any_objects.copies(obj)), 60, 'move to S3')
    assert _class(swift, obj) == 'attic'
    assert any_objects.get(obj) == obj.body
    # And a later POST of something else does not undo it.
    swift.post_object(obj.container, obj.name, {'X-Object-Meta-A': 'b'})
    assert _class(swift, obj) == 'attic'
    stubs.say('POST of a class, %s: HDD stub went to S3, whole' %
              any_objects.policy_name)


def _class(swift, obj):
    return swift.head_object(obj.container, obj.name)['x-dss-class-name']


def _states(objects, made):
    return {copy.path: copy.residency for obj in made
            for copy in objects.copies(obj)}
