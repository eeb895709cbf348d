"""The object server: its application, and how Swift's replicator copies."""

from __future__ import annotations

import os
import time
from typing import Iterator, Mapping, Tuple

from swift.common.utils import config_true_value

from swift_dss.cli.check.findings import (
    Finding, Place, error, fine, refused, warning)
from swift_dss.cli.check.node import Node, Server
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.io.start import syncing
from swift_dss.objserver.listed import updates

_OURS = 'swift_dss.objserver.server'
#: Swift's own default.
_RECLAIM_SECONDS = 604800.0


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    if node.conf is None:
        return
    if node.objects is None:
        if 'object' not in node.wrong:
            yield error('object server', 'no such file', Place(
                node.config, '[dss] object_conf', node.conf.object_conf),
                'name the file of the object server, or its folder')
        return
    yield from app(node, node.objects)
    yield from same(node.objects, node.conf, node.config)
    if any(policy.is_replicated for policy in node.ours):
        yield from replicator(node.objects.path)
    if node.ours:
        yield from older(node.objects.path,
                         os.path.join(node.swift_dir, 'swift.conf'))


def app(node: Node, server: Server) -> Iterator[Finding]:
    """The application, and its own options."""
    place = Place(server.path, '[app:%s] use' % server.app.name,
                  server.app.own.get('use', ''))
    if server.app.module == _OURS:
        yield fine('object server', 'it is ours')
    elif node.ours:
        yield error('object server', 'Swift\'s own serves %s, and keeps no '
                    'class' % node.ours[0], place,
                    'write "use = egg:swift_dss#object"')
    try:
        updates.which_of(server.app.options)
    except BadConfig as err:
        yield refused('object server', BadConfig('%s: [app:%s] %s' % (
            server.path, server.app.name, err)))


def same(server: Server, conf: NodeConf, path: str) -> Iterator[Finding]:
    """Object server and tier daemon must mean the same node."""
    options = server.app.options
    named = options.get('dss_conf', '')
    if not named:
        yield error(
            'object server', 'without it classes reach the disk, and there '
            'is no HDD and no S3', Place(server.path, '[DEFAULT] dss_conf'),
            'write "dss_conf = %s"' % path)
    elif not os.path.exists(named) or not os.path.samefile(named, path):
        yield error(
            'object server', 'another file than %s, which is checked here'
            % path, Place(server.path, '[DEFAULT] dss_conf', named),
            'write "dss_conf = %s"' % path)
    for option, default, ours in (
            ('devices', '/srv/node', conf.devices),
            ('swift_dir', '/etc/swift', conf.swift_dir)):
        if os.path.realpath(options.get(option, default)) != \
                os.path.realpath(ours):
            yield error(
                'object server', 'dss.conf has %s there' % ours,
                Place(server.path, '[DEFAULT] ' + option,
                      options.get(option, default)),
                'let [dss] %s of dss.conf be the same' % option)
    yield from _like(server.path, options, conf)


def _like(path: str, options: Mapping[str, str],
          conf: NodeConf) -> Iterator[Finding]:
    mounts = config_true_value(options.get('mount_check', 'true'))
    if mounts != conf.mount_check:
        yield warning(
            'object server', 'dss.conf says %s' % str(
                conf.mount_check).lower(),
            Place(path, '[DEFAULT] mount_check', str(mounts).lower()),
            'let [dss] mount_check of dss.conf be the same')
    try:
        reclaim = float(options.get('reclaim_age', _RECLAIM_SECONDS))
    except ValueError:
        return  # Swift's own server says so
    if conf.gateway.enabled and reclaim != conf.gateway.reclaim_age_seconds:
        yield warning(
            'object server', 'the gateway counts with %g seconds'
            % conf.gateway.reclaim_age_seconds,
            Place(path, 'reclaim_age', '%g' % reclaim),
            'let [gateway] reclaim_age_seconds of dss.conf be the same')


def replicator(path: str) -> Iterator[Finding]:
    """ssync, as the object server and the daemon insist at their start."""
    try:
        syncing.check_file(path)
    except BadConfig as err:
        yield refused('replicator', err)
        return
    yield fine('replicator', 'ssync')


def older(path: str, swift_conf: str) -> Iterator[Finding]:
    """Daemons that began before ``swift.conf`` was written: they have its
    policies of then, and Swift's own diskfile."""
    written = os.stat(swift_conf).st_mtime
    began = dict(_daemons(os.path.realpath(path)))
    stale = sorted(name for name, at in began.items() if at < written)
    if stale:
        yield warning(
            'object daemons', 'began before it was written: %s; if they have '
            "Swift's own diskfile, they take what is moved for damaged, and "
            'put it into quarantine' % ', '.join(stale), Place(swift_conf),
            'restart them before the tier daemon starts')
    elif began:
        yield fine('object daemons', 'none is older than swift.conf')


def _daemons(path: str) -> Iterator[Tuple[str, float]]:
    """Name and beginning of each of Swift's object daemons that runs with
    this file, or one of this folder; the oldest of a name last."""
    now = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    running = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/cmdline' % pid, encoding='utf-8',
                      errors='surrogateescape') as command:
                words = command.read().split('\0')
            with open('/proc/%s/stat' % pid, encoding='utf-8',
                      errors='replace') as stat:
                # Its name, in brackets, may hold anything.
                ticks = int(stat.read().rpartition(')')[2].split()[19])
        except OSError:
            continue  # it has ended
        names = [name for name in map(os.path.basename, words)
                 if name.startswith('swift-object-')]
        if names and any(os.path.realpath(word).startswith(path)
                         for word in words if word.startswith('/')):
            running.append((names[0], now + ticks / os.sysconf('SC_CLK_TCK')))
    yield from sorted(running, key=lambda each: -each[1])
