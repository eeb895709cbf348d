"""How sure a figure of a run, and a difference of two runs, is.

A block bootstrap: the stretches of a run are drawn as many times as there
are, with repetition, and the figure is taken of each such draw. All runs have
the same draws, so that two runs are compared on the same requests (paired).
The figure of other requests of the same kind is within the interval in 19 of
20 cases. Whether later requests are of the same kind no draw can tell; the
second half of a trace is a test of it.

Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 8
and 13; Kuensch, "The Jackknife and the Bootstrap for General Stationary
Observations", Annals of Statistics 17 (1989).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

from swift_dss.replay.advice.goals import Goal
from swift_dss.replay.advice.recommend import Found, Result
from swift_dss.replay.stretches import (
    BINS_A_DECADE, COUNT, FIRST_MS, Stretches)
from swift_dss.replay.traces.model import numpy

DRAWS = 1000
#: Percentiles of the draws that are the ends of an interval.
ENDS = (2.5, 97.5)

Interval = Tuple[float, float]


class Draws:
    """How often each draw has each stretch.

    :param seed: another one draws others
    """

    def __init__(self, seed: int = 1) -> None:
        np = numpy()
        dice = np.random.Generator(np.random.PCG64([seed, COUNT]))
        self._times = dice.multinomial(COUNT, [1 / COUNT] * COUNT, DRAWS)

    def interval(self, goal: Goal, run: Stretches) -> Interval:
        """95 % of the draws have their score in it."""
        return _middle(scores(goal, run, self._times))

    def difference(self, goal: Goal, run: Stretches,
                   base: Stretches) -> Interval:
        """The same of the score of ``run`` less that of ``base``."""
        return _middle(scores(goal, run, self._times)
                       - scores(goal, base, self._times))


def half(goal: Goal, run: Stretches, second: bool) -> float:
    """The score of the first or the second half of the requests."""
    np = numpy()
    times = np.repeat([not second, second], COUNT // 2).astype(float)
    return float(scores(goal, run, times[None, :])[0])


def scores(goal: Goal, run: Stretches, times: Any) -> Any:
    """By draw; not a number where a draw has no read.

    :param times: (draw, stretch)
    """
    np = numpy()
    if goal.kind == 'dollars':
        return times @ run.dollars
    if goal.kind == 'p99':
        return _percentile(run, goal.class_id, times, 0.99)
    if goal.kind == 'bytes':
        part, whole = run.hit_bytes, run.asked_bytes
    else:
        weights = np.array([goal.weights.get(class_id, 1.0)
                            for class_id in run.class_ids])
        part, whole = weights @ run.hits, weights @ run.reads
    with np.errstate(invalid='ignore'):
        return (times @ part) / (times @ whole)


def _percentile(run: Stretches, class_id: int, times: Any,
                share: float) -> Any:
    """The middle of the bin that it is in."""
    np = numpy()
    waits = run.waits.sum(axis=0) if class_id < 0 \
        else run.waits[run.class_ids.index(class_id)]
    reached = np.cumsum(times @ waits, axis=1)
    at = (reached < share * reached[:, -1:]).sum(axis=1)
    found_ms = FIRST_MS * 10.0 ** ((at + 0.5) / BINS_A_DECADE)
    return np.where(reached[:, -1] > 0, found_ms, np.nan)


def _middle(drawn: Any) -> Interval:
    low, high = numpy().nanpercentile(drawn, ENDS)
    return float(low), float(high)


@dataclass(frozen=True)
class Certainty:
    """How sure a recommendation is.

    :param score: of the best set-up, 95 %
    :param gain: the same of its score less that of LRU on the same room
    :param ties: set-ups with the same room that the draws do not tell from
        the best
    :param early: the best by the first half of the requests alone
    :param early_score, late_score, base_score: in the second half, of
        ``early``, of the best there, and of LRU
    :param late: the best in the second half
    """

    score: Interval
    gain: Interval
    ties: List[Result]
    early: Result
    early_score: float
    late: Result
    late_score: float
    base_score: float


def certainty(search: Found, seed: int = 1) -> Optional[Certainty]:
    """Of a recommendation; None where runs were too short, or of samples.

    :param seed: of the draws
    """
    goal, (setup, best) = search.goal, search.best
    base = search.base[1]['stretches']
    if base is None:
        return None
    draws = Draws(seed)
    peers = [result for result in search.tried
             if result[0].cache_bytes == setup.cache_bytes]
    ties = []
    for result in peers:
        low, high = draws.difference(goal, result[1]['stretches'],
                                     best['stretches'])
        if result[1] is not best and low <= 0 <= high:
            ties.append(result)

    def score(result: Result, second: bool) -> float:
        return half(goal, result[1]['stretches'], second)

    early = min(peers, key=lambda result: goal.order(score(result, False)))
    late = min(peers, key=lambda result: goal.order(score(result, True)))
    return Certainty(
        draws.interval(goal, best['stretches']),
        draws.difference(goal, best['stretches'], base), ties, early,
        score(early, True), late, score(late, True),
        score(search.base, True))
