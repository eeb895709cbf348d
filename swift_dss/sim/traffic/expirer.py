"""The queue of Swift's expirer: which objects delete themselves, and when.

Object servers tell the containers of this queue of each X-Delete-At that comes
and goes. Those containers are simulated as what replicas of a container come
to: of each entry the newest word counts.
"""

from __future__ import annotations

import random
from typing import Dict, List, Mapping, Set, Tuple

from swift.obj.expirer import parse_task_obj

from swift_dss.sim.model import Model, Violation

#: Until an object is to be deleted; some of it passes in a few steps.
_SECONDS = (2, 20, 60, 400)
#: As a proxy sends them: where the queue's containers are.
_QUEUE_AT = {'X-Delete-At-Host': 'sim', 'X-Delete-At-Partition': '0',
             'X-Delete-At-Device': 'sim', 'X-Delete-At-Container': '1'}


def headers(until: str) -> Mapping[str, str]:
    """Of a PUT or POST whose object is to go then; '' never."""
    return dict(_QUEUE_AT, **{'X-Delete-At': until}) if until else {}


class Expirer:
    """Expiries that Swift's expirer has heard of.

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

    def due(self, now: float) -> List[Tuple[str, str]]:
        """(time, name) of the entries whose time has come, sorted."""
        return [key for key, (_at, is_there) in sorted(self._queue.items())
                if is_there and int(key[0]) <= now]

    def done(self, until: str, name: str) -> None:
        """An entry needs no other pass."""
        del self._queue[until, name]
