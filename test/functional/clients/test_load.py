"""``swift-dss load`` on a running cluster, by Swift's API and by S3's."""

from __future__ import annotations

import json
import uuid

import pytest

from swift_dss.cli import main

pytest.importorskip('hdrh')

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize('front', ['swift', 's3'])
def test_a_load_reads_what_it_wrote_by_class_and_tier(
        cluster, swift, tmp_path, front):
    base = 'load-' + uuid.uuid4().hex[:12]
    sizes = [{'name': 'hot', 'size_min': 1000, 'size_max': 90000,
              'class': 'gold'},
             {'name': 'cold', 'size_min': 0, 'size_max': 300000}]
    access = ['--s3', cluster.conf.s3_url]
    if front == 'swift':
        sizes[1]['ranges'] = ['0-4k-gold']
        access = ['--auth', cluster.conf.auth_url, '--policy', 'dss']
    (tmp_path / 's').write_text(json.dumps({
        'name': 'mixed', 'sizes': sizes, 'crud_profile': [1, 4, 1, 1],
        'initial_files': {'hot': 8, 'cold': 8}, 'operation_count': 120,
        'user_count': 4, 'container_base': base, 'container_count': 2}))
    out = tmp_path / 'out.json'
    assert main.main([
        'load', str(tmp_path / 's'), *access, '--user', 'test:tester',
        '--key', 'testing', '--json', str(out), '--rate', '60']) == 0
    report = json.loads(out.read_text())
    assert report['operations'] == 120
    assert (report['failures'], report['wrong'], report['left']) == (0, 0, 0)
    shown = {(row['class'], row['tier']) for row in report['rows']
             if row['operation'] == 'read'}
    if front == 'swift':
        assert ('gold', 'ssd') in shown
        assert {name for name, _ in shown} == {'gold', '-+ranges'}
    else:
        assert {name for name, _ in shown} == {'gold', '-'}
    assert not [row['name'] for row in swift.get_account(prefix=base)[1]]
