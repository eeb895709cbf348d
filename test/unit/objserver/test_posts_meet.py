"""Two decisions about one object that were made after one look at it."""

from __future__ import annotations

import itertools
from typing import Any, List

import pytest
from support.nodes.three_replicas import Replica, settle
from test_posts import NAME, at, post_class, post_meta, state
from test_posts import replicas as replicas

from swift_dss.objserver import posts
from swift_dss.wire import names, registers

RACES = list(itertools.permutations((1, 2)))


@pytest.mark.parametrize('others', [[], [1], [2]])
@pytest.mark.parametrize('first', RACES)
@pytest.mark.parametrize('second', RACES)
def test_of_two_classes_of_one_time_all_replicas_have_the_same(
        replicas: List[Replica], first: Any, second: Any,
        others: Any) -> None:
    """Replicas hear them in different orders, and one of them one alone."""
    for replica, classes in zip(replicas, (first, second, others)):
        replica.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put')
        for class_id in classes:
            post_class(replica, 5, class_id)
    settle(replicas, NAME)
    assert len({state(replica) for replica in replicas}) == 1
    assert len({tuple(replica.meta_names(NAME)) for replica in replicas}) == 1


def test_a_class_that_is_sent_twice_is_old(replicas: List[Replica]) -> None:
    replicas[0].put(NAME, X_Timestamp=at(0))
    assert post_class(replicas[0], 5, 1) == 202
    assert post_class(replicas[0], 5, 1) == 409


def test_a_name_of_before_becomes_that_of_now(
        replicas: List[Replica], monkeypatch: Any) -> None:
    """Names did not tell two classes of one time from one another."""
    older, newer = replicas[:2]
    for replica in (older, newer):
        replica.put(NAME, X_Timestamp=at(0))
    with monkeypatch.context() as patched:
        patched.setattr(registers, '_mark', lambda _class_map: 0)
        assert post_class(older, 5, 1) == post_meta(older, 3) == 202
    assert post_class(newer, 5, 1) == post_meta(newer, 3) == 202
    assert older.meta_names(NAME) < newer.meta_names(NAME)
    settle([older, newer], NAME)
    assert older.meta_names(NAME) == newer.meta_names(NAME)
    assert state(older) == state(newer) == ('3', '1')


def test_a_class_that_came_between_look_and_lock_is_seen(
        replicas: List[Replica], monkeypatch: Any) -> None:
    """Two workers of a server have each a POST that follows from one state:
    one of them must say it again."""
    replica, = replicas[:1]
    replica.put(NAME, X_Timestamp=at(0))
    said: List[int] = []
    real = posts.lock

    def lock(folder: str) -> Any:
        if not said:
            said.append(0)
            said[0] = post_class(replica, 5, 1, **{
                names.SEEN_MAP_AT: registers.NEVER})
        return real(folder)
    monkeypatch.setattr(posts, 'lock', lock)
    assert post_class(replica, 6, 2, **{
        names.SEEN_MAP_AT: registers.NEVER}) == 409
    assert said == [202]
    assert state(replica)[1] == '1'
