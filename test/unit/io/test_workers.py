"""Pools that work in threads, and in the caller."""

from __future__ import annotations

import threading

import pytest

from swift_dss.io import workers


class Crash(BaseException):
    """No Exception: the end of a process."""


@pytest.mark.parametrize('pool', (workers.threads, workers.inline))
def test_work_is_done_and_its_error_is_told(pool):
    with pool(1, 'x') as made:
        assert made.submit(lambda: 7).result(10) == 7
        assert list(made.map(abs, (-1, 2))) == [1, 2]
        with pytest.raises(ValueError):
            made.submit(int, 'no number').result(10)


def test_threads_have_the_name_that_was_asked_for():
    with workers.threads(1, 'dss-x') as made:
        assert made.submit(
            lambda: threading.current_thread().name).result(
                10).startswith('dss-x')


def test_inline_work_is_over_when_submit_returns():
    seen = []
    workers.inline(1, 'x').submit(
        lambda: seen.append(threading.current_thread()))
    assert seen == [threading.current_thread()]


def test_a_crash_of_inline_work_reaches_the_caller():
    def crash():
        raise Crash

    with pytest.raises(Crash):
        workers.inline(1, 'x').submit(crash)
