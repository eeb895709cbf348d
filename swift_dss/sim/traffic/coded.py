"""PUTs and GETs of erasure-coded objects, as a proxy sends them.

A PUT has two phases: each server stores its fragment, and once a quorum has
done so, all are told to commit. A server that does not hear of that keeps a
fragment that is not durable. A GET takes fragments of one version from as many
servers as the object is made from.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Dict, Iterable, List, Mapping, Set

from swift_dss.sim import pieces
from swift_dss.sim.disks import hash_of
from swift_dss.sim.model import Violation
from swift_dss.sim.node import Got, Unreadable
from swift_dss.sim.server import policies
from swift_dss.sim.world.ring import CODED

if TYPE_CHECKING:
    from swift_dss.sim.traffic.scene import Scene

_BOUNDARY = 'phase'
#: Of the servers that a PUT has to reach again, one in so many is not, where
#: the network loses anything.
_UNTOLD = 4
#: One in so many PUTs that reach too few breaks off when these have stored
#: their fragments, and the others before.
_HALF_SENT = 4


def put(cluster: Scene, name: str, stamp: str, body: bytes, class_id: int,
        lost: Set[str], more: Mapping[str, str]) -> int:
    """Store the fragments; how many servers have committed theirs.

    :param lost: nodes that this request does not reach
    :param more: headers of the request
    """
    dice = cluster.dice
    targets = cluster.targets(name, lost)
    is_enough = len(targets) >= quorum()
    if not is_enough and dice.randrange(_HALF_SENT):
        return 0  # no server was sent anything
    untold = {index for index in targets
              if lost and not dice.randrange(_UNTOLD)}
    took = 0
    archives = pieces.archives(body)
    for index, node in targets.items():
        commits = is_enough and index not in untold
        if is_enough and not commits:
            cluster.coverage.fault('not committed')
        took += node.put(
            name, stamp, _phases(archives[index], index, body, commits),
            class_id, dict(more, **_headers(len(archives[index]))))
    return took


def quorum() -> int:
    """Servers that have to commit a PUT."""
    writes: int = policies()[CODED].quorum
    return writes


def _headers(length: int) -> Dict[str, str]:
    return {'Transfer-Encoding': 'chunked',
            'X-Backend-Obj-Content-Length': str(length),
            'X-Backend-Obj-Metadata-Footer': 'yes',
            'X-Backend-Obj-Multiphase-Commit': 'yes',
            'X-Backend-Obj-Multipart-Mime-Boundary': _BOUNDARY}


def _phases(archive: bytes, index: int, body: bytes,
            commits: bool) -> bytes:
    policy = policies()[CODED]
    footer = json.dumps({
        'X-Object-Sysmeta-Ec-Etag': hashlib.md5(body).hexdigest(),
        'X-Object-Sysmeta-Ec-Content-Length': str(len(body)),
        'X-Object-Sysmeta-Ec-Frag-Index': str(index),
        'X-Object-Sysmeta-Ec-Scheme': policy.ec_scheme_description,
        'X-Object-Sysmeta-Ec-Segment-Size': str(policy.ec_segment_size),
        'Etag': hashlib.md5(archive).hexdigest()}).encode()
    said = _document('object body', archive) + _document(
        'object metadata', footer, 'Content-MD5: %s\r\n' % hashlib.md5(
            footer).hexdigest())
    if commits:
        said += _document('put commit', b'put_commit_confirmation')
    return said + b'--%s--' % _BOUNDARY.encode()


def _document(kind: str, content: bytes, more: str = '') -> bytes:
    return ('--%s\r\nX-Document: %s\r\n%s\r\n' % (
        _BOUNDARY, kind, more)).encode() + content + b'\r\n'


def get(cluster: Scene, name: str) -> str:
    """A GET; the answer to its client.

    :raises Violation: bytes that no client wrote
    """
    partition = cluster.ring.partition(hash_of(name))
    nodes = [holder for holder in cluster.ring.primaries(partition, CODED)
             + cluster.ring.handoffs(partition, CODED)
             if holder not in cluster.cut]
    got: List[Got] = []
    for holder in nodes:
        got += _of_node(cluster, name, holder)
    gone = max((fragment.timestamp for fragment in got
                if fragment.body is None),
               default='')
    for stamp in sorted({fragment.timestamp for fragment in got
                         if fragment.body is not None and fragment.durable},
                        reverse=True):
        if stamp <= gone:
            break
        archives = {fragment.frag_index: fragment.body for fragment in got
                    if fragment.timestamp == stamp
                    and fragment.body is not None}
        if len(archives) >= policies.scheme.data:
            return _answer(cluster, name, stamp, archives)
    if not gone:
        return 'nothing'
    cluster.coverage.answered += 1
    return '404'


def _answer(cluster: Scene, name: str, stamp: str,
            archives: Dict[int, bytes]) -> str:
    wrote = cluster.model.name(name).wrote(stamp)
    if wrote is None or wrote.body is None or any(
            pieces.archives(wrote.body)[index] != archive
            for index, archive in archives.items()) or \
            pieces.body_of(archives) != wrote.body:
        raise Violation('%s: fragments of bytes that no client wrote at %s'
                        % (name, stamp))
    cluster.coverage.answered += 1
    return '200 of fragments %s' % ', '.join(map(str, sorted(archives)))


def _of_node(cluster: Scene, name: str, holder: str) -> Iterable[Got]:
    """All fragments of the newest version of a node, one GET each."""
    preferences: List[Mapping[str, object]] = []
    seen: Set[int] = set()
    while True:
        try:
            got = cluster.nodes[holder].read_fragment(
                name, json.dumps(preferences))
        except Unreadable:
            return
        if got.frag_index in seen or not got.timestamp:
            return
        yield got
        if got.body is None:
            return
        seen.add(got.frag_index)
        preferences = [{'timestamp': got.timestamp,
                        'exclude': sorted(seen)}]
