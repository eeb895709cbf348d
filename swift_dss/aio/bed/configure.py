"""Write a member's files before it starts."""

from __future__ import annotations

import configparser
import io
import os

from swift_dss.aio import configs, rings, tables
from swift_dss.aio.bed import clock
from swift_dss.aio.bed.plan import S3, Options, Plan
from swift_dss.aio.layout import AioConf
from swift_dss.io.capacity import Capacity


def prepare(plan: Plan, member: str) -> None:
    """Folders and configuration of one member; its drives are mounted."""
    conf = plan.conf(member)
    for folder in (conf.log, conf.run, conf.path('run', 'recon')):
        os.makedirs(folder, exist_ok=True)
    clock.set_offset(clock_file(conf), plan.skew.get(member, 0.0))
    if member == S3:
        configs.write(conf, configs.cloud_files(conf))
        for name, offset in (('object', 1), ('container', 2),
                             ('account', 3)):
            rings.write(conf.path('cloud', 'etc'), name, 1,
                        conf.cloud_port + offset, ['c1'])
        return
    for device in conf.device_names:
        Capacity(conf.path('hdd', device), device).initialise()
    configure(plan, member)
    tables.write(conf)


def configure(plan: Plan, member: str) -> None:
    """Write or rewrite a node's or a proxy's configuration.

    Rings, class table and rules stay as they are.
    """
    conf = plan.conf(member)
    files = configs.cluster_files(conf, configs.Keys(*plan.keys))
    ours = 'etc/dss.conf'
    if ours in files:
        files[ours] = with_options(files[ours], plan.dss_options(member))
    files['etc/rsyncd.conf'] = _rsyncd(conf)
    proxy = 'etc/proxy-server.conf'
    if proxy in files and member in plan.versions:
        files[proxy] = _for_version(files[proxy], plan.versions[member])
    configs.write(conf, files)


def _for_version(text: str, packages: str) -> str:
    """A proxy's configuration that another version understands."""
    if os.path.isdir(os.path.join(packages, 'swift_dss', 'proxy', 's3')):
        return text
    return text.replace(configs.OUR_S3API, configs.STOCK_S3API)


def clock_file(conf: AioConf) -> str:
    """The file with the clock offset of a member's processes."""
    return conf.path('run', 'clock')


def _rsyncd(conf: AioConf) -> str:
    """Swift's replicators move databases by it."""
    return 'uid = 0\ngid = 0\nuse chroot = no\nlog file = %s\n' \
        'address = %s\n' % (conf.path('log', 'rsync-transfers.log'),
                            conf.address) + ''.join(
            '[%s]\npath = %s\nread only = false\nlock file = %s\n' % (
                kind, conf.path('devices'), conf.path(
                    'run', kind + '.lock'))
            for kind in ('account', 'container', 'object'))


def with_options(text: str, options: Options) -> str:
    """A configuration file with some options set."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    parser.read_dict(options)
    out = io.StringIO()
    parser.write(out)
    return out.getvalue()


def write_hosts(plan: Plan) -> None:
    """The ``/etc/hosts`` of every process of the bed."""
    text = '127.0.0.1 localhost\n' + ''.join(
        '%s %s\n' % (plan.address(member), plan.host(member))
        for member in plan.members)
    with open(hosts_file(plan), 'w') as out:
        out.write(text)


def hosts_file(plan: Plan) -> str:
    """Its place."""
    return plan.path('etc', 'hosts')
