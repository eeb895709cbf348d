"""Objects as strategies know them, and the versions behind them.

A strategy remembers objects and not versions: an overwrite does not change the
order of reads. Its id is Swift's hash of the name, with the fragment's index
for erasure codes.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any, List, NamedTuple, Optional, Tuple

from swift_dss.core.errors import BadConfig, DamagedRecord
from swift_dss.core.version import VersionId
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.rows import SpanRow, VersionRow
from swift_dss.tier.local.addresses import object_hash

#: Versions whose account and size are kept in memory, about 500 bytes each.
KNOWN = 20000
#: A manifest is not larger: 1,000 segments with names of 1,024 bytes, and
#: what Swift stores beside them.
MAX_MANIFEST_BYTES = 4 * 1024 * 1024


class Known(NamedTuple):
    """A version on a device.

    :param class_id: of most of its bytes
    """

    account: str
    object_id: str
    version: VersionId
    partition: str
    size: int
    class_id: int


class Objects:
    """Looks versions up in the index and keeps the last. Thread-safe."""

    def __init__(self, index: Index, swift_dir: str) -> None:
        self._index = index
        self._swift_dir = swift_dir
        self._lock = threading.Lock()
        self._known: OrderedDict[VersionId, Known] = OrderedDict()
        #: Account and object to the version that was read last.
        self._last: OrderedDict[Tuple[str, str], Known] = OrderedDict()

    def known(self, version: VersionId) -> Optional[Known]:
        """A version that is read; None if the index has no name for it."""
        with self._lock:
            known = self._known.get(version)
            if known is not None:
                self._known.move_to_end(version)
                self._note(known)
                return known
        row = self._index.get(version)
        known = _known(row) if row is not None else None
        if known is not None:
            with self._lock:
                self._known[version] = known
                if len(self._known) > KNOWN:
                    self._known.popitem(last=False)
                self._note(known)
        return known

    def is_new(self, version: VersionId) -> bool:
        """True if the version was not requested lately."""
        with self._lock:
            return version not in self._known

    def newest(self, account: str, object_id: str) -> Optional[Known]:
        """The version of an object to fetch: the one that was read last,
        else the newest on this node, where S3 has bytes that it lacks.
        """
        with self._lock:
            known = self._last.get((account, object_id))
        if known is not None:
            return known
        digest, _, frag = object_id.partition('#')
        rows = [row for row in self._index.of_object(digest)
                if row.version.frag_index == (int(frag) if frag else None)
                and row.size and row.name.startswith('/%s/' % account)]
        if not rows:
            return None
        rows.sort(key=lambda row: (row.version.timestamp, sum(
            span.remote_bytes - span.spare_bytes for span in row.spans)))
        return _known(rows[-1])

    def forget(self, version: VersionId) -> None:
        """A version is gone."""
        with self._lock:
            known = self._known.pop(version, None)
            if known is not None:
                key = (known.account, known.object_id)
                if self._last.get(key) == known:
                    del self._last[key]

    def members(self, account: str, raw: bytes) -> List[Tuple[str, int]]:
        """Objects and sizes that the stored manifest of an SLO lists.

        :raises DamagedRecord: it is none
        """
        try:
            rows = json.loads(raw.decode('utf-8'))
            return [self._member(account, row) for row in rows
                    if 'data' not in row]
        except (ValueError, TypeError, KeyError, AttributeError,
                BadConfig) as err:
            raise DamagedRecord('manifest: %s' % err) from err

    def member(self, account: str, name: str) -> str:
        """The id of ``/container/object`` of an account.

        :raises BadConfig: not a path, or no ``swift.conf``
        """
        return object_hash(self._swift_dir,
                           '/%s/%s' % (account, name.lstrip('/')))

    def _member(self, account: str, row: Any) -> Tuple[str, int]:
        length = row['bytes']
        if type(length) is not int or length < 0:
            raise ValueError('bytes: %r' % (length,))
        return self.member(account, row['name']), length

    def _note(self, known: Known) -> None:
        key = (known.account, known.object_id)
        self._last.pop(key, None)
        self._last[key] = known
        if len(self._last) > KNOWN:
            self._last.popitem(last=False)


def _known(row: VersionRow) -> Optional[Known]:
    parts = row.name.split('/', 3)
    if len(parts) != 4:
        return None
    frag = row.version.frag_index
    largest = max(row.spans, key=lambda span: span.total_bytes,
                  default=SpanRow(0))
    return Known(
        parts[1], row.version.object_hash + (
            '' if frag is None else '#%d' % frag),
        row.version, row.partition, row.size, largest.class_id)
