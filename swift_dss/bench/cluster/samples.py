"""The sample set of the demonstration: CACS's mix, in three ways.

Each eighth object goes to erasure-coded storage; the rest are replicated.
Half of all get their class by header, the others by rule.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

from swift_dss.bench import cacs
from swift_dss.bench.cacs import CacsObject

COUNT = 240
SCALE = 0.3
SEED = 1

#: Container -> its storage policy.
CONTAINERS = {'cacs-header': 'dss', 'cacs-rules': 'dss',
              'cacs-ec': 'dss-ec'}
_TURNS = ('cacs-header', 'cacs-rules') * 3 + ('cacs-ec', 'cacs-rules')

#: Requests at once: more only wait for each other on two processors.
THREADS = 4

_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Placed:
    """One sample object and where it goes."""

    container: str
    obj: CacsObject

    @property
    def headers(self) -> Dict[str, str]:
        """The headers of its upload."""
        headers = {'Content-Type': self.obj.content_type}
        if self.container != 'cacs-rules':
            headers['X-DSS-Object-Class'] = self.obj.class_name
        return headers


def sample() -> List[Placed]:
    """The same objects at every call."""
    objects = cacs.sample(COUNT, SEED, SCALE, at_least=2)
    return [Placed(_TURNS[number % len(_TURNS)], obj)
            for number, obj in enumerate(objects)]


def rules() -> str:
    """The rules that classify objects of ``cacs-rules``."""
    parts = ['# Rules of the demonstration; see dss-rules.conf-sample.',
             '[rule:large]', 'class = %s' % cacs.LARGE_CLASS,
             'size = > %d' % cacs.large_bytes(SCALE),
             'container = cacs-rules', '']
    for kind in cacs.KINDS:
        parts += ['[rule:%s]' % kind.name, 'class = %s' % kind.class_name,
                  'content_type = %s' % kind.content_type,
                  'container = cacs-rules', '']
    return '\n'.join(parts)


def upload(connect: Callable[[], Any], placed: Iterable[Placed]
           ) -> Iterator[Tuple[Placed, str]]:
    """Put them, several at once; yields (object, ETag) as they are done.

    :param connect: makes a swiftclient connection, one a thread
    """
    def put(item: Placed, connection: Any) -> str:
        etag = connection.put_object(
            item.container, item.obj.name, _Body(item.obj),
            content_length=item.obj.size, headers=item.headers)
        return str(etag)
    return _each(connect, placed, put)


def digests(connect: Callable[[], Any], placed: Iterable[Placed]
            ) -> Iterator[Tuple[Placed, str]]:
    """Get them, several at once; yields (object, MD5 of the answer)."""
    def get(item: Placed, connection: Any) -> str:
        digest = hashlib.md5()  # nosec: compared with Swift's ETag
        _headers, body = connection.get_object(
            item.container, item.obj.name, resp_chunk_size=_READ_BYTES)
        for chunk in body:
            digest.update(chunk)
        return digest.hexdigest()
    return _each(connect, placed, get)


class _Body:
    """A sample object's bytes as a file, so that a retry can rewind."""

    def __init__(self, obj: CacsObject) -> None:
        self._obj = obj
        self._at = 0
        self._blocks = cacs.body(obj)
        self._left = b''

    def read(self, length: int = -1) -> bytes:
        while length < 0 or len(self._left) < length:
            block = next(self._blocks, b'')
            if not block:
                break
            self._left += block
        if length < 0:
            length = len(self._left)
        chunk, self._left = self._left[:length], self._left[length:]
        self._at += len(chunk)
        return chunk

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        if (offset, whence) != (0, 0):
            raise OSError('only back to the start')
        self.__init__(self._obj)  # type: ignore[misc]
        return 0


def _each(connect: Callable[[], Any], placed: Iterable[Placed],
          work: Callable[[Placed, Any], str]
          ) -> Iterator[Tuple[Placed, str]]:
    idle: List[Any] = []

    def run(item: Placed) -> Tuple[Placed, str]:
        connection = idle.pop() if idle else connect()
        try:
            return item, work(item, connection)
        finally:
            idle.append(connection)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            yield from pool.map(run, placed)
    finally:
        for connection in idle:
            connection.close()
