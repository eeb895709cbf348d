"""Every phase of the DevStack plug-in, run with DevStack's own verbs.

DevStack is not here; its verbs are: ``iniset`` and ``iniget`` do to a file
what DevStack's do, and the others write down that they were called.
"""

import configparser
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from swift_dss.io.capacity import Capacity
from swift_dss.wire.settings import nodeconf

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLUGIN = ROOT / 'devstack' / 'plugin.sh'
SETTINGS = ROOT / 'devstack' / 'settings'

VERBS = r'''
set -euo pipefail
note() { echo "$*" >> "$CALLS"; }
iniset() {
    [[ -e $1 ]] || : > "$1"
    S=$2 O=$3 V=$4 awk '
        function put() { print O " = " V; done = 1 }
        BEGIN { S = "[" ENVIRON["S"] "]"; O = ENVIRON["O"]; V = ENVIRON["V"] }
        /^\[/ { if (inside && !done) put(); inside = ($0 == S)
                if (inside) seen = 1 }
        inside && $1 == O { if (!done) put(); next }
        { print }
        END { if (!seen) print S; if (!done) put() }' "$1" > "$1.new"
    mv "$1.new" "$1"
}
iniget() {
    S=$2 O=$3 awk '
        /^\[/ { inside = ($0 == "[" ENVIRON["S"] "]") }
        inside && $1 == ENVIRON["O"] { sub(/^[^=]*= */, ""); print }' "$1"
}
define_plugin() { note define_plugin "$@"; }
plugin_requires() { note plugin_requires "$@"; }
is_service_enabled() { [[ " $ENABLED " == *" $1 "* ]]; }
enable_service() { note enable_service "$@"; }
run_process() { note run_process "$@"; }
stop_process() { note stop_process "$@"; }
pip_install() { note pip_install "$@"; }
echo_summary() { :; }
'''

PIPELINE = ('catch_errors gatekeeper healthcheck proxy-logging cache bulk '
            'tempauth copy slo dlo versioned_writes symlink '
            'proxy-logging proxy-server')


class DevStack:
    """A stack that has got as far as a configured Swift."""

    def __init__(self, root):
        self.root = root
        self.conf = root / 'swift'
        (self.conf / 'object-server').mkdir(parents=True)
        (self.conf / 'proxy-server.conf').write_text(
            '[pipeline:main]\npipeline = %s\n' % PIPELINE)
        (self.conf / 'swift.conf').write_text(
            '[storage-policy:0]\nname = Policy-0\ndefault = yes\n')
        for node in '12':
            (self.conf / 'object-server' / (node + '.conf')).write_text(
                '[app:object-server]\nuse = egg:swift#object\n')
        self.calls = root / 'calls'
        self.calls.touch()

    def run(self, *phase, enabled='s-object s-proxy', **settings):
        script = '%s\nsource %s\nsource %s %s\n' % (
            VERBS, SETTINGS, PLUGIN, ' '.join(phase))
        env = dict(
            self.environment(), CALLS=str(self.calls), ENABLED=enabled,
            DATA_DIR=str(self.root / 'data'), SWIFT_REPLICAS_SEQ='1 2',
            SWIFT_CONF_DIR=str(self.conf),
            SWIFT_DATA_DIR=str(self.root / 'data' / 'swift'), **settings)
        subprocess.run(['bash', '-c', script], env=env, check=True)

    @staticmethod
    def environment():
        """With our commands on the path, as after the install phase."""
        return dict(os.environ, PATH='%s:%s' % (
            os.path.dirname(sys.executable), os.environ['PATH']))

    def ini(self, name):
        ini = configparser.RawConfigParser()
        ini.read(str(self.conf / name))
        return ini


@pytest.fixture
def stack(tmp_path):
    return DevStack(tmp_path)


@pytest.mark.parametrize('path', [PLUGIN, SETTINGS])
def test_shellcheck_finds_nothing(path):
    if not shutil.which('shellcheck'):
        pytest.skip('shellcheck is not installed')
    subprocess.run(['shellcheck', str(path)], check=True)


#: Of OpenStack's upper-constraints.txt, July 2026; what it does not name,
#: pip chooses.
UPPER = {'boto3': '1.35.99', 'prometheus-client': '0.26.0'}


def test_install_leaves_versions_to_devstack(stack):
    """Its ``pip_install`` always has ``-c upper-constraints.txt``, and two
    files that pin a package differently cannot both be met."""
    stack.run('stack', 'install')
    assert 'pip_install %s\n' % ROOT in stack.calls.read_text()


def test_what_devstack_pins_is_new_enough():
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg')
    wanted = {}
    for line in setup['options']['install_requires'].split():
        needed = Requirement(line)
        wanted[needed.name] = needed.specifier
    assert wanted.keys() >= UPPER.keys()
    for name, version in UPPER.items():
        assert version in wanted[name], name


def test_post_config_puts_classes_into_swift(stack):
    stack.run('stack', 'post-config')
    proxy = stack.ini('proxy-server.conf')
    assert proxy['pipeline:main']['pipeline'].endswith(
        ' symlink dss proxy-logging proxy-server')
    assert proxy['filter:dss']['use'] == 'egg:swift_dss#dss'
    policy = stack.ini('swift.conf')['storage-policy:0']
    assert policy['diskfile_module'] == 'egg:swift_dss#dss.fs'
    assert policy['name'] == 'Policy-0'
    assert os.path.exists(proxy['filter:dss']['class_table'])
    assert os.path.isdir(proxy['filter:dss']['run_dir'])
    for node in '12':
        server = stack.ini('object-server/%s.conf' % node)
        assert server['app:object-server']['use'] == 'egg:swift_dss#object'
        assert server['object-replicator']['sync_method'] == 'ssync'
        path = server.defaults()['dss_conf']
        conf = nodeconf.parse(pathlib.Path(path).read_text())
        assert conf.devices == str(stack.root / 'data' / 'swift' / node)
        assert not conf.gateway.enabled


@pytest.mark.parametrize('has_s3', [True, False])
def test_storage_classes_come_with_s3api(stack, has_s3):
    (stack.conf / 'proxy-server.conf').write_text(
        '[pipeline:main]\npipeline = %s\n[filter:s3api]\n'
        'use = egg:swift#s3api\nlocation = here\n' % PIPELINE.replace(
            ' tempauth ', ' s3api tempauth ' if has_s3 else ' tempauth '))
    stack.run('stack', 'post-config')
    s3api = stack.ini('proxy-server.conf')['filter:s3api']
    assert s3api['use'] == 'egg:swift%s#s3api' % ('_dss' if has_s3 else '')
    assert s3api['location'] == 'here'


def test_post_config_twice_is_post_config_once(stack):
    stack.run('stack', 'post-config')
    once = {path: path.read_text() for path in stack.conf.rglob('*.conf')}
    stack.run('stack', 'post-config')
    assert once == {
        path: path.read_text() for path in stack.conf.rglob('*.conf')}


def test_a_bucket_switches_the_gateway_on(stack):
    stack.run('stack', 'post-config', SWIFT_DSS_S3_BUCKET='b',
              SWIFT_DSS_S3_URL='https://s3.example',
              SWIFT_DSS_S3_SECRET_FILE='/etc/swift/s3.secret')
    conf = nodeconf.parse((stack.conf / 'dss-1.conf').read_text())
    assert conf.gateway.enabled
    assert conf.gateway.url == 'https://s3.example'
    assert conf.gateway.bucket == 'b'
    assert conf.gateway.secret_file == '/etc/swift/s3.secret'


def test_extra_starts_and_unstack_stops_a_daemon_for_each_node(stack):
    stack.run('stack', 'post-config')
    for node in '12':
        (stack.root / 'data' / 'swift' / node / 'sdb1').mkdir(parents=True)
    stack.run('stack', 'extra')
    stack.run('unstack')
    calls = stack.calls.read_text()
    for node in '12':
        path = stack.conf / ('dss-%s.conf' % node)
        assert 'stop_process swift-dss-tierd-%s' % node in calls
        started = 'run_process swift-dss-tierd-%s ' % node
        command, = [line[len(started):].split()
                    for line in calls.splitlines()
                    if line.startswith(started)]
        # The daemon itself understands the command: it finds the file and
        # what is wrong in it.
        path.write_text('[dss]\nnonsense = 1\n' + path.read_text())
        refused = subprocess.run(
            command, env=stack.environment(), capture_output=True, text=True)
        assert refused.returncode not in (0, 2)
        assert str(path) in refused.stderr


def test_extra_marks_the_capacity_folders(stack):
    stack.run('stack', 'post-config')
    for node in '12':
        (stack.root / 'data' / 'swift' / node / 'sdb1').mkdir(parents=True)
    stack.run('stack', 'extra')
    for node in '12':
        conf = nodeconf.parse(
            (stack.conf / ('dss-%s.conf' % node)).read_text())
        assert Capacity(
            nodeconf.capacity_path(conf, 'sdb1'), 'sdb1').check()


def test_clean_removes_what_was_made(stack):
    before = sorted(stack.root.rglob('*'))
    stack.run('stack', 'post-config')
    stack.run('clean')
    left = [path for path in sorted(stack.root.rglob('*'))
            if path not in before and path.is_file()]
    assert left == []


def test_without_an_object_server_nothing_happens(stack):
    before = (stack.conf / 'proxy-server.conf').read_text()
    stack.run('stack', 'post-config', enabled='key')
    assert (stack.conf / 'proxy-server.conf').read_text() == before


@pytest.mark.parametrize('before, after', [
    ('a symlink proxy-server', 'a symlink dss proxy-server'),
    ('proxy-logging a keymaster encryption proxy-logging proxy-server',
     'proxy-logging a dss keymaster encryption proxy-logging proxy-server'),
    ('a kms_keymaster encryption proxy-server',
     'a dss kms_keymaster encryption proxy-server'),
    ('a dss proxy-server', 'a dss proxy-server'),
    ('a s3api b proxy-server',
     'a dss_retry_after s3api b dss proxy-server'),
])
def test_dss_goes_below_all_but_encryption(stack, before, after):
    proxy = stack.conf / 'proxy-server.conf'
    proxy.write_text('[pipeline:main]\npipeline = %s\n' % before)
    stack.run('stack', 'post-config')
    assert stack.ini('proxy-server.conf')['pipeline:main'][
        'pipeline'] == after
