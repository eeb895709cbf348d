"""POSTs that race: metadata, content type and class of one object.

Each is a register of its own; X-Delete-At is part of the metadata, and a POST
of metadata without it clears it. Two POSTs are in flight at a time. Each began
with a look at the object, and reaches its replicas in an order of its own. The
acknowledgement of one MUST NOT undo the other.
"""

from __future__ import annotations

import random
from typing import (
    TYPE_CHECKING, Callable, Dict, Iterable, List, Mapping, NamedTuple,
    Optional)

from swift.common.exceptions import DiskFileError
from swift.obj.diskfile import read_metadata

from swift_dss.core.spans import ClassMap
from swift_dss.proxy.bodies import stored
from swift_dss.sim.traffic import expirer
from swift_dss.sim.model import Attempt, Name, Violation
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.node import OPEN_EXPIRED, Node
from swift_dss.sim.world.ring import CODED, STOCK
from swift_dss.wire import classmap, names, registers

if TYPE_CHECKING:
    from swift_dss.sim.traffic.scene import Scene

#: Says which POST set the metadata.
_META = 'X-Object-Meta-Post'


class Post(NamedTuple):
    """One POST on its way.

    :param sets: register to its value
    """

    at: str
    sets: Mapping[str, str]
    headers: Mapping[str, str]


class Shown(NamedTuple):
    """A replica's registers of an object."""

    meta: str
    type: str
    map: str


#: Draws the time at which an object is to be deleted.
Draw = Callable[[], str]


def meta(post: str, until: str) -> str:
    """The value of the metadata.

    :param post: which POST set it; '' the PUT did
    :param until: its X-Delete-At; '' none
    """
    return post + (until and ' until ' + until)


def race(cluster: Scene, name: str, dice: random.Random,
         misses: Iterable[str], count: int,
         draw: Optional[Draw] = None) -> str:
    """``count`` POSTs at a time; the answers to their clients.

    :param misses: nodes that none of them reaches
    :param draw: some of those that set metadata say when to delete
    """
    lost = set(misses) | cluster.cut
    policy = policy_of(hash_of(name))
    reached = [holder for holder in cluster.ring.of(hash_of(name), policy)
               if holder not in lost]
    if not reached:
        return 'no primary is reached'
    made = [_post(cluster, name, dice, cluster.nodes[dice.choice(reached)],
                  number, draw) for number in range(count)]
    history = cluster.model.name(name)
    for post in made:
        for register, value in post.sets.items():
            history.registers[register].tried(post.at, value)
        history.expires = history.expires or 'X-Delete-At' in post.headers
    arrivals = [(holder, post) for holder in reached for post in made]
    dice.shuffle(arrivals)
    took: Dict[str, int] = {}
    for holder, post in arrivals:
        answer = cluster.nodes[holder].ask('POST', name, post.headers)
        took[post.at] = took.get(post.at, 0) + (answer.status_int == 202)
    for post in made:
        if took[post.at] >= cluster.quorum(policy):
            for register in post.sets:
                history.registers[register].acknowledge(post.at)
    return ', '.join('%s by %d' % ('+'.join(sorted(post.sets)),
                                   took[post.at]) for post in made)


def _post(cluster: Scene, name: str, dice: random.Random,
          looked_at: Node, number: int, draw: Optional[Draw]) -> Post:
    at = cluster.stamp()
    if number % 2 and policy_of(hash_of(name)) != STOCK:
        return _of_class(at, dice.choice(cluster.classes))
    seen = looked_at.ask('HEAD', name, {})
    headers = {'X-Timestamp': at, _META: at}
    headers.update(stored.posted(seen.headers))
    sets = {'meta': at}
    if dice.randrange(2):
        headers['Content-Type'] = sets['type'] = 'text/' + at
    if draw is not None and dice.randrange(3):
        until = draw()
        headers.update(expirer.headers(until))
        sets['meta'] = meta(at, until)
    return Post(at, sets, headers)


def _of_class(at: str, class_id: int) -> Post:
    """As ``proxy.reclassify`` has it."""
    class_map = ClassMap.uniform(class_id)
    return Post(at, {'map': classmap.encode(class_map)}, dict(
        classmap.to_headers(names.TRANSIENT_MAP, class_map),
        **registers.class_alone(at)))


def shown(node: Node, name: str) -> Shown:
    """The answer of one replica to a HEAD."""
    headers = node.ask('HEAD', name, OPEN_EXPIRED).headers
    class_map = stored.effective_map(headers)
    return Shown(meta(headers.get(_META, ''), headers.get('X-Delete-At', '')),
                 headers['Content-Type'],
                 '' if class_map is None else classmap.encode(class_map))


def of_record(metadata: Mapping[str, str], class_map: str) -> Shown:
    """The bucket's record of a version."""
    return Shown(meta(metadata.get(_META, ''),
                      metadata.get('X-Delete-At', '')),
                 metadata.get('Content-Type', ''), class_map)


def wrong(history: Name, wrote: Attempt, seen: Shown) -> str:
    """The register that has what no POST allows; '' if none has.

    :param wrote: the version that is shown
    """
    for register, put, value in (
            ('meta', meta('', wrote.until), seen.meta),
            ('type', 'text/plain', seen.type),
            ('map', wrote.class_map, seen.map)):
        known = history.registers[register]
        if value not in known.allowed(wrote.timestamp, put):
            return '%s %r, and what POST set at %s was acknowledged' % (
                register, value, known.acknowledged)
    return ''


def until(node: Node, object_hash: str) -> str:
    """When a replica's object is to be deleted, as the documented format of
    its files has it; '' never."""
    newest, expires = '', ''
    for name in node.files(object_hash):
        if not name.endswith(('.data', '.meta')) or (
                policy_of(object_hash) == CODED
                and name.endswith('.data') and not name.endswith('#d.data')):
            continue
        metadata = _read(node, object_hash, name)
        at = metadata.get(names.META_AT) or metadata['X-Timestamp']
        if at > newest:
            newest, expires = at, metadata.get('X-Delete-At', '')
    return expires


def newest_anywhere(nodes: Iterable[Node], object_hash: str,
                    since: str) -> Dict[str, str]:
    """When each register of an object was set last, on any node: another one
    may have the bytes, and a version that lacks them leaves its ``.meta``
    files where they are when it is put aside. The one that comes in its place
    finds them.

    :param since: the version of which they must be, or a later one
    """
    newest: Dict[str, str] = {}
    for node in nodes:
        seen = node.look(object_hash)
        if seen is not None and seen.timestamp > since:
            # A later PUT or DELETE has set them all.
            for register in ('meta', 'type', 'map'):
                newest[register] = max(newest.get(register, ''),
                                       seen.timestamp)
        for metadata in _posted(node, object_hash):
            for register, at in _times(metadata).items():
                newest[register] = max(newest.get(register, ''), at)
    return newest


def _posted(node: Node, object_hash: str) -> List[Mapping[str, str]]:
    return [_read(node, object_hash, name)
            for name in node.files(object_hash) if name.endswith('.meta')]


def _read(node: Node, object_hash: str, name: str) -> Mapping[str, str]:
    path = '%s/%s' % (node.folder(object_hash), name)
    try:
        metadata: Mapping[str, str] = read_metadata(path)
    except DiskFileError as err:
        raise Violation('%s cannot be read: %s' % (path, err)) from err
    return metadata


def _times(metadata: Mapping[str, str]) -> Dict[str, str]:
    """As the documented format of ``.meta`` files has it."""
    return {'meta': metadata.get(_META, ''),
            'map': metadata.get(names.MAP_AT, ''),
            'type': metadata.get('Content-Type-Timestamp', '')}


def lost(history: Name, nodes: Iterable[Node], object_hash: str) -> str:
    """The register that was acknowledged and is on no node; '' if none.

    A PUT that was refused may have left the version that a POST is for.
    """
    promised = history.promised()
    if promised is not None and promised.body is None:
        return ''
    nodes = list(nodes)
    timestamp = promised.timestamp if promised is not None else max((
        seen.timestamp for seen in (
            node.look(object_hash) for node in nodes)
        if seen is not None and not seen.is_tombstone), default='')
    since = {name: register for name, register
             in sorted(history.registers.items())
             if timestamp and register.acknowledged > timestamp}
    if not since:
        return ''
    newest = newest_anywhere(nodes, object_hash, timestamp)
    for name, register in since.items():
        if register.acknowledged > newest.get(name, ''):
            return '%s of %s' % (name, register.acknowledged)
    return ''
