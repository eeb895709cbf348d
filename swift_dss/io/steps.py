"""Named steps of the operations that move bytes: where a crash may fall.

An operation says ``steps.reached('evict.built')`` at each point between
two durable effects. Normally that is one comparison. A fault campaign arms
it through the environment of the process it is about to kill:

``SWIFT_DSS_CRASH_AT=<name>:<nth>``
    SIGKILL this process when the step is reached for the nth time (from 1).
``SWIFT_DSS_STEP_LOG=<file>``
    Append each step's name to the file, so that the campaign can learn
    which steps there are and how often each one is reached.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Callable, Dict, Optional, Tuple

CRASH_AT = 'SWIFT_DSS_CRASH_AT'
STEP_LOG = 'SWIFT_DSS_STEP_LOG'


def _armed_at(text: str) -> Optional[Tuple[str, int]]:
    if not text:
        return None
    name, _, nth = text.rpartition(':')
    return name, int(nth)


_crash_at = _armed_at(os.environ.get(CRASH_AT, ''))
_log_path = os.environ.get(STEP_LOG, '')
_listener: Optional[Callable[[str], None]] = None
_hits: Dict[str, int] = {}
_lock = threading.Lock()
_armed = bool(_crash_at or _log_path)


def reached(name: str) -> None:
    """Say that ``name`` was reached; may not return, if armed for it."""
    if not _armed:
        return
    with _lock:
        _hits[name] = _hits.get(name, 0) + 1
        hits = _hits[name]
        if _log_path:
            _append(name)
    if _listener is not None:
        _listener(name)
    if _crash_at == (name, hits):
        os.kill(os.getpid(), signal.SIGKILL)


def arm(text: str) -> None:
    """Arm ``<name>:<nth>`` in this process from now on ('': nothing).

    For a campaign's child that was forked: it has no environment to read.
    """
    global _crash_at, _armed
    _crash_at = _armed_at(text)
    _hits.clear()
    _armed = bool(_listener or _crash_at or _log_path)


def listen(listener: Optional[Callable[[str], None]]
           ) -> Optional[Callable[[str], None]]:
    """Call ``listener`` with each step's name (None: stop); returns the one
    before. For tests and simulations."""
    global _listener, _armed
    before, _listener = _listener, listener
    _armed = bool(listener or _crash_at or _log_path)
    return before


def _append(name: str) -> None:
    log_fd = os.open(_log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(log_fd, name.encode('ascii') + b'\n')
    finally:
        os.close(log_fd)
