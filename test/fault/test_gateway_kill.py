"""R01, the gateway's share: kill -9 at each named step, then restart.

The steps are learnt from a run that is left alone; each is then hit the
first, the second and the last time it occurs. The judge reads local files
and the bucket with nothing of ours.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time

import pytest
from support import md5, pattern
from support.edges.s3_servers import BUCKET, VersityServer
from support.nodes.gateway_node import FolderVersions

from swift_dss.core.residency import Tier
from swift_dss.io import steps

MIB = 1024 * 1024
SIZES = {'one_put': 50000, 'parts': 12 * MIB + 5}
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


class Run:
    """One version, its node's folder, and children that work on it."""

    def __init__(self, server, root, size, seed):
        self.server = server
        self.root = str(root)
        self.local = FolderVersions(self.root)
        self.body = pattern(SIZES[size], seed)
        self.version = self.local.put(seed, self.body)
        self.name = '%s %s' % (self.version.device, self.version.key)

    def child(self, verb, **env):
        return subprocess.run(
            [sys.executable, '-m', 'fault.gateway_child', self.root,
             self.server.url, self.server.access_key,
             self.server.secret_key, verb, self.name],
            env=dict(os.environ, PYTHONPATH=TEST, **env), timeout=120,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def done(self, verb):
        finished = self.child(verb)
        assert finished.returncode == 0, finished.stdout
        return finished.stdout

    @property
    def key(self):
        return 'kill/%s/%s' % (self.version.object_hash[-3:],
                               self.version.key)

    def prepare(self, verb):
        """What must have happened before ``verb``."""
        if verb in ('fill', 'delete'):
            self.done('upload')
        if verb == 'fill':
            self.local.drop_local(self.version)
        if verb == 'delete':
            self.local.tombstone(self.version, '1800000000.00000')

    def intact_copies(self):
        """Whole and right copies of the version, by the judge's eyes."""
        copies = 0
        raw = self.local.raw(self.version)
        residency = self.local.residency(self.version)
        if not any(not extent.tiers & (Tier.SSD | Tier.HDD)
                   for extent in residency.extents):
            assert md5(raw) == md5(self.body), 'residency says local'
            copies += 1
        if residency.tiers & Tier.REMOTE:
            assert md5(self.server.body(self.key)) == md5(self.body), (
                'residency says remote')
            copies += 1
        return copies

    def check_end(self, verb):
        if verb == 'delete':
            assert not [key for key in self.server.list_keys()
                        if self.version.object_hash in key]
            return
        assert self.intact_copies() == 2
        if verb == 'fill':
            with open(os.path.join(self.root, 'out'), 'rb') as out:
                assert hashlib.md5(out.read()).hexdigest() == md5(self.body)

    def uploads_left(self):
        answer = self.server.client().list_multipart_uploads(Bucket=BUCKET)
        return [upload['Key'] for upload in answer.get('Uploads', ())
                if upload['Key'] == self.key]


def steps_of(server, root, size, verb):
    """Name of each step of ``verb`` to how often it is reached."""
    run = Run(server, root, size, 'learn-%s-%s' % (size, verb))
    run.prepare(verb)
    log = os.path.join(str(root), 'steps')
    finished = run.child(verb, **{steps.STEP_LOG: log})
    assert finished.returncode == 0, finished.stdout
    run.check_end(verb)
    with open(log) as source:
        names = source.read().split()
    return {name: names.count(name) for name in dict.fromkeys(names)}


@pytest.mark.slow
@pytest.mark.parametrize('size', sorted(SIZES))
@pytest.mark.parametrize('verb', ['upload', 'fill', 'delete'])
def test_kill_at_each_step_then_restart(server, tmp_path, size, verb):
    counts = steps_of(server, tmp_path / 'learn', size, verb)
    assert len(counts) >= 2, counts
    kills, worst = 0, 0.0
    for name, count in counts.items():
        for nth in sorted({1, min(2, count), count}):
            seed = '%s-%s-%s-%d' % (size, verb, name, nth)
            run = Run(server, tmp_path / seed, size, seed)
            run.prepare(verb)
            killed = run.child(
                verb, **{steps.CRASH_AT: '%s:%d' % (name, nth)})
            assert killed.returncode == -9, (name, nth, killed.stdout)
            kills += 1
            if verb != 'delete':
                assert run.intact_copies() >= 1, (name, nth)
            began = time.monotonic()
            said = run.done(verb)
            worst = max(worst, time.monotonic() - began)
            run.check_end(verb)
            assert not run.uploads_left(), (name, nth)
            if (name, size, verb) == ('upload.part', 'parts', 'upload'):
                assert 'parts_resumed %d' % nth in said
    print('R01 gateway %-7s %-8s %d kills at %s; 0 lost; worst recovery '
          '%.1f s' % (verb, size, kills, ', '.join(counts), worst))
