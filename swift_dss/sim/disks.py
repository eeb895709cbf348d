"""The disks of a simulated node: real folders, and what lies in them."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from typing import Callable, Dict, FrozenSet, List, Optional, Tuple

from swift_dss.core.version import VersionId
from swift_dss.io.capacity import Capacity
from swift_dss.sim.judge import Replica, fragments, replica
from swift_dss.sim.world.memory import Memory
from swift_dss.sim.model import Violation
from swift_dss.sim.server import policies
from swift_dss.sim.world.power import Power
from swift_dss.sim.world.ring import CODED, DEVICE, OURS, STOCK, SimRing
from swift_dss.sim.world.s3 import Bucket, Stored
from swift_dss.sim.world.worn import Worn
from swift_dss.wire import layout

#: Hash of an object, and a fragment's index, to the timestamp of a version,
#: the name of a POST, and the bytes; None for a tombstone.
Durable = Dict[Tuple[str, Optional[int]], Tuple[str, str, Optional[bytes]]]
#: After the name of a folder whose drive was taken out.
_TAKEN = '.taken'
#: After the name of the folder under an HDD that is not mounted.
_AWAY = '.away'
_STOCK_HEADS = 'cdef'
#: Objects of the erasure-coded policy: small ones in bundles, and others.
CODED_NAMES = ('/a/e0/k', '/a/e1/l')
#: And of studies that have many: in bundles, and others.
MANY_CODED = tuple('/a/e%d/%d' % (container, number)
                   for container in (2, 3) for number in range(100))


class Disks:
    """See the module. An SSD, an HDD, and a folder for state.

    :param root: folder of the node
    :param worn: what its bytes are read from
    """

    def __init__(self, root: str, bucket: Bucket, ring: SimRing,
                 worn: Optional[Worn] = None) -> None:
        self.root = root
        self.worn = worn or Worn()
        self.bucket = bucket
        self.ring = ring
        #: Of a run with a power cut ahead.
        self.power: Optional[Power] = None
        self.devices = os.path.join(self.root, 'ssd')
        self.ssd = os.path.join(self.devices, DEVICE)
        self.hdd = os.path.join(self.root, 'hdd', DEVICE)
        self.state = os.path.join(self.root, 'state')
        #: Folders of drives that were taken out, and may come back.
        self.shelf: Tuple[str, ...] = ()
        #: (hash, timestamp) of versions that came back with such a drive,
        #: were overwritten meanwhile, and lack bytes.
        self.stale: FrozenSet[Tuple[str, str]] = frozenset()
        #: Of what its disks have.
        self.memory = Memory(lambda: (bucket.keys.changes,
                                      self.worn.changes))
        for folder in (self.ssd, self.hdd, self.state):
            os.makedirs(folder)
        Capacity(self.hdd, DEVICE).initialise()

    def look(self, object_hash: str,
             mounted: bool = False) -> Optional[Replica]:
        """A judge's reading of an object on this node.

        :param mounted: only on disks that are mounted, and answer, now
        """
        if policy_of(object_hash) == CODED:
            return next((fragment
                         for fragment in self.fragments(object_hash, mounted)
                         if fragment.durable), None)
        return self.memory.of_replicas(self._replica, object_hash, mounted)

    def _replica(self, object_hash: str, mounted: bool) -> Optional[Replica]:
        return replica(*self._places(object_hash, mounted))

    def fragments(self, object_hash: str,
                  mounted: bool = False) -> List[Replica]:
        """All that is here of an erasure-coded object, the newest first.
        """
        return list(self.memory.of_replicas(
            self._fragments, object_hash, mounted))

    def _fragments(self, object_hash: str, mounted: bool) -> List[Replica]:
        return fragments(*self._places(object_hash, mounted))

    def all_of(self, object_hash: str) -> List[Replica]:
        """Each file of an object that counts: the newest one, or all
        fragments."""
        if policy_of(object_hash) == CODED:
            return self.fragments(object_hash)
        replica = self.look(object_hash)
        return [] if replica is None else [replica]

    def is_unreadable(self, object_hash: str) -> bool:
        """True if a disk does not give the bytes of a file of it now."""
        return self.worn.is_any() and any(
            self.worn.is_silent(path)
            for seen in self.all_of(object_hash) if not seen.is_tombstone
            for path in self.paths(object_hash, seen))

    def paths(self, object_hash: str, seen: Replica) -> Tuple[str, str]:
        """Where the bytes of a version are, on the SSD and on the HDD."""
        return os.path.join(self.folder(object_hash), seen.file_name), \
            layout.capacity_file(self.hdd, self.version(
                object_hash, seen.timestamp, seen.frag_index))

    def _places(self, object_hash: str, mounted: bool) -> Tuple[
            str, str, Dict[str, Stored], Callable[[str], bool]]:
        hdd = self.hdd + _AWAY if self.hdd_is_away and not mounted \
            else self.hdd
        return self.folder(object_hash), layout.capacity_file(
            hdd, self.version(object_hash, '%s')), self.bucket.keys, \
            self.worn.is_silent if mounted else self.worn.is_spoilt

    def files(self, object_hash: str) -> List[str]:
        """Names of an object's files."""
        return names_in(self.folder(object_hash))

    def hashes(self) -> List[str]:
        """Objects that have a folder here."""
        return list(self.memory.of_names(self._hashes))

    def _hashes(self) -> List[str]:
        return sorted(
            object_hash for policy, partition in self.partitions()
            for suffix in self.suffixes(policy, partition)
            for object_hash in names_in(self.ssd, layout.data_dir_name(policy),
                                        partition, suffix))

    def partitions(self) -> List[Tuple[int, str]]:
        """(policy, partition) of the objects here."""
        return list(self.memory.of_names(self._partitions))

    def _partitions(self) -> List[Tuple[int, str]]:
        return [(policy, partition) for policy in range(len(policies()))
                for partition in names_in(
                    self.ssd, layout.data_dir_name(policy))]

    def suffixes(self, policy: int, partition: str) -> List[str]:
        """Swift's folders of a partition."""
        return list(self.memory.of_names(self._suffixes, policy, partition))

    def _suffixes(self, policy: int, partition: str) -> List[str]:
        return [name for name in names_in(
            self.ssd, layout.data_dir_name(policy), partition)
            if len(name) == 3]

    def listing(self, policy: int, partition: str,
                suffix: str) -> List[Tuple[str, List[str]]]:
        """The input of a suffix's hash."""
        return self.memory.of_names(self._listing, policy, partition, suffix)

    def _listing(self, policy: int, partition: str,
                 suffix: str) -> List[Tuple[str, List[str]]]:
        top = (self.ssd, layout.data_dir_name(policy), partition, suffix)
        return [(name, names_in(*top, name)) for name in names_in(*top)]

    def durable(self) -> Durable:
        """The state that a power cut may not take: of each object the newest
        version that has all its bytes, or the tombstone, and the newest
        POST."""
        kept: Durable = {}
        for object_hash in self.hashes():
            for seen in self.all_of(object_hash):
                if seen.durable and (
                        seen.is_tombstone or seen.body is not None):
                    post = max([name for name in self.files(object_hash)
                                if name.endswith('.meta')], default='')
                    kept.setdefault((object_hash, seen.frag_index), (
                        seen.timestamp, post, seen.body))
        return kept

    def check_durable(self, before: Durable) -> None:
        """After a power cut.

        :param before: what :meth:`durable` said before it
        :raises Violation: something is gone
        """
        after = self.durable()
        for (object_hash, index), (timestamp, post, body) in before.items():
            now = after.get((object_hash, index), ('', '', None))
            if now[0] < timestamp or now[0] == timestamp and (
                    now[1] < post or now[2] != body):
                raise Violation(
                    '%s: a power cut of %s has taken what it had (%s%s)' % (
                        object_hash, os.path.basename(self.root), timestamp,
                        post and ' with ' + post))

    def drop_partition(self, policy: int, partition: str) -> None:
        """Remove a handoff as the replicator does: without an event."""
        shutil.rmtree(os.path.join(
            self.ssd, layout.data_dir_name(policy), partition))
        self.memory.forget()

    def take_out(self, folders: Tuple[str, ...]) -> None:
        """Other drives, empty ones, are in the place of these."""
        for folder in folders:
            path = os.path.join(self.root, folder)
            os.rename(path, path + _TAKEN)
            os.makedirs(os.path.join(path, DEVICE))
        self.is_written(self.root)

    def exchange_taken(self, folders: Tuple[str, ...]) -> None:
        """Drives that were taken out, and those in their place."""
        for folder in folders:
            path = os.path.join(self.root, folder)
            os.rename(path, path + '.other')
            os.rename(path + _TAKEN, path)
            os.rename(path + '.other', path + _TAKEN)
        self.is_written(self.root)

    def drop_taken(self, folders: Tuple[str, ...]) -> None:
        """Drop the disks that are out of their place for ever."""
        for folder in folders:
            shutil.rmtree(os.path.join(self.root, folder) + _TAKEN)

    def without_bytes(self) -> FrozenSet[Tuple[str, str]]:
        """(hash, timestamp) of versions that lack some."""
        return frozenset(
            (object_hash, replica.timestamp) for object_hash in self.hashes()
            for replica in self.all_of(object_hash)
            if replica.body is None and not replica.is_tombstone)

    def fail(self, on_hdd: bool) -> None:
        """A disk answers EIO for everything, for a while."""
        self.worn.fail(self.hdd if on_hdd else self.ssd)

    def recover(self) -> None:
        """Its disks answer again."""
        self.worn.recover(self.hdd)
        self.worn.recover(self.ssd)

    def drop(self, object_hash: str) -> None:
        """Remove an object without an event."""
        shutil.rmtree(self.folder(object_hash), ignore_errors=True)
        self.memory.forget()

    def folder(self, object_hash: str) -> str:
        """Swift's folder of an object."""
        return layout.hash_dir(
            self.ssd, policy_of(object_hash),
            self.ring.partition(object_hash), object_hash)

    def is_written(self, folder: str) -> None:
        """A disk was unmounted, or is another one: no power cut takes
        anything from it."""
        self.memory.forget()
        if self.power is not None:
            self.power.forget(folder)

    @property
    def hdd_is_away(self) -> bool:
        """True while the HDD is not mounted."""
        return self.memory.of_names(os.path.exists, self.hdd + _AWAY)

    def unmount_hdd(self) -> None:
        """The HDD is not mounted for a while."""
        if not self.hdd_is_away:
            self.is_written(self.hdd)
            os.rename(self.hdd, self.hdd + _AWAY)
            self.memory.forget()

    def mount_hdd(self) -> None:
        """It is back."""
        if self.hdd_is_away:
            os.rename(self.hdd + _AWAY, self.hdd)
            self.memory.forget()

    def version(self, object_hash: str, timestamp: str,
                index: Optional[int] = None) -> VersionId:
        """Of an object, on this node.

        :param index: of a fragment
        """
        return VersionId(DEVICE, policy_of(object_hash), object_hash,
                         timestamp, index)


@functools.lru_cache(maxsize=None)
def hash_of(name: str) -> str:
    """Swift's hash of an object's name, without a cluster's salt."""
    return hashlib.md5(name.encode()).hexdigest()


def policy_of(object_hash: str) -> int:
    """The storage policy of an object: one in four is not ours, and those of
    ``CODED_NAMES`` and ``MANY_CODED`` are coded."""
    if object_hash in _CODED:
        return CODED
    return STOCK if object_hash[0] in _STOCK_HEADS else OURS


_CODED = frozenset(map(hash_of, CODED_NAMES + MANY_CODED))


def names_in(*folder: str) -> List[str]:
    """The names in a folder, sorted; none if it is not there."""
    try:
        return sorted(os.listdir('/'.join(folder)))
    except FileNotFoundError:
        return []
