"""The file system needs nothing of a server."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip('fsspec')
pytest.importorskip('aiohttp')

_PROGRAM = '''
import sys

class NoSwift:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('swift', 'eventlet', 'boto3', 'pyeclib'):
            raise ImportError(name)

sys.meta_path.insert(0, NoSwift())
import fsspec
import swift_dss.client.fs.transport
made = fsspec.filesystem('dss', storage_url='http://127.0.0.1:1/v1/AUTH_a',
                         token='t')
assert type(made).__name__ == 'DssFileSystem', made
assert not {'openstack', 'swift_dss.proxy'} & set(sys.modules)
'''


def test_it_is_imported_without_swift():
    subprocess.run([sys.executable, '-c', _PROGRAM], check=True)
