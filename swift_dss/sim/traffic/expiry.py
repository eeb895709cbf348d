"""Objects that delete themselves: X-Delete-At, and Swift's expirer.

Object servers tell the containers of the expirer's queue of each X-Delete-At
that comes and goes. Those containers are simulated as what replicas of a
container come to: of each entry the newest word counts. A pass of the expirer
sends a DELETE with X-If-Delete-At for each entry whose time has come, and each
replica decides by itself whether that is its time. One that does not know yet
of a POST may take a DELETE that the others refuse; Swift promises no more, so
such a DELETE is one that was not acknowledged.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Dict, Iterable, Mapping, Set, Tuple

from swift.obj.expirer import parse_task_obj

from swift_dss.sim.traffic import posts
from swift_dss.sim.model import Attempt, Model, Violation
from swift_dss.sim.disks import hash_of, policy_of

if TYPE_CHECKING:
    from swift_dss.sim.cluster import Cluster

#: Until an object is to be deleted; some of it passes in a few steps.
_SECONDS = (2, 20, 60, 400)
#: As a proxy sends them: where the queue's containers are.
_QUEUE_AT = {'X-Delete-At-Host': 'sim', 'X-Delete-At-Partition': '0',
             'X-Delete-At-Device': 'sim', 'X-Delete-At-Container': '1'}


def headers(until: str) -> Mapping[str, str]:
    """Of a PUT or POST whose object is to go then; '' never."""
    return dict(_QUEUE_AT, **{'X-Delete-At': until}) if until else {}


class Expirer:
    """Swift's, and its queue.

    :param model: knows which requests may take an entry away
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        #: (time, name) to (when that was said, whether it is there).
        self._queue: Dict[Tuple[str, str], Tuple[str, bool]] = {}
        #: Times at which something was ever to be deleted.
        self._times: Set[float] = set()
        self._wrong = ''

    def draw(self, now: float, dice: random.Random) -> str:
        """An X-Delete-At that lies ahead."""
        until = int(now) + dice.choice(_SECONDS)
        self._times.add(float(until))
        return str(until)

    def is_taken(self, stamp: float) -> bool:
        """True of the timestamp of a DELETE that an expirer may send."""
        return stamp in self._times

    def heard(self, verb: str, entry: str, at: str) -> None:
        """An object server says of an entry, PUT or DELETE."""
        until, *path = parse_task_obj(entry)
        name = '/' + '/'.join(path)
        key = str(int(until)), name
        if verb == 'DELETE' and not self._model.name(name).replaced(at):
            self._wrong = ('%s: the request of %s set no X-Delete-At, and '
                           'the expirer was told to leave it' % (name, at))
        there = self._queue.get(key, ('', False))
        self._queue[key] = max(there, (at, verb == 'PUT'))

    def check(self) -> None:
        """:raises Violation: what nobody has replaced was cancelled"""
        if self._wrong:
            raise Violation(self._wrong)

    def one_pass(self, cluster: Cluster, misses: Iterable[str] = ()
                 ) -> Tuple[int, int]:
        """Delete what is due: how many objects that were, and how many
        replicas took a DELETE.

        :param misses: nodes that no request reaches
        :raises Violation: one took it that has another time, or none
        """
        deleted = took = 0
        lost = set(misses) | cluster.cut
        for (until, name), (_at, is_there) in sorted(self._queue.items()):
            if not is_there or int(until) > cluster.clock.now:
                continue
            taken, refused = self._delete(cluster, until, name, lost)
            took += taken
            quorum = cluster.quorum(policy_of(hash_of(name)))
            if taken >= quorum:
                deleted += 1
            if taken >= quorum or refused >= quorum:
                # Done, or something newer is there.
                del self._queue[until, name]
        return deleted, took

    def _delete(self, cluster: Cluster, until: str, name: str,
                lost: Set[str]) -> Tuple[int, int]:
        """How many took it, and how many have something newer."""
        object_hash, stamp = hash_of(name), '%s.00000' % until
        policy = policy_of(object_hash)
        history = self._model.name(name)
        taken = refused = 0
        for one in cluster.ring.of(object_hash, policy):
            if one in lost:
                continue
            node = cluster.nodes[one]
            had = posts.until(node, object_hash)
            status = node.ask('DELETE', name, {
                'X-Timestamp': stamp, 'X-If-Delete-At': until,
                'X-Backend-Clean-Expiring-Object-Queue': 'no'}).status_int
            if status == 204 and had != until:
                raise Violation(
                    '%s: %s has deleted at %s what was to go at %s' % (
                        name, one, until, had or 'no time'))
            taken += status == 204
            refused += status == 409
        if taken and history.wrote(stamp) is None:
            history.tried(Attempt(stamp, None))
        if taken >= cluster.quorum(policy):
            history.acknowledge(stamp)
        return taken, refused
