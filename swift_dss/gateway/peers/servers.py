"""One question to an object server, over a plain socket."""

from __future__ import annotations

import http.client
from typing import Dict, Mapping, Optional, Tuple

from swift_dss.core.limits import MAX_QUESTION_BYTES

_TIMEOUT_SECONDS = 5.0
#: Host or address, and port.
Server = Tuple[str, int]
#: All that goes wrong with a question.
FAILURES = (OSError, http.client.HTTPException)


def request(server: Server, method: str, path: str,
            headers: Mapping[str, str], body: Optional[bytes] = None
            ) -> Tuple[int, Dict[str, str], bytes]:
    """Status, headers in small letters, and body of the answer; no more of
    it than one byte over ``MAX_QUESTION_BYTES``. Blocks, five seconds at a
    time.

    :raises OSError, http.client.HTTPException: there is none
    """
    connection = http.client.HTTPConnection(
        server[0], server[1], timeout=_TIMEOUT_SECONDS)
    try:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return int(answer.status), {
            name.lower(): value for name, value in answer.getheaders()
            }, answer.read(MAX_QUESTION_BYTES + 1)
    finally:
        connection.close()
