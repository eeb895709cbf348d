"""Repair in the daemon what ``swift-dss gateway verify`` found wrong.

A comparison notes problems; the daemon, which holds the locks, judges each
version again and repairs it. A copy that S3 lacks is sent again from any
device that has all of it; wrong bytes here are fetched back once S3 is proven
to have them; an older record in the bucket is renewed. No only copy is
touched.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Tuple

from swift_dss.core.errors import (
    BadConfig, DssError, TierUnavailable, VersionGone)
from swift_dss.core.residency import Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.mend.repair import Copy, Repaired
from swift_dss.gateway.service import Gateway
from swift_dss.tier.index.noted import (
    KINDS, LOCAL, QUARANTINED, RECORD, REMOTE, Plain)
from swift_dss.tier.keep.keepers import Keepers
from swift_dss.tier.local.local import Local
from swift_dss.tier.walk.drain import Drainer
from swift_dss.tier.walk.heal import Healer

_THREADS = 4
Progress = Callable[[Dict[str, Any]], None]
_HASH = re.compile(r'[0-9a-f]{32}\Z')
_STAMP = re.compile(r'[0-9]{10}\.[0-9]{5}(_[0-9a-f]{16})?\Z')


class Mender:
    """Repairs versions of a node. Thread-safe.

    :param gateway: None where there is no remote tier
    """

    def __init__(self, local: Local, gateway: Optional[Gateway],
                 keepers: Keepers, drainer: Drainer) -> None:
        self._local = local
        self._gateway = gateway
        self._keepers = keepers
        self._drainer = drainer
        self._healer = Healer(local)

    def run(self, kind: str, versions: List[Plain],
            progress: Progress, old: bool = False) -> Dict[str, Any]:
        """Judge some versions again, and repair them.

        :param kind: QUARANTINED, REMOTE, LOCAL or RECORD
        :param versions: [device, policy, hash, timestamp, fragment,
            partition] of each
        :param old: see :meth:`Healer.heal`
        :returns: counts by outcome, and a line for each that could not be
            repaired
        :raises BadConfig: the request is malformed
        """
        if kind not in KINDS:
            raise BadConfig('%r is none of %s' % (kind, ', '.join(KINDS)))
        wanted = [_copy(version) for version in versions]
        repair = self._verb(kind, old)

        def version(copy: Copy) -> Tuple[str, str]:
            try:
                return repair(copy), ''
            except VersionGone:
                return Repaired.OBSOLETE.value, ''
            except (DssError, OSError) as err:
                return 'failed', '%s: %s' % (self._name(copy), err)

        done: Dict[str, int] = {}
        failed: List[str] = []
        with ThreadPoolExecutor(_THREADS,
                                thread_name_prefix='dss-repair') as pool:
            for number, (how, why) in enumerate(pool.map(version, wanted), 1):
                done[how] = done.get(how, 0) + 1
                if why:
                    failed.append(why)
                progress({'done': number, 'of': len(wanted)})
        self._keepers.kick()
        return {'done': done, 'failed': failed}

    # -- inside ----------------------------------------------------------

    def _verb(self, kind: str, old: bool) -> Callable[[Copy], str]:
        if kind == QUARANTINED:
            return lambda copy: self._healer.heal(*copy, old)
        gateway = self._gateway
        if gateway is None:
            raise TierUnavailable('[gateway] is not enabled')
        verb: Callable[[Gateway, List[Copy]], str] = {
            REMOTE: self._send, LOCAL: self._fetch,
            RECORD: self._renew}[kind]
        return lambda copy: verb(gateway, self._copies(*copy))

    def _copies(self, version: VersionId, partition: str) -> List[Copy]:
        """The version on its device, or on every device of this node."""
        copies: List[Copy] = []
        for device in self._local.devices.discover():
            if version.device not in ('', device.name):
                continue
            try:
                device.require_mounted()
            except TierUnavailable:
                continue
            version_here = replace(version, device=device.name)
            for where in [partition] + device.partitions_of(version_here):
                try:
                    device.place(version_here, where, 0).data_file()
                except VersionGone:
                    continue
                copies.append((version_here, where))
                break
        return copies

    def _send(self, gateway: Gateway, copies: List[Copy]) -> str:
        return str(gateway.repair(copies).value)

    def _renew(self, gateway: Gateway, copies: List[Copy]) -> str:
        gateway.enqueue_renewals(copies)
        return 'renewed'

    def _fetch(self, gateway: Gateway, copies: List[Copy]) -> str:
        """Fetch the bytes of a device from S3 again."""
        if not copies:
            return Repaired.OBSOLETE.value
        (version, partition), = copies
        local = self._local
        local_version = local.describe(version, partition)
        if local_version.residency.remote is None:
            self._keepers.to_mend(version, partition)
            raise TierUnavailable(
                'its bytes on %s are wrong and S3 has none: the daemon asks '
                'other primaries, and puts them aside if one has others'
                % version.device)
        # Only after this may a byte go, wrong as it is.
        gateway.prove(local_version)
        had_ssd = bool(local_version.residency.tiers & Tier.SSD)
        local.drop_damaged(version, partition, local_version.residency.remote)
        if had_ssd:
            self._drainer.promote(version, partition)
        else:
            self._drainer.recall(version, partition)
        return 'fetched'

    def _name(self, copy: Copy) -> str:
        for version, partition in self._copies(*copy):
            try:
                stored = self._local.describe(version, partition)
            except DssError:
                continue
            return str(stored.metadata.get('name', version.key))
        return copy[0].key


def _copy(said: Any) -> Copy:
    """:raises BadConfig: that names no version."""
    if not isinstance(said, list) or len(said) != 6:
        raise BadConfig('%r names no version' % (said,))
    device, policy, object_hash, timestamp, frag, partition = said
    texts = (device, object_hash, timestamp, partition)
    if not all(isinstance(text, str) for text in texts) or \
            not isinstance(policy, int) or \
            not isinstance(frag, (int, type(None))) or \
            not _HASH.match(object_hash) or \
            not _STAMP.match(timestamp) or '/' in device or \
            not partition.isdigit():
        raise BadConfig('%r names no version' % (said,))
    return VersionId(device, policy, object_hash, timestamp, frag), partition
