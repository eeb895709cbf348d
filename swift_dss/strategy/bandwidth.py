"""Predict the rate of the link to S3 from its past rates. Pure.

Formula-free prediction after He, Dovrolis and Ammar ("On the
predictability of large transfer TCP throughput", SIGCOMM 2005): a moving
average or a Holt-Winters filter without seasons over a *short* history
does well, once two things are taken out of it. A **level shift** (a route
changed, a neighbour left) makes everything before it worthless: history
restarts at the shift. An **outlier** is one sample that says nothing about the
next. Only :data:`CONFIRM` deviating samples tell a shift from an outlier;
until then the old level stands.

Several predictors run side by side. Each prediction is judged by the next
sample, and the predictor with the smallest mean error is used.
"""

from __future__ import annotations

import abc
from collections import deque
from dataclasses import dataclass
from typing import Deque, Dict, List, Mapping, Optional, Sequence

#: Samples that are looked back at; the cost of one more is O(HISTORY).
HISTORY = 48
#: Samples on the new level that make a shift of what might be outliers.
CONFIRM = 3
#: Two levels differ if their medians do by more than this share.
SHIFT = 0.3
#: A sample this share away from the median is an outlier.
OUTLIER = 0.4
#: Predictions that the published error is the mean of.
JUDGED = 50


class Predictor(abc.ABC):
    """One way to say the next sample from those before it."""

    name = ''

    @abc.abstractmethod
    def predict(self, samples: Sequence[float]) -> float:
        """The next sample.

        :param samples: oldest first, at least one, all above 0, shifts
            and outliers taken out
        :returns: above 0
        """


class MovingAverage(Predictor):
    """The mean of the last ``length`` samples."""

    name = 'moving_average'

    def __init__(self, length: int = 10) -> None:
        self._length = length

    def predict(self, samples: Sequence[float]) -> float:
        """See :meth:`Predictor.predict`."""
        recent = samples[-self._length:]
        return sum(recent) / len(recent)


class HoltWinters(Predictor):
    """Exponential smoothing of level and trend, without seasons.

    :param alpha: weight of the newest sample in the level
    :param beta: weight of the newest step in the trend
    """

    name = 'holt_winters'

    def __init__(self, alpha: float = 0.5, beta: float = 0.2) -> None:
        self._alpha = alpha
        self._beta = beta

    def predict(self, samples: Sequence[float]) -> float:
        """See :meth:`Predictor.predict`."""
        level = samples[0]
        trend = samples[1] - samples[0] if len(samples) > 1 else 0.0
        for sample in samples[1:]:
            before = level
            level = self._alpha * sample + (1 - self._alpha) * (
                level + trend)
            trend = self._beta * (level - before) + (
                1 - self._beta) * trend
        # A falling trend must not promise less than nothing.
        return max(level + trend, min(samples) / 2)


def median(values: Sequence[float]) -> float:
    """The middle one of some values (at least one)."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


def shift_at(samples: Sequence[float]) -> int:
    """Where the newest level begins; 0 if there was no shift.

    A shift is confirmed if at least :data:`CONFIRM` samples from there on
    are all above (or all below) every one before, and the medians differ
    by more than :data:`SHIFT` of the smaller.
    """
    for start in range(len(samples) - CONFIRM, CONFIRM - 1, -1):
        before, after = samples[:start], samples[start:]
        if not (max(before) < min(after) or min(before) > max(after)):
            continue
        if len(without_outliers(after)) < CONFIRM:
            continue  # the last of the old level, and too few of the new
        old, new = median(before), median(after)
        if abs(old - new) > SHIFT * min(old, new):
            return start
    return 0


def without_outliers(samples: Sequence[float]) -> List[float]:
    """The samples that are near their median; all of few."""
    if len(samples) < CONFIRM:
        return list(samples)
    middle = median(samples)
    return [sample for sample in samples
            if abs(sample - middle) <= OUTLIER * middle] or list(samples)


@dataclass(frozen=True)
class Outlook:
    """The prediction of the next sample.

    :param value: in the unit of the samples; None before the first one
    :param method: name of the predictor
    :param mape: mean absolute error of its last predictions, as a share of the
        samples; None before the first one was judged
    :param shifts: level shifts seen so far
    """

    value: Optional[float]
    method: str
    mape: Optional[float]
    shifts: int
    samples: int


class Forecast:
    """Predictors side by side over one series.

    Holds at most :data:`HISTORY` samples and :data:`JUDGED` errors of each
    predictor, however long it runs. Not thread-safe.
    """

    def __init__(self, predictors: Sequence[Predictor] = ()) -> None:
        self._predictors = list(predictors) or [
            MovingAverage(), HoltWinters()]
        self._samples: List[float] = []
        self._errors: Dict[str, Deque[float]] = {
            predictor.name: deque(maxlen=JUDGED)
            for predictor in self._predictors}
        self._said: Dict[str, float] = {}
        self._shifts = 0
        self._seen = 0

    def observe(self, sample: float) -> None:
        """Add the next sample, and judge the predictions of it.

        :param sample: above 0
        :raises ValueError: ``sample`` is not above 0
        """
        if not sample > 0:
            raise ValueError('%r is no throughput' % (sample,))
        for name, said in self._said.items():
            self._errors[name].append(abs(said - sample) / sample)
        self._seen += 1
        self._samples = (self._samples + [sample])[-HISTORY:]
        start = shift_at(self._samples)
        if start:
            self._shifts += 1
            self._samples = self._samples[start:]
        settled = without_outliers(self._samples)
        self._said = {predictor.name: predictor.predict(settled)
                      for predictor in self._predictors}

    def errors(self) -> Mapping[str, Optional[float]]:
        """MAPE of each predictor, as a share."""
        return {name: sum(errors) / len(errors) if errors else None
                for name, errors in self._errors.items()}

    def outlook(self) -> Outlook:
        """The prediction of the predictor with the smallest error."""
        errors = self.errors()
        best = min(self._predictors, key=lambda predictor: (
            errors[predictor.name] is None, errors[predictor.name] or 0.0))
        return Outlook(self._said.get(best.name), best.name,
                       errors[best.name], self._shifts, self._seen)
