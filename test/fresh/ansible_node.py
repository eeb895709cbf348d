"""A node of stock Swift with data gets the package by the Ansible role.

    python test/fresh/ansible_node.py [--release 12] [--release 13]

On each release of Debian: a booted node of stock Swift (:mod:`stock_node`)
takes objects. Then the commands of ``howto/ansible.rst`` run as they stand
there, with ansible-core of the constraints; the node is its own controller.
The dry run must change nothing, and a second run must neither change nor
restart anything. Objects, old and new, are read and compared after each step,
after a move to the HDDs, and after a power cycle. As root.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import sys

import node_package
import page
import roots
import stock_node
import traffic
from roots import say

PAGE = roots.REPOSITORY / 'doc' / 'source' / 'howto' / 'ansible.rst'
UNITS = 'swift-dss-tierd swift-object swift-object-replicator swift-proxy'
#: The policy that is ours on these nodes, and that the node is its own host.
INVENTORY = '''[swift]
node ansible_connection=local
[swift:vars]
swift_dss_policies={1: "egg:swift_dss#dss.fs"}
'''
CHANGED = re.compile(r'changed=(\d+) .*failed=0')


def commands(release: str) -> tuple[str, str, str]:
    """The page's: what goes before, the dry run, and the run."""
    told, = page.steps(PAGE.read_text())
    lines = told.text.replace('deb12', 'deb' + release).splitlines()
    plays = [line for line in lines if line.startswith('ansible-playbook')]
    dry, real = plays
    assert '--check' in dry, dry
    return '\n'.join(line for line in lines if line not in plays), dry, real


def prepare(machine: roots.Machine, release: str) -> None:
    """Packages, a controller with the repository, and disks."""
    machine.copy_repository('/srv/swift-dss')
    dist = machine.root / 'srv' / 'swift-dss' / 'dist'
    dist.mkdir()
    node_package.build(release, dist, False)
    shutil.copy(pathlib.Path(__file__).with_name('traffic.py'),
                machine.root / 'srv')
    say('a controller')
    # A node that is managed has sudo, and apt for Python.
    machine.run('''
apt-get update -qq
apt-get install -y -qq --no-install-recommends \\
    sudo python3-apt > /dev/null 2>&1
python3 -m venv /opt/controller
/opt/controller/bin/pip install -q -c /srv/swift-dss/constraints.txt \\
    ansible-core
''')
    (machine.root / 'srv' / 'swift-dss' / 'inventory').write_text(INVENTORY)
    for name in stock_node.DEVICES:
        machine.disk(name, '/srv/node/' + name)
    machine.disk('hdd', '/srv/hdd', '900M')


class Controlled(node_package.Node):
    """A node, and the controller that plays on it."""

    def play(self, command: str) -> int:
        """Run a command of the page; how many tasks changed something."""
        say('  #', command)
        said = self.machine.run(
            'cd /srv/swift-dss; export PATH=/opt/controller/bin:$PATH\n'
            + command).stdout
        told = CHANGED.search(said)
        if not told:
            self.fail(said)
        assert told is not None
        say('  changed: %s tasks' % told.group(1))
        return int(told.group(1))

    def digest(self) -> str:
        """Of Swift's configuration, and of when its units started."""
        said: str = self.machine.run(
            'cat /etc/swift/*.conf | md5sum; systemctl show -P MainPID '
            'swift-object swift-proxy').stdout
        return said


def show(release: str) -> None:
    """All of it on one release."""
    say('Debian', release)
    first, dry, real = commands(release)
    with stock_node.machine(release) as machine:
        prepare(machine, release)
        machine.boot()
        machine.run('chown swift:swift /srv/node/*')
        node = Controlled(machine)
        say('stock Swift takes objects')
        node.put('old')
        node.prove('old')

        say('ansible.rst')
        machine.run('cd /srv/swift-dss\n' + first)
        before = node.digest()
        if not node.play(dry) or node.digest() != before:
            sys.exit('the dry run changed something, or would do nothing')
        if not node.play(real):
            sys.exit('nothing was changed')
        node.expect('systemctl is-active ' + UNITS,
                    '^(active[[:space:]]*){4}$', 60)
        node.prove('old')
        node.put('new', 'USER1')
        node.prove('old', 'new')
        after = node.digest()
        if node.play(real) or node.digest() != after:
            sys.exit('a second run changed or restarted something')

        say('bytes move to the HDD')
        node.expect('swift-dss tier demote --container AUTH_test/classed',
                    r'demote: %d versions' % (2 * 3 * traffic.EACH), 60)
        node.prove('old', 'new')
        say('power off and on')
        node.reboot()
        node.expect('systemctl is-active ' + UNITS,
                    '^(active[[:space:]]*){4}$', 60)
        node.prove('old', 'new')
        node.journal()


def main() -> None:
    """Parse, and show each release."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--release', action='append',
                        choices=sorted(roots.RELEASES))
    args = parser.parse_args()
    roots.need()
    for release in args.release or sorted(roots.RELEASES):
        show(release)
    say('%d objects each: all of the same bytes' % (
        2 * len(traffic.POLICIES) * traffic.EACH))


if __name__ == '__main__':
    main()
