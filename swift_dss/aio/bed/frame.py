"""A bed as a whole: up and down, its members, their programs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, List, Optional, Sequence, Type, TypeVar

from swift_dss.aio import clients, cluster, processes, storage
from swift_dss.aio.bed import configure, plan, rings
from swift_dss.aio.bed.member import Member, Node, Store, member
from swift_dss.aio.bed.network import Network
from swift_dss.aio.bed.plan import S3, Plan
from swift_dss.aio.bed.s3.store import S3Door
from swift_dss.core.errors import BadConfig

_MEMBER = re.compile(r'[np]\d+|s3')

#: Programs that a bed runs, and their Debian packages.
_TOOLS = (('ip', 'iproute2'), ('nsenter', 'util-linux'),
          ('unshare', 'util-linux'), ('rsync', 'rsync'))

_Self = TypeVar('_Self', bound='Frame')


def why_not() -> str:
    """Why this process cannot make a bed; '' if it can."""
    if os.geteuid() != 0:
        return 'a bed of nodes needs root: network namespaces, loop ' \
            'devices and mounts; without root, "swift-dss aio start" runs ' \
            'a cluster of one node'
    reason = storage.why_no_loops()
    for tool, package in _TOOLS:
        if not reason and not shutil.which(tool):
            reason = '%s is not installed (package %s)' % (tool, package)
            if tool == 'rsync':
                # Swift's replicators fail without a word that says so.
                reason += ': databases of accounts and containers would ' \
                    'not move, and go with their drive'
    return 'no bed of nodes here: %s' % reason if reason else ''


class Frame:
    """The frame of a bed. A context manager: up on entry, gone on exit.

    :param made: the plan; :func:`plan.new` makes one
    :param say: gets one line for each step
    """

    def __init__(self, made: Plan,
                 say: Optional[processes.Say] = None) -> None:
        self.plan = made
        self.network = Network(made.root, configure.hosts_file(made)
                               if made.hostnames else '')
        self.s3 = S3Door(made.path(S3, 'run', 'door.sock'))
        self._say = say or (lambda line: None)

    @classmethod
    def running(cls: Type[_Self], root: str,
                say: Optional[processes.Say] = None) -> _Self:
        """The bed that was started in a folder.

        :raises BadConfig: none was
        """
        return cls(plan.load(root), say)

    def __enter__(self: _Self) -> _Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    # -- up and down -----------------------------------------------------

    def start(self) -> None:
        """Make everything and wait until it answers.

        :raises DssError: with the log of the failed server; nothing is left
            running
        """
        reason = why_not()
        if reason:
            raise BadConfig(reason)
        plan.check(self.plan)
        clients.require()
        self._refuse_running()
        self.clear()
        try:
            self._make()
            self._start_all()
        except BaseException:
            self.clear(keep_logs=True)
            raise

    def _refuse_running(self) -> None:
        root = self.plan.root
        if os.path.exists(os.path.join(root, 'cluster.json')) or \
                self._is_member_running('p1'):
            raise BadConfig('a cluster is in %s already; "swift-dss aio '
                            'stop --root %s" ends it' % (root, root))

    def _is_member_running(self, name: str) -> bool:
        return bool(processes.find(self.plan.path(name)))

    def stop(self) -> None:
        """End all processes; remove all but the logs."""
        self.clear(keep_logs=True)

    def clear(self, keep_logs: bool = False) -> None:
        """Remove whatever this or an earlier run left behind."""
        root = self.plan.root
        left = processes.end_all(self._is_mine)
        if left:
            self._say('ended %d processes' % left)
        undone = self.network.remove()
        for name in _members_in(root):
            undone += self._clear_member(name, keep_logs)
        if undone:
            self._say('removed %d mounts, loop devices and namespaces'
                      % undone)
        storage.erase(root, ('etc',))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(root, plan.BED_FILE))

    def _is_mine(self, root: str) -> bool:
        # Only members: a bed's root may have other clusters below it.
        folder, name = os.path.split(root)
        return folder == self.plan.root and bool(_MEMBER.fullmatch(name))

    def _clear_member(self, name: str, keep_logs: bool) -> int:
        path = self.plan.path(name)
        undone = storage.unmake(path)
        if path in storage.mounts(self.plan.root):
            storage.unmount(path)
            undone += 1
        storage.erase(path, cluster.FOLDERS)
        if not keep_logs:
            shutil.rmtree(path)
        return undone

    def _make(self) -> None:
        made = self.plan
        os.makedirs(made.path('etc'), exist_ok=True)
        plan.save(made)
        configure.write_hosts(made)
        self._say('%d network namespaces' % (len(made.members) + 1))
        self.network.make({name: made.address(name)
                           for name in made.members})
        self._make_members(made.members)
        rings.rebalance(made)
        self.push_rings()

    def _make_members(self, names: Sequence[str]) -> None:
        made = self.plan
        drives = [image for name in names
                  for image in storage.images(made.conf(name))]
        self._say('%d drives, XFS on loop devices' % len(drives))
        if made.hostnames:
            for name in names:
                storage.share(made.path(name))
        storage.make_loops(drives)
        for name in names:
            configure.prepare(made, name)

    def push_rings(self) -> None:
        """Give every member the rings as they are."""
        rings.push(self.plan, [self.plan.conf(name) for name
                               in self.plan.nodes + self.plan.proxies])

    def _start_all(self) -> None:
        store = self.member(S3)
        assert isinstance(store, Store)
        store.start()
        for name in self.plan.nodes + self.plan.proxies:
            self.member(name).start_servers()
        store.await_servers()
        store.make_bucket()
        for node in self.nodes:
            node.start()
        self.await_all()
        self._say('%d nodes and %d proxies answer' % (
            len(self.plan.nodes), len(self.plan.proxies)))

    def await_all(self, names: Sequence[str] = ()) -> None:
        """Return when everything answers that should.

        :param names: of which members; none are all
        """
        wanted = list(names) or self.plan.members
        with ThreadPoolExecutor(len(wanted)) as pool:
            list(pool.map(lambda name: self.member(name).await_servers(),
                          wanted))

    # -- members ---------------------------------------------------------

    def member(self, name: str) -> Member:
        """A node, a proxy or ``s3``.

        :raises BadConfig: the bed has none of that name
        """
        if name not in self.plan.members:
            raise BadConfig('no %r in this bed; there are %s' % (
                name, ', '.join(self.plan.members)))
        return member(self.plan, self.network, name)

    def node(self, name: str) -> Node:
        """A storage node.

        :raises BadConfig: the bed has none of that name
        """
        member = self.member(name)
        if not isinstance(member, Node):
            raise BadConfig('%s is no storage node' % name)
        return member

    @property
    def nodes(self) -> List[Node]:
        """All storage nodes."""
        return [self.node(name) for name in self.plan.nodes]

    def status(self) -> Dict[str, Dict[str, List[int]]]:
        """Member to process to its pids; none: it should run and does
        not."""
        living = processes.living(self._is_mine)
        report = {}
        for name in self.plan.members:
            running = living.get(self.plan.path(name), {})
            report[name] = {process: running.get(process, []) for process
                            in self.member(name).expected()}
        return report


def _members_in(root: str) -> List[str]:
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return []
    return [name for name in names if _MEMBER.fullmatch(name)]
