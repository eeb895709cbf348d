"""The bucket in parts, and listings of some of them."""

from __future__ import annotations

from collections import deque
from typing import Deque, Iterator

from swift_dss.gateway.link.client import S3Client, S3Listed

#: The first two digits of a key, and of a bundle's.
PARTS = ['%02x' % number for number in range(256)]


class Parts:
    """The keys of a folder, part by part; one pass over some of them.

    A page that was listed for one part is used for all parts that it
    reaches, so parts without keys cost no request, and a pass over a small
    bucket costs one.
    """

    def __init__(self, client: S3Client, folder: str) -> None:
        self._client = client
        self._folder = folder
        self._keys: Deque[S3Listed] = deque()
        self._after = ''
        self._is_last = False

    def listing(self, part: str) -> Iterator[S3Listed]:
        """The keys of a part. Ask for parts in their order, and take all
        that this gives."""
        first = self._folder + part
        self._leave_behind(first)
        if self._after < first and not self._is_last:
            # Parts of others lie between: they are not listed.
            self._after = first
            self._turn(first)
        while True:
            while self._keys and self._keys[0].key.startswith(first):
                yield self._keys.popleft()
            if self._keys or self._is_last:
                return
            self._turn(self._after)

    def is_empty(self, part: str) -> bool:
        """True if it is known that a part has no keys: costs no request. Ask
        in the order of parts."""
        first = self._folder + part
        self._leave_behind(first)
        return self._is_last and not (
            self._keys and self._keys[0].key.startswith(first))

    def _leave_behind(self, first: str) -> None:
        while self._keys and self._keys[0].key < first:
            self._keys.popleft()

    def _turn(self, after: str) -> None:
        keys, self._after, self._is_last = self._client.page(
            self._folder, after)
        self._keys = deque(keys)
