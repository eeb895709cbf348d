"""Real nodes lose what their daemons know, and nothing deleted comes back."""

from __future__ import annotations

import glob
import json
import os
import random
import time
from typing import Any, Dict, Iterator, List, Optional, Set

import pytest
from support import wait_until
from support.nodes.beds import add_classes, bed, gc

from swift_dss.aio import processes
from swift_dss.aio.bed.bed import Bed

pytestmark = [pytest.mark.cluster, pytest.mark.root]

#: At which state is lost; 50 and more in all.
POINTS = int(os.environ.get('SWIFT_DSS_BED_POINTS', '2'))
#: Of each point: bytes, and whether they go into bundles.
OBJECTS = ((30000, 'gold'), (2000, 'tiny'), (30000, 'gold'), (2000, 'tiny'))
#: What a daemon keeps: index, queue and bundle book.
STATE = ('index.db', 'gateway.db', 'bundles.db')
#: A client's request and a loss are at most so far apart.
SECONDS = 3.0
CLASSES = """
[class:5]
name = tiny
rank = 5
bundle = true
"""


@pytest.fixture(scope='module')
def made() -> Iterator[Bed]:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    with bed(nodes=3, options={'gateway': {
            'remote_after_seconds': '1', 'bundle_age_seconds': '1',
            'delete_delay_seconds': '1',
            'take_over_seconds': '3'}}) as new_bed:
        add_classes(new_bed, CLASSES)
        yield new_bed


def point(made: Bed, number: int, dice: random.Random
          ) -> Dict[str, Optional[bytes]]:
    """Writes and deletes, and state that is lost between or after them; what
    clients were promised of each path."""
    client = made.client()
    promised: Dict[str, Optional[bytes]] = {}
    losing = dice.randrange(3)
    for at, (size, name) in enumerate(OBJECTS):
        path = 'lost/%d-%d' % (number, at)
        for _ in range(1 + dice.randrange(2)):
            promised[path] = dice.randbytes(size)
            assert client.put(path, promised[path], {
                'X-DSS-Object-Class': name}).status == 201
    for moment in range(3):
        time.sleep(dice.uniform(0, SECONDS))
        if moment == losing:
            lose(made, dice)
        if moment:
            path = 'lost/%d-%d' % (number, dice.randrange(2) + 2 * moment - 2)
            assert client.delete(path).status == 204
            promised[path] = None
    return promised


def lose(made: Bed, dice: random.Random) -> None:
    """One node or all of them; a daemon is killed at any step."""
    parts = dice.sample(STATE, dice.randint(1, len(STATE)))
    names = list(made.plan.nodes)
    if dice.randrange(2):
        names = [dice.choice(names)]
    for name in names:
        processes.kill(made.node(name).conf.root, ['tierd'])
        unlink(made, name, parts)
    for name in names:
        made.node(name).start()
    for name in names:
        made.node(name).await_servers()


def unlink(made: Bed, name: str, parts: Any) -> None:
    for part in parts:
        gone = glob.glob(made.node(name).conf.path('**', part + '*'),
                         recursive=True)
        assert gone, part
        for path in gone:
            os.unlink(path)


def wipe(made: Bed, name: str) -> None:
    """A node with a new drive, which knows nothing, is restored."""
    processes.kill(made.node(name).conf.root, ['tierd'])
    unlink(made, name, STATE)
    made.lose_drive(name, 'd1')
    processes.end(made.node(name).conf.root, ['object-server'])
    made.node(name).start()
    made.node(name).await_servers()
    done = made.tool(name, 'gateway', 'restore', '--config', '{conf}',
                     '--json')
    assert not done.returncode, done.stdout + done.stderr
    assert json.loads(done.stdout)['written']


def offered(made: Bed) -> Dict[str, Set[str]]:
    """Keys under which the bucket has versions, and of which objects."""
    done = made.tool(made.plan.nodes[0], 'gateway', 'ls', '--config',
                     '{conf}', '--json')
    assert not done.returncode, done.stderr
    by_key: Dict[str, Set[str]] = {}
    for row in json.loads(done.stdout):
        by_key.setdefault(row['key'], set()).add(
            row['name'][len('/AUTH_test/'):])
    return by_key


def wrong(made: Bed, promised: Dict[str, Optional[bytes]]) -> List[str]:
    client = made.client()
    said = []
    for path, body in sorted(promised.items()):
        reply = client.get(path)
        if reply.status != (404 if body is None else 200) or (
                body is not None and reply.body != body):
            said.append('%s: %d' % (path, reply.status))
    return said


def test_lost_state_brings_nothing_back_and_leaves_nothing(
        made: Bed) -> None:
    dice = random.Random(POINTS)
    made.client().container('lost', 'dss')
    promised: Dict[str, Optional[bytes]] = {}
    for number in range(POINTS):
        promised.update(point(made, number, dice))
    kept = {path for path, body in promised.items() if body is not None}
    wait_until(lambda: kept <= set().union(*offered(made).values()), 120,
               'uploads')
    wipe(made, dice.choice(list(made.plan.nodes)))
    made.rebalance()
    assert not wrong(made, promised)

    def orphans() -> List[str]:
        """A bundle that has a living member keeps the dead ones for a day:
        until then a packer that lives tells of them."""
        for name in made.plan.nodes:
            gc(made, name, everything=True)
        return sorted(key for key, names in offered(made).items()
                      if not names & kept)
    # Replaced bundles and deletes go when they are due.
    wait_until(lambda: not orphans(), 240, 'keys of what is deleted to go')
    last = gc(made, made.plan.nodes[0], everything=True, dry_run=True)
    assert (last['dead'], last['absent'], last['members_absent']) == (
        0, 0, 0), last
    assert not wrong(made, promised)
    print('figure: %d points: %d deleted, 0 restored; %d kept; gc leaves 0'
          % (POINTS, len(promised) - len(kept), len(kept)))
