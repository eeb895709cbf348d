"""Units, users and folders of a package: as the daemon wants them."""

from __future__ import annotations

import configparser
import os
import pathlib
import pwd
import re
import shutil
import stat
import subprocess
import sys

import pytest

from swift_dss.core.config import NodeConf, TierConf
from swift_dss.core.errors import BadConfig
from swift_dss.tier.space import RUN_MODE

ETC = pathlib.Path(__file__).resolve().parents[3] / 'etc'
UNITS = sorted((ETC / 'systemd').iterdir())
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason='owners of files')


def needs(program):
    return pytest.mark.skipif(not shutil.which(program),
                              reason='no %s here' % program)


def settings(name):
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(ETC / 'systemd' / name)
    return unit


@needs('systemd-analyze')
@pytest.mark.parametrize('path', UNITS, ids=lambda path: path.name)
def test_systemd_finds_nothing_wrong_with_a_unit(path, tmp_path):
    for each in UNITS:
        (tmp_path / each.name).write_text(each.read_text().replace(
            '=/usr/bin/swift-dss', '=%s/swift-dss' % os.path.dirname(
                sys.executable)))
    done = subprocess.run(
        ['systemd-analyze', 'verify', '--man=no', '--recursive-errors=no',
         str(tmp_path / path.name)], capture_output=True, text=True,
        env=dict(os.environ, SYSTEMD_UNIT_PATH='%s:' % tmp_path))
    assert (done.returncode, done.stderr) == (0, '')


def test_the_daemon_runs_where_its_defaults_are():
    service = settings('swift-dss-tierd.service')['Service']
    assert '/run/' + service['RuntimeDirectory'] == NodeConf.run_dir
    assert int(service['RuntimeDirectoryMode'], 8) == RUN_MODE
    assert '/var/lib/' + service['StateDirectory'] == TierConf.index_dir
    assert int(service['StateDirectoryMode'], 8) == 0o700
    assert service['RestartPreventExitStatus'] == str(BadConfig.exit_code)
    # Object servers and proxies use it while the daemon is down.
    assert service['RuntimeDirectoryPreserve'] == 'yes'


def test_the_commands_of_units_are_entry_points():
    setup = configparser.ConfigParser()
    setup.read(ETC.parent / 'setup.cfg')
    known = {line.split('=')[0].strip() for line in setup[
        'options.entry_points']['console_scripts'].strip().splitlines()}
    for path in UNITS:
        for command in re.findall(r'^ExecStart=(\S+)', path.read_text(),
                                  re.M):
            assert os.path.basename(command) in known, path


def test_what_the_target_starts_stops_with_it():
    for path in UNITS:
        if path.suffix == '.service':
            unit = settings(path.name)
            assert unit['Unit']['PartOf'] == 'swift-dss.target'
            assert unit['Install']['WantedBy'] == 'swift-dss.target'


@needs('systemd-sysusers')
@needs('systemd-tmpfiles')
@NEEDS_ROOT
def test_a_fresh_machine_gets_user_and_folders(tmp_path):
    for kind, name in (('sysusers', 'swift-dss-sysusers.conf-sample'),
                       ('tmpfiles', 'swift-dss-tmpfiles.conf-sample')):
        folder = tmp_path / 'usr' / 'lib' / (kind + '.d')
        folder.mkdir(parents=True)
        shutil.copy(ETC / name, folder / 'swift-dss.conf')
    (tmp_path / 'etc').mkdir()
    subprocess.run(['systemd-sysusers', '--root=%s' % tmp_path], check=True,
                   capture_output=True)
    users = {line.split(':')[0]: line.split(':') for line in
             (tmp_path / 'etc' / 'passwd').read_text().splitlines()}
    uid = int(users['swift'][2])
    subprocess.run(['systemd-tmpfiles', '--root=%s' % tmp_path, '--create',
                    'swift-dss.conf'], check=True, capture_output=True)
    for name, mode in (('run/swift-dss', 0o750),
                       ('var/lib/swift-dss', 0o700)):
        status = os.stat(tmp_path / name)
        assert stat.S_IMODE(status.st_mode) == mode
        assert status.st_uid == uid


@needs('logrotate')
@NEEDS_ROOT
def test_logrotate_takes_its_file(tmp_path):
    own = pwd.getpwuid(os.geteuid()).pw_name
    path = tmp_path / 'swift-dss'
    path.write_text((ETC / 'swift-dss-logrotate.conf-sample').read_text()
                    .replace('su swift swift', 'su %s %s' % (own, own))
                    .replace('/var/log/swift', str(tmp_path)))
    path.chmod(0o644)
    log = tmp_path / 'swift-dss-tierd.log'
    log.write_text('line\n')
    subprocess.run(['logrotate', '--force', '--state',
                    str(tmp_path / 'state'), str(path)], check=True,
                   capture_output=True)
    assert log.read_text() == ''
    assert (tmp_path / 'swift-dss-tierd.log.1').read_text() == 'line\n'
