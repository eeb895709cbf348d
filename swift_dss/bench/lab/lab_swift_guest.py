"""Runs in a guest: bring Swift up on the modelled disks and ask it things.

The one argument is JSON; the answer is JSON on the standard output,
progress goes to the standard error.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from typing import Any, Dict, List

from swift_dss.aio import tables
from swift_dss.aio.cluster import Cluster, printer
from swift_dss.aio.layout import MIN_IMAGE_BYTES, AioConf
from swift_dss.bench.lab import guest_cluster
from swift_dss.core.errors import DssError

#: Of each disk.
MIN_BYTES = MIN_IMAGE_BYTES

_ROOT = '/tmp/lab-swift'

#: Class of the objects whose data is to be on that kind of disk.
_CLASSES = {'ssd': '25', 'hdd': '20'}
_HDD_CLASS = """
[class:20]
name = capacity
rank = 1
allocate = never
"""


class Client:
    """One connection to the proxy, kept."""

    def __init__(self, cluster: Cluster) -> None:
        port = cluster.conf.proxy_port
        account = cluster.connection()
        url, self._token = account.get_auth()
        account.close()
        self._prefix = url.split(':%d' % port)[1]
        self._http = http.client.HTTPConnection('127.0.0.1', port)

    def ask(self, method: str, path: str, body: bytes = b'',
            **headers: str) -> float:
        """One request, with its whole answer.

        :returns: milliseconds
        :raises DssError: it did not succeed
        """
        sent = {'X-Auth-Token': self._token}
        sent.update((name.replace('_', '-'), value)
                    for name, value in headers.items())
        begin = time.monotonic_ns()
        self._http.request(method, self._prefix + path, body, sent)
        answer = self._http.getresponse()
        got = answer.read()
        taken = (time.monotonic_ns() - begin) / 1e6
        if answer.status // 100 != 2:
            raise DssError('%s %s: %d %r' % (
                method, path, answer.status, got[:200]))
        if method == 'GET' and got != _data(path, len(got)):
            raise DssError('%s: other bytes than were written' % path)
        return taken


def _data(path: str, count: int) -> bytes:
    word = (path + '|').encode()
    return (word * (count // len(word) + 1))[:count]


def _forget() -> None:
    """Drop written pages from the page cache, so that a GET reads the disk."""
    os.sync()
    with open('/proc/sys/vm/drop_caches', 'w') as out:
        out.write('3')


def measure(client: Client, disk: str, sizes: List[int], count: int,
            classed: bool) -> List[Dict[str, Any]]:
    """PUT and GET of each size on one kind of disk."""
    rows = []
    container = '/' + disk
    client.ask('PUT', container)
    headers = {'X_DSS_Object_Class': _CLASSES[disk]} if classed else {}
    # The first requests pay for one-time work.
    for number in range(3):
        path = '%s/first-%d' % (container, number)
        client.ask('PUT', path, _data(path, 4096), **headers)
    for size in sizes:
        paths = ['%s/%d-%d' % (container, size, number)
                 for number in range(count)]
        puts = [client.ask('PUT', path, _data(path, size), **headers)
                for path in paths]
        _forget()
        gets = [client.ask('GET', path) for path in paths]
        for method, values in (('PUT', puts), ('GET', gets)):
            rows.append({'disk': disk, 'method': method, 'size': size,
                         'values': values})
    return rows


def main() -> None:
    """As the module says."""
    asked = json.loads(sys.argv[1])
    plain = asked['policy'] == 'stock'
    conf = AioConf(
        root=_ROOT, base_port=8080, devices=3, storage='disks',
        background=False, plain=plain, hdd_iops=0,
        default_policy='vanilla' if plain else 'dss')
    with guest_cluster.running(Cluster(conf, printer(sys.stderr))) as cluster:
        if not plain:
            path = conf.path('etc', 'dss-classes.conf')
            with open(path, 'a') as out:
                out.write(_HDD_CLASS)
            tables.read_classes(conf)
            # Longer than the servers take to see it.
            time.sleep(5)
        client = Client(cluster)
        rows: List[Dict[str, Any]] = []
        for disk in asked['disks']:
            rows += measure(client, disk, asked['sizes'],
                            asked['requests'], not plain)
        print(json.dumps(rows))


if __name__ == '__main__':
    main()
