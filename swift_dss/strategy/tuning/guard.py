"""Whether the true cache keeps what the shadows promised.

Shadows are small and know neither watermarks nor slow promotions, so the true
cache differs from the shadow of its own order: by its *lag*, what that shadow
saved less what the true cache saved, as a share of the cost of all reads. The
lag behind the configured order is measured while that order is in force. Under
another order the true cache should lag less behind the configured one's
shadow. If it lags more than before, that order costs hits, whatever its own
shadow says.
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import Deque, NamedTuple, Optional, Tuple

#: Batches that a lag is measured over.
MOST, LEAST = 128, 16
#: Batches after a change that do not count: objects take their new places.
SETTLING = 8
#: A loss that is borne, and by how many standard errors it is to be above it.
BORNE, ERRORS = 0.003, 2.0
#: A loss over :data:`MOST` batches that is not borne, however uncertain.
NEVER = 0.01


class Lag(NamedTuple):
    """A share, and its standard error."""

    mean: float
    error: float


class Guard:
    """See the module.

    :param home: the lag under the configured order, if another one is in
        force from the start
    """

    def __init__(self, home: Optional[Lag] = None) -> None:
        self.home = home
        self._rows: Deque[Tuple[float, float]] = deque(maxlen=MOST)
        self._settling = 0

    def restart(self) -> None:
        """The shadows began again."""
        self._rows.clear()

    def left(self) -> None:
        """Another order than the configured one came into force, for that."""
        self.home = self.lag()
        self.changed()

    def changed(self) -> None:
        """Another order came into force."""
        self._rows.clear()
        self._settling = SETTLING

    def hear(self, asked: float, configured: float, true: float) -> None:
        """A batch.

        :param asked: above 0
        :param configured: what the shadow of the configured order saved
        :param true: what the true cache saved
        """
        if self._settling:
            self._settling -= 1
            return
        self._rows.append((asked, configured - true))

    def lag(self) -> Optional[Lag]:
        """Behind the configured order's shadow, in the last batches; None if
        there are too few."""
        number = len(self._rows)
        if number < LEAST:
            return None
        asked = sum(row[0] for row in self._rows)
        mean = sum(row[1] for row in self._rows) / asked
        spread = sum((row[1] - mean * row[0]) ** 2 for row in self._rows)
        return Lag(mean, sqrt(spread / (number - 1) * number) / asked)

    def loss(self) -> Optional[Tuple[float, float, int]]:
        """(loss, standard error, batches), if the order in force loses against
        the configured one; call it only under another one."""
        lag = self.lag()
        if lag is None or self.home is None:
            return None
        loss = lag.mean - self.home.mean
        error = sqrt(lag.error ** 2 + self.home.error ** 2)
        number = len(self._rows)
        if loss > BORNE + ERRORS * error or number == MOST and loss > NEVER:
            return loss, error, number
        return None
