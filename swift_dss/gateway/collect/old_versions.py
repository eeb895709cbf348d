"""Old versions of deleted or overwritten keys in a versioned bucket.

In a bucket with versioning a delete puts a marker before the key, and the
bytes stay and are paid for. Nothing of ours ever reads an old version, so all
of them under the prefix may go. Of a key that is deleted the old versions go
before its marker: without the marker the newest of them would be the key
again, and a deleted object would come back at the next restore.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Callable, Iterator, List

from swift_dss.core.errors import DssError
from swift_dss.gateway.link.client import S3Client, S3Version

#: Requests at a time.
_WORKERS = 8
_SHOWN_PROBLEMS = 100


@dataclass
class Swept:
    """The findings, also while the search is under way.

    :param versions: old ones, of ``length`` bytes
    :param markers: of deletes
    :param removed: versions and markers
    """

    keys: int = 0
    versions: int = 0
    length: int = 0
    markers: int = 0
    removed: int = 0
    failed: int = 0


class OldVersions:
    """One walk over the prefix.

    :param client: asks whose the prefix is before it removes anything
    :param dry_run: only count
    """

    def __init__(self, client: S3Client, prefix: str, dry_run: bool) -> None:
        self._client = client
        self._prefix = prefix
        self._dry_run = dry_run
        self.found = Swept()
        self.problems: List[str] = []

    def run(self, progress: Callable[[Swept], None]) -> Swept:
        """Remove them all. May be broken off, and run again.

        :raises RemoteUnavailable, S3Rejected: S3 does not list them
        """
        with ThreadPoolExecutor(_WORKERS,
                                thread_name_prefix='dss-versions') as pool:
            for count in pool.map(self._key, self._keys(progress)):
                self.found.removed += count
        progress(self.found)
        return self.found

    def _keys(self, progress: Callable[[Swept], None]
              ) -> Iterator[List[S3Version]]:
        for _, group in groupby(self._client.versions(self._prefix),
                                lambda item: item.key):
            versions = list(group)
            self.found.keys += 1
            old = [item for item in versions
                   if not item.is_latest and not item.is_marker]
            self.found.versions += len(old)
            self.found.length += sum(item.size for item in old)
            self.found.markers += sum(item.is_marker for item in versions)
            if self.found.keys % 1000 == 0:
                progress(self.found)
            yield versions

    def _key(self, versions: List[S3Version]) -> int:
        """How many versions and markers of a key went."""
        removed = 0
        if self._dry_run:
            return 0
        # The oldest first, and the marker that hides them last.
        for item in reversed(versions):
            if item.is_latest and not item.is_marker:
                continue
            try:
                self._client.delete_version(item.key, item.version)
                removed += 1
            except DssError as err:
                self.found.failed += 1
                if len(self.problems) < _SHOWN_PROBLEMS:
                    self.problems.append('%s: %s' % (item.key, err))
                # Keep the newer markers: without them this version would come
                # back.
                break
        return removed
