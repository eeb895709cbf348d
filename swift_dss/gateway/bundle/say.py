"""Note POSTs beside bundles that another node keeps.

A POST reaches the replicas of a version, and the keeper of its bundle may
have none any more: the partition moved, or the keeper or its book is lost.
So each replica makes sure that the bucket has a POST. The keeper notes it in
its own file. The others, in the order of their ranks, check if it is noted,
and otherwise note it beside the bundle (``since``).
"""

from __future__ import annotations

from typing import Callable, Dict, Iterable, List, Sequence

from swift_dss.core.errors import RemoteUnavailable
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle import since as bundle_since
from swift_dss.gateway.bundle.proof import BundleProofs
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.bundle.since import Since
from swift_dss.gateway.form import metadata
from swift_dss.gateway.form.encrypt import opener
from swift_dss.gateway.ports import LocalVersion
from swift_dss.io import steps
from swift_dss.wire import bundle

#: A bundle that is gone: records that name it will soon name another key.
_AGAIN_SECONDS = 600


class Sayer:
    """Says records of members. Called by one thread at a time.

    :param proofs: the indexes of bundles
    """

    def __init__(self, around: Around, shelves: Shelves,
                 proofs: BundleProofs) -> None:
        self._book = shelves.book
        self._client = shelves.client
        self._keys = shelves.keys
        self._proofs = proofs
        self._metrics = around.metrics

    def say(self, key: str, versions: Sequence[LocalVersion]) -> None:
        """Note in the bucket the metadata of ``versions``, whose records
        name the bundle ``key``. Idempotent.

        :raises RemoteUnavailable: there is no such bundle just now
        :raises DssError: another time
        """
        unsaid: Dict[int, bundle.Record] = {}
        for local in versions:
            entry = self._proofs.entry(local.version, local.content_length,
                                       local.etag, key)
            if entry is None:
                raise RemoteUnavailable('%s is not there, or has not %s' % (
                    key, local.version.key), _AGAIN_SECONDS)
            if metadata.changed_at(local.metadata) > entry.changed_at:
                unsaid[entry.number] = metadata.record_of(local)
        if unsaid:
            self._say(key, self._seal(versions), unsaid)

    def _say(self, key: str, seal: str,
             unsaid: Dict[int, bundle.Record]) -> None:
        unwrap = opener(self._keys, seal)
        mine = bundle_since.path_of(key, self._book.writer())
        # Mostly its keeper has said it: a listing costs as much as a PUT.
        looks: List[Callable[[], Iterable[str]]] = [
            lambda: [bundle_since.path_of(key)],
            lambda: bundle_since.listed(self._client, key)]
        for look in looks:
            said = bundle_since.read_all(self._client, key, unwrap, look(),
                                         mine)
            unsaid = {
                number: record for number, record in unsaid.items()
                if _changed_at(record) > _changed_at(
                    said.records.get(number, {}))}
            if not unsaid:
                return
        before = bundle_since.read_mine(self._client, mine,
                                        unwrap) or Since()
        bundle_since.write(
            self._client, mine, bundle_since.join((
                before, Since(records=unsaid))), before,
            self._keys.open(seal).wrap if seal else bundle.plain)
        steps.reached('bundle.said')
        self._metrics.count('gateway.renewed', len(unsaid))

    @staticmethod
    def _seal(versions: Sequence[LocalVersion]) -> str:
        remote = versions[0].residency.remote
        return remote.seal if remote else ''


def _changed_at(record: bundle.Record) -> str:
    return metadata.changed_at(record.get('metadata', {}))
