"""The other side: users of one process, for a parent on another machine."""

from __future__ import annotations

import pickle
import queue
import threading
import time
from typing import Any, Dict, Tuple

from swift_dss.bench.load.users import LoadFailed
from swift_dss.bench.load.workers.live import live
from swift_dss.bench.load.workers.worker import SILENCE_SECONDS

#: The last message that a channel's callback gets.
END = None


def serve(channel: Any) -> None:
    """Do what the parent says; ends with its word, or with it."""
    message = channel.receive()
    while message == 'clock':
        channel.send(time.monotonic())
        message = channel.receive()
    try:
        # It is the one whose code runs here.
        plan, number, offset = pickle.loads(message)  # noqa: S301
        pipe = _Pipe(channel, offset)
        live(plan, number, pipe, pipe)
        while pipe.recv() == 'clock':
            pipe.send(('clock', time.monotonic()))
    except LoadFailed as err:
        channel.send(('failed', str(err)))
    except EOFError:
        # The parent has gone: nobody wants the numbers.
        return
    except Exception as err:
        # An error of the program, or a library that is not here.
        channel.send(('failed', '%s: %s' % (type(err).__name__, err)))


class _Pipe:
    """The channel as :func:`~.live.live` knows a pipe, in its own time.

    :param offset: seconds that this clock is ahead of the parent's
    """

    def __init__(self, channel: Any, offset: float) -> None:
        self._channel = channel
        self._offset = offset
        self._messages: queue.Queue[Any] = queue.Queue()
        self._stopped = threading.Event()
        self._heard_at = time.monotonic()
        channel.setcallback(self._hear, endmarker=END)

    def _hear(self, message: Any) -> None:
        self._heard_at = time.monotonic()
        if message in ('stop', END):
            self._stopped.set()
        if message not in ('stop', 'alive'):
            self._messages.put(message)

    def is_set(self) -> bool:
        """No more requests have to begin; asked while they are measured.

        A parent that says nothing has taken this machine for lost: requests
        that it does not count would still be a load for the others.
        """
        return self._stopped.is_set() or \
            time.monotonic() - self._heard_at > SILENCE_SECONDS

    def poll(self) -> bool:
        """Whether there is a word."""
        return not self._messages.empty()

    def recv(self) -> Any:
        """The next word; a time is one of this machine's."""
        word = self._messages.get()
        if word is END:
            raise EOFError
        return word + self._offset if isinstance(word, float) else word

    def send(self, message: Tuple[str, Any]) -> None:
        """Say something; times become those of the other machine."""
        name, said = message
        if name == 'counts':
            said = self._shifted(said)
        self._channel.send((name, said))

    def _shifted(self, said: Dict[str, Any]) -> Dict[str, Any]:
        counts = said['counts']
        if counts.last_sent:
            counts = counts._replace(
                last_sent=counts.last_sent - self._offset)
        return dict(said, end=said['end'] - self._offset,
                    counts=tuple(counts))
