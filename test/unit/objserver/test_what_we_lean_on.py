"""Swift's private methods that we override or call, pinned.

A Swift release that changes one of these must fail here, not in a PUT.
"""

from __future__ import annotations

import inspect
from typing import Any, List

import pytest
from swift.obj import diskfile, server, ssync_sender

PINNED = [
    (server.ObjectController, '_pre_create_checks',
     ['self', 'request', 'device', 'partition', 'account', 'container',
      'obj', 'policy']),
    (server.ObjectController, 'get_diskfile',
     ['self', 'device', 'partition', 'account', 'container', 'obj',
      'policy', 'kwargs']),
    (diskfile.BaseDiskFileWriter, '__init__',
     ['self', 'name', 'datadir', 'size', 'bytes_per_sync', 'diskfile',
      'next_part_power', 'extension']),
    (diskfile.BaseDiskFileWriter, '_get_tempfile', ['self']),
    (diskfile.BaseDiskFileWriter, '_finalize_put',
     ['self', 'metadata', 'target_path', 'cleanup',
      'logger_thread_locals']),
    (diskfile.BaseDiskFileWriter, '_put',
     ['self', 'metadata', 'cleanup', 'a', 'kw']),
    (diskfile.BaseDiskFileReader, '__init__',
     ['self', 'fp', 'data_file', 'obj_size', 'etag', 'disk_chunk_size',
      'keep_cache_size', 'device_path', 'logger', 'quarantine_hook',
      'use_splice', 'pipe_size', 'diskfile', 'keep_cache',
      'cooperative_period', 'etag_validate_frac']),
    (diskfile.BaseDiskFileReader, '_inner_iter', ['self']),
    (diskfile.BaseDiskFileReader, '_init_checks', ['self']),
    (diskfile.BaseDiskFileReader, '_update_checks', ['self', 'chunk']),
    (diskfile.BaseDiskFileReader, '_drop_cache',
     ['self', 'fd', 'offset', 'length']),
    (diskfile.BaseDiskFileReader, 'zero_copy_send', ['self', 'wsockfd']),
    (diskfile.BaseDiskFile, '_verify_data_file',
     ['self', 'data_file', 'fp', 'current_time']),
    (diskfile.BaseDiskFile, '_quarantine', ['self', 'data_file', 'msg']),
    (diskfile.BaseDiskFileManager, 'get_diskfile_from_audit_location',
     ['self', 'audit_location']),
    (diskfile.BaseDiskFileManager, 'get_diskfile_from_hash',
     ['self', 'device', 'partition', 'object_hash', 'policy', 'kwargs']),
    (diskfile.BaseDiskFileManager, 'yield_hashes',
     ['self', 'device', 'partition', 'policy', 'suffixes', 'kwargs']),
    (ssync_sender.Sender, 'send_put',
     ['self', 'connection', 'url_path', 'df', 'durable']),
]


@pytest.mark.parametrize('owner,name,expected', PINNED, ids=[
    '%s.%s' % (owner.__name__, name) for owner, name, _ in PINNED])
def test_signature(owner: Any, name: str, expected: List[str]) -> None:
    signature = inspect.signature(getattr(owner, name))
    assert list(signature.parameters) == expected


@pytest.mark.parametrize('ours,stock,below', [
    ('DssDiskFileWriter', 'DiskFileWriter', 'DssWriterBase'),
    ('DssECDiskFileWriter', 'ECDiskFileWriter', 'DssWriterBase'),
    ('DssDiskFileReader', 'DiskFileReader', 'DssReaderBase'),
    ('DssECDiskFileReader', 'ECDiskFileReader', 'DssReaderBase')])
def test_we_stand_between_swifts_class_and_its_base(
        ours: str, stock: str, below: str) -> None:
    from swift_dss.objserver import reader, writer
    kind = getattr(writer, ours, None) or getattr(reader, ours)
    names = [base.__name__ for base in kind.__mro__]
    base = 'BaseDiskFile' + below[len('Dss'):-len('Base')]
    assert names.index(stock) < names.index(below) < names.index(base)
