"""The changes of a bundle's members since it was written.

``<bundle>.since`` lies beside a bundle: which members are dead, and the
records of those whose metadata changed. Its keeper writes it. Every other
node that has a change to note has a file of its own there,
``<bundle>.since.<writer>``: S3 has no write that fails where another one was
first, so of two writers of one file the later would undo the other's note.
Each is rewritten as a whole and only grows; readers join all of them
(:func:`join`). zlib of JSON:
``{"dead": [number, ...], "records": [[number, record], ...]}``.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Optional, Set

from swift_dss.core.errors import (
    DamagedRecord, RemoteCorrupt, RemoteUnavailable)
from swift_dss.core.limits import (
    MAX_BUNDLE_INDEX_BYTES, MAX_BUNDLE_MEMBERS)
from swift_dss.gateway.form import digests, metadata, verify
from swift_dss.gateway.link.client import S3Client, S3Missing
from swift_dss.wire import bundle
from swift_dss.wire.parsing import parsing

SUFFIX = '.since'
_NAME = re.compile(r'\.since(\.[0-9a-f]{16})?\Z')
#: One that S3 did not take is written again after this.
_AGAIN_SECONDS = 30


@dataclass(frozen=True)
class Since:
    """Dead members, and newer records by member."""

    dead: Set[int] = field(default_factory=set)
    records: Dict[int, Dict[str, Any]] = field(default_factory=dict)


def path_of(key: str, writer: str = '') -> str:
    """The key of ``writer``'s file beside the bundle ``key``.

    :param writer: 16 hex digits; '' is the bundle's keeper
    """
    return key + SUFFIX + (writer and '.' + writer)


def bundle_of(path: str) -> str:
    """The bundle that a key of this kind lies beside; '' if it is none."""
    match = _NAME.search(path)
    return path[:match.start()] if match else ''


def join(parts: Iterable[Since]) -> Since:
    """Join all files beside a bundle."""
    dead: Set[int] = set()
    records: Dict[int, Dict[str, Any]] = {}
    for since in parts:
        dead |= since.dead
        for number, record in since.records.items():
            records[number] = metadata.merged(
                records.get(number, record), record)
    return Since(dead, records)


def encode(since: Since, wrap: bundle.Wrap = bundle.plain) -> bytes:
    """The bytes of ``<bundle>.since``."""
    return wrap('since', 0, zlib.compress(json.dumps(
        {'dead': sorted(since.dead),
         'records': sorted(since.records.items())},
        separators=(',', ':'), sort_keys=True).encode('ascii')))


def decode(raw: bytes, unwrap: bundle.Wrap = bundle.plain) -> Since:
    """:raises DamagedRecord: :func:`encode` did not write it."""
    with parsing('since'):
        inflate = zlib.decompressobj()
        text = inflate.decompress(unwrap('since', 0, raw),
                                  MAX_BUNDLE_INDEX_BYTES)
        if not inflate.eof:
            raise ValueError('cut off or too long')
        fields = json.loads(text)
        dead = {_number(dead_number) for dead_number in fields['dead']}
        records = {_number(number): dict(record)
                   for number, record in fields['records']}
    return Since(dead, records)


def read(client: S3Client, path: str,
         unwrap: bundle.Wrap = bundle.plain) -> Since:
    """Read the note of one writer (:func:`path_of`); empty if there is none.
    """
    try:
        raw = client.get_small(path, MAX_BUNDLE_INDEX_BYTES)
    except S3Missing:
        return Since()
    return decode(raw, unwrap)


def read_mine(client: S3Client, path: str,
              unwrap: bundle.Wrap = bundle.plain) -> Optional[Since]:
    """Read this node's own note; None if S3 has spoilt it. Its writer alone
    may write it again, from what it knows."""
    try:
        return read(client, path, unwrap)
    except (DamagedRecord, RemoteCorrupt):
        return None


def read_all(client: S3Client, key: str, unwrap: bundle.Wrap = bundle.plain,
             paths: Optional[Iterable[str]] = None, mine: str = '') -> Since:
    """The joined files beside the bundle ``key``.

    :param paths: keys of the bucket among which it is; None asks for them
    :param mine: the caller's own, which it writes again if it is spoilt
    :raises DamagedRecord, RemoteCorrupt: another one is spoilt
    """
    if paths is None:
        paths = listed(client, key)
    return join(
        (read_mine(client, path, unwrap) or Since()) if path == mine
        else read(client, path, unwrap)
        for path in sorted(paths) if bundle_of(path) == key)


def listed(client: S3Client, key: str) -> Iterable[str]:
    """Keys of the files beside the bundle ``key``."""
    return [item.key for item in client.listing(key + SUFFIX)
            if bundle_of(item.key) == key]


def write(client: S3Client, path: str, since: Since, before: Since,
          wrap: bundle.Wrap = bundle.plain) -> None:
    """Write a note at ``path`` (:func:`path_of`), proven.

    :param before: the note that is there; empty if there is none
    :raises RemoteUnavailable: S3 does not hold the note; what was there is put
        back, if that can be done
    """
    if _is_put(client, path, since, wrap):
        return
    # An unreadable note would hide the bundle from a restore, until its writer
    # has something to say again.
    if before == Since():
        client.delete(path)
    else:
        _is_put(client, path, before, wrap)
    raise RemoteUnavailable('%s: S3 does not hold the upload' % path,
                            _AGAIN_SECONDS)


def _is_put(client: S3Client, path: str, since: Since,
            wrap: bundle.Wrap) -> bool:
    data = encode(since, wrap)
    client.put(path, data, digests.md5(data).digest())
    return verify.holds(client, path, data)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < MAX_BUNDLE_MEMBERS:
        raise ValueError('%r is no member' % (value,))
    return value
