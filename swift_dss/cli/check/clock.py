"""This node's clock: timestamps decide which version is the newest."""

from __future__ import annotations

import ctypes
from typing import Iterator, Optional

from swift_dss.cli.check.findings import Finding, fine, warning
from swift_dss.cli.check.node import Node

_TIME_ERROR = 5
#: struct timex is smaller than this on every architecture.
_TIMEX_BYTES = 512


def judge(_node: Node) -> Iterator[Finding]:
    """All of the group."""
    yield from synchronised(_state())


def synchronised(state: Optional[int]) -> Iterator[Finding]:
    """Judge what the kernel says.

    :param state: answer of adjtimex(2); None if it does not answer
    """
    if state is None:
        yield fine('clock', 'the kernel does not say whether it is '
                   'synchronised')
    elif state == _TIME_ERROR:
        yield warning('clock', 'not synchronised: the newest write wins by '
                      'its timestamp, so a clock that is ahead makes others\' '
                      'writes disappear', instead='run chrony, ntpd or '
                      'systemd-timesyncd on every node')
    else:
        yield fine('clock', 'synchronised')


def _state() -> Optional[int]:
    """Asks, and changes nothing."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        state = int(libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state
