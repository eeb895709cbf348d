"""``swift-dss check``: each of many mistakes is seen, and named.

``MISTAKES`` is the table that the manual's page shows: a correct node, one
edit, and the line that has to come of it.
"""

from __future__ import annotations

import getpass
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from email.utils import formatdate

import pytest
from botocore.exceptions import ClientError
from support.edges.memory_s3 import MemoryS3

from swift_dss.aio import configs, layout, rings, tables
from swift_dss.cli.check import clock, devices, kernel, s3, trials, verbs
from swift_dss.cli.check.findings import Place, refused
from swift_dss.cli.check.node import read
from swift_dss.cli.main import main
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import BadConfig
from swift_dss.gateway.form.cluster import hash_path_ends
from swift_dss.gateway.link import client as link
from swift_dss.gateway.link import credentials
from swift_dss.gateway.link.credentials import SecretFile
from swift_dss.io import carriers
from swift_dss.io.capacity import Capacity

PAGE = (pathlib.Path(__file__).resolve().parents[3]
        / 'doc' / 'source' / 'howto' / 'check.rst')
IS_ROOT = os.geteuid() == 0
FAR = 'nobody'


class Bucket(MemoryS3):
    """S3 that can also refuse, and says its time."""

    #: Calls that are refused, with status and code.
    refusals: dict = {}
    versioning = ''
    ahead_seconds = 0.0

    def __getattribute__(self, name):
        refusals = object.__getattribute__(self, 'refusals')
        if name in refusals or '*' in refusals:
            status, code = refusals.get(name) or refusals['*']
            if name.endswith(('_object', '_v2', '_upload')):
                raise ClientError({
                    'Error': {'Code': code},
                    'ResponseMetadata': {'HTTPStatusCode': status}}, name)
        return object.__getattribute__(self, name)

    def list_objects_v2(self, **asked):
        answer = super().list_objects_v2(**asked)
        answer['ResponseMetadata'] = {'HTTPHeaders': {'date': formatdate(
            time.time() - self.ahead_seconds, usegmt=True)}}
        return answer

    def get_bucket_versioning(self, Bucket):
        return {'Status': self.versioning} if self.versioning else {}

    def create_multipart_upload(self, **_):
        return {'UploadId': 'u'}

    def abort_multipart_upload(self, **_):
        return {}


class Example:
    """A node's files, all right, as an all-in-one cluster has them."""

    def __init__(self, root):
        self.root = root
        self.conf = conf = layout.AioConf(
            root=str(root), base_port=18123, ssd_budget_bytes=layout.MIB)
        files = configs.cluster_files(conf)
        files['etc/dss.conf'] = files['etc/dss.conf'].replace(
            '[gateway]', 'pin_largest_bytes = 1k\n\n[gateway]').replace(
            'url = http://', 'url = https://') + \
            '[prefetch]\nbudget_bytes = 64k\n'
        configs.write(conf, files)
        for sample, name in ((tables.CLASSES_SAMPLE, 'dss-classes.conf'),
                             (tables.RULES_SAMPLE, 'dss-rules.conf')):
            (root / 'etc' / name).write_text(tables.sample_text(sample))
        for name in ('object', 'object-1', 'object-2'):
            rings.write(conf.etc, name, 3, conf.object_port,
                        conf.device_names)
        for device in conf.device_names:
            os.makedirs(conf.path('devices', device))
            Capacity(conf.path('hdd', device), device).initialise()
        os.makedirs(conf.path('run'), 0o750)
        os.makedirs(conf.path('state'), 0o700)
        self.bucket = Bucket()

    def edit(self, name, old, new):
        path = self.root / name
        text = path.read_text()
        assert old in text, (name, old)
        path.write_text(text.replace(old, new))

    def check(self, capsys, *options):
        # A process reads them once.
        hash_path_ends.cache_clear()
        code = main(['check', '--config', self.conf.path('etc', 'dss.conf'),
                     '--json', *options])
        return code, json.loads(capsys.readouterr().out)


@pytest.fixture(scope='module')
def correct():
    """The files of a correct node, made once; /var/tmp is on a disk."""
    root = pathlib.Path(tempfile.mkdtemp(prefix='dss-check-', dir='/var/tmp'))
    yield Example(root)
    shutil.rmtree(root)


@pytest.fixture()
def node(correct, monkeypatch):
    """The same, each time as new."""
    shelf = tempfile.mkdtemp(prefix='dss-check-', dir='/var/tmp')
    kept = os.path.join(shelf, 'kept')
    shutil.copytree(correct.root, kept, symlinks=True)
    correct.bucket = Bucket()
    monkeypatch.setattr(link, 'connect_to', lambda *_: correct.bucket)
    yield correct
    for name in os.listdir(correct.root):
        path = correct.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in os.listdir(kept):
        source = os.path.join(kept, name)
        if os.path.isdir(source):
            shutil.copytree(source, correct.root / name)
        else:
            shutil.copy2(source, correct.root / name)
    shutil.rmtree(shelf)


def text(name, old, new):
    """An edit of a file."""
    return lambda node: node.edit('etc/' + name, old, new)


def added(name, line):
    """A line more at the end of a file: in its last section."""
    def edit(node):
        with open(node.conf.path('etc', name), 'a') as target:
            target.write(line + '\n')
    return edit


def mode(path, bits):
    return lambda node: os.chmod(node.conf.path(*path.split('/')), bits)


def gone(path):
    def edit(node):
        target = node.conf.path(*path.split('/'))
        shutil.rmtree(target) if os.path.isdir(target) else os.unlink(target)
    return edit


def other_user(node):
    """The servers run as a user whose nothing is."""
    node.edit('etc/object-server.conf', 'user = %s' % getpass.getuser(),
              'user = %s' % FAR)


def named_pipe(node):
    """Nobody writes to it."""
    gone('etc/dss.conf')(node)
    os.mkfifo(node.conf.path('etc', 'dss.conf'))


def both(*edits):
    def edit(node):
        for each in edits:
            each(node)
    return edit


def says(**attributes):
    """S3 behaves in another way."""
    return lambda node: vars(node.bucket).update(attributes)


def foreign(node):
    node.bucket.keys['.dss-owner'] = json.dumps({
        'v': 1, 'cluster': 'f' * 32, 'made': 'x', 'since': 0,
        'by': 'elsewhere'}).encode(), {}


def other_ring(node):
    rings.write(node.conf.etc, 'object', 3, 6200, node.conf.device_names)


def rings_of_others(node):
    for name in ('object', 'object-1', 'object-2'):
        ring_of_others(node, name)


def ring_of_others(node, name):
    from swift.common.ring.builder import RingBuilder
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({
        'region': 1, 'zone': 1, 'weight': 100, 'ip': '203.0.113.7',
        'port': 6200, 'device': 'd1', 'replication_ip': '203.0.113.7',
        'replication_port': 6200, 'meta': ''})
    builder.rebalance(seed=1)
    builder.get_ring().save(node.conf.path('etc', name + '.ring.gz'))


def exchanged_marks(node):
    hdd = node.conf.path('hdd')
    os.rename(hdd + '/d1', hdd + '/x')
    os.rename(hdd + '/d2', hdd + '/d1')
    os.rename(hdd + '/x', hdd + '/d2')


def another_table(node):
    shutil.copy(node.conf.path('etc', 'dss-classes.conf'),
                node.conf.path('etc', 'other.conf'))
    node.edit('etc/other.conf', 'rank = 1000', 'rank = 1001')
    node.edit('etc/proxy-server.conf', 'etc/dss-classes.conf',
              'etc/other.conf')


def conf_folder(node):
    """The object server's file as a folder of files, with a mistake."""
    folder = node.conf.path('etc', 'object-server.conf.d')
    os.makedirs(folder)
    os.rename(node.conf.path('etc', 'object-server.conf'),
              folder + '/10-all.conf')
    with open(folder + '/20-mine.conf', 'w') as target:
        target.write('[object-replicator]\nsync_method = rsync\n')


DSS, PROXY, OBJECT = 'dss.conf', 'proxy-server.conf', 'object-server.conf'
SWIFT, CLASSES, RULES = 'swift.conf', 'dss-classes.conf', 'dss-rules.conf'
#: The mistake, in words; its edit; level, group, the file and the option that
#: the finding names, and a part of its line.
MISTAKES = [
    ('an option is misspelt', text(DSS, 'interval_seconds = 1',
                                   'intervall_seconds = 1'),
     'error', 'config', DSS, '[tier] intervall_seconds', 'no such option'),
    ('a number is a word', text(DSS, 'clean_after_seconds = 2',
                                'clean_after_seconds = soon'),
     'error', 'config', DSS, '[tier] clean_after_seconds',
     "'soon' is not a number"),
    ('a section is unknown', added(DSS, '[tiers]'),
     'error', 'config', DSS, '', 'unknown section [tiers]'),
    ('the watermarks are exchanged', text(
        DSS, '[tier]', '[tier]\nhigh_watermark = 0.5'),
     'error', 'config', DSS, '[tier] low_watermark', 'must be below'),
    ('a class is pinned that is not there', text(
        DSS, '[tier]', '[tier]\npin_share = 0.1\npin_classes = golden'),
     'error', 'config', DSS, '[tier] pin_classes', "'golden'"),
    ('the address of S3 is none', text(DSS, 'url = https://', 'url = '),
     'error', 'config', DSS, '[gateway] url', 'https://s3.example.com'),
    ('dss.conf is a named pipe', named_pipe,
     'error', 'config', DSS, '', 'a named pipe'),
    ('a byte of 0 is in a file', added(CLASSES, '# \0'),
     'error', 'config', CLASSES, '', 'a byte of 0'),
    ('the class table is missing', gone('etc/dss-classes.conf'),
     'error', 'config', CLASSES, '', 'No such file'),
    ('two classes have one rank', text(CLASSES, 'rank = 600', 'rank = 700'),
     'error', 'config', CLASSES, '[class:12] rank', 'is taken by'),
    ('a rule names no class', added(RULES, '[rule:x]\nclass = golden'),
     'error', 'config', RULES, '[rule:x] class', 'golden'),
    ('a rule waits for a node that does not read', added(
        RULES, '[rule:x]\nclass = user1\nclassify = auto\nhot = gold'),
     'warning', 'config', DSS, '[tier] classify', 'classify = true'),
    ('classes live in S3, and the gateway is off', both(
        text(DSS, 'enabled = true', 'enabled = false'),
        text(CLASSES, 'rank = 100\n', 'rank = 100\nremote = only\n')),
     'warning', 'config', CLASSES, '[class:17] remote', 'remote = never'),
    ('cold copies are staged, and no device is of the kernel', text(
        DSS, '[tier]', '[io]\nstage_cold_copies = true\n[tier]'),
     'warning', 'config', DSS, '[io] stage_cold_copies', 'engine block'),
    ('the rounds of garbage are too far apart', text(
        DSS, '[gateway]', '[gateway]\ngc_interval_seconds = 700000'),
     'warning', 'config', DSS, '[gateway] gc_interval_seconds',
     'less than reclaim_age_seconds'),
    ("the proxy's class table is missing", text(
        PROXY, 'etc/dss-classes.conf', 'etc/nowhere.conf'),
     'error', 'config', PROXY, '[filter:dss] class_table',
     'No such file'),
    ('the proxy has another class table', another_table,
     'error', 'config', PROXY, '[filter:dss] class_table',
     'it differs from'),

    ('a diskfile is misspelt', text(SWIFT, 'egg:swift_dss#dss.fs',
                                    'egg:swift_dss#dss'),
     'error', 'policies', SWIFT, '[storage-policy:0] diskfile_module',
     'egg:swift_dss#dss.fs'),
    ('the diskfile of replicas has fragments', text(
        SWIFT, 'egg:swift_dss#dss_ec.fs', 'egg:swift_dss#dss.fs'),
     'error', 'policies', SWIFT, '[storage-policy:1] diskfile_module',
     'egg:swift_dss#dss_ec.fs'),
    ('no policy is ours', both(
        text(SWIFT, 'egg:swift_dss#dss.fs', 'egg:swift#replication.fs'),
        text(SWIFT, 'egg:swift_dss#dss_ec.fs', 'egg:swift#erasure_coding.fs')),
     'warning', 'policies', SWIFT, 'diskfile_module', 'nothing is tiered'),
    ('swift.conf has the words of the sample', lambda node: (
        node.root / 'etc' / SWIFT).write_text(re.sub(
            r'(?m)^(swift_hash_path_suffix) = .*', r'\1 = changeme',
            (node.root / 'etc' / SWIFT).read_text())),
     'warning', 'policies', SWIFT, '[swift-hash] swift_hash_path_suffix',
     "Swift's sample"),

    ('the pipeline has no dss', text(PROXY, 'symlink dss ', 'symlink '),
     'error', 'proxy', PROXY, '[pipeline:main] pipeline', 'no filter dss'),
    ('dss is before auth', both(
        text(PROXY, 'symlink dss ', 'symlink '),
        text(PROXY, ' tempauth ', ' dss tempauth ')),
     'error', 'proxy', PROXY, '[pipeline:main] pipeline', 'before auth'),
    ('slo is below dss', both(
        text(PROXY, 'symlink dss ', 'symlink '),
        text(PROXY, ' slo ', ' dss slo ')),
     'error', 'proxy', PROXY, '[pipeline:main] pipeline', 'slo is below'),
    ('encryption is above dss', both(
        text(PROXY, 'symlink dss ', 'keymaster encryption symlink dss '),
        added(PROXY, '[filter:keymaster]\nuse = egg:swift#keymaster\n'
              '[filter:encryption]\nuse = egg:swift#encryption')),
     'error', 'proxy', PROXY, '[pipeline:main] pipeline',
     'keymaster is above'),
    ('the pipeline names no filter of the file', text(
        PROXY, 'symlink dss ', 'symlink dsss '),
     'error', 'proxy', PROXY, '', "No section 'dsss'"),
    ("s3api is Swift's", text(PROXY, configs.OUR_S3API, configs.STOCK_S3API),
     'warning', 'proxy', PROXY, '[filter:s3api] use',
     'egg:swift_dss#s3api'),
    ('S3 clients are not told when to come again', text(
        PROXY, 'dss_retry_after s3api', 's3api'),
     'warning', 'proxy', PROXY, '[pipeline:main] pipeline',
     'put dss_retry_after left'),
    ('an option of the filter is misspelt', text(
        PROXY, 'rules_file =', 'rule_file ='),
     'warning', 'proxy', PROXY, '[filter:dss] rule_file', 'no such option'),
    ('an option of the filter is out of range', text(
        PROXY, 'reload_interval = 1', 'reload_interval = often'),
     'error', 'proxy', PROXY, '[filter:dss] reload_interval',
     'often is not a number'),
    ('workers have nowhere to share', text(
        PROXY, 'run_dir = ', 'run_dir = /nowhere'),
     'warning', 'proxy', PROXY, '[filter:dss] run_dir', 'no such folder'),

    ("the object server is Swift's", text(
        OBJECT, 'egg:swift_dss#object', 'egg:swift#object'),
     'error', 'object', OBJECT, '[app:object-server] use',
     'egg:swift_dss#object'),
    ('the object server knows no dss.conf', text(
        OBJECT, 'dss_conf', '# dss_conf'),
     'error', 'object', OBJECT, '[DEFAULT] dss_conf', 'dss_conf = /'),
    ('the replicator has rsync', text(
        OBJECT, 'sync_method = ssync', 'sync_method = rsync'),
     'error', 'object', OBJECT, '[object-replicator] sync_method',
     'sync_method = ssync'),
    ('the replicator has rsync, in a folder of files', conf_folder,
     'error', 'object', OBJECT + '.d', '[object-replicator] sync_method',
     'sync_method = ssync'),
    ('the devices are elsewhere', text(
        OBJECT, '/devices\n', '/disks\n'),
     'error', 'object', OBJECT, '[DEFAULT] devices', 'dss.conf has'),
    ('reclaim_age differs', added(
        OBJECT, '[DEFAULT]\nreclaim_age = 1209600'),
     'warning', 'object', OBJECT, 'reclaim_age', 'reclaim_age_seconds'),
    ('listed_classes has no such value', text(
        OBJECT, 'egg:swift_dss#object',
        'egg:swift_dss#object\nlisted_classes = some'),
     'error', 'object', OBJECT, '[app:object-server] listed_classes',
     "'some'"),
    ('dss.conf names no object server', text(
        DSS, 'etc/object-server.conf', 'etc/objects.conf'),
     'error', 'object', DSS, '[dss] object_conf', 'no such file'),

    ('a ring is missing', gone('etc/object-1.ring.gz'),
     'error', 'ring', 'etc', '', 'object-1.ring.gz cannot be read'),
    ('the rings have addresses of others', rings_of_others,
     'error', 'ring', 'object.ring.gz', '', 'no device is at an address'),
    ('the ring has another port', other_ring,
     'error', 'ring', OBJECT, '[DEFAULT] bind_port', 'port 6200'),
    ('a device of the ring is not there', gone('devices/d3'),
     'error', 'ring', 'object.ring.gz', 'device', 'no such folder'),
    ('a device is in no ring', lambda node: os.mkdir(
        node.conf.path('devices', 'd9')),
     'warning', 'ring', 'devices/d9', '', 'swift-ring-builder'),

    ('a device is not mounted', text(
        DSS, 'mount_check = false', 'mount_check = true'),
     'error', 'devices', 'devices/d1', '', 'is not mounted'),
    ('an HDD has no mark', gone('hdd/d2/.dss-capacity'),
     'error', 'devices', DSS, '[capacity]', 'swift-dss tier init'),
    ('two HDDs are exchanged', exchanged_marks,
     'error', 'devices', DSS, '[capacity]', 'belongs to device d2'),
    ('all devices have one HDD folder', text(
        DSS, '/hdd/%(device)s', '/hdd/d1'),
     'error', 'devices', DSS, '[capacity] *', '%(device)s'),
    ('a capacity folder is of a device that is not there', text(
        DSS, '[capacity]', '[capacity]\nsdz = /srv/hdd/sdz'),
     'error', 'devices', DSS, '[capacity] sdz', 'no device sdz'),

    ('the state is open to others', mode('state', 0o755),
     'warning', 'folders', DSS, '[tier] index_dir', 'chmod 0700'),
    ('the sockets are open to others', mode('run', 0o777),
     'warning', 'folders', DSS, '[dss] run_dir', 'chmod 0750'),
    ('the state is on a tmpfs', text(
        DSS, 'index_dir = ', 'index_dir = /dev/shm\n# '),
     'error', 'folders', DSS, '[tier] index_dir', 'a reboot empties'),
    ('a file is where the folder of state is to be', both(
        gone('state'), lambda node: (node.root / 'state').write_text('')),
     'error', 'folders', DSS, '[tier] index_dir', 'no folder'),
    ('an index is open to others', both(
        lambda node: (node.root / 'state' / 'index.db').write_text(''),
        mode('state/index.db', 0o644)),
     'warning', 'folders', 'index.db', '', 'chmod 0600'),

    ('the budget of the SSD is larger than it', text(
        DSS, 'ssd_bytes = 1048576', 'ssd_bytes = 4000t'),
     'warning', 'space', DSS, '', 'more than its file system has'),
    ('more is fetched ahead than fits', text(
        DSS, 'budget_bytes = 64k', 'budget_bytes = 1g'),
     'warning', 'space', DSS, '[prefetch] budget_bytes', 'write a tenth'),
    ('what may wait for S3 is more than the device has', text(
        DSS, '[gateway]', '[gateway]\ndirty_bytes = 4000t'),
     'warning', 'space', DSS, '[gateway] dirty_bytes', 'write less'),

    ('the secret can be read by others', mode('etc/s3-secret', 0o644),
     'error', 'secrets', DSS, '[gateway] secret_file', 'chmod 0600'),
    ('the secret is missing', gone('etc/s3-secret'),
     'error', 'secrets', DSS, '[gateway] secret_file', 'No such file'),
    ('the secret is the sample', lambda node: (
        node.root / 'etc' / 's3-secret').write_text(
            tables.sample_text('dss-s3-secret-sample')),
     'error', 'secrets', DSS, '[gateway] secret_file',
     'words of the sample'),
    ('the key file has no keys', both(
        text(DSS, '[gateway]', '[gateway]\nkey_file = {root}/keys'),
        lambda node: node.edit('etc/' + DSS, '{root}', str(node.root)),
        lambda node: (node.root / 'keys').write_text('active = x\n'),
        mode('keys', 0o600)),
     'error', 'secrets', DSS, '[gateway] key_file', 'key file'),
    ('the certificates are missing', text(
        DSS, '[gateway]', '[gateway]\nca_bundle = /nowhere.pem'),
     'error', 'secrets', DSS, '[gateway] ca_bundle', 'no such file'),
    ('S3 is reached in plain text', text(DSS, 'https://', 'http://'),
     'warning', 'secrets', DSS, '[gateway] url', 'https://'),

    ('no bucket', text(DSS, 'bucket = ', '# bucket = '),
     'error', 's3', DSS, '[gateway] bucket', 'not set'),
    ('S3 does not answer', says(is_there=False),
     'error', 's3', DSS, '[gateway] url', 'firewall'),
    ('the bucket is missing', says(refusals={'*': (404, 'NoSuchBucket')}),
     'error', 's3', DSS, '[gateway] bucket', 'make the bucket'),
    ('the access key is wrong', says(
        refusals={'*': (403, 'InvalidAccessKeyId')}),
     'error', 's3', DSS, '[gateway] secret_file', 'does not know'),
    ('the secret key is wrong', says(
        refusals={'*': (403, 'SignatureDoesNotMatch')}),
     'error', 's3', DSS, '[gateway] secret_file', 'secret_key'),
    ('the key may not delete', says(
        refusals={'delete_object': (403, 'AccessDenied')}),
     'error', 's3', DSS, '[gateway] secret_file', 'cannot delete a key'),
    ('the key may not write', says(
        refusals={'put_object': (403, 'AccessDenied')}),
     'error', 's3', DSS, '[gateway] secret_file', 'cannot write a key'),
    ('the bucket keeps old versions', says(versioning='Enabled'),
     'warning', 's3', '', '', 'gateway gc --versions'),
    ('the key may not begin an upload in parts', says(
        refusals={'create_multipart_upload': (403, 'AccessDenied')}),
     'error', 's3', DSS, '[gateway] secret_file', 'cannot upload in parts'),
    ("the prefix is another cluster's", foreign,
     'error', 's3', DSS, '[gateway] prefix', 'belongs to cluster ffff'),
    ("the clock is ahead of S3's", says(ahead_seconds=120.0),
     'warning', 's3', '', '', "ahead of S3's"),
    ("the clock is far behind S3's", says(ahead_seconds=-3600.0),
     'error', 's3', '', '', "behind S3's"),
]
#: The same for servers of another user than the files': only root can try.
OF_ROOT = [
    ('the user of the servers is unknown', text(
        OBJECT, 'user = %s' % getpass.getuser(), 'user = nosuchuser'),
     'error', 'folders', OBJECT, '[DEFAULT] user', 'no such user'),
    ("a device is another user's", other_user,
     'error', 'devices', 'devices/d1', '', 'chown -R nobody'),
    ("the state is another user's", other_user,
     'error', 'folders', DSS, '[tier] index_dir', 'chown nobody'),
    ('the user cannot make the folder of sockets', both(
        other_user, gone('run')),
     'error', 'folders', DSS, '[dss] run_dir', 'install -d -o nobody'),
    ("the secret is another user's", other_user,
     'error', 'secrets', DSS, '[gateway] secret_file', 'chown nobody'),
]


def named(mistakes):
    return pytest.mark.parametrize(
        'edit, level, group, file, option, words',
        [row[1:] for row in mistakes], ids=[row[0] for row in mistakes])


def is_named(report, level, group, file, option, words):
    return [finding for finding in report['findings']
            if (finding['level'], finding['group']) == (level, group)
            and finding['file'].endswith(file)
            and finding['option'] == option
            and words in '%(text)s %(instead)s' % finding]


def sees(node, capsys, level, group, file, option, words):
    code, report = node.check(capsys, '--only', group)
    assert is_named(report, level, group, file, option, words), \
        json.dumps([finding for finding in report['findings']
                    if finding['level'] != 'ok'], indent=1)
    assert code == {'warning': 1, 'error': 78}[level]


def test_a_correct_node_has_neither_errors_nor_warnings_of_its_files(
        node, capsys):
    _code, report = node.check(capsys)
    bad = [finding for finding in report['findings']
           if finding['level'] != 'ok']
    # This machine's kernel, clock and disks are its own.
    assert [finding for finding in bad if finding['level'] == 'error'] == []
    assert {finding['group'] for finding in bad} <= {
        'kernel', 'clock', 'devices', 'space', 'folders'}
    assert {finding['group'] for finding in report['findings']} == set(
        verbs.GROUPS)


@named(MISTAKES)
def test_each_mistake_is_seen_and_named(
        node, capsys, edit, level, group, file, option, words):
    _code, report = node.check(capsys, '--only', group)
    assert not is_named(report, level, group, file, option, words)
    edit(node)
    sees(node, capsys, level, group, file, option, words)


@pytest.mark.skipif(not IS_ROOT, reason='files of several users')
@named(OF_ROOT)
def test_each_mistake_about_users_is_seen_and_named(
        node, capsys, edit, level, group, file, option, words):
    edit(node)
    sees(node, capsys, level, group, file, option, words)


def test_the_page_has_the_table_of_mistakes():
    page = PAGE.read_text()
    rows = re.findall(r'^   \* - (.*)\n     - (.*)\n     -(.*)$', page, re.M)
    assert rows[1:] == [
        (mistake, '%s, ``%s``' % (level, group), ' ``%s``' % (
            ' '.join(part for part in (file, option) if part))
         if file else '')
        for mistake, _edit, level, group, file, option, _words
        in MISTAKES + OF_ROOT]


def test_nothing_stays_of_the_trials(node, capsys):
    before = sorted(str(path) for path in node.root.rglob('*'))
    node.check(capsys)
    assert sorted(str(path) for path in node.root.rglob('*')) == before
    assert node.bucket.listed_keys() == [] and not [
        key for key in node.bucket.keys if key.endswith('.dss-check')]


@pytest.mark.parametrize('refused_call', [
    'create_multipart_upload', 'abort_multipart_upload', 'head_object'])
def test_no_key_stays_after_a_refusal(node, capsys, refused_call):
    node.bucket.refusals = {refused_call: (403, 'AccessDenied')}
    node.check(capsys, '--only', 's3')
    assert not [key for key in node.bucket.keys if key.endswith('.dss-check')]


def test_no_key_stays_after_an_interruption(node, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(node.bucket, 'create_multipart_upload', interrupted,
                        raising=False)
    assert main(['check', '--config', node.conf.path('etc', DSS),
                 '--only', 's3']) == 130
    assert not [key for key in node.bucket.keys if key.endswith('.dss-check')]


def test_a_key_that_stays_is_told(node, capsys):
    node.bucket.refusals = {'delete_object': (403, 'AccessDenied')}
    _code, report = node.check(capsys, '--only', 's3')
    assert 'swift-dss/.dss-check stays' in report['findings'][-1]['text']


@pytest.mark.parametrize('said, option', [
    ('list_objects_v2: SSLError', 'ca_bundle'),
    ('list_objects_v2: Redirected', 'url'),
    ('list_objects_v2: 401 401', 'secret_file'),
    ('[gateway] bucket, region or url: Invalid bucket name "a/b"', 'bucket')])
def test_the_option_at_fault_is_named_by_what_s3_says(said, option):
    found = s3.answer(BadConfig(said), 'list the bucket', GatewayConf(), 'x')
    assert found.place.option == '[gateway] ' + option
    assert found.instead


def test_a_group_is_not_fine_where_dss_conf_is_wrong(node, capsys):
    node.edit('etc/' + DSS, '[tier]', '[tiers]')
    code, report = node.check(capsys, '--only', 'devices')
    assert code == 78
    assert 'unknown section [tiers]' in report['findings'][0]['text']


def test_a_secret_with_bucket_in_its_name_is_no_missing_bucket(node, capsys):
    node.edit('etc/' + DSS, '/s3-secret', '/bucket-secret')
    _code, report = node.check(capsys, '--only', 's3')
    assert report['findings'] == []


def test_devices_of_other_servers_and_policies_are_in_a_ring(node, capsys):
    for name, device in (('container', 'd8'), ('object-2', 'd9')):
        os.mkdir(node.conf.path('devices', device))
        rings.write(node.conf.etc, name, 1, 6201, [device])
    assert node.check(capsys, '--only', 'ring')[0] == 0


def test_an_unmounted_folder_that_no_ring_has_stops_no_server(node, capsys):
    node.edit('etc/dss.conf', 'mount_check = false', 'mount_check = true')
    os.mkdir(node.conf.path('devices', 'd9'))

    def levels():
        _code, report = node.check(capsys, '--only', 'devices')
        return {finding['about']: finding['level']
                for finding in report['findings']
                if 'not mounted' in finding['text']}

    assert levels() == {'device d9': 'warning', **dict.fromkeys(
        ('device d1', 'device d2', 'device d3', 'device d4'), 'error')}
    # A ring that cannot be read might have it.
    (node.root / 'etc' / 'object-1.ring.gz').write_bytes(b'no ring')
    assert levels()['device d9'] == 'error'


def test_a_policy_may_be_other_nodes(node, capsys):
    ring_of_others(node, 'object-1')
    assert node.check(capsys, '--only', 'ring')[0] == 0


@pytest.mark.parametrize('file, option', [
    (DSS, 'devices = '), (DSS, 'secret_file = '), (PROXY, 'class_table = '),
    (PROXY, 'rules_file = '), (PROXY, 'run_dir = '), (OBJECT, 'devices = ')])
def test_a_path_that_cannot_be_is_no_traceback(node, capsys, file, option):
    node.edit('etc/' + file, '\n' + option, '\n%sx\0' % option)
    assert node.check(capsys)[0] in (1, 78)


def test_a_user_without_a_name_checks_as_others_do(node, capsys, monkeypatch):
    monkeypatch.setattr(os, 'geteuid', lambda: 54321)
    _code, report = node.check(capsys, '--only', 'folders')
    assert 'runs as 54321' in json.dumps(report)


def test_paths_are_whole_whatever_the_working_folder(
        node, capsys, monkeypatch):
    monkeypatch.chdir(node.conf.etc)
    node.edit('etc/' + OBJECT, 'dss_conf', '# dss_conf')
    assert main(['check', '--config', DSS, '--only', 'object']) == 78
    assert 'dss_conf = %s/dss.conf' % node.conf.etc in capsys.readouterr().out


def test_a_foreign_prefix_is_not_written_to(node, capsys):
    foreign(node)
    node.check(capsys, '--only', 's3')
    assert {operation for operation, _key in node.bucket.asked} <= {
        'GET', 'LIST'}


def test_offline_asks_nothing_of_s3(node, capsys):
    _code, report = node.check(capsys, '--offline')
    assert node.bucket.asked == []
    assert not [finding for finding in report['findings']
                if finding['group'] == 's3']


def test_a_proxy_alone_needs_no_dss_conf(node, capsys):
    os.unlink(node.conf.path('etc', DSS))
    os.unlink(node.conf.path('etc', OBJECT))
    code, report = node.check(capsys, '--only', 'proxy', '--only', 'config',
                              '--only', 'devices')
    assert code == 0
    assert {finding['group'] for finding in report['findings']} == {
        'proxy', 'config'}


def test_a_storage_node_without_dss_conf_is_an_error(node, capsys):
    os.unlink(node.conf.path('etc', DSS))
    code, report = node.check(capsys, '--only', 'config')
    assert code == 78
    assert 'No such file' in report['findings'][0]['text']


def test_lines_are_for_people(node, capsys):
    conf = node.conf.path('etc', DSS)
    node.edit('etc/' + DSS, 'https://', 'http://')
    arguments = ['check', '--config', conf, '--only', 'secrets', '--only',
                 'policies']
    assert main(arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ['ok', 'policies', '2', 'checks']
    assert re.match(r'warning  secrets   S3: %s: \[gateway\] url = http://'
                    r'[^:]*:\d+: .*; write https://' % re.escape(conf),
                    lines[1])
    assert lines[2] == '0 errors, 1 warnings, 3 ok'
    assert main(arguments + ['--verbose']) == 1
    assert len(capsys.readouterr().out.splitlines()) == 5
    assert main(arguments + ['--quiet']) == 1
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_an_error_of_a_parser_names_its_place():
    finding = refused('x', Exception('/etc/a.conf:7: [tier] movers: is bad'))
    assert finding.place == Place('/etc/a.conf', '[tier] movers')
    assert str(finding) == 'x: /etc/a.conf:7: [tier] movers: is bad'
    assert refused('x', Exception('no place')).place == Place()


@pytest.mark.parametrize('lacking, level, words', [
    ({}, 'ok', 'all that is needed'),
    ({'large xattrs': 'No space left on device'}, 'warning', 'metadata'),
    ({'RENAME_EXCHANGE': 'Invalid argument', 'large xattrs': 'x'}, 'error',
     'RENAME_EXCHANGE (Invalid argument)'),
    ({'xattrs': 'Operation not supported'}, 'error', 'mkfs.xfs')])
def test_a_file_system_is_judged_by_what_it_can(lacking, level, words):
    findings = list(devices.lacks('d', '/srv/node/d', 'ext4', lacking))
    assert [finding.level for finding in findings] == [level]
    assert words in str(findings[0])


def test_features_are_tried_and_not_believed(tmp_path, monkeypatch):
    def cannot(*_):
        raise OSError(22, 'Invalid argument')

    monkeypatch.setattr(trials, 'exchange', cannot)
    assert trials.lacks(str(tmp_path))['RENAME_EXCHANGE'] == \
        'Invalid argument'
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('state, level', [
    (0, 'ok'), (5, 'warning'), (None, 'ok')])
def test_the_kernel_says_whether_the_clock_is_synchronised(state, level):
    assert [finding.level for finding
            in clock.synchronised(state)] == [level]


@pytest.mark.parametrize('name, carries, wanted, level', [
    ('ioprio', True, 'auto', 'ok'), ('null', False, 'auto', 'warning'),
    ('null', False, 'null', 'ok'), ('null', False, 'ioprio', 'warning')])
def test_a_carrier_that_does_not_carry_is_told(name, carries, wanted, level):
    made = carriers.Carrier()
    made.name, made.carries = name, carries
    findings = list(kernel.carrier(
        carriers.Choice(made, ['classified: no such kernel']), wanted, 'x'))
    assert [finding.level for finding in findings] == [level]


@pytest.mark.parametrize('below, known, level', [
    (['fast', 'luks'], ['fast'], 'ok'), (['luks'], ['fast'], 'error'),
    ([], [], 'error')])
def test_a_device_of_engine_block_has_a_cache_under_it(
        node, below, known, level):
    device = devices.Device('d1', '/srv/node/d1', Capacity('', 'd1'), True,
                            'block')
    assert [finding.level for finding in kernel.under(
        device, below, known, read(node.conf.path('etc', DSS)))] == [level]


@pytest.mark.skipif(not IS_ROOT, reason='files of several users')
def test_root_reads_a_secret_of_the_daemons_user(node, monkeypatch):
    path = node.conf.path('etc', 's3-secret')
    os.chown(path, 65534, 65534)
    assert SecretFile(path).read()
    monkeypatch.setattr(credentials.os, 'geteuid', lambda: 65533)
    with pytest.raises(BadConfig, match='belongs to user 65534, not to us'):
        SecretFile(path).read()


@pytest.fixture
def auditor(node, tmp_path):
    """Swift's auditor of the node, as the system sees it."""
    script = tmp_path / 'swift-object-auditor'
    script.write_text('import sys\nprint(flush=True)\nsys.stdin.read()\n')
    with subprocess.Popen(
            [sys.executable, str(script),
             node.conf.path('etc', 'object-server.conf')],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield
        process.stdin.close()


def test_a_daemon_with_the_diskfile_of_before_is_named(
        node, auditor, capsys):
    swift_conf = node.conf.path('etc', 'swift.conf')
    os.utime(swift_conf, (0, 0))
    _code, report = node.check(capsys, '--only', 'object')
    assert any('none is older than' in finding['text']
               for finding in report['findings'])
    os.utime(swift_conf, (time.time() + 60,) * 2)
    sees(node, capsys, 'warning', 'object', 'swift.conf', '',
         'swift-object-auditor; if they have')


def test_daemons_of_another_node_are_not_of_this_one(node, capsys, auditor):
    node.edit('etc/' + DSS, '/object-server.conf', '/object-servers')
    shutil.copy(node.conf.path('etc', 'object-server.conf'),
                node.conf.path('etc', 'object-servers'))
    os.utime(node.conf.path('etc', 'swift.conf'), (time.time() + 60,) * 2)
    _code, report = node.check(capsys, '--only', 'object')
    assert 'swift-object-auditor' not in json.dumps(report)
