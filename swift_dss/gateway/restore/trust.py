"""Judge which records of a bucket a restore may trust.

A writer to the bucket may plant keys in it, copy them and put old ones back.
So before a restore writes:

- with a key file, only keys that are sealed under it count. A seal
  authenticates the record, and with it the name, hash, timestamp, policy and
  fragment; an unsealed container record with ``.r:*`` in it would make a
  container public;
- a version that has a key of its own is taken from that key alone: a sealed
  object that was copied to another key is no version of that name;
- with a key file, the hash in the record is the one that the name has under
  this cluster's hash path: another cluster with the same key file has other
  hashes. Records of accounts and containers have no hash; they name the
  cluster;
- nothing is from the future: a version of the year 2286 could not be
  overwritten for as long.

The bucket alone does not show that an old key was put back as it was, after
its object was deleted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator, Mapping

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import MAX_CLOCK_SKEW_SECONDS
from swift_dss.core.version import VersionId
from swift_dss.gateway.form.metadata import own_key
from swift_dss.gateway.restore.catalog import Held
from swift_dss.gateway.restore.places import PUT_HEADERS, Place, key_of

#: Swift's timestamps: seconds, and perhaps an offset in hexadecimal.
_STAMP = re.compile(r'^\d{10}\.\d{5}(_[0-9a-f]{16})?$')
#: Metadata of an object whose values are timestamps.
_STAMPED = frozenset(('x-timestamp', 'content-type-timestamp'))


class Refused(DamagedRecord):
    """The bucket has it, and it may not be believed."""

    counter = 'restore_refused'


@dataclass(frozen=True)
class Trust:
    """The rules of one restore.

    :param prefix: of the bucket's keys
    :param cluster: this cluster's id; '' if none is known
    :param only_sealed: only keys sealed for this cluster count
    :param now: seconds since the epoch
    """

    prefix: str
    cluster: str
    only_sealed: bool
    now: float

    def version(self, held: Held, hash_here: str) -> None:
        """:param hash_here: that its name has on this cluster
        :raises Refused: the version may not be restored
        """
        self._sealed(held.remote.seal)
        record = held.record
        if not held.remote.in_bundle and held.number < 0 and \
                held.remote.key != own_key(self.prefix, record.version):
            raise Refused('it is a copy of %s: no version is taken from '
                          'another key than its own' % own_key(
                              self.prefix, record.version))
        if self.only_sealed and record.version.object_hash != hash_here:
            raise Refused('%s has the hash %s on this cluster, not %s: it was '
                          'sealed for another one' % (
                              held.name, hash_here,
                              record.version.object_hash))
        for stamp in _stamps(record.version, record.metadata):
            self._stamp(stamp)

    def place(self, key: str, place: Place, seal: str) -> None:
        """:raises Refused: the account or container may not be restored"""
        self._sealed(seal)
        if key != key_of(self.prefix, place.path):
            raise Refused('it is a copy of the record of %s' % place.path)
        # Records of earlier releases name no cluster.
        if self.only_sealed and place.cluster not in ('', self.cluster):
            raise Refused('the record of %s was sealed for another cluster'
                          % place.path)
        for name in PUT_HEADERS:
            if name in place.headers:
                self._stamp(place.headers[name])

    def _sealed(self, seal: str) -> None:
        if self.only_sealed and not seal:
            raise Refused('it is not sealed, and there is a key file; '
                          '--allow-unsealed takes it all the same')

    def _stamp(self, stamp: str) -> None:
        if not _STAMP.match(stamp):
            raise Refused('%r is no timestamp' % stamp[:80])
        if float(stamp.partition('_')[0]) > self.now + MAX_CLOCK_SKEW_SECONDS:
            raise Refused('the timestamp %s is in the future' % stamp)


def _stamps(version: VersionId,
            metadata: Mapping[str, str]) -> Iterator[str]:
    yield version.timestamp
    for name, value in metadata.items():
        if name.lower() in _STAMPED:
            yield value
