"""The Ansible role, run by Ansible itself on a node with stock Swift's files.

Only the restarts are recorded instead of done: there are no services here.
"""

from __future__ import annotations

import getpass
import grp
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from swift_dss.aio import configs, layout, rings, tables
from swift_dss.cli.main import main
from swift_dss.io.capacity import Capacity

ROOT = pathlib.Path(__file__).resolve().parents[3]
ANSIBLE = ROOT / 'packaging' / 'ansible'
MODULE = ANSIBLE / 'roles' / 'swift_dss' / 'library'
#: What pip is asked for, once.
INSTALLED = ['install --force-reinstall --no-deps WHEEL']
PLAY = '''
- hosts: all
  gather_facts: false
  roles: [swift_dss]
'''


class Node:
    """A node with stock Swift's configuration, and what is done to it."""

    def __init__(self, root):
        self.root = root
        self.conf = conf = layout.AioConf(
            root=str(root), base_port=18423, plain=True)
        configs.write(conf, configs.cluster_files(conf))
        for name in ('object', 'object-1', 'object-2'):
            rings.write(conf.etc, name, 3, conf.object_port,
                        conf.device_names)
        for device in conf.device_names:
            os.makedirs(conf.path('devices', device))
        for folder, mode in (('run', 0o750), ('state', 0o700)):
            os.makedirs(conf.path(folder), mode, exist_ok=True)
            os.chmod(conf.path(folder), mode)
        self.etc = pathlib.Path(conf.etc)
        self.restarts = root / 'restarts'
        recorder = root / 'recorder'
        recorder.write_text('#!/bin/sh\necho "$*" >> %s\n' % self.restarts)
        recorder.chmod(0o755)
        play = root / 'play.yml'
        play.write_text(PLAY)
        pip = root / 'swift' / 'bin' / 'pip'
        pip.parent.mkdir(parents=True)
        pip.symlink_to(recorder)
        self.wheel = root / 'swift_dss-0.1.0-py3-none-any.whl'
        self.wheel.write_text('as built today')
        group = grp.getgrgid(os.getegid()).gr_name
        self.variables = {
            'swift_dss_install': 'wheel',
            'swift_dss_package': str(self.wheel),
            'swift_dss_environment': str(root / 'swift'),
            'swift_dss_cache': conf.path('run'),
            'swift_dss_command': os.path.join(
                os.path.dirname(sys.executable), 'swift-dss'),
            'swift_dss_etc': conf.etc, 'swift_dss_group': group,
            'swift_dss_user': getpass.getuser(),
            'swift_dss_classes': tables.sample_text(tables.CLASSES_SAMPLE),
            'swift_dss_rules': '[rule:logs]\nname = *.log\nclass = user1\n',
            'swift_dss_conf': {
                'dss': {'devices': conf.path('devices'),
                        'swift_dir': conf.etc, 'mount_check': False,
                        'run_dir': conf.path('run'),
                        'object_conf': conf.path(
                            'etc', 'object-server.conf'),
                        'class_table': conf.path('etc', 'dss-classes.conf')},
                'capacity': {'*': conf.path('hdd') + '/%(device)s'},
                'tier': {'index_dir': conf.path('state'),
                         'ssd_bytes': '1m'}},
            'swift_dss_policies': {
                '0': 'egg:swift_dss#dss.fs', '1': 'egg:swift_dss#dss_ec.fs'},
            'swift_dss_filter': {'run_dir': conf.path('run')},
            'swift_dss_mark_options': ['--force'],
            **{'swift_dss_restart_' + part: [[str(recorder), part]]
               for part in ('objects', 'proxies', 'tier')}}

    def play(self, *options, **changes):
        """(exit code, changed tasks, all that was printed)."""
        done = subprocess.run(
            [sys.executable, '-m', 'ansible', 'playbook', '-i', 'localhost,',
             '-c', 'local', '-e', json.dumps(dict(
                 self.variables, ansible_python_interpreter=sys.executable,
                 **changes)), *options, str(self.root / 'play.yml')],
            capture_output=True, text=True, timeout=300, env=dict(
                os.environ, ANSIBLE_ROLES_PATH=str(ANSIBLE / 'roles'),
                ANSIBLE_HOME=str(self.root / '.ansible'),
                ANSIBLE_NOCOLOR='1', ANSIBLE_PIPELINING='1',
                LC_ALL='C.UTF-8'))
        recap = re.search(r'changed=(\d+)', done.stdout)
        return (done.returncode, int(recap.group(1)) if recap else None,
                done.stdout + done.stderr)

    def files(self):
        """Whatever the role may change: mode and contents by path."""
        return {str(path): (path.stat().st_mode, hashlib.sha256(
            path.read_bytes()).hexdigest()) for folder in ('etc', 'hdd')
            for path in (self.root / folder).rglob('*') if path.is_file()}

    def recorded(self):
        """What was recorded: pip and the restarts."""
        return [re.sub(r'/\S+\.whl', 'WHEEL', line) for line
                in self.restarts.read_text().splitlines()] \
            if self.restarts.exists() else []


@pytest.fixture(scope='module')
def node(tmp_path_factory):
    pytest.importorskip('ansible')
    return Node(tmp_path_factory.mktemp('ansible'))


def test_a_node_of_stock_swift_is_changed_once(node):
    """One story, as each run of Ansible takes seconds."""
    before = node.files()
    code, changed, said = node.play('--check')
    assert code == 0 and changed, said
    assert node.files() == before, 'check mode changes nothing'

    # The node is not fit: it is changed, and nothing is restarted.
    ring = node.etc / 'object-1.ring.gz'
    ring.rename(ring.with_suffix('.away'))
    code, changed, said = node.play()
    assert code and 'object-1.ring.gz' in said and changed, said
    assert node.recorded() == INSTALLED
    written = node.files()
    for path, (mode, _digest) in before.items():
        if not path.endswith('.gz'):
            assert written[path][0] == mode, path

    # Nothing is left to write, and the restarts are still owed.
    ring.with_suffix('.away').rename(ring)
    code, changed, said = node.play()
    assert code == 0, said
    assert node.recorded() == [*INSTALLED, 'objects', 'proxies', 'tier']
    assert main(['check', '--config', str(node.etc / 'dss.conf'),
                 '--quiet']) in (0, 1)
    for device in node.conf.device_names:
        assert Capacity(node.conf.path('hdd', device), device).check()

    done = node.files()
    code, changed, said = node.play()
    assert (code, changed) == (0, 0), said
    assert node.files() == done
    assert node.recorded() == [*INSTALLED, 'objects', 'proxies', 'tier']


@pytest.mark.parametrize('changes, words', [
    ({'swift_dss_classes': '[class:99]\nname = x\n'}, 'class:99'),
    ({'swift_dss_install': 'rpm'}, 'swift_dss_install')])
def test_a_wrong_variable_is_named(node, changes, words):
    code, _changed, said = node.play(**changes)
    assert code, said
    assert words in said


@pytest.fixture(scope='module')
def module():
    pytest.importorskip('ansible')
    sys.path.insert(0, str(MODULE))
    try:
        import swift_conf
        yield swift_conf
    finally:
        sys.path.remove(str(MODULE))


TEXT = '''# A comment.
[DEFAULT]
bind_port = 6200
# log_level = INFO

[pipeline:main]
pipeline = cache s3api
# in between
    tempauth proxy-logging
    proxy-server

[app:object-server]
use = egg:swift#object
set log_level = DEBUG
'''


def test_all_else_of_a_file_stays(module):
    wanted = {'DEFAULT': {'dss_conf': '/d'},
              'app:object-server': {'use': 'egg:swift_dss#object',
                                    'log_level': 'INFO'},
              'new': {'a': 'b'}}
    after = module.edited(TEXT, wanted, False, False)
    assert after == TEXT.replace(
        'bind_port = 6200\n', 'bind_port = 6200\n').replace(
        '# log_level = INFO\n', '# log_level = INFO\ndss_conf = /d\n').replace(
        'egg:swift#object', 'egg:swift_dss#object').replace(
        'set log_level = DEBUG', 'log_level = INFO') + '\n[new]\na = b\n'
    assert module.edited(after, wanted, True, False) == after


def test_a_pipeline_over_many_lines_is_one(module):
    after = module.edited(TEXT, {}, False, True)
    assert 'pipeline = cache dss_retry_after s3api tempauth dss ' \
        'proxy-logging proxy-server\n' in after
    assert '[filter:s3api]\nuse = egg:swift_dss#s3api\n' in after
    assert module.edited(after, {}, False, True) == after


@pytest.mark.parametrize('pipeline, placed', [
    ('a proxy-logging keymaster encryption proxy-logging proxy-server',
     'a dss proxy-logging keymaster encryption proxy-logging proxy-server'),
    ('a kms_keymaster encryption proxy-server',
     'a dss kms_keymaster encryption proxy-server'),
    ('proxy-logging slo proxy-server', 'proxy-logging slo dss proxy-server'),
    ('a dss b proxy-server', 'a dss b proxy-server')])
def test_dss_stands_before_what_changes_bodies(module, pipeline, placed):
    assert module.placed(pipeline) == placed


@pytest.mark.parametrize('text, words', [
    ('x = 1\n', 'no section headers'), ('[DEFAULT]\n', 'pipeline is missing')])
def test_a_file_that_is_none_is_refused(module, text, words):
    with pytest.raises(ValueError, match=words):
        module.edited(text, {}, False, True)


def test_a_policy_that_is_not_there_is_not_made(module):
    with pytest.raises(ValueError, match=r'no section \[storage-policy:7\]'):
        module.edited(TEXT, {'storage-policy:7': {'diskfile_module': 'x'}},
                      True, False)
