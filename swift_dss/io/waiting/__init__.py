"""How a request waits: in an event loop, or in a thread of its own.

Holds all that the product takes from eventlet, and the same for threads.
In: verbs that wait or begin work, from pools, servers and filters.
Never: a decision elsewhere. Only :func:`_decide` looks which form this
process has, and only ``green`` and ``native`` import eventlet.
"""

from __future__ import annotations

import errno
import sys
from types import ModuleType
from typing import (
    Any, Callable, ContextManager, Iterable, Iterator, Mapping, Optional,
    Tuple, TypeVar)

from swift_dss.io.waiting import threads
from swift_dss.io.waiting.threads import Mailbox

_Item = TypeVar('_Item')
_Result = TypeVar('_Result')

#: The module ``green`` once its event loop runs in this process.
_green: Any = None


def _decide() -> bool:
    """Look for an event loop, until there is one: a server patches its
    sockets after its modules are loaded. Swift imports eventlet also where it
    uses none of it, so an import alone says nothing."""
    global _green
    patcher = sys.modules.get('eventlet.patcher')
    if patcher is None or not patcher.is_monkey_patched('socket'):
        return False
    from swift_dss.io.waiting import green
    _green = green
    return True


def _form() -> ModuleType:
    return _green if _green is not None or _decide() else threads


def mailbox(waits: bool = True) -> Optional[Mailbox]:
    """The way of a pool's answers to the caller. None if the caller does the
    work itself.

    :param waits: False if the caller will not wait for an answer; callbacks
        of an event loop must not wait in it
    """
    if _green is not None or _decide():
        box: Optional[Mailbox] = _green.mailbox(waits)
        return box
    return threads.mailbox()


def is_green() -> bool:
    """True if the caller is a green thread that may wait."""
    return (_green is not None or _decide()) and bool(_green.may_wait())


def later(seconds: float, call: Callable[[], None]) -> bool:
    """Call in the event loop after some seconds.

    :returns: False if this thread has no event loop; the caller then does it
        at once
    """
    return (_green is not None or _decide()) and \
        bool(_green.later(seconds, call))


def sleep(seconds: float) -> None:
    """Let others go on for some seconds, or for one turn (0)."""
    _form().sleep(seconds)


def spawn(call: Callable[..., Any], *args: Any) -> None:
    """Begin work that nobody waits for. It MUST handle its own errors."""
    _form().spawn(call, *args)


def together(call: Callable[[_Item], _Result],
             items: Iterable[_Item]) -> Iterator[_Result]:
    """The results for all items, in their order. All calls run at once, so
    the items MUST be few."""
    results: Iterator[_Result] = _form().together(call, items)
    return results


def limit(seconds: float) -> ContextManager[None]:
    """Bound the waits inside for pools' answers and of :func:`fetch`.

    :raises TimeoutError: it takes longer
    """
    context: ContextManager[None] = _form().limit(seconds)
    return context


def fetch(host: str, port: int, path: str, headers: Mapping[str, str],
          most_bytes: int, seconds: float, method: str = 'GET',
          body: Optional[bytes] = None,
          connect_seconds: Optional[float] = None
          ) -> Tuple[int, Mapping[str, str], bytes]:
    """Ask over HTTP without holding up others: status, headers, and the
    first ``most_bytes`` of the answer's body.

    :param path: quoted
    :param body: of the request, if it has one
    :param connect_seconds: that the connection may take
    :raises OSError: no answer within ``seconds``, or none of HTTP
    """
    form = _form()
    with limit(seconds):
        connection = form.client.HTTPConnection(host, port)
        try:
            with limit(connect_seconds or seconds):
                connection.connect()
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return (response.status, response.headers,
                    response.read(most_bytes))
        except form.client.HTTPException as err:
            raise OSError(errno.EPROTO, 'no answer of HTTP: %r' % err)
        finally:
            connection.close()


def until_writable(fd: int) -> None:
    """Wait until a descriptor takes bytes."""
    _form().until_writable(fd)
