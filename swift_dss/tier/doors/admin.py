"""``admin.sock``: operators' requests to the daemon, as JSON lines."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import (
    BadConfig, DssError, TierUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway.collect.keys import Wish, plain
from swift_dss.tier.doors.door import AdminDoor, Progress
from swift_dss.tier.index.filters import ALL, PLACES, Filter
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.local.addresses import object_hash
from swift_dss.tier.node import Node
from swift_dss.tier.upkeep import Upkeep
from swift_dss.tier.walk.drain import Drainer
from swift_dss.tier.walk.relocate import DEFAULT_WAIT_SECONDS, Planned
from swift_dss.tier.walk.repair import Mender
from swift_dss.tier.walk.told import MOST_TOLD, Told

_LISTING_PAGE = 500
#: Versions that are sent to S3 side by side: enough for full bundles.
_RELOCATED_AT_ONCE = 5000


class AdminServer(AdminDoor):
    """Answers for one daemon."""

    def __init__(self, path: str, node: Node, upkeep: Upkeep) -> None:
        super().__init__(path, node.metrics.logger)
        self._node = node
        self._upkeep = upkeep
        self._drainer = Drainer(node.local, node.gateway, node.relocator)
        self._mender = Mender(node.local, node.gateway, node.keepers,
                              self._drainer)
        local = node.local
        #: Verbs on each version that a request names.
        self._moves: Dict[
            str, Callable[[VersionId, str, Sequence[int]], None]] = {
            'promote': self._drainer.promote, 'recall': self._drainer.recall,
            'pin': lambda version, partition, _: local.pin(
                version, partition, True),
            'unpin': lambda version, partition, _: local.pin(
                version, partition, False)}
        self._verbs: Dict[str, Callable[[Dict[str, Any], Progress], Any]] = {
            'status': self._status, 'ls': self._ls, 'pins': self._pins,
            'demote': self._demote, 'relocate': self._relocate,
            'drain': self._drain, 'rekey': self._rekey,
            'rebuild': self._rebuild, 'sweep': self._sweep,
            'settle': self._settle, 'reload': self._reload,
            'repair': self._repair, 'gc': self._gc}

    def answer(self, request: Dict[str, Any], progress: Progress) -> Any:
        """See :meth:`AdminDoor.answer`."""
        name = str(request.get('verb'))
        if name in self._moves:
            return self._move(request, progress,
                              lambda row, class_ids: self._moves[name](
                                  row.version, row.partition, class_ids))
        if name not in self._verbs:
            raise BadConfig('no such request: %r' % request.get('verb'))
        return self._verbs[name](request, progress)

    # -- verbs -----------------------------------------------------------

    def _status(self, request: Dict[str, Any], _: Progress) -> Any:
        return self._upkeep.status()

    def _ls(self, request: Dict[str, Any], progress: Progress) -> Any:
        """Pages of rows as progress, so that no list is held whole."""
        table = self._node.in_force.table
        ranks = self._node.local.mover.copies
        shown = 0
        for rows in self._listed(request, _filter(request, table)):
            shown += len(rows)
            progress({'rows': [
                dict(described(row, table), copy_rank=ranks.rank(row.version))
                for row in rows]})
        return {'shown': shown}

    def _listed(self, request: Dict[str, Any],
                wanted: Filter) -> Iterator[List[VersionRow]]:
        """Pages of as many versions as a request wants."""
        left = int(request.get('limit', 0)) or (1 << 62)
        for rows in self._node.index.pages.soon(
                wanted, min(left, _LISTING_PAGE)):
            yield rows[:left]
            left -= len(rows)
            if left <= 0:
                return

    def _drain(self, request: Dict[str, Any], progress: Progress) -> Any:
        if request.get('dry_run'):
            return self._drainer.plan(str(request.get('to')), progress)
        return self._drainer.run(
            str(request.get('to')),
            float(request.get('seconds', DEFAULT_WAIT_SECONDS)), progress)

    def _repair(self, request: Dict[str, Any], progress: Progress) -> Any:
        return self._mender.run(str(request.get('kind')), list(
            request.get('versions') or ()), progress, bool(
                request.get('old')))

    def _gc(self, request: Dict[str, Any], progress: Progress) -> Any:
        gateway = self._node.gateway
        if gateway is None:
            raise BadConfig('[gateway] is not enabled')
        return plain(gateway.collect(Wish(
            bool(request.get('dry_run')), bool(request.get('everything')),
            absent=bool(request.get('absent'))),
            lambda counts: progress(plain(counts))))

    def _pins(self, request: Dict[str, Any], progress: Progress) -> Any:
        node = self._node
        pins = node.local.mover.pins
        if request.get('objects'):
            for rows in self._listed(request, Filter(held_by=tuple(
                    spec.class_id for spec
                    in node.in_force.table.specs.values() if spec.pin),
                    fitting=bool(request.get('all')))):
                progress({'rows': [{
                    'device': row.version.device, 'name': row.name,
                    'size': row.size, 'why': pins.why(row.version.device, row)}
                    for row in rows]})
        return {'devices': [pins.shown(device.name)
                            for device in node.devices.discover()]}

    def _rekey(self, request: Dict[str, Any], progress: Progress) -> Any:
        return self._drainer.rekey(
            float(request.get('seconds', DEFAULT_WAIT_SECONDS)), progress,
            bool(request.get('dry_run')))

    def _demote(self, request: Dict[str, Any], progress: Progress) -> Any:
        tier = str(request.get('to', 'hdd'))
        if tier not in ('hdd', 'remote'):
            raise BadConfig('%r is neither hdd nor remote' % tier)

        def lacks_copy(row: VersionRow) -> None:
            # An object without bytes has none here nor there.
            if tier == 'remote' and row.size and not row.on_remote:
                raise TierUnavailable('%s has no verified copy in S3 yet' % (
                    row.name or row.version.key))

        def demote(row: VersionRow, class_ids: Sequence[int]) -> None:
            local = self._node.local
            if tier == 'hdd':
                local.demote(row.version, row.partition, class_ids)
                return
            if not row.size:
                return
            local.demote(row.version, row.partition, class_ids, to_hdd=False)
            if local.devices.get(row.version.device).capacity.configured:
                local.drop_capacity(row.version, row.partition, class_ids)

        return self._move(request, progress, demote, lacks_copy)

    def _move(self, request: Dict[str, Any], progress: Progress,
              carry_out: Callable[[VersionRow, Sequence[int]], None],
              refuse: Callable[[VersionRow], None] = lambda row: None) -> Any:
        """Page by page: a filter may name every version of the node.

        :param carry_out: gets the classes whose bytes are meant; none: all
        :param refuse: raises for what cannot be done; a dry run asks no
            more than this
        """
        node = self._node
        dry_run = bool(request.get('dry_run'))
        moved: List[Dict[str, Any]] = []
        failed = Told()
        done = moved_bytes = 0
        class_ids = _class_ids(request, node.in_force.table)
        total, pages = self._wanted(request, _LISTING_PAGE)
        for page in pages:
            for row in page:
                done += 1
                try:
                    refuse(row)
                    if not dry_run:
                        carry_out(row, class_ids)
                except DssError as err:
                    failed.say('%s on %s: %s' % (
                        row.name or row.version.key, row.version.device,
                        err))
                else:
                    moved_bytes += sum(
                        span.total_bytes for span in row.spans_of(class_ids))
                    if len(moved) < MOST_TOLD:
                        moved.append(described(
                            node.index.get(row.version) or row,
                            node.in_force.table))
                progress({'done': done, 'of': max(done, total)})
        if not dry_run:
            node.keepers.kick()
        return {'rows': moved, 'moved': done - failed.count,
                'moved_bytes': moved_bytes, 'failures': failed.count,
                'failed': failed.lines(), 'dry_run': dry_run}

    def _wanted(self, request: Dict[str, Any], limit: int
                ) -> Tuple[int, Iterator[List[VersionRow]]]:
        """How many versions a request names, and pages of them."""
        node = self._node
        if request.get('object'):
            rows = node.index.of_object(object_hash(
                node.in_force.conf.swift_dir, str(request['object'])))
            if not rows:
                raise VersionGone('%s is not on this node'
                                  % request['object'])
            return len(rows), iter([rows])
        wanted = _filter(request, node.in_force.table)
        if wanted == ALL:
            raise BadConfig('say which: an object, or a filter')
        total, last_id = node.index.pages.count(wanted)
        return total, node.index.pages.all(wanted, limit, last_id)

    def _rebuild(self, request: Dict[str, Any], progress: Progress) -> Any:
        return self._node.sweeper.survey(
            0, bool(request.get('orphans')), progress)

    def _sweep(self, request: Dict[str, Any], progress: Progress) -> Any:
        return self._node.sweeper.survey(
            float(request.get('files_per_second', 0)), True, progress)

    def _settle(self, request: Dict[str, Any], _: Progress) -> Any:
        """Wait until all that was said has been done: for scripts."""
        return {'settled': self._node.settle(
            time.monotonic() + float(request.get('seconds', 30)))}

    def _relocate(self, request: Dict[str, Any],
                  progress: Progress) -> Any:
        """Send versions to S3 now, wait, and drop them here."""
        if request.get('dry_run'):
            return self._planned(request, progress)
        deadline = time.monotonic() + float(
            request.get('seconds', DEFAULT_WAIT_SECONDS))
        failed = Told()
        done = 0
        class_ids = _class_ids(request, self._node.in_force.table)
        total, pages = self._wanted(request, _RELOCATED_AT_ONCE)
        for page in pages:
            why = self._node.relocator.relocate(
                page, max(0.0, deadline - time.monotonic()),
                lambda moved, _, before=done: progress(  # type: ignore[misc]
                    {'done': before + moved, 'of': total}), class_ids)
            for row in page:
                if row.version in why:
                    failed.say('%s: %s' % (row.name or row.version.key,
                                           why[row.version]))
            done += len(page)
        return {'versions': done, 'failed': failed.lines(),
                'relocated': done - failed.count}

    def _planned(self, request: Dict[str, Any], progress: Progress) -> Any:
        """What a relocation would do."""
        planned = Planned()
        class_ids = _class_ids(request, self._node.in_force.table)
        total, pages = self._wanted(request, _RELOCATED_AT_ONCE)
        for page in pages:
            planned.versions += len(page)
            self._node.relocator.plan(page, planned, class_ids)
            progress({'done': planned.versions, 'of': total})
        return dict(planned.plain(), failed=[], failures=0)

    def _reload(self, request: Dict[str, Any], _: Progress) -> Any:
        self._upkeep.reload()
        return {'reloaded': True}


def described(row: VersionRow, table: ClassTable) -> Dict[str, Any]:
    """A row as plain values for a listing."""
    version = row.version
    return {
        'device': version.device, 'name': row.name,
        'hash': version.object_hash, 'policy': version.policy,
        'timestamp': version.timestamp, 'frag': version.frag_index,
        'size': row.size, 'pinned': row.pinned, 'on_remote': row.on_remote,
        'put_at': row.put_at, 'read_at': row.read_at,
        'classes': [dict(asdict(span), name=table.name_of(span.class_id),
                         warmth=span.warmth.name.lower())
                    for span in row.spans],
        'ssd': sum(span.ssd_bytes for span in row.spans),
        'hdd': sum(span.hdd_bytes for span in row.spans),
        'remote': sum(span.remote_bytes for span in row.spans),
        'dirty': sum(span.dirty_bytes for span in row.spans)}


def _filter(request: Dict[str, Any], table: ClassTable) -> Filter:
    """The filter that a request says.

    :raises BadConfig: there is no such class or tier
    """
    class_id = next(iter(_class_ids(request, table)), None)
    place = str(request.get('tier') or '')
    if place and place not in PLACES:
        raise BadConfig('%r is no tier' % request['tier'])
    return Filter(str(request.get('container') or ''),
                  str(request.get('device') or ''), class_id, place,
                  bool(request.get('pinned')))


def _class_ids(request: Dict[str, Any], table: ClassTable) -> List[int]:
    """The class that a request says; none if it says none.

    :raises BadConfig: there is no such class
    """
    if request.get('class') is None:
        return []
    wanted = str(request['class'])
    spec = table.by_name(wanted)
    if spec is None and not wanted.isdigit():
        raise BadConfig('no class is called %r' % wanted)
    return [spec.class_id if spec else int(wanted)]
