"""Generators of clients that go on where they were: streams and chains.

Each client does one thing after another and thinks between requests; the
requests of all clients are then put in the order of their times.
"""

from __future__ import annotations

import random
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

from swift_dss.replay.traces.model import Trace, Verb, numpy

KIB = 1 << 10
#: Requests between two choices of what a client does are counted in these.
SEQ_ONCE, RAND_ONCE, SEQ_REPEATED, RAND_REPEATED = range(4)
KINDS = ('SEQ_ONCE', 'RAND_ONCE', 'SEQ_REPEATED', 'RAND_REPEATED')


class _Step(NamedTuple):
    """One request."""

    at_ms: float
    client: int
    block: int
    write: bool
    kind: int


def _trace(name: str, steps: List[_Step], request_bytes: int,
           blocks: int, accounts: int) -> Trace:
    """Volumes, one an account, of ``blocks`` requests' bytes."""
    np = numpy()
    # One column after the other: times first, then by client.
    steps.sort()
    clients = np.array([step.client for step in steps], dtype='int64')
    owners = clients % accounts
    starts = np.array([step.block for step in steps],
                      dtype='int64') * request_bytes
    count = len(steps)
    return Trace(
        name, np.array([step.at_ms for step in steps]),
        np.array([Verb.WRITE if step.write else Verb.READ for step in steps],
                 dtype='uint8'),
        owners, starts, np.full(count, request_bytes, dtype='int64'),
        np.full(count, blocks * request_bytes, dtype='int64'),
        np.array([11 + step.kind for step in steps], dtype='uint8'), owners,
        clients, unit_bytes=request_bytes,
        ranked=[11 + SEQ_ONCE, 11 + RAND_ONCE, 11 + SEQ_REPEATED,
                11 + RAND_REPEATED])


def streams(requests: int = 200000, clients: int = 8, run: int = 256,
            request: int = 64 * KIB, think_ms: float = 20.0,
            pause_ms: float = 1000.0, seed: int = 1) -> Trace:
    """Sequential streams with think time: each client reads runs of
    ``run`` requests from unread places, thinks between two requests and pauses
    between two runs (both exponential)."""
    dice = random.Random('streams %d' % seed)
    steps: List[_Step] = []
    each = max(1, requests // clients)
    blocks = clients * (each // run + 1) * run
    runs = list(range(blocks // run))
    dice.shuffle(runs)
    for client in range(clients):
        now = dice.random() * pause_ms
        block = 0
        for turn in range(each):
            if turn % run == 0:
                block = runs.pop() * run
                now += dice.expovariate(1.0) * pause_ms
            now += dice.expovariate(1.0) * think_ms
            steps.append(_Step(now, client, block, False, SEQ_ONCE))
            block += 1
    return _trace('streams', steps, request, blocks, 1)


class _Chain(NamedTuple):
    """Steps that always come in the same order: (first block, requests)."""

    items: Tuple[Tuple[int, int], ...]


def chains(requests: int = 200000, clients: int = 8, accounts: int = 1,
           seq_once: float = 0.21, rand_once: float = 0.21,
           seq_repeated: float = 0.47, rand_repeated: float = 0.10,
           chain: int = 24, chain_count: int = 200, run: int = 4,
           once_run: int = 32, recent: float = 0.81, swerve: float = 0.02,
           writes: float = 0.0, request: int = 64 * KIB,
           think_ms: float = 20.0, seed: int = 1) -> Trace:
    """Random-repeated chains with Tombolo's mix of accesses.

    The four shares are those of Yang et al., MSST 2016 (21, 21, 47 and 10
    per cent). Repeated accesses are sessions: one of ``chain_count`` fixed
    chains of ``chain`` places each, in their order, some of them single
    requests and the others runs of ``run``; with the chance ``swerve`` a
    session leaves its chain and another begins. SEQ_ONCE are runs of
    ``once_run`` that are not read again. RAND_ONCE are single requests, a
    share of ``recent`` of them to recently used places (in the published
    traces 81 % of them hit) and the others to places that are never used
    again. Chains are chosen by Zipf's law, 0.6. Classes 11 to 14 are the four
    kinds."""
    dice = random.Random('chains %d' % seed)
    maker = _Sessions(
        dice, (seq_once, rand_once, seq_repeated, rand_repeated), chain,
        chain_count, run, once_run, recent, swerve, accounts, requests,
        clients)
    each = max(1, requests // clients)
    steps: List[_Step] = []
    for client in range(clients):
        now = dice.random() * 1000.0
        for block, kind in maker.blocks(client % accounts, each):
            now += dice.expovariate(1.0) * think_ms
            steps.append(_Step(now, client, block,
                               dice.random() < writes, kind))
    return _trace('chains', steps, request, maker.end, accounts)


class _Unused:
    """Places that are handed out once each, in no order: neighbours in
    time are none in space, or a prefetcher would find streams."""

    #: So many times as many places as are wanted.
    _SPARSE = 4

    def __init__(self, dice: Any, first: int, length: int,
                 most: int) -> None:
        self._dice = dice
        self._first = first
        self._stride = length + 1
        self._count = self._SPARSE * most
        self._taken: Set[int] = set()
        #: The block after all places.
        self.end = first + self._count * self._stride

    def take(self) -> int:
        """The first block of a place."""
        place = self._dice.randrange(self._count)
        while place in self._taken:
            place = self._dice.randrange(self._count)
        self._taken.add(place)
        return self._first + int(place) * self._stride


class _Sessions:
    """Chains of every account, and clients that follow them."""

    #: How many requests back "not long ago" reaches.
    _RECENT = 256

    def __init__(self, dice: Any, shares: Tuple[float, ...], chain: int,
                 chain_count: int, run: int, once_run: int, recent: float,
                 swerve: float, accounts: int, requests: int,
                 clients: int) -> None:
        self._dice = dice
        total = sum(shares) or 1.0
        self._shares = [share / total for share in shares]
        self._once_run = once_run
        self._recent_share = recent
        self._swerve = swerve
        #: The first unused block.
        self.end = 0
        repeated = shares[SEQ_REPEATED] + shares[RAND_REPEATED]
        #: Of the places of a chain, that are runs: so that requests have
        #: the shares that were asked for.
        singles = run * shares[RAND_REPEATED]
        self._runs = shares[SEQ_REPEATED] / (
            shares[SEQ_REPEATED] + singles) if repeated else 0.0
        self._chains: Dict[int, List[_Chain]] = {
            account: self._make_chains(chain, chain_count, run)
            for account in range(accounts)}
        # Each client's last run is cut short.
        self._once_runs = _Unused(dice, self.end, once_run,
                                  requests // max(1, once_run) + clients)
        self._singles = _Unused(dice, self._once_runs.end, 1, requests)
        self.end = self._singles.end
        weights = [(turn + 1) ** -0.6 for turn in range(chain_count)]
        self._cumulated = [sum(weights[:turn + 1])
                           for turn in range(chain_count)]

    def _make_chains(self, chain: int, count: int,
                     run: int) -> List[_Chain]:
        """Places that are all over the volume, in no order."""
        lengths = [run if self._dice.random() < self._runs else 1
                   for _ in range(chain * count)]
        starts = []
        for length in lengths:
            starts.append(self.end)
            self.end += length + 1
        places = list(zip(starts, lengths))
        self._dice.shuffle(places)
        return [_Chain(tuple(places[turn * chain:(turn + 1) * chain]))
                for turn in range(count)]

    def blocks(self, account: int,
               count: int) -> Iterator[Tuple[int, int]]:
        """(block, kind) of ``count`` requests of one client."""
        done = [0, 0, 0, 0]
        recent: List[int] = []
        turn = 0
        while turn < count:
            for block, kind in self._session(account, done, turn, recent):
                yield block, kind
                done[kind] += 1
                turn += 1
                if len(recent) < self._RECENT:
                    recent.append(block)
                else:
                    recent[turn % self._RECENT] = block
                if turn == count:
                    return

    def _session(self, account: int, done: List[int], turn: int,
                 recent: List[int]) -> Iterator[Tuple[int, int]]:
        """The kind that is furthest behind its share goes next."""
        behind = [share * (turn + 1) - so_far
                  for share, so_far in zip(self._shares, done)]
        repeated = behind[SEQ_REPEATED] + behind[RAND_REPEATED]
        if repeated >= max(behind[SEQ_ONCE], behind[RAND_ONCE]):
            yield from self._follow(account)
        elif behind[SEQ_ONCE] >= behind[RAND_ONCE]:
            first = self._once_runs.take()
            for block in range(first, first + self._once_run):
                yield block, SEQ_ONCE
        elif recent and self._dice.random() < self._recent_share:
            yield self._dice.choice(recent), RAND_ONCE
        else:
            yield self._singles.take(), RAND_ONCE

    def _follow(self, account: int) -> Iterator[Tuple[int, int]]:
        chain, = self._dice.choices(self._chains[account],
                                    cum_weights=self._cumulated)
        for first, length in chain.items:
            if self._dice.random() < self._swerve:
                return
            kind = SEQ_REPEATED if length > 1 else RAND_REPEATED
            for block in range(first, first + length):
                yield block, kind
