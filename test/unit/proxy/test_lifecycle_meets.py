"""Rules and restorations that meet at one object, after one look at it.

Servers hear them in different orders, and take what is newer: so times decide,
and no two kinds of decisions that follow from one look may share one.
"""

from __future__ import annotations

import copy
import time
from typing import Any, Callable, Dict

import pytest
from test_lifecycle_rounds import (
    Swift, buckets_of, call, class_of, expire, make_due, restore,
    restores_of, rows_of, rule, set_rules, to, work)
from test_lifecycle_rounds import dss as dss
from test_lifecycle_rounds import swift as swift

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
