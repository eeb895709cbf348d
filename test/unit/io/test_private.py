"""Where index and queue lie: for one user, on a disk, and brought along."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat

import pytest

from swift_dss.core.config import GatewayConf, NodeConf, TierConf
from swift_dss.core.errors import BadConfig
from swift_dss.gateway.queue import Queue
from swift_dss.io import private
from swift_dss.tier import space
from swift_dss.tier.index.index import Index

LOGGER = logging.getLogger('private-test')
NAMES = ('index.db',)


def _mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def _conf(tmp_path, **options):
    return NodeConf(
        run_dir=str(tmp_path / 'run'), allow_tmpfs=True,
        tier=TierConf(index_dir=str(tmp_path / 'state')),
        gateway=GatewayConf(queue_dir=str(tmp_path / 'queue')), **options)


@pytest.fixture(autouse=True)
def _open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def index_file(path):
    """The database of a new index."""
    return Index(path).file


def _kept_open(path):
    """A database with rows that are only in its log."""
    made = sqlite3.connect(path)
    made.execute('PRAGMA journal_mode=WAL')
    made.execute('PRAGMA wal_autocheckpoint=0')
    made.execute('CREATE TABLE t (a)')
    made.execute('INSERT INTO t VALUES (7)')
    made.commit()
    return made


@pytest.mark.parametrize('kind', [index_file, Queue])
def test_databases_are_their_owners_alone(tmp_path, kind):
    path = str(tmp_path / 'one.db')
    made = kind(path)
    assert {_mode(path + end) for end in ('', '-wal', '-shm')} == {0o600}
    made.close()


@pytest.mark.parametrize('kind', [index_file, Queue])
def test_databases_of_before_are_tightened(tmp_path, kind):
    path = str(tmp_path / 'one.db')
    kind(path).close()
    os.chmod(path, 0o644)
    kept = _kept_open(str(tmp_path / 'other.db'))
    with open(path + '-wal', 'wb'):
        pass
    os.chmod(path + '-wal', 0o644)
    made = kind(path)
    assert {_mode(path + end) for end in ('', '-wal', '-shm')} == {0o600}
    made.close()
    kept.close()


def test_folders_are_made_and_tightened(tmp_path):
    conf = _conf(tmp_path)
    os.mkdir(conf.queue_dir, 0o755)
    space.prepare(conf, LOGGER)
    assert _mode(conf.state_dir) == _mode(conf.queue_dir) == 0o700


def test_a_run_dir_that_is_named_for_all_stays_open_to_its_group(tmp_path):
    run = str(tmp_path / 'run')
    private.make_folder(run, space.RUN_MODE, '[dss] run_dir')
    space.prepare(NodeConf(run_dir=run, allow_tmpfs=True, tier=TierConf(
        index_dir=run)), LOGGER)
    assert _mode(run) == 0o750


def test_a_folder_that_cannot_be_made_says_what_to_do(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(BadConfig, match='run_dir.*cannot be made.*install'):
        private.make_folder(str(tmp_path / 'file' / 'run'), 0o750,
                            '[dss] run_dir')
    with pytest.raises(BadConfig, match='no folder'):
        private.make_folder(str(tmp_path / 'file'), 0o750, '[dss] run_dir')


def test_a_reboot_may_not_forget_the_queue(tmp_path, monkeypatch):
    conf = _conf(tmp_path)
    monkeypatch.setattr(private, 'filesystem_of', lambda path: 'tmpfs')
    space.prepare(conf, LOGGER)
    with pytest.raises(BadConfig, match='index_dir.*tmpfs.*reboot'):
        space.prepare(NodeConf(run_dir=conf.run_dir, tier=conf.tier), LOGGER)
    monkeypatch.setattr(private, 'filesystem_of', lambda path:
                        'ramfs' if path == conf.queue_dir else 'xfs')
    with pytest.raises(BadConfig, match='queue_dir.*ramfs'):
        space.prepare(NodeConf(run_dir=conf.run_dir, tier=conf.tier,
                               gateway=conf.gateway), LOGGER)


def test_the_kernel_says_what_a_file_system_is(tmp_path):
    kind = private.filesystem_of('/proc/self')
    assert kind == 'proc'
    if os.path.ismount('/dev/shm'):
        assert private.filesystem_of('/dev/shm') == 'tmpfs'
    assert private.filesystem_of(str(tmp_path / 'missing')) == ''
    assert private.filesystem_of('/proc/self', '/missing') == ''


def test_what_an_older_version_kept_elsewhere_is_brought_along(tmp_path):
    old, new = tmp_path / 'run', tmp_path / 'state'
    old.mkdir()
    kept = _kept_open(str(old / 'index.db'))
    for name in ('gateway.db', 'bundles.db'):
        sqlite3.connect(str(old / name)).executescript('CREATE TABLE x (y)')
    (old / 'prefetch.json').write_text('{}')
    conf = _conf(tmp_path)
    space.prepare(conf, LOGGER)
    kept.close()
    moved = sqlite3.connect(str(new / 'index.db'))
    assert moved.execute('SELECT a FROM t').fetchall() == [(7,)]
    moved.close()
    assert os.path.exists(os.path.join(conf.queue_dir, 'gateway.db'))
    assert {'bundles.db', 'prefetch.json'} <= set(os.listdir(new))
    assert os.listdir(old) == []
    assert {_mode(new / name) for name in os.listdir(new)} == {0o600}


def test_what_is_brought_along_is_durable(tmp_path, monkeypatch):
    old, new = tmp_path / 'a', tmp_path / 'b'
    for folder in (old, new):
        folder.mkdir()
    (old / 'index.db').write_text('rows')
    synced, fsync, unlink, before = [], os.fsync, os.unlink, []

    def remove(path, *args, **options):
        if path == str(old / 'index.db'):
            before.extend(synced)
        unlink(path, *args, **options)

    monkeypatch.setattr(os, 'fsync', lambda fd: (
        fsync(fd), synced.append(os.fstat(fd).st_ino)))
    monkeypatch.setattr(os, 'unlink', remove)
    assert private.adopt(str(old), str(new), NAMES) == ['index.db']
    # The file and its name, before the old one goes.
    assert before == [os.stat(new / 'index.db').st_ino,
                      os.stat(new).st_ino]


def test_what_is_there_already_is_not_replaced(tmp_path):
    old, new = tmp_path / 'a', tmp_path / 'b'
    for folder, text in ((old, 'old'), (new, 'new')):
        folder.mkdir()
        (folder / 'index.db').write_text(text)
    assert private.adopt(str(old), str(new), NAMES) == []
    assert (new / 'index.db').read_text() == 'new'
    assert (old / 'index.db').read_text() == 'old'
    assert private.adopt(str(new), str(new), NAMES) == []


@pytest.mark.parametrize('call', ['rename', 'unlink', 'fsync'])
def test_a_move_that_is_cut_off_is_done_by_the_next_start(
        tmp_path, monkeypatch, call):
    """After any number of steps: the rows are there, whoever is asked."""
    for steps in range(1, 20):
        old, new = tmp_path / ('a%d' % steps), tmp_path / ('b%d' % steps)
        old.mkdir()
        new.mkdir()
        kept = _kept_open(str(old / 'index.db'))
        # As after a power cut: the log is there, and nobody cleans up.
        rows = {name: (old / name).read_bytes() for name in os.listdir(old)}
        kept.close()
        for name, data in rows.items():
            (old / name).write_bytes(data)
        left = [steps]
        real = getattr(os, call)

        def cut(*args, real=real, left=left, **options):
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
            return real(*args, **options)
        monkeypatch.setattr(private.os, call, cut)
        try:
            private.adopt(str(old), str(new), NAMES)
        except KeyboardInterrupt:
            pass
        monkeypatch.undo()
        private.adopt(str(old), str(new), NAMES)
        database = sqlite3.connect(str(new / 'index.db'))
        assert database.execute('SELECT a FROM t').fetchall() == [(7,)], steps
        database.close()
        if left[0] > 0:
            return
    raise AssertionError('never done')
