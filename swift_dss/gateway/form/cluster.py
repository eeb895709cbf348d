"""Which cluster this is: shared by its nodes, and unique to it."""

from __future__ import annotations

import configparser
import functools
import hashlib
import os
from typing import Tuple

from swift_dss.core.errors import BadConfig


@functools.lru_cache(maxsize=16)
def hash_path_ends(swift_dir: str) -> Tuple[str, str]:
    """Prefix and suffix of Swift's hash path. A cluster that changed them
    would lose all its objects, so they are read once.

    :raises BadConfig: there is no ``swift.conf``
    """
    path = os.path.join(swift_dir, 'swift.conf')
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    if not parser.read(path):
        raise BadConfig('%s cannot be read' % path)
    prefix, suffix = (
        parser.get('swift-hash', 'swift_hash_path_' + end, fallback='')
        for end in ('prefix', 'suffix'))
    return prefix, suffix


def cluster_id(swift_dir: str) -> str:
    """32 hexadecimal digits that all nodes of a cluster agree on, made of
    its hash path; it does not show it.

    :raises BadConfig: there is no ``swift.conf``
    """
    return hashlib.sha256(('swift-dss cluster\0%s\0%s' % hash_path_ends(
        swift_dir)).encode('utf-8', 'surrogatepass')).hexdigest()[:32]
