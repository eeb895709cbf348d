"""Time of a listing whose rows show classes, against stock Swift's.

A proxy without our filter and one with it, on the same container servers of an
all-in-one cluster of this script's own. Stock lists a container without
classes; ours one of as many rows of several classes. The sides take turns,
their order turns round, and a ratio is taken inside a round.

    python test/bench/listings.py --objects 10000 --rounds 40
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import http.client
import json
import os
import statistics
import sys
import time
from typing import Any, Dict, List, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support.nodes import bench_cluster, stock_proxy

from swift_dss.aio.cluster import Cluster

#: Side to container and query. The second stock is the noise.
SIDES: Dict[str, Tuple[str, str]] = {
    'stock': ('plain', ''), 'stock 2': ('plain', ''),
    'not asked': ('classed', ''), 'classes': ('classed', '&dss=true'),
    'one class': ('classed', '&dss-class=gold')}
CLASSES = (0, 25, 26, 10)
_ROWS = 1000


def fill(cluster: Cluster, account: str, container: str, objects: int,
         suffixes: List[str]) -> None:
    """Write the rows into each replica's database."""
    from swift.common import utils
    conf = cluster.conf
    utils.set_swift_dir(conf.etc)
    from swift.common.utils import Timestamp, hash_path
    from swift.container.backend import ContainerBroker
    hashed = hash_path(account, container)
    files = glob.glob(conf.path('devices', '*', 'containers', '*', '*',
                                hashed, '*.db'))
    assert files, hashed
    for path in files:
        broker: Any = ContainerBroker(path)
        index = broker.get_info()['storage_policy_index']
        for start in range(0, objects, _ROWS):
            broker.merge_items([{
                'name': 'photos/2024/image-%06d.jpg' % number,
                'created_at': Timestamp(1.7e9 + number).internal,
                'size': 100000 + number, 'deleted': 0,
                'content_type': 'image/jpeg' + suffixes[
                    number % len(suffixes)],
                'etag': hashlib.md5(b'%d' % number).hexdigest(),
                'storage_policy_index': index}
                for number in range(start, min(start + _ROWS, objects))])


class Side:
    """One kind of listing, over a connection of its own."""

    def __init__(self, port: int, path: str, token: str) -> None:
        self._connection = http.client.HTTPConnection('127.0.0.1', port,
                                                      timeout=120)
        self._path = path
        self._token = token
        self.seconds: List[float] = []

    def ask(self) -> bytes:
        """One listing; its time is kept."""
        start = time.perf_counter()
        self._connection.request('GET', self._path, headers={
            'X-Auth-Token': self._token})
        answer = self._connection.getresponse()
        body = answer.read()
        self.seconds.append(time.perf_counter() - start)
        assert answer.status == 200, (answer.status, body[:200])
        return body


def check(bodies: Dict[str, bytes], objects: int) -> None:
    """Each side lists what it is to list."""
    rows = {name: json.loads(body) for name, body in bodies.items()}
    for name in SIDES:
        wanted = objects if name != 'one class' else sum(
            CLASSES[number % len(CLASSES)] == 25 for number in range(objects))
        assert len(rows[name]) == wanted, (name, len(rows[name]))
        assert not [row for row in rows[name]
                    if row['content_type'] != 'image/jpeg'], name
    assert len({row['dss_class'] for row in rows['classes']}) == min(
        objects, len(CLASSES))
    assert bodies['not asked'] == bodies['stock']


def measure(cluster: Cluster, objects: int, rounds: int) -> None:
    """Print the medians and ratios."""
    swift = cluster.connection()
    url, token = swift.get_auth()
    path = url[url.index('/v1'):]
    for container, suffixes in (
            ('plain', ['']), ('classed', [
                ';x-dss-class=%d' % class_id if class_id else ''
                for class_id in CLASSES])):
        swift.put_container(container)
        fill(cluster, path.rpartition('/')[2], container, objects, suffixes)
    ports = {'stock': stock_proxy.start(cluster)}
    ports['stock 2'] = ports['stock']
    sides = {name: Side(
        ports.get(name, cluster.conf.proxy_port),
        '%s/%s?format=json%s' % (path, container, query), token)
        for name, (container, query) in SIDES.items()}
    check({name: side.ask() for name, side in sides.items()}, objects)
    for side in sides.values():
        side.ask()
        side.seconds.clear()
    order = list(sides.values())
    for _round in range(rounds):
        for side in order:
            side.ask()
        order.reverse()
    stock = sides['stock'].seconds
    for name, side in sides.items():
        ratios = [mine / theirs for mine, theirs
                  in zip(side.seconds, stock)]
        print('%-9s %6d rows  median %6.1f ms  ratio %.3f' % (
            name, objects, 1000 * statistics.median(side.seconds),
            statistics.median(ratios)))


def main() -> int:
    """Run it on a cluster that is made, and removed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--objects', type=int, default=10000)
    parser.add_argument('--rounds', type=int, default=40)
    options = parser.parse_args()
    with bench_cluster.started(background=False, devices=3) as cluster:
        try:
            measure(cluster, options.objects, options.rounds)
        finally:
            stock_proxy.end(cluster)
    return 0


if __name__ == '__main__':
    sys.exit(main())
