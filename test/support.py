"""What tests of a running cluster share."""

from __future__ import annotations

import hashlib
import os
import time
from typing import Callable, List, NamedTuple, Optional, TypeVar

_Value = TypeVar('_Value')

#: How often ``wait_until`` looks again.
POLL_SECONDS = 0.05


def wait_until(predicate: Callable[[], _Value], seconds: float = 30.0,
               what: str = '') -> _Value:
    """The first true value of ``predicate()``.

    The one place where tests wait for something to come about.

    :raises AssertionError: it did not within ``seconds``
    """
    deadline = time.monotonic() + seconds
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError('%s not within %.0f s (last: %r)' % (
                what or getattr(predicate, '__name__', 'true'),
                seconds, value))
        time.sleep(POLL_SECONDS)


def pattern(size: int, seed: str = '') -> bytes:
    """``size`` bytes in which no two places look alike."""
    blocks = []
    for number in range(size // 32 + 1):
        blocks.append(hashlib.sha256(
            ('%s %d' % (seed, number)).encode('utf-8')).digest())
    return b''.join(blocks)[:size]


def md5(data: bytes) -> str:
    """The ETag of ``data``."""
    return hashlib.md5(data).hexdigest()  # nosec: Swift's ETag


class DataFile(NamedTuple):
    """One replica or fragment of an object on disk."""

    device: str
    path: str
    partition: str
    object_hash: str
    policy: int


def data_files(cluster: object, account: str, container: str, name: str,
               policy: int = 0) -> List[DataFile]:
    """Every ``.data`` file of an object, wherever it lies.

    :param cluster: a ``swift_dss.aio.cluster.Cluster``
    """
    conf = cluster.conf  # type: ignore[attr-defined]
    object_hash = hash_of(conf, account, container, name)
    objects = 'objects-%d' % policy if policy else 'objects'
    found = []
    for device in conf.device_names:
        top = conf.path('devices', device, objects)
        for partition in _listdir(top):
            folder = os.path.join(top, partition, object_hash[-3:],
                                  object_hash)
            for file_name in _listdir(folder):
                if file_name.endswith('.data'):
                    found.append(DataFile(
                        device, os.path.join(folder, file_name), partition,
                        object_hash, policy))
    return found


def hash_of(conf: object, account: str, container: str, name: str) -> str:
    """Swift's hash of an object's path in the cluster of ``conf``."""
    from swift.common.utils import config
    values = config.readconf(
        conf.path('etc', 'swift.conf'), 'swift-hash')  # type: ignore
    text = '/%s/%s/%s' % (account, container, name)
    return hashlib.md5(  # nosec: Swift's hash
        values['swift_hash_path_prefix'].encode('latin1')
        + text.encode('utf-8')
        + values['swift_hash_path_suffix'].encode('latin1')).hexdigest()


def _listdir(path: str) -> List[str]:
    try:
        return sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return []


def quarantined(cluster: object) -> List[str]:
    """Everything that any server of the cluster has quarantined."""
    conf = cluster.conf  # type: ignore[attr-defined]
    found: List[str] = []
    for device in conf.device_names:
        top = conf.path('devices', device, 'quarantined')
        for folder, _folders, files in os.walk(top):
            found += [os.path.join(folder, name) for name in files]
    return found


def first_line_with(path: str, text: str) -> Optional[str]:
    """The first line of a log that has ``text`` in it."""
    with open(path, encoding='utf-8', errors='replace') as source:
        for line in source:
            if text in line:
                return line
    return None
