"""``classify = auto`` on three nodes: another one stands in."""

from __future__ import annotations

import io
import os
import zipfile
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from support import pattern, wait_until
from support.nodes.beds import ask, bed

from swift_dss.aio.bed.bed import Bed
from swift_dss.core.spans import ClassMap
from swift_dss.wire import classmap, names

pytestmark = [pytest.mark.cluster, pytest.mark.root]

BRONZE, GOLD = 3, 25
#: A child on a busy machine takes less: the second waits for the first.
NEXT_SECONDS = 6
RULES = '''
[rule:archives]
class = %d
classify = auto
hot = gold
name = *.zip
''' % BRONZE


@pytest.fixture(scope='module')
def made() -> Iterator[Bed]:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    with bed(nodes=3, options={'tier': {
            'classify': 'true', 'classify_after_seconds': '1',
            'classify_next_seconds': str(NEXT_SECONDS)}}) as new_bed:
        with open(new_bed.plan.conf('p1').path('etc', 'dss-rules.conf'),
                  'a', encoding='ascii') as target:
            target.write(RULES)
        new_bed.member('p1').restart('proxy-server')
        new_bed.client().container('auto')
        yield new_bed


def archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as target:
        for number in range(40):
            target.writestr('m%d' % number, pattern(20000, str(number)))
    return out.getvalue()


BODY = archive()


def map_at(made: Bed, node: str, path: str) -> Any:
    """The class map that a node's object server has by a POST."""
    return classmap.from_headers(names.TRANSIENT_MAP.lower(),
                                 made.direct(node, 'HEAD', path).headers)


def outcomes(made: Bed, node: str) -> Dict[str, int]:
    counts: Dict[str, int] = ask(made, node, 'status')['classify'][
        'outcomes']
    return counts


def upload(made: Bed, name: str) -> Tuple[str, List[str]]:
    assert made.client().put('auto/' + name, BODY).status == 201
    path = '/AUTH_test/auto/' + name
    return path, made.primaries(path)


def is_hot_at_the_end(class_map: Any) -> bool:
    return isinstance(class_map, ClassMap) and class_map.rest == BRONZE \
        and class_map.class_at(len(BODY) - 1) == GOLD


def test_the_first_primary_does_it_for_all(made: Bed) -> None:
    path, (first, second, third) = upload(made, 'all.zip')
    for node in (first, second, third):
        wait_until(lambda node=node: is_hot_at_the_end(
            map_at(made, node, path)), 30, 'classes at ' + node)
    # It counts once its POST is over.
    wait_until(lambda: outcomes(made, first) == {'classified': 1}, 30,
               'the first to count it')
    wait_until(lambda: outcomes(made, second) == {'given': 1}, 30,
               'the second to see it')


def test_the_second_stands_in_for_a_node_that_is_down(made: Bed) -> None:
    path = '/AUTH_test/auto/down.zip'
    first, second, third = made.primaries(path)
    before = {node: outcomes(made, node).get('classified', 0)
              for node in (second, third)}
    made.kill(first)
    upload(made, 'down.zip')
    for node in (second, third):
        wait_until(lambda node=node: is_hot_at_the_end(
            map_at(made, node, path)), 30, 'classes at ' + node)
    wait_until(lambda: outcomes(made, second).get(
        'classified', 0) == before[second] + 1, 30, 'the second to count it')
    assert outcomes(made, third).get('classified', 0) == before[third]
    made.revive(first)
    made.node(second).run_once('object-replicator')
    assert is_hot_at_the_end(map_at(made, first, path))
    assert made.direct(first, 'GET', path).body == BODY
