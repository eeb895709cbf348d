"""Waits of parts of a millisecond, for the laboratory.

Eventlet's hub asks poll(2) for whole milliseconds and spins for the rest. In a
guest in virtual time nothing but the spinning lets that rest go by, some
thousand system calls a wait.
"""

from __future__ import annotations

import ctypes
from typing import Any

from eventlet import patcher
from eventlet.hubs import hub, poll

_PR_SET_TIMERSLACK = 29
_LEAST_SECONDS = 0.001


def enable() -> None:
    """Have the hub of this process wait for as long as it is asked to, and
    no timer of this thread, and of those that it makes, be late."""
    select = patcher.original('select').select
    whole = poll.Hub.do_poll

    def do_poll(self: Any, seconds: float) -> Any:
        if 0 < seconds < _LEAST_SECONDS:
            select(list(self.listeners[hub.READ]),
                   list(self.listeners[hub.WRITE]), [], seconds)
            seconds = 0
        return whole(self, seconds)

    poll.Hub.do_poll = do_poll
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
