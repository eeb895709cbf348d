"""The text of every configuration file of a cluster."""

from __future__ import annotations

import getpass
import os
import secrets
from base64 import urlsafe_b64encode
from typing import Dict, NamedTuple, Optional

from swift_dss.aio import parts
from swift_dss.io.private import filesystem_of
from swift_dss.aio.layout import (
    CLOUD_BUCKET, CLOUD_USER, POLICIES, USERS, AioConf)

PIPELINE = (
    'catch_errors gatekeeper healthcheck proxy-logging listing_formats '
    'container_sync bulk tempurl formpost %ss3api tempauth staticweb copy '
    'container-quotas account-quotas slo dlo versioned_writes symlink '
    '%sproxy-logging proxy-server')

CLOUD_PIPELINE = (
    'catch_errors gatekeeper healthcheck proxy-logging memory '
    'listing_formats bulk s3api tempauth copy slo dlo versioned_writes '
    'symlink proxy-logging proxy-server')

#: Filters without options of ours.
_FILTERS = {
    'catch_errors': 'catch_errors', 'gatekeeper': 'gatekeeper',
    'healthcheck': 'healthcheck', 'proxy-logging': 'proxy_logging',
    'listing_formats': 'listing_formats', 'bulk': 'bulk',
    'container_sync': 'container_sync', 'tempurl': 'tempurl',
    'formpost': 'formpost', 'staticweb': 'staticweb', 'copy': 'copy',
    'container-quotas': 'container_quotas',
    'account-quotas': 'account_quotas', 'slo': 'slo', 'dlo': 'dlo',
    'symlink': 'symlink',
}

#: Seconds between the rounds of the background daemons: a demo wants to
#: see them work, and the machine has other things to do.
INTERVAL_SECONDS = 30


def secret_key() -> str:
    """A Fernet key, new every time."""
    return urlsafe_b64encode(secrets.token_bytes(32)).decode('ascii')


def has(conf: AioConf, part: str) -> bool:
    """Does this cluster run that part of ours?"""
    return not conf.plain and part not in parts.missing()


#: Our s3api, and Swift's, as a filter names them.
OUR_S3API = 'paste.filter_factory = swift_dss.proxy.s3.seam:filter_factory'
STOCK_S3API = 'use = egg:swift#s3api'


class Keys(NamedTuple):
    """The options that all servers of one cluster share."""

    hash_prefix: str
    hash_suffix: str
    tokens: str

    @classmethod
    def new(cls) -> Keys:
        """Keys that no other cluster has."""
        return cls(secrets.token_hex(8), secrets.token_hex(8), secret_key())


def cluster_files(conf: AioConf,
                  keys: Optional[Keys] = None) -> Dict[str, str]:
    """Path under the root -> text, of the main cluster.

    :param keys: those of a cluster of which this is a part; None makes some
    """
    keys = keys or Keys.new()
    files = {
        'etc/swift.conf': _swift_conf(conf, keys),
        'etc/proxy-server.conf': _proxy(conf, keys),
        'etc/internal-client.conf': _internal_client(conf),
        'etc/object-server.conf': _object(conf),
        'etc/container-server.conf': _container(conf),
        'etc/account-server.conf': _account(conf),
        'etc/container-sync-realms.conf': '[DEFAULT]\n',
    }
    if not conf.plain:
        files.update({
            'etc/dss.conf': _dss(conf),
            'etc/s3-secret': 'access_key = %s:%s\nsecret_key = %s\n'
                             % CLOUD_USER,
        })
    return files


def cloud_files(conf: AioConf) -> Dict[str, str]:
    """The same for the second, stock Swift that plays the S3 cloud."""
    return {
        'cloud/etc/swift.conf': _cloud_swift_conf(),
        'cloud/etc/proxy-server.conf': _cloud_proxy(conf),
        'cloud/etc/object-server.conf': _cloud_store(conf, 'object', 1),
        'cloud/etc/container-server.conf':
            _cloud_store(conf, 'container', 2),
        'cloud/etc/account-server.conf': _cloud_store(conf, 'account', 3),
    }


def _default(conf: AioConf, port: int, etc: str, devices: str,
             workers: int = 0) -> str:
    return '\n'.join((
        '[DEFAULT]', 'bind_ip = %s' % conf.address, 'bind_port = %d' % port,
        'user = %s' % getpass.getuser(), 'workers = %d' % workers,
        'swift_dir = %s' % etc, 'devices = %s' % devices,
        'mount_check = %s' % (
            'false' if conf.storage == 'folders' else 'true'),
        'max_clients = 256', 'backlog = 512',
        'log_level = INFO', '', ''))


def _filter(name: str, use: str, *options: str) -> str:
    return '\n'.join(('[filter:%s]' % name, 'use = %s' % use)
                     + options + ('', ''))


def _plain_filters(pipeline: str) -> str:
    return ''.join(_filter(name, 'egg:swift#' + _FILTERS[name])
                   for name in dict.fromkeys(pipeline.split())
                   if name in _FILTERS)


def _swift_conf(conf: AioConf, keys: Keys) -> str:
    engines = {
        'dss': 'egg:swift_dss#dss.fs' if has(conf, 'diskfile')
               else 'egg:swift#replication.fs',
        'dss-ec': 'egg:swift_dss#dss_ec.fs' if has(conf, 'ec')
                  else 'egg:swift#erasure_coding.fs',
        'vanilla': 'egg:swift#replication.fs'}
    parts = ['[swift-hash]',
             'swift_hash_path_suffix = %s' % keys.hash_suffix,
             'swift_hash_path_prefix = %s' % keys.hash_prefix, '']
    for index, name in enumerate(POLICIES):
        parts += ['[storage-policy:%d]' % index, 'name = %s' % name,
                  'diskfile_module = %s' % engines[name]]
        if name == conf.default_policy:
            parts.append('default = yes')
        if name == 'dss-ec':
            parts += ['policy_type = erasure_coding',
                      'ec_type = liberasurecode_rs_vand',
                      'ec_num_data_fragments = 2',
                      'ec_num_parity_fragments = 1',
                      'ec_object_segment_size = 1048576']
        parts.append('')
    return '\n'.join(parts)


def _tempauth(users: object, key: str) -> str:
    lines = ['user_%s_%s = %s %s' % user for user in users]  # type: ignore
    lines += ['fernet_key_aio = %s' % key,
              'active_fernet_key_id = aio', 'token_life = 86400',
              'allow_overrides = true']
    return _filter('tempauth', 'egg:swift#tempauth', *lines)


def _proxy(conf: AioConf, keys: Keys) -> str:
    pipeline = PIPELINE % (('dss_retry_after ', 'dss ') if has(
        conf, 'proxy') else ('', ''))
    ours = '' if not has(conf, 'proxy') else _filter(
        'dss', 'egg:swift_dss#dss',
        'class_table = %s' % conf.path('etc', 'dss-classes.conf'),
        'rules_file = %s' % conf.path('etc', 'dss-rules.conf'),
        'reload_interval = 1', 'run_dir = %s' % conf.run,
        'lifecycle_interval = %d' % INTERVAL_SECONDS) + _filter(
        'dss_retry_after', 'egg:swift_dss#dss_retry_after')
    return ''.join((
        _default(conf, conf.proxy_port, conf.etc, conf.path('devices'),
                 conf.workers),
        '[pipeline:main]\npipeline = %s\n\n' % pipeline,
        '[app:proxy-server]\nuse = egg:swift#proxy\n'
        'allow_account_management = true\naccount_autocreate = true\n'
        # A server that was killed by a test is asked again soon.
        'error_suppression_interval = 5\nnode_timeout = 20\n'
        'recoverable_node_timeout = 20\nconn_timeout = 1\n'
        'client_chunk_size = %d\nobject_chunk_size = %d\n\n'
        % (conf.chunk_bytes, conf.chunk_bytes),
        _plain_filters(pipeline),
        _filter('versioned_writes', 'egg:swift#versioned_writes',
                'allow_versioned_writes = true',
                'allow_object_versioning = true'),
        _s3api(conf), _tempauth(USERS, keys.tokens), ours))


def _s3api(conf: AioConf) -> str:
    where = 'location = us-east-1'
    if not has(conf, 'proxy'):
        return _filter('s3api', 'egg:swift#s3api', where)
    return '[filter:s3api]\n%s\n%s\n\n' % (OUR_S3API, where)


def _internal_client(conf: AioConf) -> str:
    return ('[DEFAULT]\nswift_dir = %s\nlog_level = INFO\n\n'
            '[pipeline:main]\n'
            'pipeline = catch_errors proxy-logging proxy-server\n\n'
            '[app:proxy-server]\nuse = egg:swift#proxy\n'
            'account_autocreate = true\n\n' % conf.etc
            + _plain_filters('catch_errors proxy-logging'))


def _object(conf: AioConf) -> str:
    ours = '' if conf.plain else 'dss_conf = %s\n' % conf.path(
        'etc', 'dss.conf')
    default = _default(conf, conf.object_port, conf.etc,
                       conf.path('devices'), conf.workers).rstrip('\n')
    recon = conf.path('run', 'recon')
    return ''.join((
        default, '\n', ours, _per_port(conf), '\n',
        '[pipeline:main]\npipeline = healthcheck recon object-server\n\n',
        '[app:object-server]\nuse = %s\nnetwork_chunk_size = %d\n'
        'disk_chunk_size = %d\n\n' % (
            'egg:swift_dss#object' if has(conf, 'objserver')
            else 'egg:swift#object', conf.chunk_bytes, conf.chunk_bytes),
        _filter('healthcheck', 'egg:swift#healthcheck'),
        _filter('recon', 'egg:swift#recon',
                'recon_cache_path = %s' % recon),
        _daemon('object-replicator', recon, 'sync_method = ssync',
                'concurrency = 1', 'rsync_timeout = 30'),
        _daemon('object-reconstructor', recon, 'concurrency = 1'),
        _daemon('object-updater', recon, 'concurrency = 1'),
        _daemon('object-auditor', recon, 'files_per_second = 50',
                'zero_byte_files_per_second = 50', 'disk_chunk_size = 65536'),
        _daemon('object-expirer', recon, 'dequeue_from_legacy = true',
                'internal_client_conf_path = %s'
                % conf.path('etc', 'internal-client.conf')),
    ))


def _per_port(conf: AioConf) -> str:
    if not conf.servers_per_port:
        return ''
    return 'servers_per_port = %d\nring_check_interval = 1\n' \
        % conf.servers_per_port


def _daemon(name: str, recon: str, *options: str) -> str:
    return '\n'.join(('[%s]' % name, 'interval = %d' % INTERVAL_SECONDS,
                      'recon_cache_path = %s' % recon) + options
                     + ('', ''))


def _container(conf: AioConf) -> str:
    recon = conf.path('run', 'recon')
    return ''.join((
        _default(conf, conf.container_port, conf.etc,
                 conf.path('devices')),
        '[pipeline:main]\npipeline = container-server\n\n'
        '[app:container-server]\nuse = egg:swift#container\n\n',
        _daemon('container-replicator', recon),
        _daemon('container-updater', recon, 'concurrency = 1'),
        _daemon('container-auditor', recon)))


def _account(conf: AioConf) -> str:
    recon = conf.path('run', 'recon')
    return ''.join((
        _default(conf, conf.account_port, conf.etc, conf.path('devices')),
        '[pipeline:main]\npipeline = account-server\n\n'
        '[app:account-server]\nuse = egg:swift#account\n\n',
        _daemon('account-replicator', recon),
        _daemon('account-auditor', recon),
        _daemon('account-reaper', recon, 'concurrency = 1')))


def _dss(conf: AioConf) -> str:
    lines = (
        '[dss]', 'devices = %s' % conf.path('devices'),
        'swift_dir = %s' % conf.etc,
        'mount_check = %s' % (
            'false' if conf.storage == 'folders' else 'true'),
        'run_dir = %s' % conf.run,
        'allow_tmpfs = %s' % ('true' if filesystem_of(conf.root) in (
            'tmpfs', 'ramfs') else 'false'),
        'object_conf = %s' % conf.path('etc', 'object-server.conf'),
        'class_table = %s' % conf.path('etc', 'dss-classes.conf'), '',
        '[capacity]', '* = %s' % conf.path('hdd', '%(device)s'), '',
        # Short ages: effects that take minutes in a machine room must show in
        # seconds here.
        '[tier]', 'index_dir = %s' % conf.path('state'),
        'ssd_bytes = %d' % conf.ssd_budget_bytes,
        'clean_after_seconds = 2', 'interval_seconds = 1',
        'prometheus_port = %d' % conf.metrics_port, '',
        '[gateway]', 'enabled = true', 'endpoint = cloud',
        'url = %s' % conf.cloud_url, 'bucket = %s' % CLOUD_BUCKET,
        'secret_file = %s' % conf.path('etc', 's3-secret'),
        'remote_after_seconds = 5', 'delete_delay_seconds = 60',
        'take_over_seconds = 30', '')
    return '\n'.join(lines)


def _cloud_swift_conf() -> str:
    return ('[swift-hash]\nswift_hash_path_suffix = %s\n'
            'swift_hash_path_prefix = %s\n\n'
            '[storage-policy:0]\nname = cloud\ndefault = yes\n'
            % (secrets.token_hex(8), secrets.token_hex(8)))


def _cloud_proxy(conf: AioConf) -> str:
    account, user, key = CLOUD_USER
    etc = conf.path('cloud', 'etc')
    return ''.join((
        _default(conf, conf.cloud_port, etc,
                 conf.path('cloud', 'devices')),
        '[pipeline:main]\npipeline = %s\n\n' % CLOUD_PIPELINE,
        '[app:proxy-server]\nuse = egg:swift#proxy\n'
        'account_autocreate = true\n\n',
        _plain_filters(CLOUD_PIPELINE),
        '[filter:memory]\n'
        'paste.filter_factory = swift_dss.aio.memory:filter_factory\n\n',
        _filter('versioned_writes', 'egg:swift#versioned_writes',
                'allow_object_versioning = true'),
        _filter('s3api', 'egg:swift#s3api', 'location = us-east-1'),
        _tempauth(((account, user, key, '.admin'),), secret_key())))


def _cloud_store(conf: AioConf, kind: str, offset: int) -> str:
    return ''.join((
        _default(conf, conf.cloud_port + offset, conf.path('cloud', 'etc'),
                 conf.path('cloud', 'devices')),
        '[pipeline:main]\npipeline = %s-server\n\n' % kind,
        '[app:%s-server]\nuse = egg:swift#%s\n\n' % (kind, kind)))


def write(conf: AioConf, files: Dict[str, str]) -> None:
    """Write them; only the owner may read (they hold keys)."""
    for name, text in files.items():
        path = conf.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file_fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file_fd, 'w') as out:
            out.write(text)
