"""Bring back versions that Swift has quarantined.

Stock Swift takes a stub for a damaged file and moves it away; ours does so
with bytes that proved wrong. The healer checks each tier in the residency
record of the quarantined file: the SSD's and the HDD's bytes by their digest,
S3's key by a request. The version then has the first set of tiers that proves
right. Nothing is taken on trust, and only the quarantine's name of a restored
file is removed.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from typing import (
    AbstractSet, Callable, Iterator, List, Optional, Tuple)

from swift_dss.core.errors import (
    DamagedRecord, DssError, TierUnavailable, VersionGone)
from swift_dss.core.limits import IO_WINDOW_BYTES, RECLAIM_SECONDS
from swift_dss.core.residency import Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.form.digests import md5
from swift_dss.gateway.ports import LocalVersion
from swift_dss.io import newest, quarantine, switch
from swift_dss.io.quarantine import Held
from swift_dss.io.switch import LiveVersion, Place, open_data_file
from swift_dss.tier.devices import Device, Devices
from swift_dss.tier.local import metadata
from swift_dss.tier.local.local import Local
from swift_dss.tier.local.reader import DISK_ERRORS, Reader
from swift_dss.wire.names import XATTR_RESIDENCY

#: How a version came back.
HEALED = 'healed'
#: A newer version, a tombstone or the same version stands in its place.
OBSOLETE = 'obsolete'
_LOCAL = Tier.SSD | Tier.HDD
_WORDS = {'ssd': 'the file itself', 'hdd': 'the HDD', 's3': 'S3',
          'ssd+hdd': 'the file and the HDD together'}


class NotHealed(TierUnavailable):
    """No tier of this node has the bytes of a quarantined version."""


@dataclass
class Patient:
    """A quarantined version, as its own file describes it.

    :param name: ``/account/container/object``; '' if it cannot be read
    :param is_ours: the policy is ours, so the version can be brought back
    :param replaced: a version that is not older stands in its place
    :param has: tiers that have all of its bytes by its record, looked at
        without reading them: ``ssd``, ``hdd``, ``s3``
    :param why: the fault of the file itself
    """

    version: VersionId
    path: str
    since: float
    name: str = ''
    is_ours: bool = True
    replaced: bool = False
    has: List[str] = field(default_factory=list)
    remote_key: str = ''
    why: str = ''


def patients(device: Device, policies: AbstractSet[int],
             ours: AbstractSet[int]) -> Iterator[Patient]:
    """List a device's quarantine.

    :param policies: the policies to list; of a foreign policy only versions
        with a record of ours
    """
    for policy in sorted(policies):
        for held in device.quarantine.files(policy):
            with contextlib.suppress(VersionGone):
                patient = _patient(device, held)
                patient.is_ours = policy in ours
                if patient.is_ours or _has_record(held.path):
                    yield patient


def all_patients(devices: Devices,
                 tell: Callable[[str], None]) -> Iterator[Patient]:
    """The same of every device of a node.

    :param tell: gets a sentence for each device that cannot be looked at
    """
    policies = devices.policies
    for device in devices.discover():
        try:
            device.require_mounted()
        except TierUnavailable as err:
            tell(str(err))
            continue
        yield from patients(device, frozenset(policies.known), policies.ours)


def in_words(patient: Patient) -> str:
    """The operator's line about a quarantined version."""
    left = ['%s has all of its bytes' % _WORDS[word] for word in patient.has]
    if patient.remote_key:
        left.append('its record names %s in S3' % patient.remote_key)
    if patient.why:
        left.append(patient.why)
    return '%s on %s is in quarantine (%s): %s' % (
        patient.name or patient.version.key, patient.version.device,
        patient.path,
        '; '.join(left) or 'nothing here has its bytes; another replica '
        'may, and then Swift brings it back')


def _has_record(path: str) -> bool:
    try:
        return XATTR_RESIDENCY in os.listxattr(path)
    except OSError:
        return False


def _patient(device: Device, held: Held) -> Patient:
    version = held.version
    patient = Patient(version, held.path, held.since)
    patient.replaced = any(_stands(device.place(version, partition, 0))
                           for partition in device.partitions_of(version))
    try:
        live, data = _opened(device, held, '')
    except (DamagedRecord, TierUnavailable) as err:
        patient.why = str(err)
        return patient
    with live:
        patient.name = data.name
        residency = live.residency
        for tier, word in ((Tier.SSD, 'ssd'), (Tier.HDD, 'hdd'),
                           (Tier.REMOTE, 's3')):
            if tier in residency.tiers and \
                    residency.bytes_on(tier) == residency.content_length:
                patient.has.append(word)
        if not patient.has and residency.is_local:
            patient.has.append('ssd+hdd')
        if Tier.HDD in residency.tiers and not os.path.exists(
                device.capacity.file_path(version)):
            patient.has = [word for word in patient.has if 'hdd' not in word]
            patient.why = 'the HDD has no file of it any more'
        if residency.remote is not None:
            patient.remote_key = residency.remote.key
    return patient


def _stands(place: Place) -> bool:
    """True if something stands there that a version may not go beside."""
    version = place.version
    stands = newest.newest_timestamp(place.hash_dir)
    if stands is not None and stands > version.timestamp:
        return True
    try:
        place.data_file()
    except VersionGone:
        return False
    return True


def _opened(device: Device, held: Held, partition: str
            ) -> Tuple[LiveVersion, metadata.VersionMetadata]:
    """A quarantined file, open; the caller closes it.

    :raises VersionGone: it is not there any more
    :raises DamagedRecord: it cannot be said where its bytes are
    :raises TierUnavailable: the HDD that its record speaks of is not there
    """
    try:
        opened = open_data_file(held.path)
    except FileNotFoundError as err:
        raise VersionGone(held.path) from err
    try:
        stored = metadata.of_version(held.path, opened.fd,
                                     attributes=opened.attributes)
    except BaseException:
        os.close(opened.fd)
        raise
    place = device.place(held.version, partition, stored.content_length)
    return LiveVersion(place, opened), stored


class Healer:
    """Brings versions back. Thread-safe; blocks on disks and on S3."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._mover = local.mover

    def heal(self, version: VersionId, partition: str,
             old: bool = False) -> str:
        """Bring one version back. Idempotent.

        :param partition: that the ring gives its object
        :param old: also if a delete of it may have been forgotten since
        :returns: HEALED or OBSOLETE
        :raises NotHealed: no tier has its bytes, or it is too old
        :raises DssError: it cannot be said, or not be done, now
        """
        device = self._mover.device(version)
        why = 'nothing of it is in quarantine'
        for held in device.quarantine.files_of(version):
            place = device.place(version, partition, 0)
            if self._is_replaced(device, held, place):
                return OBSOLETE
            if not old and time.time() - held.since > RECLAIM_SECONDS:
                raise NotHealed(
                    'it is in quarantine for more than %d days: a delete '
                    'since may be forgotten by now; --old brings it back'
                    % (RECLAIM_SECONDS // 86400))
            try:
                with DISK_ERRORS:
                    return self._heal(device, held, partition)
            except (DamagedRecord, NotHealed) as err:
                why = str(err)
            except VersionGone:
                continue
        raise NotHealed(why)

    def _is_replaced(self, device: Device, held: Held,
                     place: Place) -> bool:
        """True if something stands there; takes an end that a power cut
        left in quarantine away."""
        if not _stands(place):
            return any(_stands(device.place(held.version, other, 0))
                       for other in device.partitions_of(held.version))
        with contextlib.suppress(VersionGone, FileNotFoundError):
            if os.path.samefile(place.data_file(), held.path):
                with self._mover.locks.hold(held.version):
                    quarantine.put_back(held, place)
        return True

    def _heal(self, device: Device, held: Held, partition: str) -> str:
        live, stored = _opened(device, held, partition)
        with live:
            right, why = self._proven(live, stored)
            if right is None:
                raise NotHealed(why)
            place = live.place
            with self._mover.locks.hold(held.version):
                if _stands(place):
                    return OBSOLETE
                if right == live.residency:
                    quarantine.put_back(held, place)
                else:
                    made = quarantine.build_without_ssd(live, right)
                    try:
                        quarantine.put_back(held, place, made)
                    finally:
                        switch.remove_if_there(made)
                self._mover.retrack(held.version, partition)
        return HEALED

    def _proven(self, live: LiveVersion, stored: metadata.VersionMetadata
                ) -> Tuple[Optional[Residency], str]:
        """Tiers whose bytes proved right; or None, and why not."""
        why = ''
        for residency in _candidates(live.residency):
            try:
                if residency.is_local:
                    self._prove_local(live, residency, stored.etag)
                else:
                    self._local.witness.proven(LocalVersion(
                        live.place.version, live.place.partition,
                        stored.etag, stored.headers, residency,
                        stored.class_map))
                return residency, ''
            except VersionGone as err:
                why = why or 'not in its place, and S3 lacks the copy ' \
                    'in its record (%s)' % err
            except DssError as err:
                why = '%s%s' % (why and why + '; ', err)
        return None, why

    @staticmethod
    def _prove_local(live: LiveVersion, residency: Residency,
                     etag: str) -> None:
        """:raises NotHealed: the bytes have another digest"""
        whole = md5()
        reader = Reader(_duplicate(live, residency))
        with reader:
            for offset in range(0, residency.content_length,
                                IO_WINDOW_BYTES):
                whole.update(reader.read(offset, min(
                    IO_WINDOW_BYTES, residency.content_length - offset)))
        if whole.hexdigest() != etag:
            raise NotHealed('the bytes on %s have the MD5 %s, not %s' % (
                ' and '.join(tier.name or '' for tier in (
                    Tier.SSD, Tier.HDD) if residency.tiers & tier),
                whole.hexdigest(), etag))


def _duplicate(live: LiveVersion, residency: Residency) -> LiveVersion:
    """The same open file for a reader, which closes it."""
    made = LiveVersion.__new__(LiveVersion)
    made.__dict__.update(live.__dict__, fd=os.dup(live.fd),
                         residency=residency)
    return made


def _candidates(residency: Residency) -> Iterator[Residency]:
    """The tiers that the version may have afterwards: all that its record
    names, if reading local bytes or asking S3 proves them; else fewer.
    """
    length = residency.content_length
    seen: List[Residency] = []
    for wrong in (Tier.NONE, Tier.SSD, _LOCAL):
        try:
            less = residency.drop(0, length, wrong)
        except ValueError:
            continue
        # Bytes here are proven by their digest, which is of all of them.
        if less not in seen and (less.is_local or not less.tiers & _LOCAL):
            seen.append(less)
            yield less
