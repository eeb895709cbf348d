"""What the tier daemon sees of the kernel's caches."""

import json
import logging
import os

import pytest

from swift_dss.block import engine
from swift_dss.block.engine import BlockView
from swift_dss.cli.tier import tables


def make_sys(root, path, chain):
    """A sysfs in which ``path`` lies on the first device of ``chain``.

    :param chain: device-mapper names, top down; '' is a disk
    """
    number = os.stat(path).st_dev
    folders = []
    for at, name in enumerate(chain):
        folder = root / 'devices' / ('d%d' % at)
        (folder / 'slaves').mkdir(parents=True)
        if name:
            (folder / 'dm').mkdir()
            (folder / 'dm' / 'name').write_text(name + '\n')
        folders.append(folder)
    for upper, lower in zip(folders, folders[1:]):
        (upper / 'slaves' / lower.name).symlink_to(lower)
    (root / 'block').mkdir()
    (root / 'block' / ('%d:%d' % (os.major(number), os.minor(number)))
     ).symlink_to(folders[0])
    return str(root / 'block')


def test_names_below_a_file_system_come_top_down(tmp_path):
    sys = make_sys(tmp_path / 'sys', str(tmp_path), ['vg-lv', 'fast', ''])
    assert engine.below(str(tmp_path), sys) == ['vg-lv', 'fast']


def test_partition_lies_on_its_disk(tmp_path):
    sys = make_sys(tmp_path / 'sys', str(tmp_path), [''])
    disk = tmp_path / 'sys' / 'devices' / 'd0'
    part = disk / 'part'
    part.mkdir()
    (part / 'partition').write_text('1')
    (disk / 'dm').mkdir()
    (disk / 'dm' / 'name').write_text('fast')
    link = next((tmp_path / 'sys' / 'block').iterdir())
    link.unlink()
    link.symlink_to(part)
    assert engine.below(str(tmp_path), sys) == ['fast']


def test_path_that_is_gone_has_nothing_below(tmp_path):
    assert engine.below(str(tmp_path / 'none')) == []


@pytest.fixture
def view(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    sys = make_sys(tmp_path / 'sys', str(tmp_path), ['fast', ''])
    monkeypatch.setattr(engine, 'below', lambda path, real=engine.below:
                        real(path, sys))
    (tmp_path / 'block').mkdir()
    return BlockView(str(tmp_path), str(tmp_path / 'classes'),
                     logging.getLogger('t'), direct=False)


STATE = {'name': 'fast', 'health': 'ok', 'classes': {
    '11': {'name': 'user1', 'hits': 3}}}


def test_state_that_watch_left_is_shown(view, tmp_path):
    engine.save_state(str(tmp_path / 'block'), STATE)
    status = view.gather('sda', str(tmp_path), None)
    assert status['health'] == 'ok'
    assert status['classes'] == {11: {'name': 'user1', 'hits': 3}}


def test_old_state_is_not_shown_and_said_once(view, tmp_path, caplog):
    engine.save_state(str(tmp_path / 'block'), STATE)
    path = tmp_path / 'block' / 'fast.json'
    path.write_text(json.dumps(dict(STATE, at=1)))
    for _ in range(3):
        assert view.gather('sda', str(tmp_path), None) is None
    assert caplog.text.count('does not run') == 1


@pytest.mark.parametrize('text', ['', '[]', '{}', '{"at": "x"}'])
def test_state_that_is_none_is_not_shown(view, tmp_path, text):
    (tmp_path / 'block' / 'fast.json').write_text(text)
    assert view.gather('sda', str(tmp_path), None) is None


def test_no_cache_below_is_said_once(view, tmp_path, caplog):
    for _ in range(3):
        assert view.gather('sda', str(tmp_path), None) is None
    assert caplog.text.count('no dm-dss device is seen') == 1


def test_without_the_right_to_ask_nothing_is_sent(view, tmp_path):
    assert view.feed_classes([str(tmp_path)]) == []


def test_tier_status_without_a_kernel_has_no_block_tables():
    status = {'pid': 1, 'up_seconds': 1.0, 'engine': 'file',
              'eviction': 'lru', 'carrier': 'null', 'event_backlog': 0,
              'rebuild_needed': False, 'sweep_needed': False, 'devices': [],
              'classes': {}, 'gateway': None, 'space': {'warnings': []}}
    assert 'CHUNK' not in tables.status(status)
