"""The bucket of a bed's histories, after three days and after a week."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, List, Set

import swiftclient
from support.nodes.beds import gc

from swift_dss.aio import layout
from swift_dss.aio.bed import look, plan
from swift_dss.aio.bed.bed import Bed
from swift_dss.gateway.bundle import since
from swift_dss.gateway.link.client import MARKS
from swift_dss.gateway.restore.places import FOLDERS
from swift_dss.sim.model import Model
from swift_dss.wire.layout import parse_remote_key

ACCOUNT, CONTAINER = 'AUTH_test', 'histories'
#: Each node has looked through its part of the bucket; a key is old enough
#: for ``gc --absent``.
_ROUND_SECONDS, _WEEK_SECONDS = 3.1 * 86400, 8 * 86400.0
_GC_SECONDS = 180.0


def path_of(name: str) -> str:
    """Of an object that a history tells of."""
    return '/%s/%s/%s' % (ACCOUNT, CONTAINER, name)


class Bucket:
    """Judges the keys of a bed's S3 by its disks and by the model."""

    def __init__(self, made: Bed, model: Model) -> None:
        self._made = made
        self._model = model

    def three_days(self) -> int:
        """Each node looks through its part of the bucket; bytes that are left
        and that nothing needs, but for those of writes that were refused."""
        self._pass(_ROUND_SECONDS)
        return sum(self._leaked().values()) if not self._wait_for(
            lambda: not self._leaked()) else 0

    def a_week(self) -> List[str]:
        """An operator collects what is absent; keys that are left and that no
        record names."""
        self._pass(_ROUND_SECONDS + _WEEK_SECONDS)
        for node in self._made.plan.nodes:
            gc(self._made, node, absent=True)
        first = self._made.plan.nodes[0]
        # Bundles that nodes rewrote for it go by and by.
        self._wait_for(lambda: gc(
            self._made, first, absent=True, everything=True)
            and not self.not_needed())
        return sorted(self.not_needed())

    def _pass(self, seconds: float) -> None:
        for name in self._made.plan.members:
            self._made.skew(name, seconds)

    def _wait_for(self, done: Any) -> bool:
        until = time.monotonic() + _GC_SECONDS
        while not done():
            if time.monotonic() > until:
                return False
            time.sleep(3.0)
        return True

    def not_needed(self) -> Dict[str, int]:
        """Keys that no record names, of versions that no node has, and their
        bytes."""
        needed: Set[str] = set()
        for node in self._made.plan.nodes:
            for file in look.every_file(self._made.plan, node):
                if file.kind != 'data':
                    continue
                object_hash = os.path.basename(os.path.dirname(file.path))
                # A stub whose bundle is gone reads its own key.
                needed.add('%s/%s' % (object_hash, file.timestamp))
                if file.residency and file.residency.remote:
                    needed.add(file.residency.remote.key)
        return {key: length for key, length in self.keys().items()
                if not needed & _means(key)}

    def keys(self) -> Dict[str, int]:
        """All keys of the bucket but records of accounts and containers, and
        the owner's mark."""
        account, user, key = layout.CLOUD_USER
        with self._made.inside(plan.S3):
            cloud = swiftclient.Connection(
                authurl=self._made.member(plan.S3).conf.cloud_url
                + '/auth/v1.0', user='%s:%s' % (account, user), key=key)
            listing = cloud.get_container(
                layout.CLOUD_BUCKET, full_listing=True)[1]
            cloud.close()
        return {row['name']: row['bytes'] for row in listing
                if not row['name'].startswith(FOLDERS)
                and not row['name'].endswith(MARKS)}

    def _leaked(self) -> Dict[str, int]:
        """The same, but for versions that were refused, which a lost node may
        have had alone."""
        refused = {(self._made.hash_of(path_of(name)), attempt.timestamp)
                   for name, history in self._model.names.items()
                   for attempt in history.attempts
                   if attempt.timestamp > history.acknowledged}
        offered = self._offered()
        return {key: length for key, length in self.not_needed().items()
                if not _versions(key, offered) & refused}

    def _offered(self) -> Dict[str, Set[Any]]:
        """The bucket's bundles, and hashes and timestamps of the members."""
        done = self._made.tool(self._made.plan.nodes[0], 'gateway', 'ls',
                              '--config', '{conf}', '--json')
        assert done.stdout, done.stderr
        offered: Dict[str, Set[Any]] = {}
        for row in json.loads(done.stdout):
            offered.setdefault(row['key'], set()).add((
                self._made.hash_of(row['name']), row['timestamp']))
        return offered


def _means(key: str) -> Set[str]:
    """A key, that of the data which it lies beside, and its version."""
    parsed = parse_remote_key('', key)
    if parsed is None:
        return {since.bundle_of(key) or key}
    version, suffix = parsed
    return {key[:len(key) - len(suffix)], '%s/%s' % (
        version.object_hash, version.timestamp)}


def _versions(key: str, offered: Dict[str, Set[Any]]) -> Set[Any]:
    """Hashes and timestamps of what lies under a key, or beside it."""
    parsed = parse_remote_key('', key)
    if parsed is None:
        return offered.get(since.bundle_of(key) or key, set())
    return {(parsed[0].object_hash, parsed[0].timestamp)}
