"""All nodes of the rings, and what each says of itself.

Asks the object server at each address that a ring of ours has for ``GET
/dss/status``, all of them side by side. Several ports may speak for one node:
their answers say so. Nodes that do not answer are named with the reason.
Plain sockets, no eventlet; blocks for a few seconds at most, however many
nodes are silent.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import (
    Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set,
    Tuple)

from swift_dss.core.errors import DamagedRecord
from swift_dss.gateway.peers import servers
from swift_dss.gateway.peers.ranks import open_ring, ring_name
from swift_dss.gateway.peers.servers import Server
from swift_dss.tier.policies import Policies
from swift_dss.wire import names
from swift_dss.wire.node import summary
from swift_dss.wire.node.summary import Summary

#: A daemon that has written nothing for so long has stopped, or hangs. It
#: writes every ten seconds.
SILENT_SECONDS = 60.0
#: Servers that are asked at a time.
_AT_ONCE = 64


class Node(NamedTuple):
    """A node of the cluster.

    :param address: the first of its addresses in a ring, with the port if
        other nodes have the same address
    :param state: ``well``; ``trouble``, where a device or S3 needs an
        operator; ``silent``, if its daemon has stopped; ``no answer``
    :param why: the last two in words
    :param age: seconds since its daemon wrote the summary
    :param notes: in words, what an operator should know
    """

    address: str
    state: str
    why: str
    age: Optional[float]
    summary: Optional[Summary]
    notes: Tuple[str, ...] = ()

    @property
    def lines(self) -> List[str]:
        """All that is to be said of it, each with its address."""
        return ['%s: %s' % (self.address, text) for text in
                ((self.why,) if self.why else ()) + self.notes]

    @property
    def answers(self) -> bool:
        """Whether its figures are of now."""
        return self.state in ('well', 'trouble')


class _Answer(NamedTuple):
    """Of one server; the identity of its node is '' if there is none."""

    server: Server
    identity: str
    age: Optional[float]
    summary: Optional[Summary]
    why: str


def nodes(swift_dir: str) -> List[Node]:
    """Every node that a ring of ours names, in the order of addresses.

    :param swift_dir: folder of ``swift.conf`` and the rings
    :raises BadConfig: ``swift.conf`` or a ring cannot be read
    """
    placed: Dict[Server, Set[str]] = {}
    for index in sorted(Policies(swift_dir).ours):
        for device in open_ring(swift_dir, ring_name(index)).devs:
            if device is not None:
                placed.setdefault((str(device['ip']), int(device['port'])),
                                  set()).add(str(device['device']))
    asked = sorted(placed)
    if not asked:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(asked))) as pool:
        return list(_judged(list(pool.map(_ask, asked)), placed))


def _ask(server: Server) -> _Answer:
    def failed(why: str, identity: str = '') -> _Answer:
        return _Answer(server, identity, None, None, why)

    try:
        status, headers, body = servers.request(
            server, 'GET', names.STATUS_PATH, {})
    except servers.FAILURES as err:
        return failed(str(err) or type(err).__name__)
    identity = headers.get(names.BACKEND_NODE.lower(), '')
    if not identity:
        return failed('its object server is stock Swift, or an older '
                      'swift-dss (status %d)' % status)
    if status != 200:
        return failed('its daemon has told nothing since the node started: %s'
                      % body.decode('utf-8', 'replace').strip(), identity)
    try:
        return _Answer(server, identity, float(headers.get(
            names.BACKEND_AGE.lower(), '')), summary.decode(body), '')
    except (ValueError, DamagedRecord) as err:
        return failed('its answer cannot be read: %s' % err, identity)


def _judged(answers: Sequence[_Answer],
            placed: Dict[Server, Set[str]]) -> Iterator[Node]:
    """A node for each identity, and one for each server without."""
    hosts: Dict[str, Set[str]] = {}
    together: Dict[str, List[_Answer]] = {}
    for answer in answers:
        together.setdefault(answer.identity or '%s:%d' % answer.server,
                            []).append(answer)
    for key, said in together.items():
        for answer in said:
            hosts.setdefault(answer.server[0], set()).add(key)
    for said in together.values():
        server = said[0].server
        yield _node(
            server[0] if len(hosts[server[0]]) == 1 else '%s:%d' % server,
            next((answer for answer in said if answer.summary), said[0]),
            {device for answer in said for device in placed[answer.server]})


def _node(address: str, answer: _Answer, devices: Set[str]) -> Node:
    if answer.summary is None or answer.age is None:
        return Node(address, 'no answer', answer.why, None, None)
    if answer.age > SILENT_SECONDS:
        return Node(address, 'silent', 'its daemon has written nothing for '
                    '%.0f seconds' % answer.age, answer.age, answer.summary)
    troubles = list(_troubles(answer.summary, devices))
    return Node(address, 'trouble' if troubles else 'well', '', answer.age,
                answer.summary,
                tuple(troubles) + answer.summary.notes)


def _troubles(said: Summary, devices: Iterable[str]) -> Iterator[str]:
    for name in sorted(devices):
        if name not in said.devices:
            yield '%s is in the ring, and its daemon does not see it' % name
    for name, device in sorted(said.devices.items()):
        yield from ('%s: %s' % (name, text) for text in device.troubles)
        if device.lacking:
            yield '%s: %d versions have bytes nowhere' % (
                name, device.lacking)
    if not said.is_remote_well:
        yield said.remote


class Totals(NamedTuple):
    """Sums over devices, in bytes; ``oldest_dirty`` is the largest."""

    ssd: int
    ssd_used: int
    ssd_room: int
    hdd: int
    remote: int
    dirty: int
    oldest_dirty: float
    pending: int
    budget: int


def totals(summaries: Iterable[Summary]) -> Totals:
    """Of all devices of some nodes."""
    devices = [device for said in summaries
               for device in said.devices.values()]
    return Totals._make(
        sum(getattr(device, name) for device in devices)
        if name != 'oldest_dirty' else max(
            (device.oldest_dirty for device in devices), default=0.0)
        for name in Totals._fields)


def hits(summaries: Iterable[Summary]) -> Tuple[int, int]:
    """Reads that SSDs served whole, of how many."""
    parts = [part for said in summaries for part in said.classes.values()]
    return (sum(part.hits for part in parts),
            sum(part.reads for part in parts))


def classes(summaries: Iterable[Summary]) -> Dict[int, summary.Class]:
    """Of all nodes together, the highest rank first. Names and ranks are
    those of the first node that has the class."""
    sums: Dict[int, summary.Class] = {}
    for said in summaries:
        for class_id, part in said.classes.items():
            before = sums.get(class_id)
            sums[class_id] = part if before is None else summary.Class(
                before.name, before.rank, *map(sum, zip(
                    before[2:], part[2:])))
    return dict(sorted(sums.items(),
                       key=lambda item: (-item[1].rank, item[0])))


def plain(cluster: Sequence[Node]) -> Dict[str, Any]:
    """All of it for ``--json``: nodes, totals, classes."""
    known = [node.summary for node in cluster if node.summary]
    return {
        'nodes': [dict(
            node._asdict(), answers=node.answers, summary=None
            if node.summary is None else summary.values(node.summary))
            for node in cluster],
        'answering': sum(node.answers for node in cluster),
        'totals': totals(known)._asdict(),
        'classes': {str(class_id): part._asdict()
                    for class_id, part in classes(known).items()}}
