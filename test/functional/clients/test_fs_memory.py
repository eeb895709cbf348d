"""A file of any size is written in little memory."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid

import pytest

fsspec = pytest.importorskip('fsspec')
pytest.importorskip('aiohttp')

pytestmark = pytest.mark.cluster

MIB = 1 << 20
#: 10 GiB by hand, against a cluster with room for it.
SIZE = int(os.environ.get('SWIFT_DSS_FS_BYTES', 96 * MIB))


def test_a_thousand_ranges_take_little_memory(cluster):
    fs = fsspec.filesystem('dss', auth_url=cluster.conf.auth_url,
                           user='test:tester', key='testing')
    box = 'test-%s' % uuid.uuid4().hex[:12]
    fs.mkdir(box, policy='dss')
    script = os.path.join(os.path.dirname(__file__), 'fs_memory.py')
    try:
        said = subprocess.run(
            [sys.executable, script, cluster.conf.auth_url, box + '/o',
             str(SIZE), '1000'], check=True, stdout=subprocess.PIPE,
            # glibc comes to this threshold by itself, sooner or later; a
            # buffer that grows is then copied, and there twice.
            env=dict(os.environ, MALLOC_MMAP_THRESHOLD_=str(32 * MIB)),
            text=True).stdout.split()
        print('figure: %d MiB in 1,000 ranges of gold: %d MiB more, peak '
              '%d MiB, %s s' % (SIZE // MIB, int(said[1]) // MIB,
                                int(said[0]) // MIB, said[3]))
        assert int(said[2]) == 1000
        assert int(said[1]) <= 64 * MIB
        assert fs.info(box + '/o')['size'] == SIZE // 1000 * 1000
    finally:
        fs.rm(box, recursive=True)
