"""Read-ahead of ``dss://``: it keeps to bytes of one class."""

from __future__ import annotations

import pytest

pytest.importorskip('fsspec')

from swift_dss.client.fs.ahead import ClassedReadAhead

BODY = bytes(range(256)) * 40
#: Two ranges that touch, and one at the end.
RANGES = [(0, 1000, 1), (4000, 500, 1), (4500, 100, 2), (10000, 240, 1)]


class Asked:
    """A cache over ``BODY``; what it asked for."""

    def __init__(self, block_bytes=3000):
        self.asked = []
        self._cache = ClassedReadAhead(block_bytes, self._fetch, len(BODY),
                                       RANGES)

    def _fetch(self, start, end):
        self.asked.append((start, end))
        return BODY[start:end]

    def read(self, start, end):
        assert self._cache._fetch(start, end) == BODY[start:end]
        return self.asked


@pytest.mark.parametrize('start, end, asked', [
    (0, 10, (0, 1000)),          # to the end of the range
    (0, 1000, (0, 1000)),        # nothing is left of it
    (990, 1010, (990, 4010)),    # it ends outside
    (4000, 4010, (4000, 4500)),  # another class comes next
    (4500, 4501, (4500, 4600)),
    (2000, 2010, (2000, 5010)),  # across ranges
    (10100, 10101, (10100, 10240))])
def test_read_ahead_does_not_leave_a_range(start, end, asked):
    assert Asked().read(start, end) == [asked]


def test_a_reader_in_small_steps_gets_all_bytes():
    cache = Asked()
    for start in range(0, len(BODY), 100):
        cache.read(start, min(start + 100, len(BODY)))
    # Seven would do without classes.
    assert len(cache.asked) <= 7
