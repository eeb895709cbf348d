"""HTTP requests byte by byte: what well-behaved clients never send."""

from __future__ import annotations

import http.client
import socket
from typing import Iterable, NamedTuple, Tuple, Union

Text = Union[str, bytes]


class Answer(NamedTuple):
    """Status, headers (names in lower case) and body."""

    status: int
    headers: dict
    body: bytes


def request(port: int, method: str, path: str,
            headers: Iterable[Tuple[Text, Text]] = (), body: bytes = b'',
            raw_lines: bytes = b'', timeout: float = 30.0) -> Answer:
    """Send one request and close.

    :param raw_lines: header lines put in as they are, with their CRLF
    """
    head = [b'%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n'
            % (method.encode(), path.encode(), port)]
    sent = {_bytes(name).lower() for name, _ in headers}
    if b'content-length' not in sent and b'transfer-encoding' not in sent:
        head.append(b'Content-Length: %d\r\n' % len(body))
    head += [b'%s: %s\r\n' % (_bytes(name), _bytes(value))
             for name, value in headers]
    connection = socket.create_connection(('127.0.0.1', port), timeout)
    with connection:
        connection.sendall(b''.join(head) + raw_lines + b'\r\n' + body)
        answer = http.client.HTTPResponse(connection, method=method)
        try:
            answer.begin()
            return Answer(answer.status, {
                name.lower(): value for name, value in answer.getheaders()},
                answer.read())
        except (http.client.BadStatusLine, ConnectionResetError):
            return Answer(0, {}, b'')
        finally:
            answer.close()


def _bytes(text: Text) -> bytes:
    return text if isinstance(text, bytes) else text.encode('utf-8')
