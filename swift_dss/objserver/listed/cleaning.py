"""Take classes out of the rows of container databases, before an uninstall.

Stock proxies would show them behind content types. Each row gets its content
type without the class, one tick (10 microseconds) newer than the one it had:
every replica of the database makes the same row of it, so they agree whichever
is cleaned first, and an update that comes late does not bring the class back.
Size, ETag and Last-Modified stay. Idempotent; a newer PUT or POST wins.

A row of whose content type a class is left after that is not touched: a client
gave the object a type that looks so, and a second run would take that.

A database that is being sharded has its rows in two files and is left out;
the caller comes back when that is done.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional

from swift.common.db import DatabaseConnectionError
from swift.common.exceptions import LockTimeout
from swift.common.utils import (
    Timestamp, audit_location_generator, decode_timestamps)
from swift.container.backend import DATADIR, SHARDING, ContainerBroker

from swift_dss.wire import names

#: Rows that are read, and written, at a time.
_ROWS = 1000
#: Swift puts the bytes of a large object behind all other parameters.
_CLASSED = re.compile(r'(?s)(?P<kind>.*)%s\d{1,2}'
                      r'(?P<bytes>(?:;\s*swift_bytes=\d+)?)'
                      % re.escape(names.LISTED_CLASS))
_LOGGER = logging.getLogger('swift_dss')


@dataclass
class Counts:
    """Of one run.

    :param databases: that were read
    :param rows: that had a class
    :param kept: rows that keep what looks like one
    :param skipped: databases that could not be read to their end: being
        sharded, locked or damaged
    """

    databases: int = 0
    rows: int = 0
    kept: int = 0
    skipped: List[str] = field(default_factory=list)


def clean(devices: str, writes: bool) -> Counts:
    """Clean the databases of all devices of this node.

    Blocks; the time is that of reading all rows.

    :param devices: the folder of devices, such as ``/srv/node``
    :param writes: False only counts
    """
    counts = Counts()
    for path in _databases(devices):
        try:
            is_done = _clean_one(path, writes, counts)
        except (LockTimeout, DatabaseConnectionError, sqlite3.Error, OSError,
                ValueError) as err:
            _LOGGER.warning('dss: %s: %s', path, err)
            is_done = False
        if is_done:
            counts.databases += 1
        else:
            counts.skipped.append(path)
    return counts


def _databases(devices: str) -> Iterator[str]:
    """One file a database; ``ContainerBroker`` knows its others."""
    last = ''
    for path, _device, _partition in audit_location_generator(
            devices, DATADIR, '.db', mount_check=False, logger=_LOGGER):
        folder = os.path.dirname(path)
        if folder != last:
            yield path
        last = folder


def _clean_one(path: str, writes: bool, counts: Counts) -> bool:
    broker: Any = ContainerBroker(path, logger=_LOGGER)
    if broker.get_db_state() == SHARDING:
        return False
    marker = ''
    while True:
        rows = broker.get_objects(limit=_ROWS, marker=marker,
                                  include_deleted=False)
        if not rows:
            return True
        marker = rows[-1]['name']
        items = []
        for row in rows:
            if names.LISTED_CLASS not in row['content_type']:
                continue
            item = _cleaned(row)
            if item is None:
                counts.kept += 1
            else:
                counts.rows += 1
                items.append(item)
        if items and writes:
            broker.merge_items(items)


def _cleaned(row: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """What ``merge_items`` takes for the row without its class; None if it is
    to stay as it is."""
    match = _CLASSED.fullmatch(row['content_type'])
    if match is None or names.LISTED_CLASS in match.group('kind'):
        return None
    data_at, type_at, meta_at = decode_timestamps(row['created_at'])
    return dict(row, created_at=data_at.internal,
                content_type=match.group('kind') + match.group('bytes'),
                ctype_timestamp=Timestamp(type_at.normal, delta=1).internal,
                meta_timestamp=meta_at.internal)
