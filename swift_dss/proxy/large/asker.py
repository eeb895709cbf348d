"""Whose rights count for a manifest that object versioning sends on.

It does so without the client's rights: the request may do everything. Just
before, a request in the client's name was here: of Swift's SLO, which looks at
each segment before a PUT, or a POST to the link to the newest version. Both
are of one request of the client, for which Swift has one ``swift.infocache``.
"""

from __future__ import annotations

from typing import Dict, Optional

from swift_dss.proxy.wsgi import Env

_KEY = 'swift_dss.asker'
#: The source of what object versioning makes.
_MAKER = 'OV'
#: All that auth takes from the client's environment, beside the headers.
_RIGHTS = ('swift.authorize', 'swift.authorize_override', 'REMOTE_USER')


def notice(env: Env) -> None:
    """A request in the client's name, which auth lets pass."""
    source = env.get('swift.source')
    if 'swift.infocache' in env and source != _MAKER:
        rights = {name: env[name] for name in _RIGHTS if name in env}
        if source == 'S3':
            rights['swift.source'] = source
        env['swift.infocache'][_KEY] = rights


def as_client(env: Env) -> Optional[Env]:
    """The environment of a manifest's PUT or POST, with its client's rights.

    :returns: None if those are not known
    """
    if env.get('swift.source') != _MAKER:
        return env
    rights = env.get('swift.infocache', {}).get(_KEY)
    if rights is None:
        return None
    made: Dict[str, object] = {
        name: value for name, value in env.items()
        if name not in _RIGHTS}
    made.update(rights)
    return made
