"""Which candidate is in force: the verdict over what shadows saved.

A *gain* of one over another is the difference of what they saved, as a share
of what all reads would have cost without a cache. It is looked at over the
last 8 to 128 batches since the last change, so that a large one counts soon
and a small one only after a while. It comes with its standard error, batch by
batch of the same accesses.

- Another candidate comes into force if its gain over the one in force is
  above a margin by several standard errors, both larger over fewer batches.
- The configured one comes back if the true cache disappoints
  (:mod:`~swift_dss.strategy.tuning.guard`); as soon as it gains a quarter as
  much by itself, by ``BACK_ERRORS`` standard errors, which may be after 4
  batches; or once all batches say that leaving it gains next to nothing. To
  come back too soon costs what the other order would have saved; to come back
  too late costs hits, and those objects that the other order gave up.
- Away from the configured one it goes ``changes_a_day`` times in 24 hours at
  most. The way back is never refused.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import sqrt
from typing import Deque, Iterable, Optional, Sequence, Tuple

#: By batches: the gain that counts over them, and by how many standard errors
#: it must be above that. Orders have ups and downs that last some batches.
_HORIZONS = {8: (0.03, 5.0), 16: (0.02, 4.0), 32: (0.01, 3.5),
             64: (0.006, 3.0), 128: (0.004, 2.5)}
#: Batches that are remembered.
LONGEST = max(_HORIZONS)
#: The way back, as the load may be another one by now.
_BACK = {4: 0.0075, **{
    length: margin / 4 for length, (margin, _) in _HORIZONS.items()}}
BACK_ERRORS = 1.5
#: A gain that is not worth another order than the configured one.
_NOTHING = 0.0005
#: For so long the configured one stays after the guard brought it back.
HELD_BATCHES = 512
DAY_SECONDS = 86400.0


@dataclass(frozen=True)
class Verdict:
    """A change, and its reason.

    :param old, new: numbers of candidates; the configured one is 0
    :param gain: of ``new`` over ``old``, a share of the cost of all reads
    :param error: the gain's standard error
    :param batches: that it was seen over
    :param saved: what each saved over them, as such a share
    :param by_guard: the true cache saved less than it should; ``gain`` is
        that loss
    """

    old: int
    new: int
    gain: float
    error: float
    batches: int
    saved: Tuple[float, ...]
    by_guard: bool = False


#: The cost of all that was asked, and how much of it each candidate saved.
_Batch = Tuple[float, ...]


class Chooser:
    """See the module. Knows candidates by their numbers.

    :param changes_a_day: 0: no limit
    :ivar current: the one in force
    :ivar held: for so many batches the guard still keeps the configured one
    :ivar left_at: when the configured one was left, of the last 24 hours
    """

    def __init__(self, changes_a_day: int = 0, current: int = 0,
                 held: int = 0, left_at: Iterable[float] = ()) -> None:
        self._changes_a_day = changes_a_day
        self._batches: Deque[_Batch] = deque(maxlen=LONGEST)
        #: Sums of all batches up to and with one; a row more than those.
        self._sums: Deque[_Batch] = deque(maxlen=LONGEST + 1)
        self.left_at = deque(left_at)
        self.held = held
        self.current = current

    def restart(self) -> None:
        """The shadows began again: nothing that they said counts."""
        self._batches.clear()
        self._sums.clear()

    def judge(self, asked: float, saved: Sequence[float],
              now: float, may_leave: bool = True) -> Optional[Verdict]:
        """A batch more; the change that it leads to, which is made.

        :param asked: 0: the batch has no reads, and is left out
        :param now: seconds, of any clock that never goes back
        :param may_leave: another one than the one in force may come, and not
            only the configured one
        """
        if asked <= 0:
            return None
        row = (asked, *saved)
        if not self._sums:
            self._sums.append((0.0,) * len(row))
        self._batches.append(row)
        self._sums.append(tuple(map(sum, zip(self._sums[-1], row))))
        self.held = max(0, self.held - 1)
        verdict = self._way_back() or (
            self._way_on(now) if may_leave else None)
        if verdict is not None:
            if verdict.new:
                self.left_at.append(now)
            self.current = verdict.new
            # The batches that led to it would lead back and forth.
            self.restart()
        return verdict

    def go_back(self, loss: float, error: float, batches: int) -> Verdict:
        """The guard's verdict: the configured one, at once and for a while.
        """
        verdict = Verdict(self.current, 0, loss, error, batches,
                          self.saved(batches), True)
        self.current, self.held = 0, HELD_BATCHES
        self.restart()
        return verdict

    @property
    def batches(self) -> int:
        """That are remembered."""
        return len(self._batches)

    def saved(self, batches: int = LONGEST) -> Tuple[float, ...]:
        """By candidate: saved over the last so many, as a share; () if
        nothing was read."""
        batches = min(batches, len(self._batches))
        if not batches:
            return ()
        asked, *saved = map(lambda last, first: last - first, self._sums[-1],
                            self._sums[-1 - batches])
        return tuple(part / asked for part in saved)

    # -- inside ----------------------------------------------------------

    def _way_back(self) -> Optional[Verdict]:
        if not self.current:
            return None
        for length, margin in _BACK.items():
            if length > len(self._batches):
                break
            saved = self.saved(length)
            gain = saved[0] - saved[self.current]
            if gain <= -_NOTHING:
                continue
            error = self._error(0, self.current, gain, length)
            if length == LONGEST or gain > margin + BACK_ERRORS * error:
                return Verdict(self.current, 0, gain, error, length, saved)
        return None

    def _way_on(self, now: float) -> Optional[Verdict]:
        if self.held or self._is_spent(now):
            return None
        for length, (margin, errors) in _HORIZONS.items():
            if length > len(self._batches):
                break
            saved = self.saved(length)
            best = max(range(len(saved)), key=saved.__getitem__)
            gain = saved[best] - saved[self.current]
            if gain <= margin:
                continue
            error = self._error(best, self.current, gain, length)
            if gain > margin + errors * error:
                return Verdict(self.current, best, gain, error, length, saved)
        return None

    def _is_spent(self, now: float) -> bool:
        while self.left_at and self.left_at[0] <= now - DAY_SECONDS:
            self.left_at.popleft()
        return 0 < self._changes_a_day <= len(self.left_at)

    def _error(self, new: int, old: int, gain: float,
               length: int) -> float:
        """The standard error of a gain over the last batches."""
        rows = list(self._batches)[-length:]
        mean = sum(row[0] for row in rows) / length
        spread = sum((row[1 + new] - row[1 + old] - gain * row[0]) ** 2
                     for row in rows)
        return sqrt(spread / (length - 1) / length) / mean
