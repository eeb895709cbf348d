"""Change a bed: add, remove, kill or cut off nodes, replace drives, skew
clocks.
"""

from __future__ import annotations

import os
import uuid
from typing import List, Sequence

from swift_dss.aio import processes, storage
from swift_dss.aio.bed import clock, configure, moves, plan, rings
from swift_dss.aio.bed.frame import Frame
from swift_dss.core.errors import BadConfig
from swift_dss.io.capacity import Capacity

#: Whom a partition may be from, besides names of members.
GROUPS = ('nodes', 'proxies', 's3', 'all')
DRIVES = ('ssd', 'hdd')


class Changes(Frame):
    """A bed that things happen to."""

    # -- processes -------------------------------------------------------

    def kill(self, name: str) -> int:
        """End all processes of a member without asking.

        :returns: how many there were
        """
        return self.member(name).kill()

    def revive(self, name: str) -> None:
        """Start a member's servers that do not run, and wait until they
        answer.
        """
        self.member(name).start()
        self.member(name).await_servers()

    def set_options(self, options: plan.Options,
                    nodes: Sequence[str] = ()) -> None:
        """Change ``dss.conf`` and restart the tier daemons that run.

        :param nodes: of which nodes; none are all
        """
        for name in nodes or self.plan.nodes:
            mine = self.plan.node_options.setdefault(name, {})
            for section, pairs in options.items():
                mine.setdefault(section, {}).update(pairs)
        plan.save(self.plan)
        for name in nodes or self.plan.nodes:
            configure.configure(self.plan, name)
            node = self.node(name)
            if 'tierd' in node.running():
                node.restart('tierd')

    def stock(self, name: str, is_stock: bool = True) -> None:
        """Run Swift's own object server and diskfile on a node, for every
        policy and without our daemon; or ours again."""
        self.node(name)
        if is_stock != (name in self.plan.stock):
            (self.plan.stock.append if is_stock
             else self.plan.stock.remove)(name)
        self._run_anew(name)

    def version(self, name: str, packages: str = '') -> None:
        """Run another version of the product on a node or a proxy.

        :param packages: a folder that ``pip install --target`` filled with
            it; '' is this version again
        :raises BadConfig: nothing of the product is there
        """
        self.member(name)
        if name == plan.S3:
            raise BadConfig('%s runs nothing of ours' % name)
        packages = packages and os.path.abspath(packages)
        if packages and not os.path.isdir(
                os.path.join(packages, 'swift_dss', 'aio', 'bed')):
            raise BadConfig('%s: no version that a bed can run is installed '
                            'there; pip install --no-deps --target installs '
                            'one' % packages)
        self.plan.versions.pop(name, None)
        if packages:
            self.plan.versions[name] = packages
        self._run_anew(name)

    def _run_anew(self, name: str) -> None:
        """End a member's processes; start them as the plan is now."""
        plan.save(self.plan)
        processes.end(self.member(name).conf.root)
        configure.configure(self.plan, name)
        self.revive(name)

    def skew(self, name: str, seconds: float) -> None:
        """Put the clock of a member ahead, or back, while it runs."""
        conf = self.member(name).conf
        self.plan.skew[name] = seconds
        plan.save(self.plan)
        clock.set_offset(configure.clock_file(conf), seconds)

    # -- network ---------------------------------------------------------

    def partition(self, name: str, others: Sequence[str]) -> None:
        """Lose every packet between a member and some others, both ways.

        :param others: names, or any of :data:`GROUPS`
        """
        self.member(name)
        self.network.cut(name, self.plan.address(name), {
            other: self.plan.address(other)
            for other in self._named(others) if other != name})

    def _named(self, words: Sequence[str]) -> List[str]:
        groups = {'nodes': self.plan.nodes, 'proxies': self.plan.proxies,
                  'all': self.plan.members}
        names: List[str] = []
        for word in words:
            if word not in groups:
                self.member(word)
            names += groups.get(word, [word])
        return names

    def heal(self, *names: str) -> None:
        """Lose no packet of these members any more; none are all."""
        for name in names:
            self.member(name)
        self.network.heal({name: self.plan.address(name)
                           for name in names or self.plan.members})

    # -- drives ----------------------------------------------------------

    def lose_drive(self, name: str, device: str, drive: str = 'ssd',
                   replace: bool = True) -> None:
        """Take a drive away under the running servers, with all that it
        holds, and put an empty one in its place.

        :param drive: of :data:`DRIVES`
        :param replace: False leaves the place empty, as a call with True
            finds it later
        """
        conf = self.node(name).conf
        if device not in conf.device_names:
            raise BadConfig('%s has no drive %s; it has %s' % (
                name, device, ', '.join(conf.device_names)))
        if drive not in DRIVES:
            raise BadConfig('%r is no kind of drive: %s' % (
                drive, ' or '.join(DRIVES)))
        target = conf.path('devices' if drive == 'ssd' else 'hdd', device)
        stem = '%s-%s' % (drive, device)
        if os.path.ismount(target):
            storage.unmount(target)
        storage.discard(conf.root, stem)
        if not replace:
            return
        # Another name: the old image lives until the last file is closed.
        image = conf.path('images', '%s-%s.img' % (
            stem, uuid.uuid4().hex[:8]))
        size = conf.ssd_bytes if drive == 'ssd' else conf.hdd_bytes
        storage.make_loops([(image, target, size)])
        if drive == 'hdd':
            Capacity(target, device).initialise()

    # -- nodes -----------------------------------------------------------

    def add(self) -> str:
        """Start one more node, with empty drives; the rings get it at the
        next :meth:`rebalance`.

        :returns: its name
        """
        made = self.plan
        taken = made.nodes + made.retired
        name = 'n%d' % (max(int(node[1:]) for node in taken) + 1)
        made.nodes.append(name)
        made.waiting.append(name)
        try:
            plan.check(made)
        except BadConfig:
            made.nodes.remove(name)
            made.waiting.remove(name)
            raise
        plan.save(made)
        configure.write_hosts(made)
        self.network.join(name, made.address(name))
        self._make_members([name])
        self.push_rings()
        self.s3.name(made.address(name), name)
        self.revive(name)
        return name

    def replace(self, name: str) -> None:
        """Another machine takes a node's place in the rings, and its address.
        The old one goes at once, with its disks and all that it knew.
        """
        self.node(name).kill()
        self._clear_member(name, keep_logs=True)
        self._make_members([name])
        self.push_rings()
        self.revive(name)

    def remove(self, name: str) -> None:
        """Take a node out of the rings at the next :meth:`rebalance`,
        which removes it when its drives are empty.

        :raises BadConfig: the rest would have too few drives
        """
        made = self.plan
        self.node(name)
        rest = [node for node in made.nodes
                if node not in made.leaving and node != name]
        if len(rest) * made.drives < plan.MIN_DRIVES:
            raise BadConfig('without %s there are %d drives; three replicas '
                            'need three' % (name, len(rest) * made.drives))
        if name not in made.leaving:
            made.leaving.append(name)
        plan.save(made)

    def rebalance(self) -> List[moves.Pass]:
        """Bring the rings to the nodes that are there, and run replicators
        and reconstructors until nothing moves.

        Nodes that run nothing take no part.

        :returns: the files that each pass moved
        """
        passes = moves.settle(self, self._say)
        for name in list(self.plan.leaving):
            left = moves.held(self.plan, name)
            if left:
                self._say('%s still holds %d files' % (name, left))
            else:
                self._forget(name)
                rings.rebalance(self.plan)
                self.push_rings()
        return passes

    def _forget(self, name: str) -> None:
        made = self.plan
        processes.end(made.path(name))
        self._clear_member(name, keep_logs=True)
        self.network.leave(name)
        made.nodes.remove(name)
        made.leaving.remove(name)
        made.retired.append(name)
        made.skew.pop(name, None)
        made.versions.pop(name, None)
        if name in made.stock:
            made.stock.remove(name)
        plan.save(made)
        configure.write_hosts(made)
        self._say('%s is empty and gone' % name)
