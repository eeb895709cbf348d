"""GETs that take a while: between two blocks of a body others act.

The version may leave the SSD meanwhile, go to S3, be replaced or deleted, its
disk may fail. A client MUST get the bytes of the version that the answer's
headers name, or an end that comes too early. No later block may be of another
version, or of nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, Optional

from swift.common.exceptions import ReplicationException
from swift.common.utils import close_if_possible

from swift_dss.core.errors import DssError
from swift_dss.sim.disks import hash_of
from swift_dss.sim.model import Violation
from swift_dss.sim.node import Node

if TYPE_CHECKING:
    from swift_dss.sim.traffic.scene import Scene

#: Two blocks and a bit: the unit of checksums, and of reads of a simulation.
LONG_BYTES = 140000


def under_way(cluster: Scene, name: str,
              meanwhile: Callable[[Node], str]) -> Optional[str]:
    """A GET of a replicated object; None where no node has one to give.

    :param meanwhile: called between two blocks with the node that is read;
        returns the events as text
    :raises Violation: a block has bytes that no client wrote there
    """
    partition = cluster.ring.partition(hash_of(name))
    for holder in cluster.ring.primaries(partition) + \
            cluster.ring.handoffs(partition):
        node = cluster.nodes[holder]
        if holder in cluster.cut:
            continue
        with node.at_work():
            answer = node.ask('GET', name, _asked(cluster))
        if answer.status_int == 200:
            return _read(cluster, name, node, answer.headers,
                         _blocks(node, answer.app_iter), meanwhile)
        close_if_possible(answer.app_iter)
    return None


def _asked(cluster: Scene) -> Dict[str, str]:
    return {'X-Timestamp': '%016.5f' % cluster.clock.now}


def _blocks(node: Node, body: Iterator[bytes]) -> Iterator[bytes]:
    """A body's blocks, until it ends or breaks off."""
    parts = iter(body)
    try:
        while True:
            with node.at_work():
                try:
                    block = next(parts)
                except (StopIteration, ReplicationException, DssError,
                        OSError):
                    return
            yield block
    finally:
        with node.at_work():
            close_if_possible(body)


def _read(cluster: Scene, name: str, node: Node, headers: Dict[str, str],
          blocks: Iterator[bytes], meanwhile: Callable[[Node], str]) -> str:
    at = headers['X-Backend-Data-Timestamp']
    wrote = cluster.model.name(name).wrote(at)
    if wrote is None or wrote.body is None:
        raise Violation('%s: %s answers with a version of %s, which no client '
                        'wrote' % (name, node.name, at))
    got = 0
    said: List[str] = []
    for block in blocks:
        if wrote.body[got:got + len(block)] != block:
            raise Violation(
                '%s: %s gives other bytes at %d than were written at %s, '
                'after %s' % (name, node.name, got, at,
                              ', '.join(said) or 'nothing else'))
        got += len(block)
        if got < len(wrote.body):
            said.append(meanwhile(node))
    is_whole = got == len(wrote.body)
    cluster.coverage.answered += is_whole
    if said:
        cluster.coverage.fault('GET under way')
    return '%s from %s, meanwhile %s' % (
        'all' if is_whole else '%d of %d bytes' % (got, len(wrote.body)),
        node.name, ', '.join(said) or 'nothing')
