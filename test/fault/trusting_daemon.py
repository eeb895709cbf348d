"""The wrong twin of the outage cycles: a tier daemon that takes S3's word.

Runs like ``swift_dss.tier.main``, but an upload that was answered with
200 is not looked at again. A campaign over a liar must lose bytes with it.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Optional

from swift_dss.gateway.form import verify
from swift_dss.gateway.link import client
from swift_dss.tier import main

_really = client.S3Client.head


def head(self: client.S3Client, key: str) -> Optional[client.S3Head]:
    """What S3 says, or would say if it had kept what it said yes to."""
    return _really(self, key) or _sent.get(key)


def put(self: client.S3Client, key: str, data: bytes, md5: bytes,
        *arguments: Any, **named: Any) -> str:
    """As the client does it."""
    etag = _put_really(self, key, data, md5, *arguments, **named)
    _sent[key] = client.S3Head(len(data), md5.hex(), {})
    return etag


#: What S3 said yes to.
_sent: Dict[str, client.S3Head] = {}
_put_really = client.S3Client.put

if __name__ == '__main__':
    client.S3Client.head = head  # type: ignore[method-assign]
    client.S3Client.put = put  # type: ignore[method-assign]
    verify.Verifier.proves = (  # type: ignore[method-assign]
        lambda *arguments: True)
    verify.Verifier.proves_small = (  # type: ignore[method-assign]
        lambda *arguments: True)
    sys.exit(main.main())
