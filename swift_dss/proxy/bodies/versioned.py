"""Uploads into containers that keep versions.

Swift's object versioning sends a client's upload on by a request of its own.
That one comes from the same source as its copies, says that its body has no
bytes, and counts what is read of it for the container's listing.
"""

from __future__ import annotations

import base64
from typing import Optional

from swift.common.middleware.versioned_writes.object_versioning import (
    ByteCountingReader)

from swift_dss.proxy.trusted import COPIERS, Carried
from swift_dss.proxy.wsgi import Env


def is_upload(env: Env) -> bool:
    """True for a client's PUT that object versioning sends on, uploads and
    copies alike; not for its own copies and delete markers.
    """
    return env.get('swift.source') == 'OV' and isinstance(
        env['wsgi.input'], ByteCountingReader)


def is_copy(env: Env, carried: Optional[Carried]) -> bool:
    """True if the PUT's body and metadata are those of another object.

    :param carried: what the PUT had under our seal
    """
    return env.get('swift.source') in COPIERS and (
        carried is not None or not is_upload(env))


def take_digest(env: Env) -> Optional[str]:
    """Take the MD5 that S3's client promised of the whole body off a PUT.

    s3api makes the ETag of it, which is that of the data elsewhere.
    """
    is_s3 = env.get('swift.source') == 'S3'
    if is_s3 or is_upload(env) and _is_of_whole(env):
        digest: Optional[str] = env.pop('HTTP_ETAG', None)
        return digest
    return None


def _is_of_whole(env: Env) -> bool:
    try:
        etag = bytes.fromhex(env.get('HTTP_ETAG', ''))
    except ValueError:
        return False
    said: str = env.get('HTTP_CONTENT_MD5', '')
    return base64.b64encode(etag).decode() == said.strip()


def leave_out(env: Env, count: int) -> None:
    """Do not count so many bytes of the body: they are not the object's."""
    if is_upload(env):
        env['wsgi.input'].bytes_read -= count
