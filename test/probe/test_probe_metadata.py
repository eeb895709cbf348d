"""POST and COPY of versions whose bytes lie elsewhere."""

from __future__ import annotations

import pytest
import stubs
from support import quarantined, wait_until

from swift_dss.core.residency import Tier

pytestmark = pytest.mark.cluster


def test_a_post_changes_metadata_and_nothing_else(
        any_objects, cluster, swift):
    made = any_objects.make_all(stubs.ALL_STUBS)
    recalls = stubs.cloud_reads(cluster)
    before = _states(any_objects, made)
    classes = [_class(swift, one) for one in made]
    for one in made:
        swift.post_object(one.container, one.name,
                          {'X-Object-Meta-Colour': 'blue'})
    any_objects.settle()
    assert _states(any_objects, made) == before
    assert [_class(swift, one) for one in made] == classes
    assert classes == ['fast', 'fast', 'cloud', 'cloud']
    for one in made:
        head = swift.head_object(one.container, one.name)
        assert head['x-object-meta-colour'] == 'blue'
    assert stubs.cloud_reads(cluster) == recalls
    for one in made:
        assert any_objects.get(one) == one.body
    stubs.say('POST, %s: %d stubs, class kept, 0 recalls' % (
        any_objects.policy_name, len(before)))


def test_a_copy_of_a_stub_has_its_bytes_and_class(
        any_objects, cluster, swift):
    made = any_objects.make_all(stubs.ALL_STUBS)
    quarantines = len(quarantined(cluster))
    for one in made:
        swift.copy_object(one.container, one.name,
                          '/%s/%s-copy' % (one.container, one.name))
        head, body = swift.get_object(one.container, one.name + '-copy')
        assert body == one.body
        old = swift.head_object(one.container, one.name)
        for name in ('x-dss-object-class', 'x-dss-range-class',
                     'x-dss-class-name', 'etag'):
            assert head.get(name) == old.get(name), (one.name, name)
    assert len(quarantined(cluster)) == quarantines
    stubs.say('COPY, %s: %d stubs copied whole, class kept' % (
        any_objects.policy_name, len(made)))


def test_a_reclassified_stub_goes_where_its_new_class_belongs(
        any_objects, cluster, swift):
    """HDD only and never in S3, until a POST says ``attic``."""
    one = any_objects.make(stubs.HDD)
    swift.post_object(one.container, one.name,
                      {'X-DSS-Object-Class': 'attic'})
    wait_until(lambda: all(
        copy.residency.tiers == Tier.REMOTE
        for copy in any_objects.copies(one)), 60, 'move to S3')
    assert _class(swift, one) == 'attic'
    assert any_objects.get(one) == one.body
    # And a later POST of something else does not undo it.
    swift.post_object(one.container, one.name, {'X-Object-Meta-A': 'b'})
    assert _class(swift, one) == 'attic'
    stubs.say('POST of a class, %s: HDD stub went to S3, whole' %
              any_objects.policy_name)


def _class(swift, one):
    return swift.head_object(one.container, one.name)['x-dss-class-name']


def _states(objects, made):
    return {copy.path: copy.residency for one in made
            for copy in objects.copies(one)}
