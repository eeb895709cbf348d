"""The commands of "Move data to a policy with classes", as they stand there.
"""

from __future__ import annotations

import os
import subprocess

import pytest
from support import await_listings, manual, pattern

pytestmark = pytest.mark.cluster

PAGE = manual.SOURCE / 'howto' / 'migrate-policy.rst'


def test_objects_move_to_a_policy_with_classes(cluster, swift):
    bodies = {'a.jpg': pattern(30000, 'a'), 'b c.jpg': pattern(9, 'b')}
    swift.put_container('photos', {'X-Storage-Policy': 'vanilla'})
    for name, body in bodies.items():
        swift.put_object('photos', name, body)
    swift.put_object('photos', 'gold.jpg', b'gold', headers={
        'X-DSS-Object-Class': 'gold'})
    bodies['gold.jpg'] = b'gold'
    account = swift.url.rpartition('/')[2]
    await_listings(cluster, account, 'photos', set(bodies))
    make, copy, *stats = manual.lines(PAGE, 'swift')
    assert len(stats) == 2 and 'xargs' in copy
    said = []
    for line in (make.replace('classed', 'dss'), copy, *stats):
        done = subprocess.run(
            line, shell=True, capture_output=True, text=True, timeout=120,
            env=dict(os.environ, ST_AUTH=cluster.conf.auth_url,
                     ST_USER='test:tester', ST_KEY='testing'))
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        said.append(done.stdout)
    assert swift.head_container('photos-2')['x-storage-policy'] == 'dss'
    for name, body in bodies.items():
        headers, copied = swift.get_object('photos-2', name)
        assert copied == body
        assert headers['x-dss-class-name'] == (
            'gold' if name == 'gold.jpg' else 'silver'), name
    assert 'Policy: vanilla' in said[2] and 'Policy: dss' in said[3]
