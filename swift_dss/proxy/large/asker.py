"""Whose rights count for a manifest that object versioning sends on.

It does so without the client's rights: the request may do everything. Just
before, Swift's SLO has looked at each segment in the client's name. Both are
of one request of the client, for which Swift has one ``swift.infocache``.
"""

from __future__ import annotations

from typing import Dict, Optional

from swift_dss.proxy.bodies import versioned
from swift_dss.proxy.wsgi import Env

_KEY = 'swift_dss.asker'
#: All that auth takes from the client's environment, beside the headers.
_RIGHTS = ('swift.authorize', 'swift.authorize_override', 'REMOTE_USER')


def notice(env: Env) -> None:
    """Swift's SLO, about to PUT a manifest, asks for a segment."""
    if 'swift.infocache' in env:
        env['swift.infocache'][_KEY] = {
            name: env[name] for name in _RIGHTS if name in env}


def as_client(env: Env) -> Optional[Env]:
    """The environment of a manifest's PUT, with its client's rights.

    :returns: None if those are not known
    """
    if not versioned.is_upload(env):
        return env
    rights = env.get('swift.infocache', {}).get(_KEY)
    if rights is None:
        return None
    made: Dict[str, object] = {
        name: value for name, value in env.items()
        if name not in _RIGHTS}
    made.update(rights)
    return made
