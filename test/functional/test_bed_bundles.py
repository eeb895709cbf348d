"""Small objects of many containers go up once, in few PUTs."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, Iterator, List

import pytest
from support import md5, pattern, wait_until
from support.nodes.beds import (
    add_classes, bed, demote, gc, set_in_proxies)

from swift_dss.aio.bed.bed import Bed

pytestmark = [pytest.mark.cluster, pytest.mark.root]
SIZE = 2000
#: A proxy goes by a node that it had errors of, for so long.
SUPPRESSED_SECONDS = 1.0
TINY = '\n[class:5]\nname = tiny\nrank = 5\nbundle = true\n'


@pytest.fixture(scope='module')
def made() -> Iterator[Bed]:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    with bed(nodes=3, options={'gateway': {
            'remote_after_seconds': '4', 'bundle_age_seconds': '10',
            'take_over_seconds': '120',
            'delete_delay_seconds': '3'}}) as new_bed:
        set_in_proxies(new_bed, 'app:proxy-server',
                       error_suppression_interval=str(
            SUPPRESSED_SECONDS))
        add_classes(new_bed, TINY)
        yield new_bed


def _put(made: Bed, prefix: str, containers: int,
         each: int) -> Dict[str, bytes]:
    client = made.client()
    bodies = {}
    for number in range(containers):
        container = '%s%d' % (prefix, number)
        client.container(container, 'dss')
        for file_number in range(each):
            path = '%s/%d' % (container, file_number)
            bodies[path] = pattern(SIZE, path)
            assert client.put(path, bodies[path], {
                'X-DSS-Object-Class': 'tiny'}).status == 201
    return bodies


def _sent(made: Bed, path: str) -> bool:
    return sum(file.residency is not None and file.residency.remote is not None
               for file in made.files('/AUTH_test/' + path)) == 3


@pytest.mark.parametrize('containers, each, most_puts',
                         [(30, 1, 10), (3, 100, 30)])
def test_bytes_go_up_once_and_are_read_without_any_one_node(
        made: Bed, containers: int, each: int, most_puts: int) -> None:
    made.s3.counts(reset=True)
    bodies = _put(made, 'b%d-' % containers, containers, each)
    wait_until(lambda: all(_sent(made, path) for path in bodies), 110,
               'three records of each')
    puts = [request for request in made.s3.requests('PUT')
            if '/bundles/' in '/' + request['key']
            or made_of_versions(request['key'])]
    sent = sum(request['sent'] for request in puts)
    print('figure: %d containers of %d: %d PUTs, %d bytes of %d' % (
        containers, each, len(puts), sent, SIZE * len(bodies)))
    assert len(puts) <= most_puts, puts
    for node in made.plan.nodes:
        demote(made, node, container='AUTH_test/b%d-0' % containers)
    for node in made.plan.nodes:
        made.kill(node)
        try:
            _read(made, bodies)
        finally:
            made.revive(node)
        time.sleep(SUPPRESSED_SECONDS * 1.5)
    _delete(made, bodies)


def test_tools_take_members_of_others_as_their_own(made: Bed) -> None:
    bodies = _put(made, 'tools', 3, 5)
    wait_until(lambda: all(_sent(made, path) for path in bodies), 110,
               'three records of each')
    for path in bodies:
        assert len({file.residency.remote.key for file in _files(made, path)
                    if file.residency is not None
                    and file.residency.remote is not None}) == 1, path
    _verify(made)
    for node in made.plan.nodes:
        report = _tool(made, node, 'relocate', '--class', 'tiny')
        assert report['relocated'] == report['versions'] == 15
    _read(made, bodies)
    first = next(iter(bodies))
    assert made.client().post(first, {
        'X-Object-Meta-Colour': 'blue'}).status == 202
    wait_until(lambda: not any(_tool(
        made, node, 'verify', '--records')['stale']
        for node in made.plan.nodes), 60, 'the bucket to know of the POST')
    # A node loses what it has, its own bundles and what leans on others.
    made.lose_drive('n1', 'd1')
    assert not any(file.node == 'n1' for path in bodies
                   for file in _files(made, path))
    report = _tool(made, 'n1', 'restore')
    assert report['failed'] == 0 and report['versions'] >= len(bodies)
    assert all(sum(file.node == 'n1' for file in _files(made, path)) == 1
               for path in bodies)
    time.sleep(SUPPRESSED_SECONDS * 1.5)
    _read(made, bodies)
    _verify(made)
    assert made.client().get(first).headers[
        'x-object-meta-colour'] == 'blue'
    _delete(made, bodies)


def _files(made: Bed, path: str) -> List[Any]:
    return [file for file in made.files('/AUTH_test/' + path)
            if file.kind == 'data']


def _tool(made: Bed, node: str, verb: str, *words: str) -> Dict[str, Any]:
    done = made.tool(node, 'gateway', verb, '--config', '{conf}', '--json',
                     *words)
    assert not done.returncode, (node, verb, done.stdout, done.stderr)
    report: Dict[str, Any] = json.loads(done.stdout)
    return report


def _verify(made: Bed) -> None:
    for node in made.plan.nodes:
        _tool(made, node, 'verify', '--read')


def _delete(made: Bed, bodies: Dict[str, bytes]) -> None:
    client = made.client()
    for path in bodies:
        assert client.delete(path).status == 204

    def empty() -> Any:
        return all(_is_empty(gc(made, node, dry_run=True))
                   for node in made.plan.nodes)
    wait_until(empty, 150, 'nothing to be left')


def _is_empty(report: Dict[str, Any]) -> bool:
    return not (report['versions'] or report['bundles'])


def made_of_versions(key: str) -> bool:
    """True for keys of versions, and not for those of places and marks."""
    return key.count('/') >= 3 and '.' in key.rpartition('/')[2] and \
        not key.endswith('.meta') and '.since' not in key


def _read(made: Bed, bodies: Dict[str, bytes]) -> None:
    client = made.client()
    for path in list(bodies)[:30]:
        reply = client.get(path)
        assert (reply.status, md5(reply.body)) == (200, md5(bodies[path]))
