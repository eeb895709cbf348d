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


@pytest.mark.parametrize('front', ['swift', 's3'])
def test_objects_of_segments_are_read_as_they_were_written(
        cluster, swift, tmp_path, front):
    base = 'load-' + uuid.uuid4().hex[:12]
    (tmp_path / 's').write_text(json.dumps({
        'name': 'large', 'sizes': [{
            'name': 'big', 'size_min': 5 << 20, 'size_max': 12 << 20,
            'segment_size': 5 << 20, 'class': 'gold'}],
        'crud_profile': [1, 4, 2, 1], 'initial_files': {'big': 3},
        'operation_count': 24, 'user_count': 2, 'container_base': base,
        'container_count': 1}))
    access = ['--s3', cluster.conf.s3_url] if front == 's3' else [
        '--auth', cluster.conf.auth_url]
    out, lines = tmp_path / 'out.json', tmp_path / 'out.csv'
    assert main.main([
        'load', str(tmp_path / 's'), *access, '--user', 'test:tester',
        '--key', 'testing', '--json', str(out), '--csv', str(lines),
        '--keep', '--processes', '1']) == 0
    report = json.loads(out.read_text())
    assert (report['failures'], report['wrong']) == (0, 0)
    assert report['operations'] == 24
    shown = swift.get_account(prefix=base)[1]
    beside = [row['name'] for row in shown if 'segments' in row['name']]
    own, = (row['name'] for row in shown if 'segments' not in row['name'])
    names = [row['name'] for row in swift.get_container(own)[1]]
    assert names and beside
    segments = [row['name'] for row in swift.get_container(beside[0])[1]]
    assert len(segments) >= len(names)
    for container, name in [(own, names[0]), (beside[0], segments[0])]:
        assert swift.head_object(container, name)[
            'x-dss-object-class'] == '25', name
    for name in names:
        swift.delete_object(own, name)
    for container in beside:
        for row in swift.get_container(container, full_listing=True)[1]:
            swift.delete_object(container, row['name'])


def test_segments_are_cleaned_up(cluster, swift, tmp_path):
    base = 'load-' + uuid.uuid4().hex[:12]
    (tmp_path / 's').write_text(json.dumps({
        'name': 'large', 'sizes': [{
            'name': 'big', 'size_min': 30000, 'size_max': 90000,
            'segment_size': 20000}], 'crud_profile': [1, 3, 3, 2],
        'initial_files': {'big': 4}, 'operation_count': 60,
        'user_count': 4, 'container_base': base, 'container_count': 2}))
    out = tmp_path / 'out.json'
    assert main.main([
        'load', str(tmp_path / 's'), '--auth', cluster.conf.auth_url,
        '--user', 'test:tester', '--key', 'testing',
        '--json', str(out)]) == 0
    report = json.loads(out.read_text())
    assert (report['failures'], report['wrong'], report['left']) == (0, 0, 0)
    assert not swift.get_account(prefix=base)[1]
