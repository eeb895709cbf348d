"""Compare the edge with the bucket: check the claims of records.

Reads every data file's record and one listing of the bucket; with
``deep``, also every byte that S3 stands for, and with ``here`` every byte on
the devices. Changes nothing, needs no daemon, and keeps its notes in a
temporary file, so that memory does not grow with the population.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import (
    Callable, Dict, Iterator, List, Mapping, Optional, Tuple)

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import (
    DamagedRecord, DssError, TierUnavailable, VersionGone)
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.read import is_bundle, read_index
from swift_dss.gateway.bundle.since import bundle_of
from swift_dss.gateway.down.source import Source
from swift_dss.gateway.form import metadata as remote_metadata
from swift_dss.gateway.form.digests import BLOCK_BYTES, md5
from swift_dss.gateway.form.encrypt import KeyFile
from swift_dss.gateway.link.client import S3Client
from swift_dss.gateway.ports import LocalReader, LocalVersion, Metrics
from swift_dss.gateway.restore.catalog import Catalog, Held, Unreadable
from swift_dss.gateway.restore.places import FOLDERS
from swift_dss.io.switch import LiveVersion, open_data_file
from swift_dss.tier.devices import Device, Devices
from swift_dss.tier.index.noted import (
    LOCAL, RECORD, REMOTE, KeyList, WrongList)
from swift_dss.tier.local import metadata
from swift_dss.tier.local.reader import Reader
from swift_dss.tier.walk.heal import Patient
from swift_dss.tier.walk.left import note_quarantined
from swift_dss.tier.walk.survey import data_files
from swift_dss.wire.bundle import TRAILER_BYTES

_BESIDE = remote_metadata.SUFFIXES
_SHOWN = 1000
_KEYS_AT_ONCE = 1000


@dataclass
class Compared:
    """The findings of a comparison.

    :param stubs: versions that lack bytes here; a stock Swift server
        refuses them
    :param dirty: versions that S3 does not have
    :param read_bytes: bytes of S3 that were read and proven
    :param here_bytes: of the devices that were read and proved right
    :param repairable: problems of versions of which the other side has every
        byte, as far as it was examined
    :param unknown: keys that no record of *this node* names
    :param quarantined: versions that Swift has taken out of their place
    :param quarantined_keys: keys that no record but theirs names
    :param stale: records of the bucket that are older than the metadata
        here
    """

    versions: int = 0
    stubs: int = 0
    dirty: int = 0
    remote: int = 0
    read_bytes: int = 0
    here_bytes: int = 0
    keys: int = 0
    unknown: int = 0
    stale: int = 0
    quarantined: int = 0
    quarantined_keys: int = 0
    problems: int = 0
    repairable: int = 0
    said: List[str] = field(default_factory=list)

    def problem(self, text: str) -> None:
        """Something is not as it must be."""
        self.problems += 1
        if len(self.said) < _SHOWN:
            self.said.append(text)


class _NoMetrics(Metrics):

    def count(self, name: str, amount: int = 1) -> None:
        """Ignore it."""

    def gauge(self, name: str, value: float) -> None:
        """Ignore it."""

    def timing(self, name: str, seconds: float) -> None:
        """Ignore it."""


class Comparison:
    """One comparison of a node with its bucket.

    :param deep: also read everything back
    :param records: also compare metadata with the bucket's records
    :param here: also read the bytes of the devices
    :param wrong: gets each version to repair
    """

    def __init__(self, conf: NodeConf, client: S3Client, wrong: WrongList,
                 deep: bool = False, records: bool = False,
                 here: bool = False) -> None:
        self._conf = conf
        self._client = client
        self._deep = deep
        self._records = records
        self._here = here
        self._wrong = wrong
        self._devices = Devices(conf)
        self._source = Source(conf.gateway, client, _NoMetrics(),
                              lambda seconds: False)
        self.found = Compared()

    def run(self, progress: Callable[[Compared], None]) -> Compared:
        """All of it.

        :raises RemoteUnavailable: S3 does not answer
        """
        with KeyList() as seen:
            self._list_bucket(seen, progress)
            for device in self._devices.discover():
                self._compare_device(seen, device, progress)
            self.found.quarantined = note_quarantined(
                self._devices, self._conf.swift_dir, self.found.problem,
                self._wrong.add, lambda patient: self._keep(seen, patient))
            for key, size in seen.unused():
                self.found.unknown += not self._has_nothing(key, size)
        if self._records:
            self._compare_records(progress)
        progress(self.found)
        return self.found

    def _keep(self, seen: KeyList, patient: Patient) -> None:
        if patient.remote_key and not patient.replaced:
            self.found.quarantined_keys += seen.use(patient.remote_key)

    def _list_bucket(self, seen: KeyList,
                     progress: Callable[[Compared], None]) -> None:
        prefix = self._conf.gateway.prefix
        for item in self._client.listing(prefix):
            if item.key.endswith(_BESIDE) or bundle_of(item.key) or item.key[
                    len(prefix):].startswith(FOLDERS):
                continue
            seen.add(item.key, item.size, item.etag)
            self.found.keys += 1
            if self.found.keys % _KEYS_AT_ONCE == 0:
                progress(self.found)

    def _compare_device(self, seen: KeyList, device: Device,
                        progress: Callable[[Compared], None]) -> None:
        try:
            device.require_mounted()
        except TierUnavailable as err:
            self.found.problem(str(err))
            return
        for version, partition, _ in data_files(
                device, self._devices.policies.ours):
            try:
                local = _describe(device, version, partition)
            except VersionGone:
                continue
            except (DamagedRecord, TierUnavailable, OSError) as err:
                self.found.problem('%s on %s: %s' % (
                    version.key, device.name, err))
                continue
            is_right = self._compare(seen, local)
            if self._here and local.content_length:
                self._compare_here(device, local, is_right)
            if self.found.versions % _KEYS_AT_ONCE == 0:
                progress(self.found)

    def _compare(self, seen: KeyList,
                 local: LocalVersion) -> bool:
        """False if S3 does not have it, or not right."""
        counts = self.found
        counts.versions += 1
        counts.stubs += local.residency.is_stub
        remote = local.residency.remote
        if remote is None:
            if local.content_length:
                counts.dirty += 1
            else:
                # An empty version has no record that could name its key.
                seen.use(remote_metadata.own_key(self._conf.gateway.prefix,
                                                 local.version))
            return False
        counts.remote += 1
        wrong = self._fault_of(seen, local, remote)
        if wrong is None and self._deep:
            wrong = self._read(local)
        if wrong is None:
            return True
        counts.problem('%s on %s: %s: %s' % (
            local.metadata.get('name', local.version.key),
            local.version.device, remote.key, wrong))
        counts.repairable += local.residency.is_local
        self._wrong.add(REMOTE, local.version, local.partition)
        return False

    def _compare_here(self, device: Device, local: LocalVersion,
                      is_in_s3: bool) -> None:
        """Are the bytes on the device the right ones?"""
        place = device.place(local.version, local.partition,
                             local.content_length)
        try:
            with Reader(LiveVersion(place, for_reading=True)) as reader:
                if not local.residency.is_local:
                    if not is_in_s3:
                        return  # told already
                    wrong = self._differs(local, reader)
                else:
                    wrong = _has_other_digest(local, reader)
        except VersionGone as err:
            if not os.path.exists(place.hash_dir):
                return  # deleted just now
            wrong = str(err)
        except (DssError, OSError) as err:
            self.found.problem('%s on %s: %s' % (
                local.metadata.get('name', local.version.key),
                device.name, err))
            return
        if wrong is None:
            self.found.here_bytes += local.residency.bytes_on(
                Tier.SSD | Tier.HDD)
            return
        self.found.problem('%s on %s: the bytes here: %s' % (
            local.metadata.get('name', local.version.key), device.name,
            wrong))
        self.found.repairable += is_in_s3
        self._wrong.add(LOCAL, local.version, local.partition)

    def _differs(self, local: LocalVersion,
                 reader: LocalReader) -> Optional[str]:
        """Where the bytes that are here differ from those of S3."""
        for at, block in self._blocks(local):
            for extent in local.residency.split(at, len(block)):
                if extent.tiers & (Tier.SSD | Tier.HDD) and reader.read(
                        extent.offset, extent.length) != block[
                            extent.offset - at:extent.end - at]:
                    return 'they are others than in S3, from byte %d to ' \
                        '%d' % (extent.offset, extent.end - 1)
        return None

    def _fault_of(self, seen: KeyList, local: LocalVersion,
                  remote: RemoteCopy) -> Optional[str]:
        if remote.endpoint != self._conf.gateway.endpoint:
            return 'is at %r, not at %r' % (
                remote.endpoint, self._conf.gateway.endpoint)
        row = seen.find(remote.key)
        if row is None:
            # It may have come since the bucket was listed.
            head = self._client.head(remote.key)
            if head is None:
                return 'is not in the bucket'
            row = head.size, head.etag
        seen.use(remote.key)
        size, etag = row
        if is_bundle(self._conf.gateway.prefix, remote.key):
            end = remote.offset + local.content_length + TRAILER_BYTES
            return 'has %d bytes, not %d' % (size, end) if size < end \
                else None
        if remote.seal:
            return None  # of another size; only reading it tells
        if size != local.content_length:
            return 'has %d bytes, not %d' % (size, local.content_length)
        if etag != remote.etag:
            return 'has the ETag %s, not %s' % (etag, remote.etag)
        return None

    def _has_nothing(self, key: str, size: int) -> bool:
        """True for a bundle of empty versions: no record names those."""
        if not is_bundle(self._conf.gateway.prefix, key):
            return False
        try:
            return not any(entry.record['length'] for entry in read_index(
                self._client, key, size,
                KeyFile(self._conf.gateway.key_file)).entries)
        except DssError:
            return False

    def _read(self, local: LocalVersion) -> Optional[str]:
        try:
            for _, block in self._blocks(local):
                self.found.read_bytes += len(block)
        except DssError as err:
            return str(err)
        return None

    def _blocks(self, local: LocalVersion) -> Iterator[Tuple[int, bytes]]:
        """(offset, bytes) of all that S3 has of a version, proven."""
        plan = self._source.plan(local)
        offset = 0
        while offset < local.content_length:
            start, length = plan.part(offset)
            for block in self._source.blocks(local, plan, start, length):
                yield offset, block
                offset += len(block)

    def _compare_records(self, progress: Callable[[Compared], None]) -> None:
        for held in Catalog(self._conf.gateway, self._client).walk():
            if isinstance(held, Unreadable):
                self.found.problem('%s: %s' % (held.key, held.reason))
            elif isinstance(held, Held):
                self._compare_record(held)

    def _compare_record(self, held: Held) -> None:
        for device in self._devices.discover():
            version = VersionId(
                device.name, held.record.version.policy,
                held.record.version.object_hash,
                held.record.version.timestamp,
                held.record.version.frag_index)
            for partition in device.partitions_of(version):
                try:
                    local = _describe(device, version, partition)
                except (VersionGone, DamagedRecord, OSError):
                    continue
                if dict(local.metadata) != dict(held.record.metadata):
                    self.found.stale += 1
                    if _stamp(local.metadata) >= _stamp(
                            held.record.metadata):
                        self._wrong.add(RECORD, version, partition)
                    return


def _describe(device: Device, version: VersionId,
              partition: str) -> LocalVersion:
    """A version as its own files say, without index or daemon.

    :raises VersionGone: it was removed by now
    """
    path = device.place(version, partition, 0).data_file()
    try:
        opened = open_data_file(path)
    except FileNotFoundError as err:
        raise VersionGone(path) from err
    try:
        stored = metadata.of_version(path, opened.fd,
                                     attributes=opened.attributes)
    except BaseException:
        os.close(opened.fd)
        raise
    place = device.place(version, partition, stored.content_length)
    with LiveVersion(place, opened) as live:
        return LocalVersion(version, partition, stored.etag, stored.headers,
                            live.residency, stored.class_map)


def _has_other_digest(local: LocalVersion,
                      reader: LocalReader) -> Optional[str]:
    whole = md5()
    for offset in range(0, local.content_length, BLOCK_BYTES):
        whole.update(reader.read(offset, min(
            BLOCK_BYTES, local.content_length - offset)))
    if whole.hexdigest() == local.etag:
        return None
    return 'they have the MD5 %s, not %s' % (whole.hexdigest(), local.etag)


def _stamp(metadata_headers: Mapping[str, str]) -> float:
    """When the metadata was last changed."""
    try:
        return float(metadata_headers.get('X-Timestamp', '0').split('_')[0])
    except ValueError:
        return 0.0


def plain(counts: Compared) -> Dict[str, object]:
    """For ``--json``."""
    return dict(vars(counts))

