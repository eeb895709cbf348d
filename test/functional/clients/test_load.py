"""``swift-dss load`` on a running cluster, by Swift's API and by S3's."""

from __future__ import annotations

import json
import threading
import uuid

import pytest
from support import wait_until
from support.edges.far_hosts import FarHosts, at

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


def _asked(cluster, tmp_path, *words, **fields):
    (tmp_path / 's').write_text(json.dumps(dict({
        'name': 'spread', 'sizes': [{
            'name': 'a', 'size_min': 1000, 'size_max': 9000}],
        'crud_profile': [1, 4, 1, 1], 'initial_files': {'a': 9},
        'operation_count': 90, 'user_count': 6, 'container_count': 1,
        'container_base': 'load-' + uuid.uuid4().hex[:12]}, **fields)))
    return [
        'load', str(tmp_path / 's'), '--auth', cluster.conf.auth_url,
        '--user', 'test:tester', '--key', 'testing', *words]


@pytest.fixture
def far_hosts(tmp_path, monkeypatch):
    pytest.importorskip('execnet')
    made = FarHosts(tmp_path, monkeypatch)
    yield made
    made.close()


def test_processes_of_other_machines_share_one_load(
        cluster, tmp_path, far_hosts):
    far_hosts.customize('ahead', 'import time\nreal = time.monotonic\n'
                        'time.monotonic = lambda: real() + 1000.0\n')
    out, lines = tmp_path / 'out.json', tmp_path / 'out.csv'
    assert main.main(_asked(
        cluster, tmp_path, *at('load1', 'ahead'), '--processes', '1',
        '--rate', '60', '--json', str(out), '--csv', str(lines))) == 0
    report = json.loads(out.read_text())
    assert (report['failures'], report['wrong'], report['left']) == (0, 0, 0)
    assert report['operations'] == 90 and report['setup']['processes'] == 3
    # Turns are told in the time of each, and times in that of this machine.
    assert report['seconds'] < 200
    assert report['open_loop']['sent_per_second'] > 1
    assert 0 <= report['open_loop']['late_ms'] < 200_000
    assert len(report['setup']['machines']) == 2
    for clock in report['setup']['machines'].values():
        assert 0 <= clock['clock_error_ms'] < 500
        assert abs(clock['clock_drift_ms']) < 1000
    assert len(lines.read_text().splitlines()) == 91 - report['skipped']


def test_a_machine_that_is_lost_leaves_the_figures_of_the_others(
        cluster, tmp_path, far_hosts):
    out, lines = tmp_path / 'out.json', tmp_path / 'out.csv'
    words = _asked(cluster, tmp_path, *at('load1', 'load2'), '--json',
                   str(out), '--csv', str(lines), run_seconds=12,
                   operation_count=None)

    def is_measured():
        return lines.exists() and 'dss0' in lines.read_text()

    def kill():
        wait_until(is_measured, 60)
        far_hosts.signal('load2')

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        assert main.main(words) == 69
    finally:
        thread.join()
    report = json.loads(out.read_text())
    stayed, lost = report['processes']
    assert (stayed['lost'], lost['lost']['is_measured']) == (None, False)
    assert report['wrong'] == 0 and report['seconds'] > 11
    assert report['operations'] == stayed['operations'] + lost['operations']


@pytest.mark.parametrize('spec, words', [
    ('0*popen', "'0' is not in 1 to 512"), ('x*popen', "'x' is not in 1"),
    ('socket=127.0.0.1:9', 'neither ssh=HOST nor popen'),
    ('popen//popen', 'duplicate'), ('7*popen', '7 processes for 6 users'),
    ('popen//python=/nowhere/python', 'Python does not start')])
def test_a_machine_that_cannot_be_had_is_named(
        cluster, tmp_path, capsys, spec, words):
    pytest.importorskip('execnet')
    assert main.main(_asked(cluster, tmp_path, '--at', spec)) in (2, 65, 78)
    said = capsys.readouterr().err
    assert '--at' in said and words in said, said
