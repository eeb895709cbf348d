"""A node of stock Swift with data gets the package, by the manual's words.

    python test/fresh/node_package.py [--release 12] [--release 13]

On each release of Debian: both packages are built in a minimal root. A node of
stock Swift (:mod:`stock_node`) takes objects. Then the commands and fragments
of ``install.rst`` run as they stand there, with no step between them; the node
serves, moves bytes to HDDs, gets a newer package while it serves, is powered
off and booted, and goes back to stock Swift by the commands of
``uninstall.rst``; the package is purged. After each of these every object, old
and new, is read and compared; at the end the journal is searched for
tracebacks. As root.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

import page
import roots
import stock_node
import traffic
from roots import say

MANUAL = roots.REPOSITORY / 'doc' / 'source'
INSTALL = MANUAL / 'start' / 'install.rst'
UNINSTALL = MANUAL / 'howto' / 'uninstall.rst'
BUILD = ('build-essential', 'debhelper', 'dh-dkms', 'python3-dev',
         'python3-venv', 'ca-certificates')
CHANGED = ('swift.conf', 'object-server.conf', 'proxy-server.conf')
STATE = 'stat -c "%a %U %n" /run/swift-dss /var/lib/swift-dss'


def build(release: str, folder: pathlib.Path, dkms: bool) -> None:
    """Both packages, built in a minimal root."""
    with roots.Machine(roots.minimal(release, BUILD)) as builder:
        builder.copy_repository('/srv/swift-dss')
        say('building the packages')
        builder.run('bash /srv/swift-dss/packaging/build-deb.sh /srv/out')
        for path in (builder.root / 'srv' / 'out').iterdir():
            shutil.copy(path, folder)
        if dkms:
            say('building the module by DKMS')
            print(builder.run('''
apt-get update -qq
apt-get install -y -qq --no-install-recommends linux-headers-amd64 \\
    /srv/out/dm-dss-dkms_*.deb > /dev/null 2>&1
dkms autoinstall -k "$(ls /lib/modules | tail -1)" > /dev/null
dkms status
''').stdout, end='')


class Node:
    """What is done to a booted node, and what is asked of it."""

    def __init__(self, machine: roots.Machine) -> None:
        self.machine = machine
        self.told: list[str] = []

    def step(self, step: page.Step) -> None:
        """One step of a page, as it stands there."""
        if step.path:
            say('  into', step.path)
            page.merge(pathlib.Path(str(self.machine.root) + step.path),
                       step.text)
            return
        for line in step.text.splitlines():
            say('  #', line)
        # A person answers apt's question, and reads the warnings of check.
        script = re.sub('^apt ', 'apt -y ', step.text, flags=re.M)
        script = re.sub('^swift-dss check$', r'\g<0> || [ $? = 1 ]', script,
                        flags=re.M)
        self.told.append(self.machine.run('cd /srv\n' + script).stdout)

    def prove(self, *series: str) -> None:
        """Compare all objects; ends the program if one differs."""
        done = self.machine.run(
            '/opt/swift/bin/python3 /srv/traffic.py prove '
            + ' '.join(series), check=False)
        say('  ' + done.stdout.strip().splitlines()[-1])
        if done.returncode:
            self.fail(done.stdout)

    def put(self, series: str, class_name: str = '') -> None:
        """Upload a series."""
        self.machine.run('/opt/swift/bin/python3 /srv/traffic.py put %s %s'
                         % (series, class_name))

    def expect(self, command: str, pattern: str, seconds: int = 0) -> None:
        """What a command says; ends the program if it says something
        else."""
        said = self.machine.run(
            'for _ in $(seq 0 %d); do said=$(%s 2>&1) || :; if grep -Eqz -- '
            '%r <<< "$said"; then break; fi; sleep 1; done; '
            'echo "$said"' % (seconds, command, pattern)).stdout
        if not re.search(pattern.replace('[[:space:]]', r'\s'), said):
            self.fail('%s\nsaid\n%s\nwanted: %s' % (command, said, pattern))

    def fail(self, words: str) -> None:
        """End, with the last of the journal."""
        print(self.machine.run('journalctl --no-pager -n 60 -p info',
                               check=False).stdout)
        sys.exit(words)

    def journal(self) -> None:
        """End if there is a traceback in a log."""
        lines = self.machine.run('journalctl --no-pager -o cat').stdout
        traces = re.findall(r'^.*Traceback.*(?:\n.*){12}', lines, re.M)
        say('  journal: %d lines, %d tracebacks' % (
            lines.count('\n'), len(traces)))
        if traces:
            sys.exit('\n'.join(traces))

    def reboot(self) -> None:
        """Power off and on; /run is empty then."""
        self.machine.power_off()
        self.machine.boot()


def newer(package: pathlib.Path, folder: pathlib.Path) -> None:
    """The same package with a higher version."""
    tree = folder / 'newer'
    subprocess.run(['dpkg-deb', '-R', str(package), str(tree)], check=True)
    control = tree / 'DEBIAN' / 'control'
    control.write_text(re.sub(r'(?m)^(Version: .*)$', r'\1+newer',
                              control.read_text()))
    subprocess.run(['dpkg-deb', '--root-owner-group', '-Znone', '-b',
                    str(tree), str(folder / 'newer.deb')], check=True,
                   stdout=subprocess.DEVNULL)


def uninstall(node: Node, stock: pathlib.Path) -> None:
    """Back to stock Swift, by the manual's commands; between them what its
    text says."""
    listed = [step.text for step in page.steps(
        UNINSTALL.read_text())]
    drain, verify, place, clean = (
        next(text for text in listed if words in text) for words in (
            'drain', 'verify', 'place', 'listings'))
    conf = node.machine.root / 'etc' / 'swift'
    shutil.copy(stock / 'proxy-server.conf', conf)
    node.machine.run('systemctl restart swift-proxy')
    node.step(page.Step('', drain))
    servers = 'swift-object swift-object-replicator swift-object-auditor'
    node.machine.run('systemctl disable --now swift-dss.target '
                     'swift-dss-tierd; systemctl stop ' + servers)
    for text in (verify, place):
        node.step(page.Step('', text))
    for name in CHANGED:
        shutil.copy(stock / name, conf)
    node.machine.run('systemctl start ' + servers)
    node.step(page.Step('', 'runuser -u swift -- ' + clean))
    node.step(page.Step('', 'apt purge swift-dss\n'))
    node.expect('ls /opt/swift/lib/python3*/site-packages/swift-dss.pth '
                '/usr/lib/swift-dss /usr/bin/swift-dss /etc/default/swift-dss',
                'No such file.*No such file.*No such file.*No such file'
                .replace('.*', '[^|]*'))
    node.expect('ls /var/lib/swift-dss', r'sqlite|\.db|index')


def show(release: str, args: argparse.Namespace) -> None:
    """All of it on one release."""
    say('Debian', release)
    with stock_node.machine(release) as machine:
        home = machine.root / 'srv'
        if args.packages:
            for path in (args.packages / release).glob('*.deb'):
                shutil.copy(path, home)
        else:
            build(release, home, args.dkms)
        package, = home.glob('swift-dss_*.deb')
        newer(package, home)
        shutil.copy(pathlib.Path(__file__).with_name('traffic.py'), home)
        stock = machine.folder / 'stock'
        shutil.copytree(machine.root / 'etc' / 'swift', stock)
        for name in stock_node.DEVICES:
            machine.disk(name, '/srv/node/' + name)
        machine.disk('hdd', '/srv/hdd', '900M')
        machine.boot()
        machine.run('chown swift:swift /srv/node/*')
        node = Node(machine)
        say('stock Swift takes objects')
        node.put('old')
        node.prove('old')

        say('install.rst')
        for title in ('The package', 'Steps'):
            for step in page.steps(page.section(INSTALL, title)):
                node.step(step)
        say('  check: ' + next(
            line for said in node.told for line in said.splitlines()
            if re.match(r'0 errors, \d+ warnings', line)))
        node.expect('systemctl is-active swift-dss-tierd swift-object '
                    'swift-object-replicator swift-proxy',
                    '^(active[[:space:]]*){4}$', 60)
        node.prove('old')
        node.put('new', 'USER1')
        node.prove('old', 'new')

        say('bytes move to the HDD')
        node.expect('swift-dss tier demote --container AUTH_test/classed',
                    r'demote: %d versions' % (2 * 3 * traffic.EACH), 60)
        print(machine.run('swift-dss tier status').stdout)
        node.prove('old', 'new')

        say('a newer package, while it serves')
        before = machine.run('systemctl show -P MainPID swift-dss-tierd')
        node.step(page.Step('', 'apt install ./newer.deb\n'))
        node.expect('systemctl is-active swift-dss-tierd', '^active', 60)
        after = machine.run('systemctl show -P MainPID swift-dss-tierd')
        assert before.stdout != after.stdout, 'the daemon was not restarted'
        node.prove('old', 'new')

        say('power off and on')
        node.reboot()
        node.expect('systemctl is-active swift-dss-tierd', '^active', 60)
        node.expect(STATE, '^750 swift /run/swift-dss[[:space:]]+'
                    '700 swift /var/lib/swift-dss')
        node.prove('old', 'new')
        node.put('later', 'USER7')

        say('uninstall')
        uninstall(node, stock)
        node.prove('old', 'new', 'later')
        say('power off and on')
        node.reboot()
        node.prove('old', 'new', 'later')
        node.journal()


def main() -> None:
    """Parse, and show each release."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--release', action='append',
                        choices=sorted(roots.RELEASES))
    parser.add_argument('--dkms', action='store_true',
                        help='build the kernel module too, by DKMS')
    parser.add_argument('--packages', type=pathlib.Path,
                        help='has a folder 12 and 13 with built packages')
    args = parser.parse_args()
    roots.need()
    for release in args.release or sorted(roots.RELEASES):
        show(release, args)
    say('%d objects each: all of the same bytes' % (
        3 * len(traffic.POLICIES) * traffic.EACH))


if __name__ == '__main__':
    main()
