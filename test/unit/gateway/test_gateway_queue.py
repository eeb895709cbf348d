"""The durable queue: what survives, what is idempotent, what order."""

from __future__ import annotations

import os
import sqlite3

import pytest
from support.queues import add_upload
from support.sqlite_files import SqliteFiles, rows_of

from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.core.version import VersionId
from swift_dss.gateway.queue import FILE, Queue


def _version(number=1, device='sda', frag=None):
    return VersionId(device, 0, '%032x' % number, '1700000000.00000', frag)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / FILE)


@pytest.fixture
def files(monkeypatch):
    return SqliteFiles(monkeypatch)


@pytest.fixture
def queue(files, path):
    made = Queue(path)
    yield made
    made.close()


def test_rows_are_there_after_a_restart(path):
    queue = Queue(path)
    add_upload(queue, _version(frag=2), '7', 5.0, 1.0)
    queue.note_upload_id(_version(frag=2), 'mpu')
    queue.add_delete('k', _version(), '8', 6.0, 2.0)
    queue.close()
    queue = Queue(path)
    job, = queue.due_uploads(5.0, 10)
    assert (job.version, job.partition, job.first_seen, job.upload_id) == (
        _version(frag=2), '7', 1.0, 'mpu')
    delete, = queue.due_deletes(6.0, 10, agreed=False)
    assert (delete.s3_key, delete.version, delete.partition) == (
        'k', _version(), '8')
    queue.close()


def test_a_delete_that_was_noted_survives_a_power_cut(files, path, queue):
    said = files.said[FILE]
    del said[:]
    queue.replace_uploads([('k', _version(), '7', 1.0)], 1.0)
    queue.add_delete('l', _version(2), '7', 1.0, 1.0)
    queue.mark('reconciled', 1.0)
    # An upload is found by the next sweep.
    add_upload(queue, _version(3), '7', 1.0, 1.0)
    level, levels = '', []
    for text in said:
        if text.startswith('PRAGMA synchronous='):
            level = text.partition('=')[2]
        elif text.startswith('INSERT'):
            levels.append((text.split(' INTO ')[1].split()[0], level))
    assert levels == [('deletes', 'FULL'), ('deletes', 'FULL'),
                      ('marks', 'FULL'), ('uploads', 'NORMAL')]
    assert rows_of(path, 'PRAGMA journal_mode') == [('wal',)]


def test_enqueueing_twice_keeps_history_and_the_earlier_time(queue):
    add_upload(queue, _version(), '7', 50.0, 1.0)
    queue.retry_upload(_version(), 90.0, 'S3 said no')
    add_upload(queue, _version(), '7', 60.0, 2.0)
    job, = queue.due_uploads(60.0, 10)
    assert (job.first_seen, job.not_before, job.attempts) == (1.0, 60.0, 1)
    add_upload(queue, _version(), '7', 99.0, 3.0)
    assert queue.due_uploads(60.0, 10)


def test_waiting_is_no_failure_and_keeps_the_multipart_upload(queue):
    add_upload(queue, _version(), '7', 0.0, 0.0)
    queue.note_upload_id(_version(), 'mpu')
    queue.retry_upload(_version(), 1.0, '', failed=False)
    queue.retry_upload(_version(), 2.0, 'x' * 5000)
    job, = queue.due_uploads(2.0, 1)
    assert (job.attempts, job.failures, job.upload_id) == (2, 1, 'mpu')
    assert len(job.error) == 200


def test_jobs_come_in_the_order_in_which_they_are_due(queue):
    for number, due in ((1, 30.0), (2, 10.0), (3, 20.0), (4, 40.0)):
        add_upload(queue, _version(number), '7', due, 0.0)
    assert [int(job.version.object_hash, 16) for job
            in queue.due_uploads(30.0, 2)] == [2, 3]
    assert queue.next_due(30.0) == 40.0
    assert queue.next_due(40.0) is None


def test_replicas_of_a_device_each_have_an_upload_and_share_a_delete(queue):
    for device in ('sda', 'sdb'):
        add_upload(queue, _version(device=device), '7', 0.0, 0.0)
        queue.add_delete('k', _version(device=device), '7', 0.0, 0.0)
    assert len(queue.uploads_of(_version().key)) == 2
    assert len(queue.due_deletes(0.0, 10, agreed=False)) == 1
    queue.finish_uploads([_version(device='sda')])
    assert [job.version.device for job
            in queue.uploads_of(_version().key)] == ['sdb']
    queue.finish_delete('k')
    assert not queue.due_deletes(0.0, 10, agreed=False)


def test_counts_tell_status_what_is_late_and_why(queue):
    add_upload(queue, _version(1), '7', 0.0, 11.0)
    add_upload(queue, _version(2), '7', 0.0, 12.0)
    queue.retry_upload(_version(2), 99.0, 'put_object: 403 AccessDenied')
    counts = queue.counts()
    assert (counts['uploads'], counts['deletes']) == (2, 0)
    assert counts['oldest_upload'] == 11.0
    assert counts['oldest_delete'] is None
    assert counts['errors'] == ['put_object: 403 AccessDenied']


def test_a_file_that_is_no_queue_is_set_aside(path):
    with open(path, 'wb') as junk:
        junk.write(b'not a database, certainly not' * 100)
    queue = Queue(path)
    assert queue.damaged_path == path + '.damaged'
    with open(queue.damaged_path, 'rb') as kept:
        assert kept.read().startswith(b'not a database')
    add_upload(queue, _version(), '7', 0.0, 0.0)
    assert queue.due_uploads(0.0, 1)
    queue.close()


def rot(path):
    """Pages of the file, from here on, are not what was written."""
    queue = Queue(path)
    queue.add_uploads([(_version(number), '7', 0.0, 0)
                       for number in range(3000)], 0.0)
    queue.close()
    with open(path, 'r+b') as target:
        for at in range(16 * 4096, os.path.getsize(path), 4096):
            target.seek(at)
            target.write(b'\xff' * 512)


def test_a_queue_with_a_rotten_page_is_set_aside_at_the_next_start(path):
    rot(path)
    queue = Queue(path)
    assert not queue.damaged_path, 'nobody has read that page yet'
    with pytest.raises(TierUnavailable, match='next start'):
        queue.due_uploads(1e10, 5000)
    queue.close()
    queue = Queue(path)
    assert queue.damaged_path == path + '.damaged'
    add_upload(queue, _version(), '7', 0.0, 0.0)
    assert queue.due_uploads(0.0, 1)
    queue.close()
    queue = Queue(path)
    assert not queue.damaged_path
    assert queue.due_uploads(0.0, 1)
    queue.close()


def test_a_queue_that_was_suspected_and_is_whole_stays(path):
    queue = Queue(path)
    add_upload(queue, _version(), '7', 0.0, 0.0)
    queue.close()
    with open(path + '.suspect', 'w'):
        pass
    queue = Queue(path)
    assert not queue.damaged_path
    assert queue.due_uploads(0.0, 1)
    queue.close()
    assert not os.path.exists(path + '.suspect')


def test_a_folder_that_is_not_there_is_a_configuration_error(tmp_path):
    with pytest.raises(BadConfig):
        Queue(str(tmp_path / 'missing' / 'gateway.db'))


def test_a_failing_disk_is_an_unavailable_tier_and_changes_nothing(
        files, queue):
    add_upload(queue, _version(1), '7', 0.0, 0.0)
    # The least that SQLite allows: no page can be added any more.
    files.opened[FILE].execute('PRAGMA max_page_count=1')
    with pytest.raises(TierUnavailable):
        for number in range(2, 2000):
            add_upload(queue, _version(number), '7', 0.0, 0.0)
    assert queue.due_uploads(0.0, 1)
    files.opened[FILE].execute('PRAGMA max_page_count=100000')
    add_upload(queue, _version(5000), '7', 0.0, 0.0)
    assert queue.uploads_of(_version(5000).key)


def test_a_replaced_version_is_deleted_and_not_uploaded(queue):
    for number in (1, 2, 3):
        add_upload(queue, _version(number), '7', 0.0, 0.0)
    queue.note_upload_id(_version(2), 'mpu')
    queue.replace_uploads([('k%d' % number, _version(number), '7', 5.0)
                           for number in (1, 2)], 1.0)
    assert [job.s3_key for job in queue.due_deletes(
        5.0, 10, agreed=False)] == ['k1', 'k2']
    # One that has begun has something in S3 to take away.
    assert {job.version for job in queue.due_uploads(0.0, 10)} == {
        _version(2), _version(3)}


def test_several_rows_are_noted_together_or_not_at_all(files, queue):
    files.opened[FILE].execute('PRAGMA max_page_count=1')
    with pytest.raises(TierUnavailable):
        queue.add_uploads([(_version(number), '7', 0.0, 0)
                           for number in range(2000)], 0.0)
    with pytest.raises(TierUnavailable):
        queue.replace_uploads([
            ('k%d' % number, _version(number), '7', 0.0)
            for number in range(2000)], 0.0)
    assert not queue.due_uploads(0.0, 1)
    assert not queue.due_deletes(0.0, 1, agreed=False)


def test_each_class_has_its_own_order(tmp_path):
    queue = Queue(str(tmp_path / 'classes.db'))
    queue.add_uploads([(_version(number), '7', float(number), number % 3)
                       for number in range(9)], 0.0)
    assert sorted(queue.due_classes(10.0)) == [0, 1, 2]
    assert queue.due_classes(0.0) == [0]
    assert [job.not_before for job in queue.due_uploads(10.0, 9, 1)] == [
        1.0, 4.0, 7.0]
    queue.retry_upload(_version(1), 1.0, 'x')
    assert [job.not_before for job in queue.due_uploads(
        10.0, 9, 1, fresh=True)] == [4.0, 7.0]
    queue.close()


def test_a_queue_of_an_earlier_release_gets_the_column(tmp_path):
    path = str(tmp_path / 'old.db')
    queue = Queue(path)
    add_upload(queue, _version(1), '7', 0.0, 0.0)
    queue.close()
    before = sqlite3.connect(path)
    before.executescript('DROP INDEX uploads_alone; '
                         'ALTER TABLE uploads DROP COLUMN alone; '
                         'ALTER TABLE uploads DROP COLUMN class_id;')
    before.close()
    queue = Queue(path)
    assert queue.due_classes(1.0) == [0]
    assert queue.due_uploads(1.0, 1)[0].version == _version(1)
    queue.close()


def test_what_goes_alone_is_taken_apart_from_what_may_share(tmp_path):
    queue = Queue(str(tmp_path / 'alone.db'))
    queue.add_uploads([(_version(n), '7', 0.0, 1) for n in range(3)], 0.0)
    queue.go_alone([_version(1)])
    assert [job.version for job in queue.due_uploads(
        1.0, 9, 1, alone=True)] == [_version(1)]
    assert [job.version for job in queue.due_uploads(
        1.0, 9, 1, alone=False)] == [_version(0), _version(2)]
    queue.wait([(_version(0), 50.0), (_version(2), 60.0)])
    assert queue.due_uploads(1.0, 9, 1, alone=False) == []
    assert queue.due_classes(1.0) == [1]
    queue.finish_uploads([_version(0), _version(1)])
    assert [job.version for job in queue.due_uploads(99.0, 9)] == [
        _version(2)]
    queue.close()


def test_other_devices_look_once_one_of_them_has_sent_it(tmp_path):
    queue = Queue(str(tmp_path / 'look.db'))
    for device in ('sda', 'sdb', 'sdc'):
        add_upload(queue, _version(device=device), '7', 500.0, 0.0)
    queue.retry_upload(_version(device='sdc'), 500.0, 'it failed')
    add_upload(queue, _version(2, device='sdb'), '7', 500.0, 0.0)
    assert queue.look_now(_version(device='sda'), 10.0) == 1
    assert [job.version for job in queue.due_uploads(10.0, 9)] == [
        _version(device='sdb')]
    queue.close()


def test_when_s3_is_back_failures_are_due_by_age(tmp_path):
    queue = Queue(str(tmp_path / 'again.db'))
    for number in (1, 2, 3):
        add_upload(queue, _version(number), '7', float(number),
                         float(number))
    queue.retry_upload(_version(1), 900.0, 'x')
    queue.retry_upload(_version(3), 500.0, 'x')
    queue.retry_upload(_version(2), 400.0, '', failed=False)
    queue.again(100.0)
    assert [job.version for job in queue.due_uploads(100.0, 9)] == [
        _version(1), _version(3)]
    queue.close()
