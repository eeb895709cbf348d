"""R33: the same traffic under every classification gives the same bytes.

One list of requests is sent four times, to four fresh containers: without
classes, with right ones, with random ones (seed printed) and with
adversarial ones (every border, alternating bytes, the greatest maps).
Everything a client can see of the data is compared: status, body, ETag,
Content-Length, Content-Type, Content-Range and the container's listing.

    python test/functional/same_bytes.py [--root DIR] [--seed N]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import uuid
from typing import Callable, Dict, List, NamedTuple, Set, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support import await_listings, pattern
from support.edges import raw_http

from swift_dss.aio import layout
from swift_dss.aio.cluster import Cluster
from swift_dss.core.errors import BadConfig
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire.dssfile import encode_section

#: Odd, empty, one byte, block borders, more than one EC segment.
SIZES = (0, 1, 7, 511, 512, 513, 4096, 65536, 65537, 1048576, 2500000)
SEEN = ('etag', 'content-length', 'content-type', 'content-range',
        'accept-ranges', 'x-object-meta-color', 'x-symlink-target')

#: (object number, size) -> header lines of its upload, or a class map
#: that makes it a .dss body.
Labels = Callable[[int, int], Tuple[Dict[str, str], object]]


class Seen(NamedTuple):
    """What one request showed."""

    what: str
    status: int
    headers: Tuple
    body: bytes


class Traffic:
    """The requests, against one container."""

    def __init__(self, cluster: Cluster, path: str, token: str,
                 labels: Labels) -> None:
        self._cluster = cluster
        self._port = cluster.conf.proxy_port
        self._path = path
        self._token = token
        self._labels = labels
        self._stored: Set[str] = set()
        self.seen: List[Seen] = []

    def run(self, policy: str) -> List[Seen]:
        """Send everything; returns what was seen, in order."""
        self._send('container', 'PUT', '', {'X-Storage-Policy': policy})
        for number, size in enumerate(SIZES):
            self._one_object(number, size)
        self._settle_listings()
        self._large_objects()
        self._settle_listings()
        self._send('listing', 'GET', '?format=json', {})
        for number in range(len(SIZES)):
            self._send('delete', 'DELETE', '/o%d' % number, {})
            self._send('gone', 'GET', '/o%d' % number, {})
        return self.seen

    def _settle_listings(self) -> None:
        """What depends on a listing is the same from any replica of it."""
        account, container = self._path.split('/')[-2:]
        await_listings(self._cluster, account, container, self._stored)

    def _one_object(self, number: int, size: int) -> None:
        body = pattern(size, str(number))
        name = '/o%d' % number
        headers, class_map = self._labels(number, size)
        sent = body
        if class_map is not None:
            headers = dict(headers, **{'X-DSS-Object-File': 'True'})
            sent = encode_section(class_map, size) + body
        self._send('put', 'PUT', name, dict(
            headers, **{'Content-Type': 'video/mp4'}), sent)
        for spec in ('0-0', '-1', '1-', '%d-' % max(size - 1, 0),
                     '%d-%d' % (size // 3, size // 2), '0-1,3-4',
                     '%d-' % size, '511-512'):
            self._send('range ' + spec, 'GET', name,
                       {'Range': 'bytes=' + spec})
        self._send('get', 'GET', name, {})
        self._send('head', 'HEAD', name, {})
        self._send('if-none-match', 'GET', name, {
            'If-None-Match': self.seen[-1].headers[0] or '""'})
        labels = {} if class_map is not None else headers
        self._send('post', 'POST', name, dict(labels, **{
            'X-Object-Meta-Color': 'red'}))
        self._send('get after post', 'GET', name, {})
        self._send('copy', 'COPY', name, {
            'Destination': self._container() + '/copy%d' % number})
        self._send('get copy', 'GET', '/copy%d' % number, {})
        self._send('link', 'PUT', '/link%d' % number, dict(labels, **{
            'X-Symlink-Target': self._container() + name}))
        self._send('get link', 'GET', '/link%d' % number, {})
        self._send('bad etag', 'PUT', '/bad', dict(
            labels, Etag='0' * 32), body)

    def _large_objects(self) -> None:
        entries = [{'path': '/%s/o%d' % (self._container(), number)}
                   for number, size in enumerate(SIZES) if size]
        self._send('slo', 'PUT', '/slo?multipart-manifest=put', {},
                   json.dumps(entries).encode())
        self._send('dlo', 'PUT', '/dlo', {
            'X-Object-Manifest': self._container() + '/copy'})
        for name in ('/slo', '/dlo'):
            self._send('get' + name, 'GET', name, {})
            self._send('range' + name, 'GET', name,
                       {'Range': 'bytes=500-70000'})

    def _container(self) -> str:
        return self._path.rpartition('/')[2]

    def _send(self, label: str, method: str, name: str,
              headers: Dict[str, str], body: bytes = b'') -> None:
        answer = raw_http.request(
            self._port, method, self._path + name,
            [('X-Auth-Token', self._token)] + list(headers.items()), body,
            timeout=120.0)
        if answer.status == 201 and method in ('PUT', 'COPY') and name:
            self._stored.add(
                headers.get('Destination', name).rpartition('/')[2]
                .partition('?')[0])
        text = answer.body
        if label == 'listing':
            text = _listed(json.loads(text))
        elif answer.status >= 300 or answer.status == 206 and \
                b'byteranges' in answer.headers.get(
                    'content-type', '').encode():
            # Error pages and the borders of parts are random.
            text = b'' if answer.status >= 300 else _without_border(answer)
        shown = tuple(_neutral(answer.headers.get(header), self._container())
                      for header in SEEN)
        self.seen.append(Seen('%s %s' % (label, name), answer.status, shown,
                              text.replace(self._container().encode(),
                                           b'CONTAINER')))


def _listed(rows) -> bytes:
    for row in rows:
        if row['name'] == 'slo':
            # The digest of a text with the container's own name in it.
            row['hash'] = ''
    return json.dumps([
        {key: row[key] for key in ('name', 'bytes', 'hash', 'content_type')}
        for row in rows]).encode()


def _neutral(value, container):
    if value is None:
        return None
    if value.startswith('multipart/byteranges'):
        return 'multipart/byteranges'
    return value.replace(container, 'CONTAINER')


def _without_border(answer) -> bytes:
    border = answer.headers['content-type'].split('boundary=')[1].encode()
    return answer.body.replace(border, b'BORDER')


def no_labels(number: int, size: int):
    """Unclassified."""
    return {}, None


def right_labels(number: int, size: int):
    """What a sensible client would say."""
    if size > 1000:
        return {'X-DSS-Object-Class': 'user7',
                'X-DSS-Range-Class': '0-512-gold'}, None
    return {'X-DSS-Object-Class': 'gold'}, None


def random_labels(generator: random.Random) -> Labels:
    """Anything that is valid."""
    def labels(number: int, size: int):
        spans, offset = [], 0
        while size and offset < size and len(spans) < 90:
            offset += generator.randrange(1 + size // 8)
            length = 1 + generator.randrange(1 + size // 8)
            if offset + length > size:
                break
            spans.append(Span(offset, length, generator.randrange(32)))
            offset += length
        rest = generator.randrange(32)
        if generator.random() < 0.4:
            return {}, ClassMap.from_spans(spans, rest)
        headers = {'X-DSS-Object-Class': str(rest)}
        if spans:
            headers['X-DSS-Range-Class'] = ','.join(
                '%d-%d-%d' % span_ for span_ in (
                    (span.offset, span.length, span.class_id)
                    for span in spans))
        return headers, None
    return labels


def adversarial_labels(number: int, size: int):
    """As many and as awkward spans as may be."""
    step = max(1, -(-size // 1024))
    spans = [Span(offset, min(step, size - offset), 1 + offset % 31)
             for offset in range(0, size, 2 * step)]
    return {}, ClassMap.from_spans(spans, 31)


def compare(cluster: Cluster, seed: int, policy: str) -> Tuple[int, List]:
    """(requests, differences) over all labellings.

    A difference is (labelling, what the plain run saw, what it saw).
    """
    url, token = cluster.connection().get_auth()
    generator = random.Random(seed)
    plain: List[Seen] = []
    requests, differences = 0, []
    for name, labels in (('none', no_labels), ('right', right_labels),
                         ('random', random_labels(generator)),
                         ('adversarial', adversarial_labels)):
        # All of one length: listings name the targets of links.
        path = '%s/same-%s' % (url[url.index('/v1'):],
                               uuid.uuid4().hex[:12])
        seen = Traffic(cluster, path, token, labels).run(policy)
        requests += len(seen)
        if not plain:
            plain = seen
        assert len(seen) == len(plain)
        differences += [(name, before, now)
                        for before, now in zip(plain, seen) if before != now]
    return requests, differences


def main() -> int:
    """Print the figure; exit code 0 if nothing differed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--root', default=os.environ.get(
        'SWIFT_DSS_AIO_ROOT', layout.default_root()))
    parser.add_argument('--seed', type=int,
                        default=random.randrange(1 << 32))
    options = parser.parse_args()
    cluster = Cluster.running(options.root)
    print('seed %d' % options.seed)
    total, wrong = 0, []
    for policy in ('dss', 'dss-ec'):
        requests, differences = compare(cluster, options.seed, policy)
        total += requests
        wrong += differences
    print('R33: %d requests, %d byte differences' % (total, len(wrong)))
    for name, before, now in wrong[:10]:
        print('     %s: %s %d %s (%d bytes) instead of %d %s (%d bytes)' % (
            name, now.what, now.status, now.headers, len(now.body),
            before.status, before.headers, len(before.body)))
    return int(bool(wrong))


if __name__ == '__main__':
    try:
        sys.exit(main())
    except BadConfig as err:
        sys.exit(str(err))
