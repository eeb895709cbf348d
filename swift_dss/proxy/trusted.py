"""Headers that only we may set, and the seal of those that come back.

Gatekeeper drops them from clients' requests; a start-up check makes sure
that it is there. We drop them once more, because other middleware builds
requests from fields, archives and attributes that clients write.

The class map must pass through other middleware: COPY and versioning GET the
source and PUT the answer, metadata included. So the answer to such a GET
carries the class map under a seal (HMAC with a secret of this process), and a
PUT accepts it only with that seal.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from swift_dss.core.errors import BadClassInput
from swift_dss.core.spans import ClassMap
from swift_dss.proxy.wsgi import Env
from swift_dss.wire import classmap, names

Headers = List[Tuple[str, str]]

#: Requests of these sources copy an object with its metadata: server-side
#: copy, old-style and new-style versioning.
COPIERS = frozenset(('SSC', 'VW', 'OV'))

SEAL = 'X-Object-Sysmeta-Dss-Seal'

#: In all of these names.
_TRUSTED = '_DSS'
_TRUSTED_PREFIXES = tuple(
    'HTTP_' + name for name in (
        'X_BACKEND_DSS', 'X_OBJECT_SYSMETA_DSS',
        'X_OBJECT_TRANSIENT_SYSMETA_DSS', 'X_CONTAINER_SYSMETA_DSS',
        'X_ACCOUNT_SYSMETA_DSS'))


class Carried(NamedTuple):
    """The classes that a copy takes from its source.

    :param class_map: its map; None if it was unclassified
    :param meta_class: its ``X-Object-Meta-Dss-Class``, '' if none
    """

    class_map: Optional[ClassMap]
    meta_class: str


def env_key(header: str) -> str:
    """The WSGI environment's name of a header."""
    return 'HTTP_' + header.upper().replace('-', '_')


def set_headers(env: Env, headers: Dict[str, str]) -> None:
    """Add headers to a request that goes down from us."""
    for name, value in headers.items():
        env[env_key(name)] = value


def strip(env: Env) -> int:
    """Drop every header that only we may set.

    :returns: how many there were
    """
    # Nearly always there is none: one look at all names.
    forged = [key for key in env if key.startswith(_TRUSTED_PREFIXES)] \
        if _TRUSTED in ' '.join(env) else []
    for key in forged:
        del env[key]
    return len(forged)


class Sealer:
    """Seal maps for copiers, and accept only sealed ones from them."""

    def __init__(self, secret: Optional[bytes] = None) -> None:
        self._secret = secret or os.urandom(32)

    def seal(self, class_map: Optional[ClassMap],
             meta_class: str) -> Dict[str, str]:
        """Headers for a GET on behalf of a copier.

        :raises TooManySpans: the map does not fit its headers
        """
        headers: Dict[str, str] = {}
        text = ''
        if class_map is not None:
            headers = classmap.to_headers(names.SYSMETA_MAP, class_map)
            text = classmap.encode(class_map)
        mac = self._mac(text, meta_class)
        headers[SEAL] = '%s %s' % (mac, meta_class)
        return headers

    def open(self, env: Env) -> Optional[Carried]:
        """The classes in a copier's PUT; None if it has none or the seal is
        wrong.
        """
        sealed = env.get(env_key(SEAL))
        if not sealed:
            return None
        mac, _, meta_class = sealed.partition(' ')
        try:
            class_map = classmap.from_headers(names.SYSMETA_MAP,
                                              EnvHeaders(env))
        except BadClassInput:
            return None
        text = '' if class_map is None else classmap.encode(class_map)
        if not hmac.compare_digest(mac.encode('utf-8', 'replace'),
                                   self._mac(text, meta_class).encode()):
            return None
        return Carried(class_map, meta_class)

    def _mac(self, text: str, meta_class: str) -> str:
        message = '%s\0%s' % (text, meta_class)
        return hmac.new(self._secret, message.encode('utf-8', 'replace'),
                        hashlib.sha256).hexdigest()


class EnvHeaders(Dict[str, str]):
    """The few lookups that ``wire.classmap`` makes, on an environment."""

    def __init__(self, env: Env) -> None:
        super().__init__()
        self._env = env

    def get(self, name: str, default: Any = None) -> Any:
        """The header called ``name``."""
        return self._env.get(env_key(name), default)
