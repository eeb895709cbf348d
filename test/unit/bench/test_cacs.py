"""The sample has the slide's shares and always the same bytes."""

import collections
import hashlib
import pathlib

import pytest

from swift_dss.bench import cacs
from swift_dss.wire.settings import classtable


def test_kinds_have_the_slides_shares():
    kinds = collections.Counter(
        obj.kind for obj in cacs.sample(10000, seed=7))
    assert kinds == {'files': 6000, 'pictures': 3500, 'music': 400,
                     'video': 90, 'vmdk': 10}


def test_bands_have_the_slides_shares():
    pictures = [obj.size for obj in cacs.sample(10000, seed=7)
                if obj.kind == 'pictures']
    counts = []
    for lower, upper in cacs.BANDS:
        counts.append(sum(1 for size in pictures
                          if lower < size <= (upper or size)))
    counts[0] += sum(1 for size in pictures if size <= cacs.KIB)
    for count, percent in zip(counts, (17.1, 43.6, 14.5, 20, 3.5, 1.3)):
        assert abs(count - 35 * percent) <= 1.5


def test_large_objects_are_user7_and_others_go_by_kind():
    classes = {'files': 'user1', 'pictures': 'user2', 'music': 'user3',
               'video': 'user4', 'vmdk': 'user5'}
    seen = set()
    for obj in cacs.sample(10000, seed=3):
        large = obj.size > cacs.LARGE_BYTES
        assert obj.class_name == ('user7' if large
                                  else classes[obj.kind])
        seen.add((obj.kind, large))
    assert ('vmdk', True) in seen and ('vmdk', False) not in seen
    assert ('video', True) in seen and ('video', False) in seen


@pytest.mark.parametrize('scale', [1.0, 1 / 16, 1 / 1024])
def test_class_is_that_of_the_unscaled_size(scale):
    plain = cacs.sample(500, seed=5)
    scaled = cacs.sample(500, seed=5, scale=scale)
    assert [obj.class_name for obj in plain] == \
        [obj.class_name for obj in scaled]
    for obj, small in zip(plain, scaled):
        assert 0 <= small.size - obj.size * scale < 1
        if obj.class_name != cacs.LARGE_CLASS:
            assert small.size <= cacs.large_bytes(scale) + 1


def test_small_sample_has_every_kind():
    kinds = {obj.kind for obj in cacs.sample(20, seed=1)}
    assert kinds == {kind.name for kind in cacs.KINDS}


def test_same_seed_same_objects_and_another_seed_others():
    assert cacs.sample(300, seed=4) == cacs.sample(300, seed=4)
    assert cacs.sample(300, seed=4) != cacs.sample(300, seed=5)


def test_names_are_unique_and_begin_with_the_kind():
    objects = cacs.sample(2000, seed=2)
    assert len({obj.name for obj in objects}) == 2000
    assert all(obj.name.startswith(obj.kind + '-') for obj in objects)


@pytest.mark.parametrize('size', [1, 31, 65535, 65536, 65537, 200001])
def test_body_is_as_long_as_it_says_and_repeats(size):
    obj = cacs.CacsObject('files-1', 'files', size, 25, 'user1', 'x/y')
    raw = b''.join(cacs.body(obj))
    assert len(raw) == size
    assert raw == b''.join(cacs.body(obj))
    assert cacs.digest(obj) == hashlib.md5(raw).hexdigest()


def test_blocks_of_a_body_differ():
    obj = cacs.CacsObject('a', 'files', 1 << 20, 25, 'user1', 'x/y')
    blocks = list(cacs.body(obj))
    assert len(set(blocks)) == 16


@pytest.mark.parametrize('count', [0, 1, 4, 7, 99, 1001])
def test_apportion_gives_exactly_the_count(count):
    parts = cacs.apportion(count, (60, 35, 4, 0.9, 0.1))
    assert sum(parts) == count
    assert all(part >= 0 for part in parts)


def test_class_ids_are_those_of_the_sample_class_table():
    sample = pathlib.Path(__file__).resolve().parents[3] / \
        'etc' / 'dss-classes.conf-sample'
    table = classtable.parse(sample.read_text())
    for name, class_id in cacs.CLASS_IDS.items():
        assert table.by_name(name).class_id == class_id
    ranks = [table.by_name('user%d' % n).rank for n in range(1, 8)]
    assert ranks == sorted(ranks, reverse=True)
