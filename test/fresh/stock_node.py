"""A node of stock Swift, as an operator has it: a virtual environment in
``/opt/swift``, servers under systemd, three devices, two replicated policies.

``machine(release)`` gives it ready to be booted.
"""

from __future__ import annotations

import pathlib
import re

import roots

PACKAGES = ('systemd', 'systemd-sysv', 'dbus', 'python3', 'python3-venv',
            'memcached', 'logrotate', 'rsync', 'ca-certificates')
DEVICES = ('d1', 'd2', 'd3')
SWIFT_CONF = '''[swift-hash]
swift_hash_path_suffix = fresh
[storage-policy:0]
name = stock
default = yes
[storage-policy:1]
name = classed
'''
_SERVER = '''[DEFAULT]
bind_ip = 127.0.0.1
bind_port = %(port)d
user = swift
workers = 1
devices = /srv/node
[pipeline:main]
pipeline = healthcheck recon %(kind)s-server
[app:%(kind)s-server]
use = egg:swift#%(kind)s
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:recon]
use = egg:swift#recon
[%(kind)s-replicator]
[%(kind)s-auditor]
'''
_PROXY = '''[DEFAULT]
bind_ip = 127.0.0.1
bind_port = 8080
user = swift
workers = 1
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck proxy-logging cache tempauth \
copy slo dlo versioned_writes symlink proxy-logging proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:11211
''' + ''.join('[filter:%s]\nuse = egg:swift#%s\n' % (
    name, name.replace('-', '_')) for name in (
        'catch_errors', 'gatekeeper', 'healthcheck', 'proxy-logging', 'copy',
        'slo', 'dlo', 'versioned_writes', 'symlink'))
_UNIT = '''[Unit]
Description=Swift %(name)s
After=network.target memcached.service
[Service]
User=swift
ExecStart=/opt/swift/bin/swift-%(name)s /etc/swift/%(conf)s-server.conf
[Install]
WantedBy=multi-user.target
'''
_PORTS = {'object': 6200, 'container': 6201, 'account': 6202}
#: Debian's names of the units, and the servers that they start.
UNITS = {'swift-object': 'object-server', 'swift-proxy': 'proxy-server',
         'swift-container': 'container-server',
         'swift-account': 'account-server',
         'swift-object-replicator': 'object-replicator',
         'swift-object-auditor': 'object-auditor'}


def machine(release: str) -> roots.Machine:
    """The node, not yet booted; with Swift of the constraints in it."""
    base = roots.minimal(release, PACKAGES)
    constraints = (roots.REPOSITORY / 'constraints.txt').read_text()
    version = re.search(r'^swift==(.*)$', constraints, re.M)
    assert version is not None
    path = roots.cached('swift-' + release, [
        str(base), constraints, pathlib.Path(__file__).read_text()])
    with roots.making(path) as ours:
        if ours:
            with roots.Machine(base) as fresh:
                _install(fresh, version.group(1), constraints)
                fresh.keep(path)
    return roots.Machine(path)


def _install(fresh: roots.Machine, version: str, constraints: str) -> None:
    roots.say('installing Swift', version)
    (fresh.root / 'srv' / 'constraints.txt').write_text(constraints)
    fresh.run('''
python3 -m venv /opt/swift
/opt/swift/bin/pip install -q -c /srv/constraints.txt swift==%s
ln -s /opt/swift/bin/swift-* /usr/local/bin/
useradd --system --home-dir /var/lib/swift --shell /usr/sbin/nologin swift
install -d -o swift -g swift /var/cache/swift /var/lib/swift
mkdir -p /etc/swift /srv/hdd %s
''' % (version, ' '.join('/srv/node/' + name for name in DEVICES)))
    conf = fresh.root / 'etc' / 'swift'
    (conf / 'swift.conf').write_text(SWIFT_CONF)
    (conf / 'proxy-server.conf').write_text(_PROXY)
    for kind, port in _PORTS.items():
        (conf / (kind + '-server.conf')).write_text(
            _SERVER % {'kind': kind, 'port': port})
        rings = ('object', 'object-1') if kind == 'object' else (kind,)
        for ring in rings:
            fresh.run('cd /etc/swift; B="swift-ring-builder %s.builder"; '
                      '$B create 6 3 1; %s $B rebalance' % (ring, ' '.join(
                          '$B add r1z1-127.0.0.1:%d/%s 100;' % (port, name)
                          for name in DEVICES)))
    for unit, name in UNITS.items():
        (fresh.root / 'etc/systemd/system' / (unit + '.service')).write_text(
            _UNIT % {'name': name, 'conf': name.partition('-')[0]})
    fresh.run('chown -R swift:swift /etc/swift; systemctl enable '
              + ' '.join(UNITS))
