"""Which request to the S3 goes wrong, and how. Pure: no socket, no clock."""

from __future__ import annotations

import dataclasses
import fnmatch
import random
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional

from swift_dss.core.errors import BadConfig

#: Kind of fault -> its effect, for people.
KINDS = {
    'refuse': 'reset the connection at once',
    'hang': 'never answer',
    'slow': 'answer, so many milliseconds later',
    '500': 'answer 500 Internal Server Error',
    '503': 'answer 503 Slow Down',
    'reset': 'reset the connection in the middle of the body',
    'forget': 'there is no such key: 404, and no line in listings',
    'flip': 'lie: answer 200 and one wrong byte',
    'short': 'lie: answer 200 and half of the bytes as if they were all',
    'drop': 'lie: answer 200 to a PUT and keep nothing',
}


@dataclass(frozen=True)
class Request:
    """The facts of a request that faults look at.

    :param node: the node that asks
    :param key: with the bucket's name removed; '' is the bucket itself
    """

    node: str
    method: str
    key: str


@dataclass(frozen=True)
class Fault:
    """Requests that go wrong.

    :param kind: of :data:`KINDS`
    :param node: whose requests; '' is all nodes
    :param keys: pattern of the keys; requests that name no key match ``*``
    :param methods: which; empty is all
    :param rate: share of them, up to 1
    :param milliseconds: for ``slow``
    :param times: so many of them; 0 is no end
    """

    kind: str
    node: str = ''
    keys: str = '*'
    methods: str = ''
    rate: float = 1.0
    milliseconds: float = 0.0
    times: int = 0

    def matches(self, request: Request) -> bool:
        """Is this one of the requests?"""
        return (self.node in ('', request.node)
                and (not self.methods
                     or request.method in self.methods.split(','))
                and fnmatch.fnmatchcase(request.key, self.keys))

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> Fault:
        """Read a client's fault.

        :raises BadConfig: it makes no sense
        """
        try:
            fault = cls(**fields)
        except TypeError as err:
            raise BadConfig('fault: %s' % err) from err
        if fault.kind not in KINDS:
            raise BadConfig('fault %r: one of %s' % (
                fault.kind, ', '.join(KINDS)))
        if not 0 < fault.rate <= 1:
            raise BadConfig('rate %s: above 0, and at most 1' % fault.rate)
        if fault.kind == 'slow' and fault.milliseconds <= 0:
            raise BadConfig('slow: by how many milliseconds?')
        return fault


class Faults:
    """Those in force. Not thread-safe.

    :param chance: decides about rates
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._faults: List[Fault] = []
        self._left: List[int] = []

    def add(self, fault: Fault) -> None:
        """From now on."""
        self._faults.append(fault)
        self._left.append(fault.times)

    def clear(self) -> int:
        """None any more.

        :returns: how many there were
        """
        count = len(self._faults)
        self._faults, self._left = [], []
        return count

    def in_force(self) -> List[Dict[str, Any]]:
        """Each, as :meth:`Fault.parse` takes it."""
        return [dataclasses.asdict(fault) for fault in self._faults]

    def judge(self, request: Request) -> Optional[Fault]:
        """The first fault that this request meets; None if it is well."""
        for number, fault in enumerate(self._faults):
            if not fault.matches(request):
                continue
            if fault.rate < 1 and self._chance.random() >= fault.rate:
                continue
            if fault.times:
                self._left[number] -= 1
                if not self._left[number]:
                    del self._faults[number], self._left[number]
            return fault
        return None

    def forgotten(self, node: str) -> List[str]:
        """Patterns of the keys that listings must not show to a node."""
        return [fault.keys for fault in self._faults
                if fault.kind == 'forget' and fault.node in ('', node)]


_CONTENTS = re.compile(rb'<Contents>.*?</Contents>', re.S)
_KEY = re.compile(rb'<Key>(.*?)</Key>', re.S)


def without_keys(listing: bytes, patterns: List[str]) -> bytes:
    """An S3 listing with some keys left out.

    :param listing: the XML that S3 sent
    """
    def judged(match: Any) -> bytes:
        key = _KEY.search(match.group(0))
        name = key.group(1).decode('utf-8') if key else ''
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            return b''
        return bytes(match.group(0))
    return _CONTENTS.sub(judged, listing)
