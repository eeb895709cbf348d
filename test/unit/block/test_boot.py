"""The units by which systemd attaches devices at boot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from swift_dss.block import boot, tab

FSTAB_GENERATOR = '/usr/lib/systemd/system-generators/systemd-fstab-generator'
TAB = '''
fast-1 /dev/disk/by-id/nvme-X-part1 /dev/sdb class-table=/etc/swift/c.conf
slow /dev/sdc1 /dev/sdd nofail
hand /dev/sdc2 /dev/sde noauto
'''
UNIT = 'swift-dss-block@fast\\x2d1.service'
DEVICE = 'dev-mapper-fast\\x2d1'


def generate(folder, text=TAB):
    """Run the generator as systemd does; its status and its words."""
    path = folder / 'dss-block.tab'
    if text is not None:
        path.write_text(text)
    ended = subprocess.run(
        [sys.executable, '-m', 'swift_dss.block.boot', str(folder / 'units')]
        + ['/nonexistent'] * 2, capture_output=True, text=True,
        env=dict(os.environ, **{tab.VARIABLE: str(path)}))
    return ended.returncode, ended.stderr


def names(folder):
    return {os.path.relpath(os.path.join(place, name), folder)
            for place, _folders, files in os.walk(folder) for name in files}


def settings(path):
    return dict(line.split('=', 1) for line in path.read_text().splitlines()
                if '=' in line)


def test_each_device_has_a_service_and_what_needs_it_asks_for_it(tmp_path):
    assert generate(tmp_path) == (0, '')
    slow, hand = ('swift-dss-block@%s.service' % name
                  for name in ('slow', 'hand'))
    assert names(tmp_path / 'units') == {
        UNIT, slow, hand,
        '%s.device.requires/%s' % (DEVICE, UNIT),
        'dev-mapper-slow.device.requires/' + slow,
        'dev-mapper-hand.device.requires/' + hand,
        'local-fs.target.requires/' + UNIT, 'local-fs.target.wants/' + slow}
    link = tmp_path / 'units' / 'local-fs.target.requires' / UNIT
    assert link.resolve() == tmp_path / 'units' / UNIT


def test_service_waits_for_both_devices_and_stops_cleanly(tmp_path):
    generate(tmp_path)
    unit = settings(tmp_path / 'units' / UNIT)
    assert unit['BindsTo'].split() == [
        'dev-disk-by\\x2did-nvme\\x2dX\\x2dpart1.device', 'dev-sdb.device']
    assert set(unit['BindsTo'].split()) <= set(unit['After'].split())
    assert unit['ExecStart'].endswith(
        'block attach --tab %s fast-1' % (tmp_path / 'dss-block.tab'))
    assert unit['ExecStop'].endswith('block remove --keep-dirty fast-1')
    assert '/etc/swift/c.conf' in unit['RequiresMountsFor'].split()
    assert unit['Before'] == 'umount.target'


@pytest.mark.skipif(not shutil.which('systemd-analyze'),
                    reason='apt-get install systemd')
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    generate(tmp_path)
    for name in ('fast-1', 'slow', 'hand'):
        ended = subprocess.run(
            ['systemd-analyze', 'verify', '--man=no', '--recursive-errors=no',
             str(tmp_path / 'units' / boot.service(name))],
            capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (0, '')


@pytest.mark.skipif(not os.path.exists(FSTAB_GENERATOR),
                    reason='apt-get install systemd')
def test_mount_of_the_device_comes_after_its_service(tmp_path):
    generate(tmp_path)
    fstab, units = tmp_path / 'fstab', tmp_path / 'mounts'
    units.mkdir()
    fstab.write_text('/dev/mapper/fast-1 /srv/node/sdb xfs defaults 0 0\n')
    subprocess.run([FSTAB_GENERATOR] + [str(units)] * 3, check=True,
                   env=dict(os.environ, SYSTEMD_FSTAB=str(fstab)))
    mount = settings(units / 'srv-node-sdb.mount')
    target = 'blockdev@%s.target' % DEVICE
    assert target in mount['After'].split()
    lines = (tmp_path / 'units' / UNIT).read_text().splitlines()
    assert 'Before=' + target in lines


@pytest.mark.skipif(not shutil.which('systemd-escape'),
                    reason='apt-get install systemd')
@pytest.mark.parametrize('path', [
    '/dev/sdb', '/dev/disk/by-id/nvme-X_1.2:3@4+5=6-part1', '//dev//x/'])
def test_names_are_those_of_systemd(path):
    said = subprocess.run(['systemd-escape', '--path', path], check=True,
                          capture_output=True, text=True).stdout.strip()
    assert boot.escape_path(path) == said


def test_wrong_line_makes_no_unit_and_is_named(tmp_path):
    status, said = generate(tmp_path, 'x y\n' + TAB)
    assert status == 1 and 'line 1: 2 words' in said
    assert UNIT in names(tmp_path / 'units')


def test_without_the_file_there_is_nothing_to_do(tmp_path):
    assert generate(tmp_path, None) == (0, '')
    assert names(tmp_path / 'units') == set()
