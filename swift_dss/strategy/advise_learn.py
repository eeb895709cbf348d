"""Learn from a table of measurements: predict, or choose. Pure.

Each row is one run: columns for machine, workload and allocation, and columns
for results. *Forward*: predict the result of an untried combination.
*Backward*: choose the cheapest allocation in the table whose predicted result
is enough.

The predictor is a distance-weighted mean of the nearest rows over
standardised columns: it needs few rows, never extrapolates, and can show the
rows behind an answer. Its error is measured by predicting each row from the
others.

Off unless asked for: data-driven configuration of storage gateways is the
subject of patents in some places; see the manual page before using it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from swift_dss.core.errors import BadConfig

#: Rows that a prediction is the mean of.
NEIGHBOURS = 3
#: Combinations that a choice looks at, at most.
MAX_CHOICES = 100000
Row = Mapping[str, float]


@dataclass(frozen=True)
class Prediction:
    """A prediction.

    :param rows: numbers of the rows behind the prediction, nearest first
    :param distance: of the nearest, in standard deviations
    """

    value: float
    rows: Tuple[int, ...]
    distance: float


@dataclass(frozen=True)
class Choice:
    """An allocation and its prediction.

    :param rows: numbers of the rows behind the prediction, nearest first
    """

    allocation: Mapping[str, float]
    cost: float
    predicted: float
    rows: Tuple[int, ...] = ()


class Table:
    """Measurements.

    :param rows: all with the same columns
    :param features: columns that describe a run
    :param target: the column to be predicted
    :raises BadConfig: too few rows, or a column is missing
    """

    def __init__(self, rows: Sequence[Row], features: Sequence[str],
                 target: str) -> None:
        if len(rows) < NEIGHBOURS + 1:
            raise BadConfig('table: %d rows are too few to learn from; %d '
                            'are the least' % (len(rows), NEIGHBOURS + 1))
        for number, row in enumerate(rows, 1):
            for name in (*features, target):
                if name not in row:
                    raise BadConfig('table, row %d: no column %s'
                                    % (number, name))
        self._rows = list(rows)
        self._features = list(features)
        self._target = target
        self._scale: Dict[str, Tuple[float, float]] = {
            name: _moments([row[name] for row in rows])
            for name in features}

    def predict(self, given: Row) -> Prediction:
        """The predicted result of ``given``, which MUST have every feature."""
        return self._predict(given, None)

    def beyond(self, given: Row) -> Dict[str, Tuple[float, float]]:
        """The features whose values were never measured so low or so high,
        with the least and the largest that were."""
        reach = {name: (min(row[name] for row in self._rows),
                        max(row[name] for row in self._rows))
                 for name in self._features}
        return {name: (low, high) for name, (low, high) in reach.items()
                if not low <= given[name] <= high}

    def error(self) -> float:
        """Mean absolute percentage error of leaving one out, a share."""
        errors = []
        for number, row in enumerate(self._rows):
            said = self._predict(row, number).value
            if row[self._target]:
                errors.append(abs(said - row[self._target])
                              / abs(row[self._target]))
        return sum(errors) / len(errors) if errors else 0.0

    def choose(self, given: Row, free: Sequence[str], at_least: float,
               costs: Mapping[str, float]) -> Optional[Choice]:
        """The cheapest values of the ``free`` columns, of those seen, with
        which at least so much should come out.

        :param given: the other features
        :param costs: price of one unit of each free column
        :raises BadConfig: more combinations than :data:`MAX_CHOICES`
        """
        seen = [sorted({row[name] for row in self._rows}) for name in free]
        combinations = 1
        for values in seen:
            combinations *= len(values)
        if combinations > MAX_CHOICES:
            raise BadConfig('table: more than %d combinations of %s' % (
                MAX_CHOICES, ', '.join(free)))
        best: Optional[Choice] = None
        for chosen in product(*seen):
            allocation = dict(zip(free, chosen))
            cost = sum(value * costs.get(name, 1.0)
                       for name, value in allocation.items())
            if best is not None and cost >= best.cost:
                continue
            said = self.predict({**given, **allocation})
            if said.value >= at_least:
                best = Choice(allocation, cost, said.value, said.rows)
        return best

    def _predict(self, given: Row, without: Optional[int]) -> Prediction:
        near: List[Tuple[float, int]] = sorted(
            (self._distance(given, row), number)
            for number, row in enumerate(self._rows)
            if number != without)[:NEIGHBOURS]
        weights = [1.0 / (distance + 1e-9) for distance, _ in near]
        value = sum(weight * self._rows[number][self._target]
                    for weight, (_, number) in zip(weights, near)
                    ) / sum(weights)
        return Prediction(value, tuple(number for _, number in near),
                          near[0][0])

    def _distance(self, row: Row, other: Row) -> float:
        total = 0.0
        for name in self._features:
            _, deviation = self._scale[name]
            total += ((row[name] - other[name]) / deviation) ** 2
        return math.sqrt(total)


def _moments(values: Sequence[float]) -> Tuple[float, float]:
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values)
                          / len(values))
    return mean, deviation or 1.0
