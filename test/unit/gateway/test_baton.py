"""One at a time, in the order of their coming."""

from __future__ import annotations

import threading

from support import wait_until

from swift_dss.gateway.baton import Baton


def test_those_who_wait_get_it_in_their_order():
    baton = Baton()
    order = []

    def run(number):
        with baton:
            order.append(number)

    threads = []
    with baton:
        for number in range(4):
            threads.append(threading.Thread(target=run, args=(number,)))
            threads[-1].start()
            wait_until(lambda: len(baton._waiting) == len(threads), 30,
                       'thread %d waits' % number)
        assert order == []
    for thread in threads:
        thread.join(30)
    assert order == [0, 1, 2, 3]
    assert not baton._is_held and not baton._waiting


def test_it_is_held_by_one_alone_and_given_back_after_an_error():
    baton = Baton()
    inside = []
    most = []

    def run():
        for _ in range(200):
            try:
                with baton:
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
                    raise ValueError
            except ValueError:
                pass

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(most) == 800 and set(most) == {1}
    assert not baton._is_held
