"""One request to one device of an object server, past the proxy."""

from __future__ import annotations

import http.client
from typing import Dict, NamedTuple, Optional
from urllib.parse import quote


class Reply(NamedTuple):
    """An answer.

    :param cut: the connection ended before the promised length
    """

    status: int
    headers: Dict[str, str]
    body: bytes
    cut: bool


def request(port: int, method: str, device: str, partition: str, path: str,
            policy: int, headers: Optional[Dict[str, str]] = None,
            timeout_seconds: float = 30.0) -> Reply:
    """Send one request and read all of the answer.

    :param path: ``/account/container/object``
    """
    connection = http.client.HTTPConnection(
        '127.0.0.1', port, timeout=timeout_seconds)
    sent = {'X-Backend-Storage-Policy-Index': str(policy)}
    sent.update(headers or {})
    try:
        connection.request(method, '/%s/%s%s' % (
            device, partition, quote(path)), headers=sent)
        answer = connection.getresponse()
        cut = False
        try:
            body = answer.read()
        except http.client.IncompleteRead as err:
            body, cut = err.partial, True
        except ConnectionError:
            body, cut = b'', True
        return Reply(answer.status,
                     {name.lower(): value for name, value
                      in answer.getheaders()}, body, cut)
    finally:
        connection.close()
