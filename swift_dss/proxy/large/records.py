"""Work that was begun on large objects.

A POST of classes to a manifest first stores a record, then changes segments,
then the manifest, and then deletes the record. If its proxy dies, another
finds the record when the lease in it has run out (``proxy.work.rows``).
Records name no keys and hold no data.
"""

from __future__ import annotations

import json
import random
import time
from typing import Iterator, List, Mapping, NamedTuple, Optional

from swift_dss.core.errors import BadClassInput
from swift_dss.core.spans import ClassMap
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.rows import Row, Rows
from swift_dss.proxy.wsgi import App, Env
from swift_dss.wire import classmap

ACCOUNT = '.dss_large'
_CONTAINER = 'work'
#: Seconds that a record belongs to the proxy that touched it last.
LEASE_SECONDS = 30.0
#: Seconds until work that could not be done is tried again: its servers may
#: be back before the lease has run out.
AGAIN_SECONDS = 5.0
#: Records of one look.
_MANY = 50


class Record(NamedTuple):
    """Classes that the segments of a manifest are to have.

    :param target: the manifest
    :param at: timestamp of the decision
    :param beside: headers that the manifest gets with its classes
    """

    target: Target
    class_map: ClassMap
    at: str
    beside: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """Of its object; the manifest's mark names it too."""
        return self.at


class Records:
    """Stores them.

    :param app: what is below the filter
    """

    def __init__(self, app: App) -> None:
        self._rows = Rows(app, ACCOUNT, _CONTAINER)

    def put(self, env: Env, record: Record, seconds: float) -> None:
        """Store a record. After this a crash loses no work.

        :param seconds: until another proxy may take it
        :raises Unreachable: it is not stored
        """
        self._rows.put(env, record.name, json.dumps({
            'v': 1, 'target': list(record.target), 'at': record.at,
            'map': classmap.encode(record.class_map),
            'beside': dict(record.beside)}).encode(), time.time() + seconds)

    def names(self, env: Env) -> List[str]:
        """Of some records that are nobody's, as the listing has it, in any
        order: the oldest may be of work that cannot be done."""
        now = time.time()
        due = [row.name for row in self._rows.every(env) if row.until <= now]
        return random.sample(due, min(_MANY, len(due)))

    def take(self, env: Env, name: str) -> Optional[Record]:
        """A record whose lease has run out, with a lease of our own; None if
        it is another's, gone or unreadable."""
        return _record_of(self._rows.take(env, name, LEASE_SECONDS))

    def every(self, env: Env) -> Iterator[Record]:
        """All records that can be read, oldest first."""
        for listed in self._rows.every(env):
            record = _record_of(self._rows.read(env, listed.name))
            if record is not None:
                yield record

    def renew(self, env: Env, record: Record) -> None:
        """The record stays this proxy's for another lease."""
        self._rows.touch(env, record.name, time.time() + LEASE_SECONDS)

    def leave(self, env: Env, record: Record) -> None:
        """The work could not be done: any proxy may try it soon."""
        self._rows.touch(env, record.name, time.time() + AGAIN_SECONDS)

    def delete(self, env: Env, record: Record) -> None:
        """The work is done. If this fails it is done once more."""
        self._rows.delete(env, record.name)


def _record_of(row: Optional[Row]) -> Optional[Record]:
    try:
        if row is None:
            return None
        stored = json.loads(row.body)
        return Record(Target(*stored['target']), classmap.decode(
            stored['map']), stored['at'], stored.get('beside') or {})
    except (ValueError, KeyError, TypeError, BadClassInput):
        return None
