"""Repair in the daemon what ``swift-dss gateway verify`` found wrong.

A comparison notes problems; the daemon, which holds the locks, judges each
version again and repairs it. A copy that S3 lacks is sent again from any
device that has all of it; wrong bytes here are fetched back once S3 is proven
to have them; an older record in the bucket is renewed. No only copy is
touched.
"""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import (
    TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Tuple)

from swift_dss.core.errors import (
    BadConfig, DssError, TierUnavailable, VersionGone)
from swift_dss.core.residency import Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.mend.repair import Copy, Repaired
from swift_dss.gateway.service import Gateway
from swift_dss.tier.walk.drain import Drainer
from swift_dss.tier.walk.heal import Healer

if TYPE_CHECKING:
    from swift_dss.tier.daemon import Daemon

#: Kinds of problems: S3's bytes, a device's bytes, the bucket's record.
REMOTE, LOCAL, RECORD = 'remote', 'local', 'record'
#: One that Swift has taken out of its place.
QUARANTINED = 'quarantined'
#: S3's first: what is wrong on a device may then be fetched.
_KINDS = (QUARANTINED, REMOTE, LOCAL, RECORD)
#: Versions of one request: its line is short of 64 KiB.
PAGE = 200
_THREADS = 4
Progress = Callable[[Dict[str, Any]], None]
_HASH = re.compile(r'[0-9a-f]{32}\Z')
_STAMP = re.compile(r'[0-9]{10}\.[0-9]{5}(_[0-9a-f]{16})?\Z')
#: A version as a request has it.
Plain = List[Any]


class WrongList:
    """Versions to repair, each once, in a temporary file: in the worst case
    they are all there are. A context manager."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix='dss-repair-')
        self._rows = sqlite3.connect(os.path.join(self._folder.name, 'db'))
        self._rows.execute(
            'CREATE TABLE wrong (kind TEXT, device TEXT, policy INTEGER, '
            'hash TEXT, timestamp TEXT, frag INTEGER, part TEXT, PRIMARY '
            'KEY (kind, hash, policy, timestamp, frag, device))')

    def __enter__(self) -> WrongList:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()
        self._folder.cleanup()

    def add(self, kind: str, version: VersionId, partition: str) -> None:
        """Note a problem. A fault in S3 concerns every device."""
        # NULL is never equal to NULL: no fragment is -1.
        frag = version.frag_index
        self._rows.execute(
            'INSERT OR IGNORE INTO wrong VALUES (?,?,?,?,?,?,?)', (
                kind, version.device if kind in (LOCAL, QUARANTINED)
                else '',
                version.policy, version.object_hash, version.timestamp,
                -1 if frag is None else frag, partition))

    def __len__(self) -> int:
        return int(self._rows.execute(
            'SELECT count(*) FROM wrong').fetchone()[0])

    def pages(self) -> Iterator[Tuple[str, List[Plain]]]:
        """(kind, versions as :meth:`Mender.run` wants them)."""
        for kind in _KINDS:
            found = self._rows.execute(
                'SELECT device, policy, hash, timestamp, frag, part FROM '
                'wrong WHERE kind = ? ORDER BY hash', (kind,))
            while True:
                page = found.fetchmany(PAGE)
                if not page:
                    break
                yield kind, [[*row[:4], None if row[4] < 0 else row[4],
                              row[5]] for row in page]


class Mender:
    """Repairs versions of a node. Thread-safe."""

    def __init__(self, daemon: Daemon, drainer: Drainer) -> None:
        self._daemon = daemon
        self._drainer = drainer
        self._healer = Healer(daemon.local)

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
        if kind not in _KINDS:
            raise BadConfig('%r is none of %s' % (kind, ', '.join(_KINDS)))
        wanted = [_copy(one) for one in versions]
        repair = self._verb(kind, old)

        def one(copy: Copy) -> Tuple[str, str]:
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
            for number, (how, why) in enumerate(pool.map(one, wanted), 1):
                done[how] = done.get(how, 0) + 1
                if why:
                    failed.append(why)
                progress({'done': number, 'of': len(wanted)})
        self._daemon.kick()
        return {'done': done, 'failed': failed}

    # -- inside ----------------------------------------------------------

    def _verb(self, kind: str, old: bool) -> Callable[[Copy], str]:
        if kind == QUARANTINED:
            return lambda copy: self._healer.heal(*copy, old)
        gateway = self._daemon.gateway
        if gateway is None:
            raise TierUnavailable('[gateway] is not enabled')
        verb: Callable[[Gateway, List[Copy]], str] = {
            REMOTE: self._remote, LOCAL: self._local,
            RECORD: self._record}[kind]
        return lambda copy: verb(gateway, self._copies(*copy))

    def _copies(self, version: VersionId, partition: str) -> List[Copy]:
        """The version on its device, or on every device of this node."""
        found: List[Copy] = []
        for device in self._daemon.devices.discover():
            if version.device not in ('', device.name):
                continue
            try:
                device.require_mounted()
            except TierUnavailable:
                continue
            one = replace(version, device=device.name)
            for where in [partition] + device.partitions_of(one):
                try:
                    device.place(one, where, 0).data_file()
                except VersionGone:
                    continue
                found.append((one, where))
                break
        return found

    def _remote(self, gateway: Gateway, copies: List[Copy]) -> str:
        return str(gateway.repair(copies).value)

    def _record(self, gateway: Gateway, copies: List[Copy]) -> str:
        gateway.enqueue_renewals(copies)
        return 'renewed'

    def _local(self, gateway: Gateway, copies: List[Copy]) -> str:
        """Fetch the bytes of a device from S3 again."""
        if not copies:
            return Repaired.OBSOLETE.value
        (version, partition), = copies
        local = self._daemon.local
        found = local.describe(version, partition)
        if found.residency.remote is None:
            self._daemon.keepers[version.device].to_mend(version, partition)
            raise TierUnavailable(
                'its bytes on %s are wrong and S3 has none: the daemon asks '
                'other primaries, and puts them aside if one has others'
                % version.device)
        # Only after this may a byte go, wrong as it is.
        gateway.prove(found)
        had_ssd = bool(found.residency.tiers & Tier.SSD)
        local.drop_damaged(version, partition, found.residency.remote)
        if had_ssd:
            self._drainer.promote(version, partition)
        else:
            self._drainer.recall(version, partition)
        return 'fetched'

    def _name(self, copy: Copy) -> str:
        for one, partition in self._copies(*copy):
            try:
                found = self._daemon.local.describe(one, partition)
            except DssError:
                continue
            return str(found.metadata.get('name', one.key))
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
