"""A node of containers, built and started by the manual's words.

    python test/fresh/container_node.py

An image of stock Swift is made of the root of :mod:`stock_node`. Then the
commands of ``containers.rst`` run as they stand there, by Podman in a mount
namespace of its own, with the configuration of ``install.rst`` between them.
Objects are written, moved to the HDD, read and compared; a device is taken
out and put back while the containers run; all of them stop and start again.
At the end the logs are searched for tracebacks. As root.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import page
import roots
import stock_node
import traffic
from roots import say

RELEASE = '13'
MANUAL = roots.REPOSITORY / 'doc' / 'source'
PAGE = MANUAL / 'howto' / 'containers.rst'
INSTALL = MANUAL / 'start' / 'install.rst'
PROJECT = 'dss-fresh'
_LATE = stock_node.DEVICES[-1]
_CHECK = 'swift-dss check --offline'
#: Of podman and podman-compose: this may be a machine without systemd.
_ENGINE = '''[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=%d:%d", "nproc=4096:4096"]
'''
#: An operator has a cache for tokens beside the example.
_BESIDE = '''services:
  memcached:
    image: swift-dss
    user: swift
    network_mode: host
    command: memcached
'''
_WAIT_SECONDS = 60


def main() -> None:
    """All of it, in namespaces that go with it."""
    roots.need()
    missing = [name for name in ('buildah', 'podman', 'runc', 'podman-compose')
               if not shutil.which(name)]
    if missing:
        sys.exit('not here: ' + ', '.join(missing))
    if 'DSS_FRESH' not in os.environ:
        os.environ['DSS_FRESH'] = 'inside'
        # As on a machine with systemd: mounts are shared.
        os.execvp('unshare', ['unshare', '--mount', '--propagation', 'shared',
                              sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory(prefix='dss-ctr-',
                                     dir='/var/tmp') as folder:
        show(Node(pathlib.Path(folder)))


class Node:
    """The folders of a node and the engine that runs its containers."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._mounts: list[str] = []
        files = os.sysconf('SC_OPEN_MAX')
        (folder / 'containers.conf').write_text(_ENGINE % (files, files))
        (folder / 'storage.conf').write_text(
            '[storage]\ndriver = "vfs"\nrunroot = "%s/run"\n'
            'graphroot = "%s/graph"\n' % (folder, folder))
        beside = folder / 'beside.yaml'
        beside.write_text(_BESIDE)
        example = 'packaging/container/compose.yaml'
        mine = folder / 'compose.yaml'
        mine.write_text((roots.REPOSITORY / example).read_text().replace(
            'nofile: 65536', 'nofile: %d, nproc: 4096' % min(files, 65536)))
        self._compose = 'podman-compose --in-pod= -p %s -f %s' % (
            PROJECT, mine)
        self._words = (
            ('docker compose -f ' + example, self._compose),
            ('docker build', 'buildah bud -q --isolation chroot'),
            ('docker', 'podman'), ('registry/swift', 'localhost/stock-swift'),
            ('up -d', '-f %s up -d' % beside))
        self._environment = dict(
            os.environ, CONTAINERS_CONF=str(folder / 'containers.conf'),
            CONTAINERS_STORAGE_CONF=str(folder / 'storage.conf'))

    def run(self, script: str, check: bool = True) -> str:
        """What a script of bash says, on this machine.

        :raises SystemExit: it failed
        """
        done = subprocess.run(
            ['bash', '-euc', script], cwd=roots.REPOSITORY, text=True,
            env=self._environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if check and done.returncode:
            sys.exit('%s\n%s\nended with %d' % (script, done.stdout,
                                                done.returncode))
        return done.stdout

    def step(self, text: str) -> str:
        """Commands of the page, by Podman."""
        for line in text.splitlines():
            say('  #', line)
        for told, ours in self._words:
            text = text.replace(told, ours)
        # A person reads the warnings of check.
        return self.run(re.sub('(check.*)$', r'\1 || [ $? = 1 ]', text,
                               flags=re.M))

    def compose(self, words: str) -> str:
        """A verb of compose, with the cache."""
        return self.run('%s -f %s %s' % (
            self._compose, self.folder / 'beside.yaml', words))

    def base(self) -> None:
        """An image of stock Swift, and its configuration on the node."""
        with stock_node.machine(RELEASE) as machine:
            shutil.copytree(machine.root / 'etc' / 'swift',
                            self.folder / 'etc')
            uid = (machine.root / 'etc' / 'swift').stat().st_uid
            inside = '/usr/local/share/machine-certificates.crt'
            self.run('''
c=$(buildah from scratch)
buildah add -q $c %s / > /dev/null
buildah config --env PATH=/opt/swift/bin:/usr/sbin:/usr/bin:/sbin:/bin \\
    --env PIP_CERT=%s --env SSL_CERT_FILE=%s $c
buildah commit -q $c localhost/stock-swift
buildah rm $c
''' % (machine.root, inside, inside))
        self.uid = uid

    def folders(self) -> None:
        """/etc/swift, devices and HDD at their places, in this namespace."""
        for path in ('/etc/swift', '/srv'):
            os.makedirs(path, exist_ok=True)
        (self.folder / 'srv').mkdir()
        self._bind(self.folder / 'etc', '/etc/swift')
        self._bind(self.folder / 'srv', '/srv')
        for name, user in (
                ('passwd', 'swift:x:%d:%d::/:/bin/false\n' % (
                    self.uid, self.uid)),
                ('group', 'swift:x:%d:\n' % self.uid)):
            kept = self.folder / name
            kept.write_text(pathlib.Path('/etc', name).read_text() + user)
            self._bind(kept, '/etc/' + name)
        self.run('mkdir -p /srv/hdd /srv/node/{%s}'
                 % ','.join(stock_node.DEVICES))
        for name in (*stock_node.DEVICES, 'hdd'):
            self.disk(name)

    def disk(self, name: str) -> None:
        """An XFS of its own, mounted as a device or as the HDD."""
        target = '/srv/hdd' if name == 'hdd' else '/srv/node/' + name
        image = self.folder / (name + '.img')
        if not image.exists():
            self.run('truncate -s 900M %s; mkfs.xfs -q -i size=1024 %s' % (
                image, image))
            self._mounts.append(target)
        self.run('mount -o loop %s %s; chown %d:%d %s' % (
            image, target, self.uid, self.uid, target))

    def _bind(self, folder: pathlib.Path, target: str) -> None:
        self.run('mount --bind %s %s' % (folder, target))
        self._mounts.append(target)

    def prove(self, *series: str) -> None:
        """Compare all objects; ends the program if one differs."""
        say('  ' + self.run('%s %s prove %s' % (
            sys.executable, traffic.__file__, ' '.join(series))
        ).strip().splitlines()[-1])

    def close(self) -> None:
        """No container and no mount is left."""
        # One that another depends on is not removed alone.
        self.run('%s -f %s down --volumes; podman rm -f -a --depend'
                 % (self._compose, self.folder / 'beside.yaml'), check=False)
        for target in reversed(self._mounts):
            self.run('umount -l ' + target, check=False)
        # The engine's own.
        self.run("awk '{print $2}' /proc/mounts | grep '^%s/' | tac "
                 '| xargs -r umount -l' % self.folder, check=False)


def configure(node: Node) -> None:
    """Steps 3 to 6 of install.rst: what goes into files."""
    for step in page.steps(page.section(INSTALL, 'Steps')):
        if step.path:
            page.merge(pathlib.Path(step.path), step.text)
        elif step.text.startswith('sed'):
            node.run(step.text)
    # Sections that daemons of the example want to find there, too.
    for kind in ('updater', 'reconstructor'):
        page.merge(pathlib.Path('/etc/swift/object-server.conf'),
                   '[object-%s]\n' % kind)
    node.run('chown -R %d:%d /etc/swift' % (node.uid, node.uid))


def await_servers(node: Node) -> None:
    """Until each of them takes connections."""
    node.run('for port in 6200 6201 6202 8080; do timeout %d bash -c "until '
             '(exec 3<>/dev/tcp/127.0.0.1/$port) 2> /dev/null; do sleep 0.2; '
             'done"; done' % _WAIT_SECONDS)


def expect(node: Node, command: str, pattern: str) -> None:
    """What a command in the daemon's container comes to say."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        said = node.compose('exec tierd %s 2>&1 || :' % command)
        if re.search(pattern, said):
            return
        if time.monotonic() > deadline:
            sys.exit('%s\nsaid\n%s\nwanted: %s' % (command, said, pattern))
        time.sleep(1)


def show(node: Node) -> None:
    """The page, step by step, and what objects have to say of it."""
    try:
        say('an image of stock Swift')
        node.base()
        node.folders()
        steps = [step.text for step in page.steps(PAGE.read_text())]
        build, table, mark, start, status = steps
        node.step(build)
        node.step(table)
        configure(node)
        node.step(mark)
        check = node.step(start)
        say('  check: ' + next(
            line for line in check.splitlines()
            if re.match(r'\d+ errors, \d+ warnings', line)))
        _serve(node, status)
    finally:
        node.close()


def _serve(node: Node, status: str) -> None:
    put = '%s %s put ' % (sys.executable, traffic.__file__)
    await_servers(node)
    node.run(put + 'first USER1')
    node.prove('first')
    say('a device is taken out while they run, and comes back')
    gone = 'device %s: .* is not mounted' % _LATE
    node.run('umount -l /srv/node/' + _LATE)
    expect(node, _CHECK, gone)
    node.prove('first')
    node.disk(_LATE)
    expect(node, _CHECK, '(?s)^(?!.*%s).* ok' % gone)
    node.run(put + 'second USER1')
    node.prove('first', 'second')
    say('bytes move to the HDD')
    expect(node, 'swift-dss tier demote --container AUTH_test/classed',
           r'demote: \d\d+ versions')
    print(node.step(status))
    node.prove('first', 'second')
    say('all of them stop, and start')
    node.compose('stop')
    node.compose('start')
    await_servers(node)
    expect(node, 'swift-dss tier status', '(?m)^tier daemon 1, up ')
    node.prove('first', 'second')
    restarts = node.run('podman inspect --format "{{.Name}} {{.RestartCount}}"'
                        ' $(podman ps -aq)')
    say('  restarts:', restarts.replace('\n', ', '))
    if re.search(r' [1-9]', restarts):
        sys.exit('a container did not stay')
    logs = node.compose('logs 2>&1')
    say('  logs: %d lines, %d tracebacks' % (
        logs.count('\n'), logs.count('Traceback')))
    if 'Traceback' in logs:
        sys.exit(logs)


if __name__ == '__main__':
    main()
