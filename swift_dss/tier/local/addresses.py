"""``/account/container/object`` to Swift's hash, without a running Swift."""

from __future__ import annotations

import hashlib
import re

from swift_dss.core.errors import BadConfig
from swift_dss.gateway.form.cluster import hash_path_ends

_HASH = re.compile('^[0-9a-f]{32}$')


def object_hash(swift_dir: str, text: str) -> str:
    """The hash of an object's path; a hash is returned as it is.

    :param swift_dir: where ``swift.conf`` is, for its prefix and suffix
    :raises BadConfig: no such file, or not the path of an object
    """
    if _HASH.match(text):
        return text
    parts = text.lstrip('/').split('/', 2)
    if len(parts) != 3 or not all(parts):
        raise BadConfig('%r is neither /account/container/object nor a hash'
                        % text)
    prefix, suffix = hash_path_ends(swift_dir)
    return hashlib.md5(b'%s/%s%s' % (
        prefix.encode('utf-8'), '/'.join(parts).encode('utf-8'),
        suffix.encode('utf-8')), usedforsecurity=False).hexdigest()
