"""Find versions of ours that stock Swift would not, or did not, read.

Versions in quarantine, and stubs in policies whose diskfile is not ours.
Looks only; needs no daemon.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from swift_dss.core.errors import BadConfig, DamagedRecord, DssError
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.io import residency_store
from swift_dss.io.switch import listdir
from swift_dss.tier.devices import Device, Devices
from swift_dss.tier.index.noted import QUARANTINED
from swift_dss.tier.walk.heal import Patient, all_patients, in_words
from swift_dss.tier.walk.survey import data_files
from swift_dss.wire.settings import policies as wire_policies

_SHOWN = 1000
#: Called with each version to repair.
Note = Callable[[str, VersionId, str], None]


@dataclass
class Left:
    """The findings on a node's devices.

    :param quarantined: versions in quarantine whose place is empty
    :param replaced: versions in quarantine whose place has them again, or
        newer ones
    :param foreign_stubs: versions that lack bytes, by policy that is not
        ours
    :param stubs: versions that lack bytes in policies that are ours, if
        examined
    :param patients: of ``quarantined``, the first of them
    """

    quarantined: int = 0
    replaced: int = 0
    foreign_stubs: Dict[int, int] = field(default_factory=dict)
    stubs: Optional[int] = None
    problems: int = 0
    said: List[str] = field(default_factory=list)
    patients: List[Dict[str, Any]] = field(default_factory=list)

    def problem(self, text: str) -> None:
        """Something is not as it must be."""
        self.problems += 1
        if len(self.said) < _SHOWN:
            self.said.append(text)


def look(devices: Devices, swift_dir: str, note: Note,
         stock: bool = False) -> Left:
    """Everything that is left somewhere.

    :param stock: could stock Swift read every version of ours?
    :param note: told of each version that can be brought back
    """
    left = Left()

    def seen(patient: Patient) -> None:
        left.replaced += patient.replaced
        if not patient.replaced and len(left.patients) < _SHOWN:
            left.patients.append({
                'device': patient.version.device,
                'policy': patient.version.policy,
                'hash': patient.version.object_hash,
                'timestamp': patient.version.timestamp,
                'frag': patient.version.frag_index, 'name': patient.name,
                'path': patient.path, 'has': patient.has,
                'remote_key': patient.remote_key, 'why': patient.why})

    left.quarantined = note_quarantined(devices, swift_dir, left.problem,
                                        note, seen)
    policies = devices.policies
    for device in devices.discover():
        for index in sorted(set(policies.known) - policies.ours):
            number = sum(1 for _ in stubs_of(device, index))
            if number:
                left.foreign_stubs[index] = \
                    left.foreign_stubs.get(index, 0) + number
        if stock:
            left.stubs = (left.stubs or 0) + sum(
                1 for index in policies.ours for _ in stubs_of(device, index))
    for index, number in sorted(left.foreign_stubs.items()):
        left.problem(what_to_do(devices, index, number))
    if left.stubs:
        left.problem('%d versions lack bytes on the SSD: "swift-dss gateway '
                     'drain --to local" brings them' % left.stubs)
    return left


def note_quarantined(devices: Devices, swift_dir: str,
                     problem: Callable[[str], None], note: Note,
                     seen: Callable[[Patient], None] = lambda patient: None
                     ) -> int:
    """Tell of every version in quarantine that nothing has replaced.

    :returns: how many there are
    """
    ranks, number = Ranks(swift_dir), 0
    for patient in all_patients(devices, problem):
        seen(patient)
        if patient.replaced:
            continue
        number += 1
        if not patient.is_ours:
            problem('%s; %s is not ours: make it ours to bring it back' % (
                in_words(patient), devices.policies.named(
                    patient.version.policy)))
            continue
        problem(in_words(patient))
        note(QUARANTINED, patient.version, _partition(ranks, patient))
    return number


def _partition(ranks: Ranks, patient: Patient) -> str:
    try:
        return ranks.partition(patient.version)
    except OSError as err:
        raise BadConfig('the ring of storage policy %d: %s' % (
            patient.version.policy, err)) from err


def stubs_of(device: Device, policy: int
             ) -> Iterator[Tuple[VersionId, str]]:
    """(version, partition) of versions that stock Swift would quarantine."""
    if not listdir(device.path):
        return
    for version, partition, _ in data_files(device, {policy}):
        try:
            path = device.place(version, partition, 0).data_file()
            record = residency_store.load(path)
            is_stub = record is not None and record.is_stub and os.stat(
                path).st_size == record.file_size
        except DamagedRecord:
            is_stub = True
        except (DssError, OSError):
            continue  # it was removed by now
        if is_stub:
            yield version, partition


def what_to_do(devices: Devices, policy: int, stubs: int) -> str:
    """The operator's line about stubs in a foreign policy."""
    known = devices.policies.known.get(policy)
    is_ec = known is not None and 'erasure_coding' in known.diskfile_module
    return (
        '%s is not ours by %s and has %d versions here that lack bytes; '
        'stock Swift quarantines each at its first read. Give it '
        'diskfile_module = egg:swift_dss#%s again, restart the object '
        'servers, and follow "Uninstall" of the manual before it is taken '
        'away' % (devices.policies.named(policy), devices.policies.path,
                  stubs, wire_policies.ERASURE_CODED if is_ec
                  else wire_policies.REPLICATED))


def plain(left: Left) -> Dict[str, Optional[Any]]:
    """For ``--json``."""
    return dict(vars(left))
