"""What a container image is built from, and what its services start."""

from __future__ import annotations

import configparser
import fnmatch
import importlib.metadata
import json
import pathlib
import re
from typing import Any, Dict, List

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / 'packaging' / 'container'
#: Those that open objects: with Swift's own diskfile they harm ours.
OBJECT_DAEMONS = {'swift-object-server', 'swift-object-replicator',
                  'swift-object-reconstructor', 'swift-object-auditor'}


@pytest.fixture(scope='module')
def services() -> Dict[str, Any]:
    yaml = pytest.importorskip('yaml')
    with open(FOLDER / 'compose.yaml') as source:
        loaded: Dict[str, Any] = yaml.safe_load(source)
    return loaded['services']


def _let_in() -> List[str]:
    """What .dockerignore does not keep out of the build."""
    lines = (ROOT / '.dockerignore').read_text().split()
    return [line[1:] for line in lines if line.startswith('!')]


def test_the_build_gets_all_that_setup_names():
    conf = configparser.ConfigParser()
    conf.read(ROOT / 'setup.cfg')
    named = [word for files in conf['options.data_files'].values()
             for word in files.split()]
    named += ['setup.py', 'setup.cfg', 'pyproject.toml', 'swift_dss/cli',
              *re.findall(r'(?m)^(?:long_description = file: )(.*)$',
                          (ROOT / 'setup.cfg').read_text())]
    for name in named:
        assert any(name == folder or name.startswith(folder + '/')
                   for folder in _let_in()), name
        assert list(ROOT.glob(name)), name


def test_the_build_gets_nothing_large():
    kept_out = [line for line in (ROOT / '.dockerignore').read_text().split()
                if line[0] not in '#!']
    assert '*' in kept_out
    assert not {'.venv', 'test', '.git', 'build'} & set(_let_in())
    assert fnmatch.fnmatch('swift_dss/io/md5_lanes.so', kept_out[-1].replace(
        '**/', '*'))


def test_every_service_starts_a_command_with_its_file(services):
    known = {point.name for point in
             importlib.metadata.entry_points(group='console_scripts')}
    for name, service in services.items():
        command, *words = service['command'].split()
        assert command in known, name
        assert words[-1].startswith('/etc/swift/'), name


def test_all_that_opens_objects_is_of_the_image(services):
    commands = {service['command'].split()[0]: service
                for service in services.values()}
    assert set(commands) > OBJECT_DAEMONS
    assert {service['image'] for service in services.values()} == {
        '${SWIFT_DSS_IMAGE:-swift-dss}'}
    for service in services.values():
        inside = [volume.split(':')[1] for volume in service['volumes']]
        assert {'/etc/swift', '/srv/node', '/srv/hdd', '/run/swift-dss',
                '/var/lib/swift-dss'} <= set(inside)


def test_kolla_starts_the_daemon_with_files_that_it_has_copied():
    told = json.loads(
        (FOLDER / 'kolla' / 'swift-dss-tierd.json').read_text())
    command, option, conf = told['command'].split()
    assert (command, option) == ('swift-dss-tierd', '--config')
    copied = {row['dest'] for row in told['config_files']
              if not row.get('optional')}
    assert {conf, '/etc/swift/swift.conf', '/etc/swift/dss-classes.conf',
            '/etc/swift/object-server.conf'} <= copied
    for row in told['config_files']:
        assert set(row) <= {'source', 'dest', 'owner', 'perm', 'optional'}
        assert row['source'].startswith('/var/lib/kolla/config_files/')
        assert row['owner'] == 'swift' and re.fullmatch('0[0-7]{3}',
                                                        row['perm'])
