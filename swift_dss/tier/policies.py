"""Which storage policies are ours, by the ``swift.conf`` of ``swift_dir``.

The one place that knows. Walks, movers and the intake of events ask it and
leave every other policy alone: stock Swift quarantines versions that lack
bytes.
"""

from __future__ import annotations

import os
from typing import Dict, FrozenSet, Iterable, Optional, Tuple

from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.io.start.text import read_text
from swift_dss.wire.settings import policies as wire_policies
from swift_dss.wire.settings.policies import StoragePolicy

_Stamp = Tuple[int, int, int]


class NotOurs(TierUnavailable):
    """A version of a policy whose diskfile is not ours: hands off."""

    counter = 'not_ours'


class Policies:
    """The storage policies of a node. Cheap to make; the file is read at the
    first question. Thread-safe.

    :param swift_dir: folder of ``swift.conf``
    """

    def __init__(self, swift_dir: str) -> None:
        self.path = os.path.join(swift_dir, 'swift.conf')
        self._known: Optional[Dict[int, StoragePolicy]] = None
        self._ours: FrozenSet[int] = frozenset()
        self._stamp: Optional[_Stamp] = None

    @property
    def known(self) -> Dict[int, StoragePolicy]:
        """Index to policy, as last read.

        :raises BadConfig: the file was never read and cannot be
        """
        if self._known is None:
            self.load()
        assert self._known is not None
        return self._known

    @property
    def ours(self) -> FrozenSet[int]:
        """Indexes of the policies that are ours.

        :raises BadConfig: as :attr:`known`
        """
        if self._known is None:
            self.load()
        return self._ours

    def data_fragments(self, index: int) -> int:
        """Fragments that an object of a policy can be made from; 1 where
        each replica is whole."""
        policy = self.known.get(index)
        return 1 if policy is None else policy.data_fragments

    def load(self) -> None:
        """Read the file; if it cannot be taken, nothing has changed.

        :raises BadConfig: it is missing or does not parse
        """
        try:
            stamp = self._stamp_now()
            text = read_text(self.path)
        except BadConfig as err:
            raise BadConfig(
                '%s; [dss] swift_dir of dss.conf must name the folder of '
                'swift.conf, which names the storage policies' % err
                ) from err
        known = wire_policies.parse(text, self.path)
        self._ours = frozenset(index for index, policy in known.items()
                               if policy.is_ours)
        self._known, self._stamp = known, stamp

    def is_changed(self) -> bool:
        """True if the file is another one than :meth:`load` read.

        :raises BadConfig: it is not there
        """
        return self._stamp_now() != self._stamp

    def _stamp_now(self) -> _Stamp:
        try:
            return _stamp(os.stat(self.path))
        except OSError as err:
            raise BadConfig('%s: %s' % (self.path, err)) from err

    def require_ours(self, index: int) -> None:
        """:raises NotOurs: the policy is not ours; leave its files be."""
        if index not in self.ours:
            raise NotOurs('%s is not ours by %s: left as it is' % (
                self.named(index), self.path))

    def named(self, index: int) -> str:
        """A policy in words, also one that the file no longer has."""
        return str(self.known.get(index, 'storage policy %d' % index))


def parse_indexes(text: str) -> FrozenSet[int]:
    """Read a text of :func:`indexes_text`; other texts have no indexes."""
    return frozenset(int(part) for part in text.split(',') if part.isdigit())


def indexes_text(indexes: Iterable[int]) -> str:
    """Indexes as the index keeps them."""
    return ','.join(map(str, sorted(indexes)))


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns
