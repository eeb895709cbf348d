"""The changes of a bundle's members since it was written.

``<bundle>.since`` lies beside a bundle: which members are dead, and the
records of those whose metadata changed. It is rewritten as a whole and only
grows, so a second writer or an old copy only lacks the newest changes. zlib of
JSON: ``{"dead": [number, ...], "records": [[number, record], ...]}``.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from typing import Any, Dict, Set

from swift_dss.core.errors import RemoteUnavailable
from swift_dss.core.limits import (
    MAX_BUNDLE_INDEX_BYTES, MAX_BUNDLE_MEMBERS)
from swift_dss.gateway.form import digests, verify
from swift_dss.gateway.link.client import S3Client, S3Missing
from swift_dss.wire import bundle
from swift_dss.wire.parsing import parsing

SUFFIX = '.since'
#: One that proved wrong is written again after this.
_AGAIN_SECONDS = 30


@dataclass(frozen=True)
class Since:
    """Dead members, and newer records by member."""

    dead: Set[int] = field(default_factory=set)
    records: Dict[int, Dict[str, Any]] = field(default_factory=dict)


def encode(since: Since, wrap: bundle.Wrap = bundle.plain) -> bytes:
    """The bytes of ``<bundle>.since``."""
    return wrap('since', 0, zlib.compress(json.dumps(
        {'dead': sorted(since.dead),
         'records': sorted(since.records.items())},
        separators=(',', ':'), sort_keys=True).encode('ascii')))


def decode(raw: bytes, unwrap: bundle.Wrap = bundle.plain) -> Since:
    """:raises DamagedRecord: it is not what :func:`encode` wrote."""
    with parsing('since'):
        inflate = zlib.decompressobj()
        text = inflate.decompress(unwrap('since', 0, raw),
                                  MAX_BUNDLE_INDEX_BYTES)
        if not inflate.eof:
            raise ValueError('cut off or too long')
        found = json.loads(text)
        dead = {_number(one) for one in found['dead']}
        records = {_number(number): dict(record)
                   for number, record in found['records']}
    return Since(dead, records)


def read(client: S3Client, key: str,
         unwrap: bundle.Wrap = bundle.plain) -> Since:
    """Read the note beside the bundle ``key``; empty if there is none."""
    try:
        raw = client.get_small(key + SUFFIX, MAX_BUNDLE_INDEX_BYTES)
    except S3Missing:
        return Since()
    return decode(raw, unwrap)


def write(client: S3Client, key: str, since: Since,
          wrap: bundle.Wrap = bundle.plain) -> None:
    """Write the note beside the bundle ``key``, proven.

    :raises RemoteUnavailable: S3 does not hold the note
    """
    path, data = key + SUFFIX, encode(since, wrap)
    client.put(path, data, digests.md5(data).digest())
    if not verify.holds(client, path, data):
        # Soon: until then the note there is unreadable.
        raise RemoteUnavailable('%s: S3 does not hold what was sent' % path,
                                _AGAIN_SECONDS)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < MAX_BUNDLE_MEMBERS:
        raise ValueError('%r is no member' % (value,))
    return value
