"""``swift-dss tier init`` marks HDDs, and only where one is mounted."""

from __future__ import annotations

import json
import os

import pytest

from swift_dss.cli.main import main
from swift_dss.io.capacity import Capacity


@pytest.fixture()
def conf(tmp_path):
    """A dss.conf of two devices whose HDDs are folders."""
    for device in ('sda1', 'sdb1'):
        (tmp_path / 'node' / device).mkdir(parents=True)
    path = tmp_path / 'dss.conf'
    path.write_text('[dss]\ndevices = %s\n[capacity]\nsda1 = %s\n' % (
        tmp_path / 'node', tmp_path / 'hdd' / 'sda1'))
    return path


def test_marks_every_configured_folder_once(conf, capsys):
    arguments = ['tier', 'init', '--config', str(conf), '--force', '--json']
    assert main(arguments) == 0
    first = json.loads(capsys.readouterr().out)
    assert [row['device'] for row in first] == ['sda1']
    folder = first[0]['folder']
    assert Capacity(folder, 'sda1').check() == first[0]['identity']
    assert main(arguments) == 0
    assert first[0]['is_new'] is True
    assert json.loads(capsys.readouterr().out) == [
        dict(first[0], is_new=False)]


def test_refuses_a_folder_on_the_devices_own_file_system(conf, capsys):
    assert main(['tier', 'init', '--config', str(conf)]) == 78
    said = capsys.readouterr().err
    assert 'mount the HDD first' in said and 'sda1' in said
    assert not os.path.exists(str(conf.parent / 'hdd'))


@pytest.mark.parametrize('device, reason', [
    ('sdz1', 'has no device sdz1'), ('sdb1', 'names no folder for sdb1')])
def test_names_what_is_wrong_with_a_device(conf, capsys, device, reason):
    assert main(['tier', 'init', '--config', str(conf), '--force',
                 '--device', device]) == 78
    assert reason in capsys.readouterr().err
