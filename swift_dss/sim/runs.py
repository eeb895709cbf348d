"""Runs: steps drawn from a seed, judged after each, shrunk when one fails.

A run is a list of steps. Each step carries its own seed, so that leaving
others out does not change it.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
import traceback
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from swift_dss.gateway.link.client import MARKS
from swift_dss.sim import pieces, rest, server
from swift_dss.sim.cluster import CLASSES, NAMES, Cluster
from swift_dss.sim.conf import Scheme, admits, schemes
from swift_dss.sim.coverage import Coverage
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.node import Node
from swift_dss.sim.traffic import drives, expiry, interrupts, reads, warm
from swift_dss.sim.traffic.drives import harmless
from swift_dss.sim.model import Violation
from swift_dss.sim.verbs import (
    VERBS, WEIGHTS, Spoilt, Step, Verb, audit, spoil)
from swift_dss.sim.world import (
    changes, clock as clocks, databases, locks, worn as disks)
from swift_dss.sim.world.clock import START, Clock
from swift_dss.sim.world.power import Mains, Power
from swift_dss.sim.world.ring import CODED
from swift_dss.sim.world.worn import Worn

#: The verb of a power cut: costs nothing in a run that has none.
_CUT = 'power'
#: The folder of a simulation's disks: memory, if the machine has it.
_MEMORY = '/dev/shm'
#: Rounds in which everything has to settle at the end of a run.
_SETTLE_ROUNDS = 40
_SETTLE_SECONDS = 60.0
#: In so many rounds the daemons' slow work is done at the latest, and then
#: again.
_DUTIES_ROUNDS = 12
#: Rounds more if nothing moves and a promise is not kept yet: a daemon puts
#: off work that can wait by some minutes.
_PATIENCE_ROUNDS = 6
_DAYS, _DAY_SECONDS = 5, 90000.0
#: Replicators have passed by then, without the HDDs that are away.
_MOUNT_ROUND = 3


@dataclass
class Outcome:
    """How a run ended.

    :param trace: a line a step
    :param violation: '' if all was well
    :param counts: S3's requests, by verb
    :param bytes_lost: of an acknowledged version, if that is the violation
    """

    trace: List[str]
    violation: str = ''
    counts: Dict[str, int] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    bytes_lost: int = 0


def plan(seed: int, nodes: int, steps: int,
         often: Mapping[str, int] = WEIGHTS,
         objects: Sequence[str] = NAMES) -> List[Step]:
    """The steps of a seed.

    :param often: how often each verb is drawn
    :param objects: names that are drawn
    """
    dice = random.Random(seed)
    names = ['n%d' % number for number in range(1, nodes + 1)]
    verbs = list(often)
    weights = list(often.values())
    return [Step(dice.choices(verbs, weights)[0], dice.choice(names),
                 dice.choice(objects), dice.randrange(1, 1000),
                 dice.getrandbits(32)) for _ in range(steps)]


def run(steps: Sequence[Step], nodes: int, seed: int,
        scheme: Optional[Scheme] = None) -> Outcome:
    """Do the steps on a new cluster, then let it settle.

    :param scheme: of the erasure-coded policy; None: the seed decides
    """
    fitting = schemes(nodes)
    scheme = scheme or fitting[seed % len(fitting)]
    folder = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    root = tempfile.mkdtemp(prefix='dss-sim-', dir=folder)
    dice = random.Random(seed)
    clock = Clock(dice)
    trace: List[str] = []
    worn = Worn()
    with clocks.installed(clock), databases.installed() as kept, \
            server.installed(scheme), disks.installed(worn), \
            locks.installed(), changes.counted(), \
            contextlib.ExitStack() as recorded:
        mains = None
        if any(step.verb == _CUT for step in steps):
            mains = Mains(Power(root, clock), kept)
            kept.is_followed = True
            recorded.enter_context(mains.power.recording())
        cluster = Cluster(root, nodes, dice, clock, mains=mains, worn=worn,
                          admits=admits(seed, nodes))
        try:
            # The folder has another name in each run.
            _do(cluster, steps, lambda line: trace.append(
                line.replace(root + os.sep, '')), recorded.close)
            dice.seed(seed)
            _settle(cluster, trace)
        except Violation as err:
            return Outcome(trace, str(err).replace(root + os.sep, ''),
                           cluster.bucket.by_verb(), cluster.coverage,
                           err.bytes_lost)
        except Exception:
            # No error of the product may end a daemon.
            return Outcome(trace, 'an error that nothing has caught: %s' % (
                traceback.format_exc().replace(root + os.sep, '')),
                cluster.bucket.by_verb(), cluster.coverage)
        finally:
            cluster.close()
            shutil.rmtree(root, ignore_errors=True)
    return Outcome(trace, '', cluster.bucket.by_verb(), cluster.coverage)


def _do(cluster: Cluster, steps: Sequence[Step],
        tell: Callable[[str], None], no_more_cuts: Callable[[], None]) -> None:
    last = max((number for number, step in enumerate(steps)
                if step.verb == _CUT), default=-1)
    for number, step in enumerate(steps):
        cluster.dice.seed(step.seed)
        said = _VERBS[step.verb](cluster, step, cluster.dice)
        if said is not None:
            tell('%9.1f s  %s%s' % (cluster.clock.now - START, step,
                                    said and ': ' + said))
        if number >= last and cluster.mains is not None:
            no_more_cuts()
            cluster.mains = None
        if cluster.mains is not None:
            cluster.mains.step()
        cluster.check()


def _settle(cluster: Cluster, trace: List[str]) -> None:
    cluster.coverage.closed = True
    cluster.cut.clear()
    cluster.bucket.cut_off.clear()
    cluster.bucket.mood = 'well'
    for node in cluster.nodes.values():
        node.skew = 0.0
        node.recover()
    trace.append('%9.1f s  everything is mended, and has time to settle'
                 % (cluster.clock.now - START))
    was_away = any(node.hdd_is_away for node in cluster.nodes.values())
    is_due, moved, rounds_left = True, 0, _PATIENCE_ROUNDS
    for number in range(_SETTLE_ROUNDS):
        if number % _DUTIES_ROUNDS == 0:
            is_due = True
        cluster.clock.pass_(_SETTLE_SECONDS)
        if number == _MOUNT_ROUND:
            cluster.mount_hdds()
        is_late = (number + 1) % _DUTIES_ROUNDS == 0
        does_all = is_due and number > 0 and (not moved or is_late)
        is_due = is_due and not does_all
        moved = _settle_once(cluster, does_all)
        if not moved and not is_due and (
                number > _MOUNT_ROUND or not was_away):
            if _is_as_promised(cluster):
                return
            if not rounds_left:
                break
            rounds_left -= 1
    _judge(cluster)


def _settle_once(cluster: Cluster, does_all: bool) -> int:
    """One round; how much has moved, or waits to be.

    :param does_all: the slow work too: auditors read all, daemons walk
        disks, prove S3, and collect keys that nothing needs
    """
    for node in cluster.nodes.values():
        # The daemons hear of unreadable versions.
        audit(node, only_unreadable=not does_all)
    _, moved = expiry.one_pass(cluster)
    for name, node in cluster.nodes.items():
        node.work(sweep=does_all)
        if does_all:
            node.scrub()
            node.collect()
        moved += cluster.replicate(name) + node.backlog()
    cluster.check()
    return moved + sum(
        len(node.spool) for node in cluster.nodes.values()) * does_all


def _is_as_promised(cluster: Cluster) -> bool:
    try:
        rest.check(cluster)
        cluster.check_bucket()
    except Violation:
        return False
    return True


def _judge(cluster: Cluster) -> None:
    rest.check(cluster)
    try:
        cluster.check_bucket()
    except Violation:
        if 'state lost' not in cluster.coverage.faults:
            raise
        _wait_for_books(cluster)
        rest.check(cluster)
        cluster.check_bucket()


def _wait_for_books(cluster: Cluster) -> None:
    """A node regains the bundles of which it is the first primary; nobody
    takes over others whose book was lost before they are a day old, and their
    dead members are told of after that."""
    for _ in range(_DAYS):
        cluster.clock.pass_(_DAY_SECONDS)
        expiry.one_pass(cluster)
        for name, node in cluster.nodes.items():
            node.work()
            node.collect()
            cluster.replicate(name)
        cluster.check()


def shrink(steps: Sequence[Step], nodes: int, seed: int,
           tries: int = 2000) -> List[Step]:
    """The fewest steps that still fail, as far as leaving steps out one
    after the other, in halves and smaller parts, can find them."""
    left = list(steps)
    part = max(1, len(left) // 2)
    while part and tries > 0:
        at = 0
        while at < len(left) and tries > 0:
            without = left[:at] + left[at + part:]
            tries -= 1
            if run(without, nodes, seed).violation:
                left = without
            else:
                at += part
        part //= 2
    return left


# -- faults that destroy copies ------------------------------------------


def _forget(cluster: Cluster, step: Step,
            dice: random.Random) -> Optional[str]:
    keys = cluster.bucket.keys
    candidates = sorted(key for key in keys if not key.endswith(MARKS))
    if not candidates:
        return None
    key = dice.choice(candidates)
    if any(node.believes(key) for node in cluster.nodes.values()):
        # S3 has just said that it has it, and bytes may leave on that.
        return None
    stored, is_read = keys[key], key in cluster.read_keys()
    if not harmless(cluster, lambda: keys.__delitem__(key),
                     lambda: keys.__setitem__(key, stored)):
        return None
    cluster.bucket.forgotten.add(key)
    cluster.coverage.fault('key%s forgotten' % (' of a stub' * is_read))
    return key


def _spoil(cluster: Cluster, step: Step,
           dice: random.Random) -> Optional[str]:
    node = cluster.nodes[step.node]
    spoilt = spoil(node, dice)
    if spoilt is None:
        return None
    # Replicas that cannot be read keep a handoff from bringing its own.
    if not harmless(cluster, lambda: None, lambda: None) or \
            not _primaries_have(cluster, spoilt):
        node.worn.mend(spoilt.path)
        return None
    node.lost_with_hdd |= {(spoilt.object_hash, spoilt.timestamp)}
    cluster.coverage.fault('file unreadable')
    return os.path.relpath(spoilt.path, node.root)


def _primaries_have(cluster: Cluster, spoilt: Spoilt) -> bool:
    policy = policy_of(spoilt.object_hash)
    nodes = [cluster.nodes[primary] for primary in cluster.ring.of(
        spoilt.object_hash, policy)]
    if policy == CODED:
        return pieces.can_be_made(cluster, cluster.name_of(
            spoilt.object_hash), spoilt.timestamp, nodes)
    return any(seen is not None and seen.body is not None
               and seen.timestamp == spoilt.timestamp
               for seen in (node.look(spoilt.object_hash) for node in nodes))


def _lose_state(cluster: Cluster, step: Step,
                dice: random.Random) -> str:
    which = dice.choice(('index', 'gateway', 'bundles', ''))
    cluster.nodes[step.node].lose(lambda name: name.startswith(which)
                                  and '.db' in name)
    cluster.coverage.fault('state lost')
    return which or 'all of it'


def _get_slowly(cluster: Cluster, step: Step,
                dice: random.Random) -> Optional[str]:
    policy = policy_of(hash_of(step.name))
    if policy == CODED:
        # Its bytes are put together by the proxy, which is not simulated.
        return None
    newest = cluster.model.name(step.name).promised()
    if newest is None or len(newest.body or b'') < reads.LONG_BYTES:
        cluster.write(step.name, dice.randbytes(reads.LONG_BYTES),
                      CLASSES[step.name], ())
    return reads.under_way(
        cluster, step.name,
        lambda node: _meanwhile(cluster, step, node, dice))


def _meanwhile(cluster: Cluster, step: Step, node: Node,
               dice: random.Random) -> str:
    """Let others act between two blocks of a GET."""
    said = []
    for _ in range(dice.randint(1, 3)):
        verb = dice.choice(_BETWEEN)
        inner = Step(verb, dice.choice([node.name] * 4 + list(cluster.nodes)),
                     dice.choice((step.name, step.name, dice.choice(NAMES))),
                     dice.randrange(1, 1000))
        if verb == 'demote':
            node.demote()
        elif _VERBS[verb](cluster, inner, dice) is None:
            continue
        said.append(verb)
    return ' and '.join(said) or 'nothing'


#: Verbs that may come between two blocks of a GET; the second is of it alone.
_BETWEEN = ('work', 'demote', 'work', 'demote', 'sweep', 'pass', 'put',
            'delete', 'post', 'replicate', 'get', 'die', 'unmount', 'join',
            'spoil', 'fail-disk', 'mood', 'forget')
#: All there are.
_VERBS: Dict[str, Verb] = dict(
    VERBS, **drives.VERBS, **interrupts.VERBS, **warm.VERBS, **{
        'forget': _forget, 'lose-state': _lose_state, 'spoil': _spoil,
        'get-slowly': _get_slowly})
