"""Swift's metadata, read faster than Swift does, and just as strictly."""

from __future__ import annotations

import os
import pickle

import pytest
from swift.common.header_key_dict import HeaderKeyDict
from swift.obj.diskfile import read_metadata, write_metadata

from swift_dss.core.errors import DamagedRecord
from swift_dss.tier.local import metadata

SAID = {'name': '/a/c/ä', 'X-Timestamp': '1', 'Content-Length': '4096',
        'Content-Type': 'text/plain', 'ETag': 'e' * 32}


@pytest.fixture
def path(tmp_path):
    made = str(tmp_path / 'data')
    with open(made, 'wb') as target:
        write_metadata(target, SAID)
    os.removexattr(made, 'user.swift.metadata_checksum')
    return made


def test_what_is_torn_is_refused_wherever_it_is_torn(path):
    raw = os.getxattr(path, 'user.swift.metadata')
    assert metadata.read(path) == SAID
    for length in range(1, len(raw)):
        os.setxattr(path, 'user.swift.metadata', raw[:length])
        with pytest.raises(DamagedRecord):
            metadata.read(path)


def test_what_swift_itself_would_not_load_is_not_loaded(path):
    # Behind a head that is like Swift's own.
    head = os.getxattr(path, 'user.swift.metadata')[:-1]
    os.setxattr(path, 'user.swift.metadata',
                head + b'cposix\ngetpid\n)R0.')
    with pytest.raises(DamagedRecord, match='posix.getpid'):
        metadata.read(path)


def test_what_only_swift_can_load_is_left_to_it(path):
    raw = pickle.dumps(HeaderKeyDict({'X-Timestamp': '1'}), 2)
    os.setxattr(path, 'user.swift.metadata', raw)
    assert metadata.read(path) == read_metadata(path)
    # The same behind a head of bytes: the first reader gives up.
    raw = raw[:2] + pickle.dumps(b'a', 2)[2:-1] + b'0' + raw[2:]
    assert b'_codecs\nencode' in raw[:32]
    os.setxattr(path, 'user.swift.metadata', raw)
    assert metadata.read(path) == {'X-Timestamp': '1'}
