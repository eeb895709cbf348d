"""Rules and restorations that meet at one object, after one look at it.

Servers hear them in different orders, and take what is newer: so times decide,
and no two kinds of decisions that follow from one look may share one.
"""

from __future__ import annotations

import copy
import json
import random
import time
from typing import Any, Callable, Dict, Iterator, List

import pytest
from test_lifecycle_rounds import (
    Swift, buckets_of, call, class_of, expire, make_due, restore,
    restores_of, rows_of, rule, set_rules, to, work)
from test_lifecycle_rounds import dss as dss
from test_lifecycle_rounds import swift as swift

from swift_dss.core.spans import ClassMap
from swift_dss.proxy.large.records import Record, Records
from swift_dss.proxy.lifecycle import restores
from swift_dss.proxy.lifecycle.options import Options
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.rows import own_env
from swift_dss.wire import names

PATH = '/v1/a/c/o'


def time_of(swift: Swift, decide: Callable[[], Any]) -> str:
    """Of the classes that it sets; the object is as before."""
    before = copy.deepcopy(swift.objects[PATH])
    decide()
    at = str(swift.objects[PATH][1][names.MAP_AT])
    swift.objects[PATH] = before
    return at


@pytest.fixture(params=[False, True])
def made(request: Any, dss: Any, swift: Swift) -> Any:
    """An object; a large one too."""
    more: Dict[str, str] = {'X_Object_Manifest': 'c/none/'} \
        if request.param else {}
    call(dss, 'PUT', PATH, X_DSS_Object_Class='27', body=b'', **more)
    swift.age(PATH, 1)
    set_rules(dss, rule(to('STANDARD_IA')))
    return dss


def test_a_restoration_wins_over_a_rule_of_the_same_look(
        made: Any, swift: Swift) -> None:
    by_rule = time_of(swift, lambda: work(buckets_of(made)))
    by_client = time_of(swift, lambda: restore(made))
    assert by_rule < by_client


def test_a_client_wins_over_what_becomes_of_a_restoration(
        made: Any, swift: Swift) -> None:
    restore(made)
    done = time_of(swift, lambda: work(restores_of(made)))
    again = time_of(swift, lambda: restore(made, 9))
    assert done < again
    expire(swift)
    ended = time_of(swift, lambda: work(restores_of(made)))
    again = time_of(swift, lambda: restore(made, 9))
    assert ended < again


def test_a_segment_has_the_class_of_its_manifest_whatever_rules_say(
        dss: Any, swift: Swift) -> None:
    call(dss, 'PUT', PATH)
    call(dss, 'PUT', '/v1/a/d/big', body=b'', X_Object_Manifest='c/o',
         X_DSS_Object_Class='27')
    swift.age(PATH, 1)
    set_rules(dss, rule(to('STANDARD_IA')))
    work(buckets_of(dss))
    assert restore(dss) == 409
    assert class_of(swift) == class_of(swift, '/v1/a/d/big') == 27
    assert dss.logger.counted.count('dss.lifecycle.segments') == 1


def test_a_look_before_the_object_is_restored_puts_nothing_off(
        dss: Any, swift: Swift) -> None:
    """The row is written first."""
    call(dss, 'PUT', PATH, X_DSS_Object_Class='27')
    swift.before[('POST', PATH)] = lambda: work(restores_of(dss))
    assert restore(dss) == 202
    row, = rows_of(swift, 'restores')
    assert float(swift.objects[row][1]['X-Object-Meta-Until']) \
        < time.time() + 10
    make_due(swift, 'restores')
    work(restores_of(dss))
    assert class_of(swift) == 28


class Slow(Swift):
    """Whose bodies come in four pieces, each after something else."""

    meets: Callable[[], Any]
    pieces = 0

    def _get(self, request: Any) -> Any:
        answer = super()._get(request)
        if request.method == 'GET' and request.path_info == PATH:
            answer.app_iter = self._body(answer.body)
        return answer

    def _body(self, body: bytes) -> Iterator[bytes]:
        for number in range(4):
            self.meets()
            self.pieces += 1
            yield body[25 * number:25 * number + 25]


@pytest.mark.parametrize('leads_for', [1, 2, 100])
def test_a_read_that_outlasts_a_lease_keeps_it(
        dss: Any, swift: Swift, monkeypatch: Any, leads_for: int) -> None:
    """Else other proxies lead, and read the same bytes from S3."""
    monkeypatch.setattr(Options, 'lease_seconds', 0.0)
    swift.residency = '0'
    call(dss, 'PUT', PATH, X_DSS_Object_Class='27')
    restore(dss)
    swift.__class__ = Slow
    asked: List[int] = []
    swift.meets = lambda: asked.append(len(asked))
    row, = rows_of(swift, 'restores')
    left = [leads_for]

    def leads() -> bool:
        left[0] -= 1
        return left[0] >= 0
    restores_of(dss).work(own_env(), leads)
    assert (swift.pieces == 4) == (leads_for == 100)
    # Who leads no more leaves the row to who does.
    assert (swift.objects[row][1]['X-Object-Meta-Until'] == '0.000') == (
        leads_for < 100)


def test_a_segment_that_is_lost_holds_few_others_up(
        dss: Any, swift: Swift, monkeypatch: Any) -> None:
    monkeypatch.setattr(restores, 'random', random.Random(1))
    swift.residency = '0'
    paths = ['/v1/a/c/s%02d' % number for number in range(40)]
    for path in paths:
        call(dss, 'PUT', path)
    call(dss, 'PUT', PATH, json.dumps([
        {'name': '/c/s%02d' % number, 'bytes': 100, 'hash': 'e'}
        for number in range(40)]).encode())
    swift.objects[PATH][1]['X-Static-Large-Object'] = 'True'
    restore(dss)
    for _round in range(7):
        swift.unread = {paths[0]: 1}
        make_due(swift, 'restores')
        work(restores_of(dss))
        for method, path, _ in swift.requests:
            if method == 'GET' and path in paths[1:]:
                swift.objects[path][1][names.BACKEND_AT_HAND] = '1'
    assert [path for path in paths if swift.objects[path][1][
        names.BACKEND_AT_HAND] == '0'] == paths[:1]


def test_work_that_cannot_be_done_keeps_no_other_waiting(
        swift: Swift) -> None:
    """A look takes some of the records that are there: not the oldest."""
    kept = Records(swift)
    for number in range(60):
        kept.put(own_env(), Record(
            Target('a', 'c', 'o'), ClassMap.uniform(25),
            '%010d.00000' % (1600000000 + number)), 0)
    kept.put(own_env(), Record(
        Target('a', 'c', 'p'), ClassMap.uniform(25), '1700000000.00000'), 60)
    looks = [kept.names(own_env()) for _ in range(20)]
    assert {len(names_of) for names_of in looks} == {50}
    assert '1600000059.00000' in set().union(*looks)
    # It is another's.
    assert '1700000000.00000' not in set().union(*looks)
