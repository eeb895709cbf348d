"""Who reads, as a word that says nothing else.

Requests of one reader follow one another, those of two do not: a
prefetcher has to tell them apart. The word is a digest of the client's
address and user; no name or address goes to the object servers. An
``X-Forwarded-For`` that a client made up puts himself in the place of
another reader of what he may read, and opens nothing: what accounts
remember is kept by account.
"""

from __future__ import annotations

from hashlib import blake2s

from swift_dss.core.limits import MAX_READER_CHARS
from swift_dss.proxy.wsgi import Env

#: What tells clients apart, the nearest to the client first; the first
#: three as Swift's own log has it.
_ADDRESSES = ('HTTP_X_CLUSTER_CLIENT_IP', 'HTTP_X_FORWARDED_FOR',
              'REMOTE_ADDR')
_USERS = ('HTTP_X_USER_ID', 'REMOTE_USER')


def reader_of(env: Env) -> str:
    """The word for a request's client; the same on every proxy."""
    said = '\0'.join(
        next((str(env[name]) for name in names if env.get(name)), '')
        for names in (_ADDRESSES, _USERS))
    return blake2s(said.encode('utf-8', 'surrogateescape'),
                   digest_size=MAX_READER_CHARS // 2).hexdigest()
