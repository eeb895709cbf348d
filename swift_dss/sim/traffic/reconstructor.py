"""Swift's own reconstructor over the fragments of a simulated node.

Its jobs are real: each primary syncs with its neighbours, and a fragment that
is not a node's own reverts to the node whose it is. Simulated are the passes
over partitions, the connections, and the hashes of suffixes, which are made
anew each time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import (
    TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Set, Tuple)

from swift.common.exceptions import (
    PathNotDir, ReplicationException, SuffixSyncError)
from swift.obj import reconstructor
from swift.obj.diskfile import DEFAULT_RECLAIM_AGE

from swift_dss.core.errors import DssError
from swift_dss.sim import pieces
from swift_dss.sim.conf import PREFIX
from swift_dss.sim.disks import policy_of
from swift_dss.sim.judge import Replica
from swift_dss.sim.model import Attempt, Violation
from swift_dss.sim.node import Node
from swift_dss.sim.server import Quiet, policies
from swift_dss.sim.traffic import ssync
from swift_dss.sim.world.ring import CODED, devices_of
from swift_dss.wire import layout

if TYPE_CHECKING:
    from swift_dss.sim.traffic.scene import Scene

#: Of a session of a few fragments; some end before theirs breaks.
_MOST_MESSAGES = 24


def one_pass(cluster: Scene, node: Node, partition: str,
             breaks: bool) -> int:
    """Look after a partition; how many sessions that took.

    :param breaks: each connection breaks after a few messages
    :raises Violation: a session broke its contract
    """
    if _is_in_order(cluster, node, partition):
        return 0
    work = _Reconstructor(cluster, node, breaks)
    path = os.path.join(node.ssd, layout.data_dir_name(CODED), partition)
    with node.at_work():
        jobs = work._get_part_jobs(
            devices_of([node.name])[0], path, int(partition),
            policies()[CODED])
        cluster.dice.shuffle(jobs)
        for job in jobs:
            work.process_job(job)
    if not jobs:
        node.drop_partition(CODED, partition)
    return work.sessions


def _is_in_order(cluster: Scene, node: Node, partition: str) -> bool:
    """True if all primaries have the same, and so no hash differs."""
    primaries = cluster.ring.primaries(partition, CODED)
    if node.name not in primaries:
        return False
    listings = [[(object_hash, [
        file.replace('#%d#d.' % index, '#own#d.') for file in files])
        for suffix in member.suffixes(CODED, partition)
        for object_hash, files in member.listing(CODED, partition, suffix)]
        for index, member in enumerate(map(cluster.nodes.__getitem__,
                                           primaries))]
    committed = {file.partition('#')[0] for listing in listings
                 for _, files in listing for file in files if '#d' in file}
    # Of writes that nobody committed nothing moves.
    return all(first == others for first, others in itertools.pairwise(
        [[(object_hash, [file for file in files if '#d' in file
                         or file.partition('#')[0] in committed
                         or '#' not in file])
          for object_hash, files in listing] for listing in listings]))


class _Reconstructor(reconstructor.ObjectReconstructor):
    """One pass of a node's."""

    def __init__(self, cluster: Scene, node: Node, breaks: bool) -> None:
        # Not Swift's: it reads configuration, rings and addresses.
        self._cluster = cluster
        self._node = node
        self._breaks = breaks
        #: In which anything was to move.
        self.sessions = 0
        self.logger = Quiet()
        self.headers = {'Content-Length': '0'}
        self.conn_timeout = self.node_timeout = self.http_timeout = 60.0
        self.network_chunk_size = 65536
        self.max_objects_per_revert = 0
        self.quarantine_threshold = 0
        self.quarantine_age = DEFAULT_RECLAIM_AGE
        self.request_node_count = lambda replicas: 2 * replicas
        self.partition_times: List[float] = []
        self.reconstruction_count = self.handoffs_remaining = 0
        self.suffix_count = self.suffix_sync = 0
        self._df_router = node.server.managers

    def _target(self, node: Dict[str, Any]) -> Optional[Node]:
        """The node of a ring's device; None if it cannot be reached."""
        return None if node['id'] in self._cluster.cut \
            else self._cluster.nodes[node['id']]

    def _get_hashes(self, device: str, partition: Any, policy: Any,
                    recalculate: Any = None,
                    do_listdir: bool = False) -> Dict[str, Any]:
        return _hashes(self._node, str(partition))

    def _get_suffixes_to_sync(self, job: Any, node: Any) -> Any:
        target = self._target(node)
        if target is None:
            raise SuffixSyncError('it does not answer')
        node['backend_index'] = node['index']
        with target.at_work():
            theirs = _hashes(target, str(job['partition']))
        return self.get_suffix_delta(
            job['hashes'], job['frag_index'], theirs, node['index']), node

    def _get_response(self, node: Any, policy: Any, partition: Any,
                      path: str, headers: Any) -> Any:
        target = self._target(node)
        if target is None:
            return None
        with target.at_work():
            answer = target.server.ask('GET', path, str(partition), CODED, {
                name: str(value) for name, value in headers.items()})
            data = b''
            try:
                for part in answer.app_iter:
                    data += part
            except (ReplicationException, DssError):
                pass  # the connection breaks
        return _Response(answer.status_int, answer.headers, data, node, path)

    def sender(self, node: Any, job: Any, suffixes: Any,
               **options: Any) -> Any:
        """A session of ssync, which brings suffixes to a device."""
        target = self._target(node)
        if target is None:
            return _Unreached()
        dice = self._cluster.dice
        return _Session(self, target, ssync.Sender(
            target.server, target.at_work,
            dice.randint(1, _MOST_MESSAGES) if self._breaks else -1,
            self, node, job, suffixes, **options))


class _Response:
    """A server's answer, whole."""

    def __init__(self, status: int, headers: Any, data: bytes, node: Any,
                 path: str) -> None:
        self.status, self._headers = status, headers
        self._data, self.node, self.full_path = data, node, path

    def getheaders(self) -> List[Tuple[str, str]]:
        return list(self._headers.items())

    def read(self, length: int) -> bytes:
        taken, self._data = self._data[:length], self._data[length:]
        return taken


class _Unreached:
    """A sender that has no connection."""

    limited_by_max_objects = False

    def __call__(self) -> Tuple[bool, Dict[str, Any]]:
        return False, {}


class _Wanted(NamedTuple):
    """A fragment that the target of a session lacks.

    :param in_s3: S3 has it under its own key, can be asked, and will be, as
        the sender's fragment is a stub
    :param is_due: its bytes, or all that it is made from, are on disks
    """

    object_hash: str
    timestamp: str
    frag_index: int
    in_s3: bool
    is_due: bool


class _Session:
    """A session, and its duties.

    :param target: of the sender
    """

    def __init__(self, work: _Reconstructor, target: Node,
                 sender: ssync.Sender) -> None:
        self._work = work
        self._target = target
        self._sender = sender
        self.limited_by_max_objects = False

    def __call__(self) -> Tuple[bool, Dict[str, Any]]:
        cluster = self._work._cluster
        reads = cluster.bucket.reads
        del reads[:]
        wanted = self._wanted()
        done: Tuple[bool, Dict[str, Any]] = self._sender()
        self._work.sessions += self._sender.is_wanted or not done[0]
        self.limited_by_max_objects = self._sender.limited_by_max_objects
        self._check_reads(wanted)
        if self._sender.pipe.is_cut:
            cluster.coverage.fault('session cut')
        else:
            self._check_brought(wanted)
        return done

    def _wanted(self) -> List[_Wanted]:
        job, source = self._sender.job, self._work._node
        if job['frag_index'] is None:
            return []
        wanted = []
        for object_hash in source.hashes():
            if policy_of(object_hash) != CODED or source.ring.partition(
                    object_hash) != str(job['partition']):
                continue
            fragments = source.fragments(object_hash, True)
            ours = next((fragment for fragment in fragments
                         if fragment.durable), None)
            theirs = self._target.look(object_hash)
            if ours is None or ours.frag_index != job['frag_index'] or (
                    theirs is not None
                    and theirs.timestamp >= ours.timestamp) or (
                        # Swift reverts the newest write alone.
                        job['job_type'] == reconstructor.REVERT
                        and not fragments[0].durable):
                continue
            wanted.append(self._of(object_hash, ours))
        return wanted

    def _of(self, object_hash: str, ours: Replica) -> _Wanted:
        cluster, target = self._work._cluster, self._target
        index = self._sender.node['backend_index']
        wrote = cluster.model.name(cluster.name_of(object_hash)).wrote(
            ours.timestamp)
        assert wrote is not None and wrote.body is not None
        stored = cluster.bucket.keys.get(layout.remote_key(
            PREFIX, target.version(object_hash, ours.timestamp, index)))
        return _Wanted(
            object_hash, ours.timestamp, index,
            self._is_stub(object_hash, ours, len(
                pieces.archives(wrote.body)[index]))
            and cluster.bucket.mood == 'well' and target.daemon is not None
            and not cluster.bucket.cut_off.get(target.name)
            and stored is not None
            and stored.data == pieces.archives(wrote.body)[index],
            ours.local and ours.body is not None and (
                index == ours.frag_index
                or self._can_make(object_hash, wrote)))

    def _is_stub(self, object_hash: str, ours: Replica, length: int) -> bool:
        """True if no disk here is to have a byte of the fragment."""
        node = self._work._node
        return not node.hdd_is_away and os.stat(os.path.join(
            node.folder(object_hash), ours.file_name)).st_size != length \
            and not os.path.exists(layout.capacity_file(
                node.hdd, node.version(object_hash, ours.timestamp,
                                       ours.frag_index)))

    def _can_make(self, object_hash: str, wrote: Attempt) -> bool:
        """True if all fragments that Swift may take to rebuild one are on
        disks that answer, and are enough."""
        cluster = self._work._cluster
        indexes: Set[int] = set()
        for name in cluster.ring.of(object_hash, CODED):
            if name == self._target.name or name in cluster.cut:
                continue
            kept = cluster.nodes[name].fragments(object_hash, True)
            if any(fragment.timestamp > wrote.timestamp and fragment.durable
                   for fragment in kept):
                # It gives that.
                return False
            # Of several that a server has it gives the last one.
            there = sorted((fragment for fragment in kept
                            if fragment.timestamp == wrote.timestamp
                            and fragment.frag_index is not None),
                           key=lambda fragment: fragment.frag_index or 0)[-1:]
            if not all(fragment.local and fragment.body is not None
                       for fragment in there):
                return False
            indexes.update(pieces.whole(there, wrote))
        indexes.discard(self._sender.node['backend_index'])
        return len(indexes) >= policies.scheme.data

    def _check_reads(self, wanted: List[_Wanted]) -> None:
        is_revert = self._sender.job['job_type'] == reconstructor.REVERT
        in_s3 = {(piece.object_hash, piece.timestamp) for piece in wanted
                 if piece.in_s3}
        source = self._work._node
        for key, _first, _end in self._work._cluster.bucket.reads:
            parsed = layout.parse_remote_key(PREFIX, key)
            # A bundle's index is read from its end, and a small bundle with
            # it.
            if parsed is None:
                continue
            request = parsed[0]
            # Of bytes that the sender gives up, its daemon may put S3's copy
            # right.
            if (request.object_hash, request.timestamp) in in_s3 or is_revert \
                    and not any(seen.local for seen in source.fragments(
                        request.object_hash)
                                if seen.timestamp == request.timestamp):
                raise Violation(
                    '%s: a stub that was to move from %s to %s has cost bytes '
                    'of S3' % (key, source.name, self._target.name))

    def _check_brought(self, wanted: List[_Wanted]) -> None:
        for piece in wanted:
            now = self._target.look(piece.object_hash)
            if piece.is_due and (
                    now is None or now.timestamp < piece.timestamp):
                raise Violation(
                    '%s: all bytes of fragment %d of %s could be had, and a '
                    'session of %s with %s has not brought it there' % (
                        self._work._cluster.name_of(piece.object_hash),
                        piece.frag_index, piece.timestamp,
                        self._work._node.name, self._target.name))


def _hashes(node: Node, partition: str) -> Dict[str, Any]:
    """Of each suffix, by the index of the fragments in it."""
    policy = policies()[CODED]
    manager = node.server.managers[policy]
    top = os.path.join(node.ssd, layout.data_dir_name(CODED), partition)
    hashes = {}
    for suffix in node.suffixes(CODED, partition):
        with contextlib.suppress(PathNotDir):
            hashes[suffix] = manager._hash_suffix(
                os.path.join(top, suffix), policy)
    return hashes
