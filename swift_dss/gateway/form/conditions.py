"""Does this S3 server honour conditions of a PUT?

With ``If-None-Match: *`` a server refuses a PUT whose key is there already, so
an upload need not look first. A server that does not know the condition
ignores it and stores the bytes. So :class:`Conditions` puts one key of its
own, at most twice and once in a daemon's life, and believes in conditions only
if S3 refuses. The key stays: where each daemon removed it, a PUT between those
of another one would make a good server look like one that ignores conditions.
"""

from __future__ import annotations

from typing import Optional

from swift_dss.core.errors import DssError
from swift_dss.gateway.form import digests
from swift_dss.gateway.link.client import (
    CONDITION_KEY, S3Client, S3Exists, S3Rejected)


class Conditions:
    """Knows it after :meth:`look`. Safe for threads.

    :param prefix: of the bucket's keys
    """

    def __init__(self, client: S3Client, prefix: str) -> None:
        self._client = client
        self._key = prefix + CONDITION_KEY
        self._honoured: Optional[bool] = None

    @property
    def honoured(self) -> bool:
        """True if S3 refuses to store a key that is there; False also if that
        is not known."""
        return bool(self._honoured)

    def look(self) -> None:
        """Ask S3, unless it has answered before. Blocks on two requests.

        Does not raise if S3 does not answer: the next call asks again.
        """
        if self._honoured is not None:
            return
        try:
            self._honoured = self._asked()
        except DssError:
            return

    def _asked(self) -> bool:
        digest = digests.md5(b'').digest()
        try:
            for _ in range(2):
                self._client.put(self._key, b'', digest,
                                 only_if_missing=True)
        except S3Exists:
            return True
        except S3Rejected:
            return False
        return False
