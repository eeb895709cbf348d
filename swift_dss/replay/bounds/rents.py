"""A bound on what hits are worth together, by rents for room.

Let every byte that stays over an access pay a rent. Nobody who has ``room``
bytes can gain more than all their rents, and what each reuse is worth above
its own: a sum that holds for *any* rents of at least 0 (weak duality of the
packing of intervals). One rent for all accesses, the best one, gives PFOO-L of
Berger, Beckmann and Harchol-Balter (SIGMETRICS 2018, section 5.1): the reuses
with most worth for bytes times accesses, the last of them in part, in
``room`` times all accesses. That packs as if room of one hour could be used in
another. Rents that rise where many want the room come nearer: a subgradient
method looks for them, on a sample of the reuses, in ever shorter stretches.
The search decides how tight the bound is, never whether it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, Tuple

from swift_dss.replay.bounds.reuses import Reuses, Worth
from swift_dss.replay.traces.model import numpy

#: Reuses that the search for rents looks at.
SAMPLE = 1 << 17
#: Stretches with a rent each, from round to round.
STRETCHES = (16, 128, 1024, 8192)
#: Steps of a round; the first half go by how full the room is.
STEPS = 30
#: A step is retracted after so many that gained nothing.
_PATIENCE = 4
#: Of the step before, in the direction of a step.
_MOMENTUM = 0.7
#: Of what is to be gained by a step, at first.
_AIM = 0.02
#: Rounding of sums of millions of floats: far more than it can be.
_ROUNDING = 1e-9
#: Reuses that are summed at a time: their columns fit a cache.
_SLICE = 1 << 18


@dataclass(frozen=True)
class Rents:
    """Rents of a byte over one access.

    :param each: by stretch
    :param width: accesses of a stretch; the last may have fewer
    """

    each: Any
    width: int

    def until(self, places: Any) -> Any:
        """The rents of a byte from the first access until these."""
        np = numpy()
        before = np.concatenate(([0.0], np.cumsum(self.each) * self.width))
        at = np.minimum(places // self.width, len(self.each) - 1)
        return before[at] + self.each[at] * (places - at * self.width)

    def split(self, width: int, accesses: int) -> Rents:
        """Shorter stretches; rents between the middles of the old ones are
        on a line."""
        np = numpy()
        middles = (np.arange(len(self.each)) + 0.5) * self.width
        wanted = (np.arange(-(-accesses // width)) + 0.5) * width
        return Rents(np.interp(wanted, middles, self.each), width)


class Market:
    """Reuses that want room.

    :param room: bytes
    """

    def __init__(self, reuses: Reuses, worth: Worth, room: float) -> None:
        self.reuses, self.worth, self.room = reuses, worth, room
        #: Gaps between accesses: a unit stays over a number of them.
        self.steps = max(1, reuses.accesses - 1)

    def sample(self, count: int, seed: int) -> Market:
        """``count`` reuses with as much less room."""
        if len(self.reuses) <= count:
            return self
        np = numpy()
        dice = np.random.Generator(np.random.PCG64([seed, count]))
        rows = np.sort(dice.choice(len(self.reuses), count, False))
        reuses = self.reuses
        return Market(
            Reuses(reuses.begins[rows], reuses.ends[rows],
                   reuses.sizes[rows], reuses.accesses),
            Worth(self.worth.each[rows], self.worth.without),
            self.room * count / len(reuses))

    def constant(self) -> Tuple[float, float]:
        """(PFOO-L: what hits can be worth, its rent)."""
        np = numpy()
        reuses, each = self.reuses, self.worth.each
        area = reuses.sizes * (reuses.ends - reuses.begins).astype('float64')
        order = np.argsort(-each / area, kind='stable')
        reached = np.cumsum(area[order])
        most = self.room * float(self.steps)
        at = int(np.searchsorted(reached, most, 'right'))
        if at == len(order):
            return float(each.sum()), 0.0
        rent = float(each[order[at]] / area[order[at]])
        left = most - (float(reached[at - 1]) if at else 0.0)
        return float(each[order[:at]].sum()) + rent * left, rent

    def bound(self, rents: Rents) -> Tuple[float, Any]:
        """(what hits can be worth at most, by stretch: mean bytes of the
        reuses that are worth more than their rents)."""
        np = numpy()
        count, width = len(rents.each), rents.width
        spare = np.zeros(count)
        # A byte that comes counts from its place in the stretch to the
        # end of it, and in all stretches after that.
        come, inside = np.zeros(count), np.zeros(count)
        for begin in range(0, len(self.reuses), _SLICE):
            rows = slice(begin, begin + _SLICE)
            spare_here, paying = self._spare(rents, rows)
            spare[0] += spare_here
            sizes = self.reuses.sizes[rows][paying].astype('float64')
            for places, sign in ((self.reuses.begins, 1.0),
                                 (self.reuses.ends, -1.0)):
                place = places[rows][paying].astype('int64')
                at = np.minimum(place // width, count - 1)
                come += sign * np.bincount(at, sizes, count)
                inside += sign * np.bincount(
                    at, sizes * ((at + 1) * width - place), count)
        used = np.concatenate(([0.0], np.cumsum(come)[:-1])) + inside / width
        return self.room * self._paid(rents) + float(spare[0]), used

    def _spare(self, rents: Rents, rows: slice) -> Tuple[float, Any]:
        """(worth above rents, which reuses have some)."""
        reuses = self.reuses
        left = self.worth.each[rows] - reuses.sizes[rows] * (
            rents.until(reuses.ends[rows].astype('int64'))
            - rents.until(reuses.begins[rows].astype('int64')))
        paying = left > 0
        return float(left[paying].sum()), paying

    def _paid(self, rents: Rents) -> float:
        """The rents of a byte over the whole trace."""
        return float(rents.until(numpy().array([self.steps]))[0])


def at_most(market: Market, seed: int = 1) -> Tuple[float, Rents]:
    """(what hits can be worth together, the rents that say so)."""
    np = numpy()
    all_of_it = float(market.worth.each.sum())
    if not len(market.reuses):
        return 0.0, Rents(np.zeros(1), market.steps)
    best, rent = market.constant()
    rents = Rents(np.array([rent]), market.steps)
    for fitted in _fitted(market.sample(SAMPLE, seed), rent):
        # Rents of short stretches may fit the sample alone.
        bound, _ = market.bound(fitted)
        if bound < best:
            best, rents = bound, fitted
    return min(all_of_it, best * (1.0 + _ROUNDING)), rents


def _fitted(market: Market, rent: float) -> Iterator[Rents]:
    """Rents that vary in ever shorter stretches, beginning with one for all.
    """
    np = numpy()
    reuses = market.reuses
    if not rent:
        # Room is short now and then only: a rent that hardly counts.
        rent = 0.01 * float(np.median(market.worth.each / reuses.sizes / (
            reuses.ends - reuses.begins)))
    rents = Rents(np.array([rent]), market.steps)
    for stretches in STRETCHES:
        width = -(-market.steps // stretches)
        rents = _round(market, rents.split(width, market.steps), 1e-6 * rent)
        yield rents
        if width == 1:
            return


# long: the two kinds of step of a subgradient method.
def _round(market: Market, rents: Rents, least: float) -> Rents:
    """The best rents of a number of steps.

    First each rent rises or falls with how full its stretch is; then all go
    against the subgradient, towards a bound that is a little below the best
    (Polyak's step with a moving target).

    :param least: rent that may rise again
    """
    np = numpy()
    best, best_rents = np.inf, rents
    aim, since = 0.0, 0
    direction = np.zeros(len(rents.each))
    for step in range(STEPS):
        bound, used = market.bound(rents)
        if bound < best:
            best, best_rents, since = bound, rents, 0
        else:
            since += 1
        each = rents.each
        if step < STEPS // 2:
            fullness = np.clip(used / market.room, 0.1, 10.0)
            each = np.maximum(each, least) \
                * fullness ** (0.5 / (1.0 + step / 6.0))
            rents = Rents(each, rents.width)
            continue
        if not aim or since >= _PATIENCE:
            aim = aim / 2 if aim else _AIM * best
            rents, since = best_rents, 0
            direction[:] = 0.0
            continue
        direction = _MOMENTUM * direction + market.room - used
        length = float((direction ** 2).sum()) * rents.width
        if not length:
            break
        rents = Rents(np.maximum(0.0, each - (bound - best + aim)
                                 / length * direction), rents.width)
    return best_rents
