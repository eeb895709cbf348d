"""Restore a lost edge from its bucket: names, metadata, classes, containers.

Run it on every node of the new edge; each writes the versions that belong on
its own devices, by the rings. No data is fetched: versions come back as stubs,
which read from S3 as if they had been evicted. A version or tombstone that is
newer here, or on another primary, than in the bucket stays: the bucket may
lack a delete. An interrupted restore goes on behind the last finished key, and
doing a key twice changes nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DamagedRecord, DssError
from swift_dss.core.version import VersionId
from swift_dss.gateway.link.client import S3Client, S3Missing
from swift_dss.gateway.peers.primaries import Primaries, Wanted
from swift_dss.gateway.restore import places as restore_places
from swift_dss.gateway.restore.adopt import Adoption
from swift_dss.gateway.restore.catalog import Catalog, Held, Unreadable
from swift_dss.gateway.restore.trust import Refused, Trust
from swift_dss.gateway.restore.write import PlaceWriter, Target, Writer

#: The place to go on from is noted after so many keys.
_NOTED_EVERY = 200
#: Versions of one question to the other primaries.
_ASKED_AT_ONCE = 500
_SHOWN_PROBLEMS = 1000


@dataclass
class Restored:
    """The results of a restore, also while it is under way.

    :param versions: that belong on this node
    :param obsolete: of which a node of the cluster has a newer version
    :param written: of them, those that were not here yet, or lacked a POST
    :param refused: of those that failed, the untrusted ones
    :param bundles: that this node keeps from now on
    """

    places: int = 0
    keys: int = 0
    versions: int = 0
    written: int = 0
    obsolete: int = 0
    length: int = 0
    failed: int = 0
    refused: int = 0
    bundles: int = 0


class Cluster(NamedTuple):
    """The restore's questions to other nodes.

    :param belongs_here: a version, by the hash in its key
    :param primaries: asks for versions newer than the bucket's
    """

    belongs_here: Callable[[VersionId], bool]
    primaries: Primaries


class Restore:
    """One run.

    :param state_path: where the place to go on from is kept; '' nowhere
    :param only: ``/account`` or ``/account/container``; '' is all
    :param adoption: gives bundles a keeper
    :param trust: judges records of the bucket
    :param cluster: the questions to other nodes
    :param open_place: opens a record of a place; returns it and its seal
    """

    def __init__(self, conf: GatewayConf, client: S3Client,
                 writer: Writer, places: PlaceWriter, trust: Trust,
                 cluster: Cluster,
                 state_path: str = '',
                 only: str = '', adoption: Optional[Adoption] = None,
                 open_place: Callable[[str, bytes], Tuple[bytes, str]]
                 = lambda key, data: (data, '')) -> None:
        self._conf = conf
        self._client = client
        self._writer = writer
        self._places = places
        self._trust = trust
        self._cluster = cluster
        self._state_path = state_path
        self._only = only.rstrip('/')
        self._adoption = adoption
        self._open_place = open_place
        self.found = Restored()
        #: The first failures, with the reasons.
        self.problems: List[str] = []

    def run(self, catalog: Catalog,
            progress: Callable[[Restored], None]) -> Restored:
        """Everything that is not restored yet.

        :raises RemoteUnavailable: S3 does not answer; run it again
        """
        after = self._resume()
        # Note the start: gc MUST NOT remove absent keys during a restore.
        self._note(after)
        self._restore_places()
        progress(self.found)
        waiting: List[Held] = []
        noted = 0
        for held in catalog.walk(after, self._cluster.belongs_here):
            if isinstance(held, Unreadable):
                self._problem(held.key, DamagedRecord(held.reason))
            elif isinstance(held, Held) and self._wanted(held.name):
                waiting.append(held)
            self.found.keys = catalog.keys
            if len(waiting) >= _ASKED_AT_ONCE:
                self._restore_all(waiting)
            if catalog.keys >= noted + _NOTED_EVERY:
                noted = catalog.keys
                self._restore_all(waiting)
                self._note(catalog.last_key)
                progress(self.found)
        self._restore_all(waiting)
        self.found.keys = catalog.keys
        if self._adoption is not None:
            self._adoption.flush()
            self.found.bundles = self._adoption.adopted
        if not self.found.failed:
            # While the note exists, gc does not remove failed keys as absent.
            self._finish()
        progress(self.found)
        return self.found

    def _restore_places(self) -> None:
        for key in restore_places.listed(self._client, self._conf.prefix):
            try:
                raw, seal = self._open_place(key, self._client.get_small(
                    key, restore_places.MAX_BYTES))
                place = restore_places.decode(raw)
                self._trust.place(key, place, seal)
                if self._wanted(place.path):
                    self._places.write(place)
                    self.found.places += 1
            except S3Missing:
                continue
            except DssError as err:
                self._problem(key, err)

    def _restore_all(self, waiting: List[Held]) -> None:
        """Those without a newer version on any node."""
        placed = [pair for pair in map(self._placed, waiting)
                  if pair is not None]
        del waiting[:]
        answers = self._cluster.primaries.ask(
            [Wanted(held.record.version, held.name) for held, _ in placed])
        for (held, targets), said in zip(placed, answers):
            # Do not wait for a silent node: it hands on its deletes when it is
            # back.
            if any(answer is not None and answer.timestamp
                   > held.record.version.timestamp for answer in said):
                self.found.obsolete += 1
            else:
                self._restore(held, targets)

    def _placed(self, held: Held) -> Optional[Tuple[Held, List[Target]]]:
        """A version under its own name, and where it belongs here; None if
        it does not."""
        try:
            # By its name: members bundled beside the bucket have no hash.
            named = self._writer.named(held)
            self._trust.version(held, named.record.version.object_hash)
            targets = self._writer.targets(named)
            if self._adoption is not None:
                self._adoption.see(named, targets)
        except DssError as err:
            self._problem(held.name or held.remote.key, err)
            return None
        return (named, targets) if targets else None

    def _restore(self, held: Held, targets: List[Target]) -> None:
        try:
            self._places.require(held)
            self.found.versions += 1
            self.found.length += held.record.content_length
            wrote = [self._writer.write(held, target) for target in targets]
            self.found.written += any(wrote)
            # Also where the file was there: a row may have got lost.
            self._writer.list_in_container(held)
        except DssError as err:
            self._problem(held.name or held.remote.key, err)
        except OSError as err:
            self._problem(held.name, DssError(str(err)))

    def _wanted(self, path: str) -> bool:
        wanted = self._only
        return not wanted or path == wanted or (
            path + '/').startswith(wanted + '/') or (
                # The account of a container that is wanted.
                wanted.startswith(path + '/'))

    def _problem(self, place: str, err: DssError) -> None:
        self.found.failed += 1
        self.found.refused += isinstance(err, Refused)
        if len(self.problems) < _SHOWN_PROBLEMS:
            self.problems.append('%s: %s' % (place, err))

    # -- going on --------------------------------------------------------

    def _state(self) -> Dict[str, str]:
        return {'bucket': self._conf.bucket, 'prefix': self._conf.prefix,
                'only': self._only}

    def _resume(self) -> str:
        if not self._state_path:
            return ''
        try:
            with open(self._state_path, encoding='ascii') as source:
                fields = json.load(source)
        except (OSError, ValueError):
            return ''
        if {name: fields.get(name) for name in self._state()} != \
                self._state():
            return ''
        return str(fields.get('after', ''))

    def _note(self, after: Optional[str]) -> None:
        if not self._state_path or self.found.failed:
            # Try the failed keys again: the next run begins where this one
            # did.
            return
        temporary = self._state_path + '.tmp'
        with open(temporary, 'w', encoding='ascii') as target:
            json.dump(dict(self._state(), after=after), target)
        # No fsync: an older place only costs doing some keys twice.
        os.replace(temporary, self._state_path)

    def _finish(self) -> None:
        if self._state_path and os.path.exists(self._state_path):
            os.unlink(self._state_path)


def plain(totals: Restored) -> Dict[str, int]:
    """For ``--json``."""
    return asdict(totals)
