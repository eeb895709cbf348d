"""The newest file of an object on one device, as every judge of it sees it.
"""

from __future__ import annotations

import errno
import os
from typing import Optional, Tuple

from swift_dss.io import residency_store
from swift_dss.io.switch import listdir
from swift_dss.wire import layout

_GONE = (errno.ENOENT, errno.ESTALE)


def newest_timestamp(hash_dir: str) -> Optional[str]:
    """Timestamp of the newest data file or tombstone, or None.

    Of fragments only the durable ones count.
    """
    return newest_file(hash_dir)[0] or None


def newest_file(hash_dir: str,
                frag_index: Optional[int] = None) -> Tuple[str, str]:
    """(timestamp, name) of the same; '' twice if there is neither.

    :param frag_index: this fragment's name, where the newest has it
    """
    newest = ('', False, '')
    for name in listdir(hash_dir):
        parsed = layout.parse_data_file(name)
        if parsed is not None and parsed[2]:
            newest = max(newest, (
                parsed[0], parsed[1] == frag_index, name))
        elif name.endswith('.ts'):
            newest = max(newest, (name[:-3], False, name))
    return newest[0], newest[2]


def record_of(path: str) -> Tuple[str, bool]:
    """(S3 key that a data file's record names, whether all of its bytes are
    on this node); the key is '' if it names none. A file that is gone gives
    ('', False).

    :raises DamagedRecord, OSError: the answer is unknown
    """
    try:
        record = residency_store.load(path)
    except OSError as err:
        if err.errno in _GONE:
            return '', False
        raise
    if record is None:
        return '', True
    return '' if record.remote is None else record.remote.key, record.is_local


def newest_record(hash_dir: str, frag_index: Optional[int] = None
                  ) -> Tuple[str, str, bool]:
    """(timestamp, S3 key, whether all bytes are here) of the newest data
    file or tombstone.

    The key is '' where the file names none; of an erasure-coded object it
    is that of the fragment ``frag_index``, or, where that is None, of the
    fragment that is here.

    :raises DamagedRecord, OSError: the answer is unknown
    """
    timestamp, name = newest_file(hash_dir, frag_index)
    parsed = layout.parse_data_file(name)
    if parsed is None:
        return timestamp, '', False
    key, is_local = record_of(os.path.join(hash_dir, name))
    return timestamp, key if frag_index in (None, parsed[1]) else '', is_local

