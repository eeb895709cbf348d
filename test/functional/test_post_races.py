"""POSTs of metadata and of classes at a time, on a running cluster."""

from __future__ import annotations

import threading
from typing import Any, Dict, List

import pytest
import swiftclient
from support import data_files
from support.rigs import direct_answers as direct

from swift_dss.wire import names, registers

pytestmark = pytest.mark.cluster

RACES = 30


def test_races_lose_neither(cluster: Any, swift: Any,
                            any_container: str) -> None:
    url, token = swift.get_auth()
    heads: List[Dict[str, str]] = []
    for number in range(RACES):
        name = 'o%d' % number
        swift.put_object(any_container, name, b'x' * 100,
                         headers={'X-Object-Meta-M': 'put'})
        gate = threading.Barrier(2)
        failed: List[Exception] = []

        def client(name: str, headers: Dict[str, str],
                   gate: Any = gate, failed: Any = failed) -> None:
            connection = swiftclient.http_connection(url)
            gate.wait()
            try:
                swiftclient.post_object(url, token, any_container, name,
                                        headers, connection)
            except swiftclient.ClientException as err:
                failed.append(err)
        both = [threading.Thread(target=client, args=(name, headers))
                for headers in ({'X-Object-Meta-M': 'posted'},
                                {'X-DSS-Object-Class': '7'})]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        assert not failed, failed
        heads.append(swift.head_object(any_container, name))
    assert {head['x-object-meta-m'] for head in heads} == {'posted'}
    assert {head['x-dss-object-class'] for head in heads} == {'7'}


def test_a_replica_that_missed_a_post_gets_it(
        cluster: Any, swift: Any, container: str) -> None:
    """Each of three replicas sees another part of four POSTs."""
    account = swift.get_auth()[0].rpartition('/')[2]
    path = '/%s/%s/o' % (account, container)
    swift.put_object(container, 'o', b'x' * 100,
                     headers={'X-Object-Meta-M': 'put'})
    files = data_files(cluster, account, container, 'o')
    assert len(files) == 3
    now = float(swift.head_object(container, 'o')['x-timestamp'])

    def post(replica: Any, when: int, kind: str) -> None:
        at = '%016.05f' % (now + when)
        headers = {'X-Timestamp': at, 'X-Object-Meta-M': str(when)}
        if kind == 'class':
            headers = {'X-Timestamp': '1', names.MAP_AT: at,
                       names.META_AT: registers.NEVER,
                       names.TRANSIENT_MAP: str(when)}
        answer = direct.request(
            cluster.conf.object_port, 'POST', replica.device,
            replica.partition, path, 0, headers)
        assert answer.status == 202
    first, second, third = files
    post(first, 4, 'class')
    post(first, 1, 'meta')
    post(second, 3, 'meta')
    post(second, 2, 'class')
    post(third, 1, 'meta')
    for _round in range(3):
        cluster.run_once('object-replicator')
    seen = [direct.request(
        cluster.conf.object_port, 'HEAD', file.device, file.partition, path,
        0).headers for file in files]
    assert [(head['x-object-meta-m'], head[names.TRANSIENT_MAP.lower()])
            for head in seen] == [('3', '4')] * 3
    assert len({head['x-backend-timestamp'] for head in seen}) == 1
