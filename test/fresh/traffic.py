"""Objects of one node, whose bytes follow from their names: put, or proven.

Runs in the machine, with the Python of Swift: ``traffic.py put SERIES CLASS``
or ``traffic.py prove SERIES ...``. It ends with 1 and a line for each object
that differs, and tells how many it saw.
"""

from __future__ import annotations

import hashlib
import http.client
import random
import sys
import time
import urllib.parse
from typing import Dict, Iterator, Tuple

POLICIES = ('stock', 'classed')
EACH = 100
_SIZES = (0, 1, 4095, 4096, 65536, 300000)
_WAIT_SECONDS = 60


def objects(series: str) -> Iterator[Tuple[str, str, bytes]]:
    """Policy, name and bytes; sizes go round, contents are of the name."""
    for policy in POLICIES:
        for number in range(EACH):
            name = '%s-%03d' % (series, number)
            yield policy, name, random.Random(policy + name).randbytes(
                _SIZES[number % len(_SIZES)])


class Client:
    """One account of tempauth."""

    def __init__(self) -> None:
        headers = {'X-Auth-User': 'test:tester', 'X-Auth-Key': 'testing'}
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                answer, _ = self._ask('GET', '/auth/v1.0', headers)
                if answer.status == 200:
                    break
                words = answer.status
            except OSError as err:
                words = err
            if time.monotonic() > deadline:
                sys.exit('no proxy server answers: %s' % words)
            time.sleep(0.5)
        self._path = urllib.parse.urlsplit(
            answer.headers['X-Storage-Url']).path
        self._token = answer.headers['X-Auth-Token']

    def ask(self, method: str, path: str, headers: Dict[str, str],
            body: bytes = b'') -> Tuple[http.client.HTTPResponse, bytes]:
        """An answer and its body."""
        return self._ask(method, self._path + path, dict(
            headers, **{'X-Auth-Token': self._token}), body)

    @staticmethod
    def _ask(method: str, path: str, headers: Dict[str, str],
             body: bytes = b'') -> Tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection('127.0.0.1', 8080,
                                                timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()


def put(client: Client, series: str, class_name: str = '') -> None:
    """Upload them, in a container a policy."""
    for policy in POLICIES:
        answer, _ = client.ask('PUT', '/' + policy,
                               {'X-Storage-Policy': policy})
        assert answer.status in (201, 202), answer.status
    for policy, name, content in objects(series):
        headers = {'X-DSS-Object-Class': class_name} if class_name else {}
        answer, said = client.ask('PUT', '/%s/%s' % (policy, name), headers,
                                  content)
        assert answer.status == 201, (name, answer.status, said)


def prove(client: Client, series: str) -> int:
    """How many differ; each is named."""
    wrong = 0
    for policy, name, content in objects(series):
        answer, read = client.ask('GET', '/%s/%s' % (policy, name), {})
        etag = hashlib.md5(content).hexdigest()
        if (answer.status, read, answer.headers['ETag']) != (
                200, content, etag):
            print('%s/%s: %d, %d bytes of %d' % (
                policy, name, answer.status, len(read), len(content)))
            wrong += 1
    return wrong


def main() -> int:
    """Do what the first argument says."""
    verb, *rest = sys.argv[1:]
    client = Client()
    if verb == 'put':
        put(client, *rest)
        return 0
    wrong = sum(prove(client, series) for series in rest)
    print('%d objects, %d different' % (
        len(rest) * len(POLICIES) * EACH, wrong))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
