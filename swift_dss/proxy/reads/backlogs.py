"""For how long the HDDs of devices are busy, as one proxy worker knows it.

Each answer to a GET or HEAD says it (``wire.backlog``). A queue to which
nothing is added is a second shorter after a second, so that is taken off what
a device said last. A read that was sent to it meanwhile is added, until an
answer has the real figure: else all readers of a moment would go to one HDD.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable, Dict, Optional, Tuple

from swift_dss.wire import backlog

#: What a read adds: one move of the arm, and a megabyte.
_READ_MS = 20.0
_MAX_DEVICES = 20000

Node = Dict[str, Any]
Key = Tuple[Any, ...]


def key_of(node: Node) -> Key:
    """The device of a node of the ring."""
    return node['ip'], node['port'], node['device']


class Backlogs:
    """What devices say of themselves.

    :param clock: monotonic seconds
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        #: (milliseconds, when), the device heard of last behind.
        self._said: OrderedDict[Key, Tuple[float, float]] = OrderedDict()

    def heard(self, device: Key, text: Optional[str]) -> None:
        """A device has answered, with this in its header or without it."""
        self._said.pop(device, None)
        said = backlog.decode(text)
        if said is None:
            return
        self._said[device] = float(said), self._clock()
        if len(self._said) > _MAX_DEVICES:
            self._said.popitem(last=False)

    def sent(self, device: Key) -> None:
        """It gets one more read of its HDD."""
        now = self.of(device)
        if now is not None:
            self._said[device] = now + _READ_MS, self._clock()

    def of(self, device: Key) -> Optional[float]:
        """Milliseconds for which it is busy now; None if it has not said
        it."""
        said = self._said.get(device)
        if said is None:
            return None
        return max(0.0, said[0] - 1000 * (self._clock() - said[1]))
