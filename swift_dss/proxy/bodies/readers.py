"""A word for the reader of a request, which reveals nothing else.

A prefetcher must tell readers apart, because only the requests of one reader
follow one another. The word is a digest of the client's address and user; no
name or address goes to the object servers. A client that forges
``X-Forwarded-For`` only passes for another reader of objects that it may read:
the prefetcher's memory is kept by account.
"""

from __future__ import annotations

from hashlib import blake2s

from swift_dss.core.limits import MAX_READER_CHARS
from swift_dss.proxy.wsgi import Env


def reader_of(env: Env) -> str:
    """The word for a request's client; the same on every proxy."""
    # The address as in Swift's own log.
    said = '%s\0%s' % (
        env.get('HTTP_X_CLUSTER_CLIENT_IP') or
        env.get('HTTP_X_FORWARDED_FOR') or env.get('REMOTE_ADDR') or '',
        env.get('HTTP_X_USER_ID') or env.get('REMOTE_USER') or '')
    return blake2s(said.encode('utf-8', 'surrogateescape'),
                   digest_size=MAX_READER_CHARS // 2).hexdigest()
