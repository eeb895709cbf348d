"""One user's connection: kept alive, one request at a time."""

from __future__ import annotations

import contextlib
import http.client
import time
from dataclasses import dataclass
from typing import Callable, Iterator, List, Optional, Sequence, Union

from swift_dss.bench.load.content import STEP_BYTES, Body, Part, Text
from swift_dss.bench.load.fronts import Ask, Place
from swift_dss.wire import names

#: Bodies that a GET may give; asked when the answer begins, as the server
#: has chosen the version by then.
Expected = Callable[[], Sequence[Body]]
#: Bodies of requests.
Sent = Union[Body, Part, Text]
_TIMEOUT_SECONDS = 120.0
_ERRORS = (OSError, http.client.HTTPException)
#: Bytes of an error's body that are read so that the connection lives on.
_ERROR_BYTES = 1 << 20
#: Of an answer to what a request says, in bytes; an XML document of S3.
_TEXT_BYTES = 1 << 16


@dataclass
class Answer:
    """The result of a request.

    :param status: 0: the connection broke, or the body was cut short
    :param sent: ``time.monotonic()`` when it began
    :param first: when the first line of the answer was there; None: never
    :param bodies: those of the ones expected that the bytes may be
    :param error: the reason of a status of 0
    :param text: of an answer to a :class:`~.content.Text`
    """

    sent: float
    status: int = 0
    first: Optional[float] = None
    end: float = 0.0
    bytes: int = 0
    tier: str = ''
    error: str = ''
    etag: str = ''
    text: str = ''
    bodies: Sequence[Body] = ()


class Link:
    """A connection; not for several threads."""

    def __init__(self, place: Place) -> None:
        kind = http.client.HTTPSConnection if place.tls else \
            http.client.HTTPConnection
        self._connection = kind(place.host, place.port,
                                timeout=_TIMEOUT_SECONDS)

    def connect(self) -> None:
        """Open the connection, so that no request that counts pays for it.

        A server that does not answer is left to the first request.
        """
        with contextlib.suppress(OSError):
            self._connection.connect()

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def send(self, ask: Ask, body: Optional[Sent] = None,
             expected: Optional[Expected] = None) -> Answer:
        """Send a request and read all of its answer; never raises for what
        the server does.

        :param body: of a PUT or POST
        :param expected: bodies that the bytes of a GET are compared with,
            as they come
        """
        answer = Answer(time.monotonic())
        try:
            self._ask(ask, body)
            response = self._connection.getresponse()
            answer.first = time.monotonic()
            if isinstance(body, Text) and response.status // 100 == 2:
                answer.text = response.read(_TEXT_BYTES).decode(
                    'utf-8', 'replace')
            self._read(response, answer, expected)
        except _ERRORS as err:
            self._connection.close()
            answer.status, answer.error = 0, '%s: %s' % (
                type(err).__name__, err)
        else:
            answer.status = response.status
            answer.etag = response.getheader('ETag') or ''
            answer.tier = response.getheader(names.TIER) or ''
            if response.will_close:
                self._connection.close()
        answer.end = time.monotonic()
        if body is not None and answer.status // 100 == 2:
            answer.bytes = body.size
        return answer

    def _ask(self, ask: Ask, body: Optional[Sent]) -> None:
        connection = self._connection
        connection.putrequest(ask.method, ask.path, skip_accept_encoding=True)
        for name, value in ask.headers.items():
            connection.putheader(name, value)
        if ask.method in ('PUT', 'POST'):
            connection.putheader('Content-Length',
                                 str(body.size if body else 0))
        # The first bytes go in the packet of the headers.
        pieces = body.pieces() if body is not None else iter(())
        connection.endheaders(next(pieces, None))
        for piece in pieces:
            connection.send(piece)

    def _read(self, response: http.client.HTTPResponse, answer: Answer,
              expected: Optional[Expected]) -> None:
        if response.status // 100 != 2:
            response.read(_ERROR_BYTES)
            if not response.isclosed():
                self._connection.close()
            return
        left: List[Body] = list(expected() if expected else ())
        for piece in _pieces(response):
            left = [body for body in left if body.has(answer.bytes, piece)]
            answer.bytes += len(piece)
        answer.bodies = [body for body in left if body.size == answer.bytes]


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """:raises http.client.IncompleteRead: the body is cut short"""
    left = response.length
    while True:
        piece = response.read(STEP_BYTES)
        if not piece:
            break
        if left is not None:
            left -= len(piece)
        yield piece
    if left:
        raise http.client.IncompleteRead(b'', left)
