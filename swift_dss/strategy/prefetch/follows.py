"""How often readers go on as the graph foresees, learnt from their reads.

An edge of a graph says what is read after a node if its chain is followed. It
does not say whether this reader follows the chain: one that reads a place of
it for another reason goes elsewhere, and all that is fetched for it is paid
for in vain. The last read tells the two apart: it was foreseen by the reads
before it, or it was not. For both cases it is counted, by account, how often
the next read was foreseen. This needs no fetch, so it is known before any
dollar is spent.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import List

#: Reads that are remembered: at twice as many all counts are halved.
REMEMBERED = 128.0
#: Reads that are taken to have been foreseen before the first is counted.
PRIOR = 4.0
#: Below this more bytes would come in vain than in use.
LIKELY = 0.5


class Follows:
    """Counts by account.

    :param limit: accounts that are remembered; the least recently used is
        forgotten
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        #: Account to (reads, foreseen ones of them) after a read that was not
        #: foreseen, and after one that was.
        self._counts: OrderedDict[str, List[List[float]]] = OrderedDict()

    def told(self, account: str, in_line: bool, followed: bool) -> None:
        """A reader went on.

        :param in_line: its read before was foreseen
        :param followed: this one is
        """
        counts = self._of(account)[in_line]
        counts[0] += 1
        counts[1] += followed
        if counts[0] >= 2 * REMEMBERED:
            counts[:] = [count / 2 for count in counts]

    def chance(self, account: str, in_line: bool) -> float:
        """Probability that a reader goes on as foreseen; 1 until reads of
        the account say otherwise."""
        reads, followed = self._of(account)[in_line]
        return (followed + PRIOR) / (reads + PRIOR)

    def _of(self, account: str) -> List[List[float]]:
        counts = self._counts.pop(account, None)
        if counts is None:
            counts = [[0.0, 0.0], [0.0, 0.0]]
            if len(self._counts) >= self._limit:
                self._counts.popitem(last=False)
        self._counts[account] = counts
        return counts
