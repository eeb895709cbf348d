"""How long a device's HDD is busy: object servers say it, proxies heed it.

Object servers say it in milliseconds with each answer to a GET or HEAD
(``X-Backend-Dss-Backlog``). It is another number fifty times a second, so it
is not one of the figures of a node that proxies ask for once a second, and
only where they write (``wire.node.pressure``).

A proxy may ask for bytes of a replica on condition
(``X-Backend-Dss-Within``): if they lie on the HDD alone, and that is busy
for longer, the server answers 404 with ``X-Backend-Dss-Elsewhere: busy``. A
body that breaks off goes on from any replica, busy or not. Of the headers of
a request, Swift's getter drops but one before it asks for the rest, and that
one is a list of names of metadata; so a name in it says that the condition
holds, and no object has such metadata.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

#: A longer one passes for this long.
MAX_BACKLOG_MS = 60000
_MAX_DIGITS = 9

_WITHIN = 'HTTP_X_BACKEND_DSS_WITHIN'
#: Swift's: metadata of objects whose ranges it ignores.
_DROPPED = 'HTTP_X_BACKEND_IGNORE_RANGE_IF_METADATA_PRESENT'
_FIRST_TRY = 'X-Object-Dss-First-Try'


def decode(text: Optional[str]) -> Optional[int]:
    """Milliseconds; None if there are none, or it is not one of ours."""
    if not text or not (text.isascii() and text.isdigit()) or \
            len(text) > _MAX_DIGITS:
        return None
    return min(MAX_BACKLOG_MS, int(text))


def set_limit(env: Dict[str, Any], limit_ms: int) -> None:
    """Make a GET one on condition."""
    env[_WITHIN] = str(limit_ms)
    env[_DROPPED] = ','.join(filter(None, (env.get(_DROPPED), _FIRST_TRY)))


def limit_of(env: Dict[str, Any]) -> Optional[int]:
    """The limit of a GET on condition; None if it has none."""
    text = env.get(_WITHIN)
    if text is None or _FIRST_TRY not in env.get(_DROPPED, ''):
        return None
    return decode(text)
