"""Work of a daemon in whose midst others act.

A daemon is at a named step of its work. There clients write and read,
other nodes work, and other threads of the same daemon get their turn. Every
promise MUST hold then and afterwards.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Dict, List, Optional

from swift_dss.core.errors import DssError
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.traffic.scene import CLASSES, NAMES, REPLICATED
from swift_dss.sim.verbs import VERBS as _VERBS
from swift_dss.sim.verbs import Step, Verb, instead, one_of

if TYPE_CHECKING:
    from swift_dss.sim.cluster import Cluster
    from swift_dss.sim.node import Node

#: Those that act at a step: threads beside, other nodes, and clients.
_BETWEEN = ('beside', 'others', 'beside', 'put', 'delete', 'delete', 'post',
            'get')
#: At which of the daemon's steps: bundles come first, and then uploads.
_STEPS = (1, 1, 1, 2, 3, 5, 8)
#: Objects that share bundles.
_SMALL = [name for name, class_id in REPLICATED.items() if class_id == 1]


class _Midst:
    """Acts at the step of a daemon.

    :ivar said: '' if the daemon was not at so many steps
    :ivar error: that ended it, as no part of the product may see it
    """

    def __init__(self, cluster: Cluster, node: Node,
                 dice: random.Random) -> None:
        self._cluster = cluster
        self._node = node
        self._dice = dice
        self.said = ''
        self.error: Optional[Exception] = None

    def __call__(self, reached: str) -> None:
        self.said = 'at %s ' % reached
        self._cluster.coverage.fault('interrupted')
        # Versions that the daemon may be at.
        names = _SMALL if reached.startswith('bundle') else list(NAMES)
        said: List[str] = []
        try:
            for _ in range(self._dice.randint(1, 4)):
                said.append(self._one(names))
            self._cluster.check()
        except Exception as err:
            self.error = err
        self.said += ', '.join(said)

    def _one(self, names: List[str]) -> str:
        dice, cluster = self._dice, self._cluster
        verb = dice.choice(_BETWEEN)
        if verb == 'beside':
            return self._beside()
        if verb == 'others':
            other = dice.choice([peer for peer in cluster.nodes.values()
                                 if peer is not self._node])
            return ('the daemon of %s %s' % (
                other.name, other.work())).strip()
        step = Step(verb, self._node.name, dice.choice(names),
                    dice.randrange(1, 1000))
        done = _VERBS[verb](cluster, step, dice)
        return '%s%s' % (step, done and ': ' + done)

    def _beside(self) -> str:
        """Its other threads work, and once more if it takes a while."""
        said = [self._other_threads()]
        if self._dice.randrange(2):
            self._cluster.clock.pass_(15.0)
            said += ['time passes', self._other_threads()]
        return 'its other threads (%s)' % '; '.join(filter(None, said))

    def _other_threads(self) -> str:
        node = self._node
        if node.daemon is None:
            return ''
        events, node.spool = node.spool, []
        try:
            with node.at_work():
                return node.daemon.work_beside(events, self._dice)
        except DssError as err:
            node.spool = events + node.spool
            return '%s: %s' % (type(err).__name__, err)


def _interrupt(cluster: Cluster, step: Step, dice: random.Random) -> str:
    node = _before_a_bundle(cluster) if step.number % 3 == 0 else \
        one_of(cluster, step, dice, lambda candidate: candidate.has_work())
    # Most work is due some seconds later.
    cluster.clock.pass_(dice.choice((0.0, 3.0, 15.0)))
    midst = _Midst(cluster, node, dice)
    said = node.work(dice.choice(_STEPS), sweep=step.number % 5 == 0,
                     then=midst)
    if midst.error is not None:
        raise midst.error
    return instead(node, step) + '; '.join(filter(None, (
        midst.said or 'nobody', said)))


def _before_a_bundle(cluster: Cluster) -> Node:
    """A node that has heard of several small objects for the same bundle."""
    for name in _SMALL:
        cluster.write(name, cluster.dice.randbytes(700), CLASSES[name], ())
    object_hash = hash_of(_SMALL[0])
    node = cluster.nodes[cluster.ring.of(
        object_hash, policy_of(object_hash))[0]]
    node.work()
    return node


#: Those of this module.
VERBS: Dict[str, Verb] = {'interrupt': _interrupt}
