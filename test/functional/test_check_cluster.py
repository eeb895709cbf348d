"""``swift-dss check`` on a healthy cluster, with its own S3."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from swift_dss.cli.check.verbs import GROUPS

pytestmark = pytest.mark.cluster


def check(cluster, *options):
    done = subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main', 'check', '--json',
         '--config', cluster.conf.path('etc', 'dss.conf'), *options],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert not done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_healthy_cluster_has_no_errors(cluster):
    code, report = check(cluster)
    findings = report['findings']
    assert [finding for finding in findings
            if finding['level'] == 'error'] == []
    assert code == (1 if report['warnings'] else 0)
    assert {finding['group'] for finding in findings} == set(GROUPS)
    said = [finding['text'] for finding in findings
            if (finding['group'], finding['level']) == ('s3', 'ok')]
    assert 'the key may write, read and delete' in said
    assert 'this cluster' in said


def test_it_may_run_again_and_leaves_the_cluster_alone(cluster, swift,
                                                       container):
    swift.put_object(container, 'o', b'bytes')
    assert check(cluster)[1]['errors'] == check(cluster)[1]['errors'] == 0
    assert swift.get_object(container, 'o')[1] == b'bytes'
