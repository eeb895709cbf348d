"""A cluster of many nodes on one machine: up, down, and what to do with it.

Also a context manager, for tests: up on entry, gone on exit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from swift_dss.aio import processes, storage
from swift_dss.aio.bed import configure, http, look, plan, rings
from swift_dss.aio.bed.member import Member, Node, Store, member
from swift_dss.aio.bed.network import Network
from swift_dss.aio.bed.plan import S3, Plan
from swift_dss.aio.bed.store import S3Door
from swift_dss.aio.layout import POLICIES
from swift_dss.core.errors import BadConfig

#: Everything of a bed but the logs of its members.
_PARTS = ('etc', 'devices', 'hdd', 'run', 'images', 'cloud')


def why_not() -> str:
    """What keeps this process from making a bed; '' if nothing."""
    if os.geteuid() != 0:
        return 'a bed of nodes needs root: network namespaces, loop ' \
            'devices and mounts; without root, "swift-dss aio start" runs ' \
            'a cluster of one node'
    reason = storage.why_no_loops()
    for tool in ('ip', 'nsenter'):
        if not reason and not shutil.which(tool):
            reason = '%s is not installed' % tool
    return 'no bed of nodes here: %s' % reason if reason else ''


class Bed:
    """One bed, running or not.

    :param made: what it is; :func:`plan.new` makes one
    :param say: gets one line for each step
    """

    def __init__(self, made: Plan,
                 say: Optional[processes.Say] = None) -> None:
        self.plan = made
        self.network = Network(made.root)
        self.s3 = S3Door(made.path(S3, 'run', 'door.sock'))
        self._say = say or (lambda line: None)
        self._policies: Dict[str, int] = {}

    @classmethod
    def running(cls, root: str,
                say: Optional[processes.Say] = None) -> Bed:
        """The bed that was started in a folder.

        :raises BadConfig: none was
        """
        return cls(plan.load(root), say)

    def __enter__(self) -> Bed:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    # -- up and down -----------------------------------------------------

    def start(self) -> None:
        """Make everything and wait until it answers.

        :raises DssError: with the log of what failed; nothing is left
            running
        """
        reason = why_not()
        if reason:
            raise BadConfig(reason)
        plan.check(self.plan)
        if processes.under(self.plan.root).get(self.plan.path('p1')):
            raise BadConfig('a bed is running in %s already; "swift-dss aio '
                            'stop --root %s" ends it'
                            % (self.plan.root, self.plan.root))
        self.clear()
        try:
            self._make()
            self._start_all()
        except BaseException:
            self.clear(keep_logs=True)
            raise

    def stop(self) -> None:
        """End all processes; remove all but the logs."""
        self.clear(keep_logs=True)

    def clear(self, keep_logs: bool = False) -> None:
        """Remove whatever this or an earlier run left behind."""
        root = self.plan.root
        left = processes.end_under(root)
        if left:
            self._say('ended %d processes' % left)
        undone = storage.unmake(root) + self.network.remove()
        if undone:
            self._say('removed %d mounts, loop devices and namespaces'
                      % undone)
        for name in _members_in(root):
            storage.erase(os.path.join(root, name), _PARTS)
            if not keep_logs:
                shutil.rmtree(os.path.join(root, name))
        storage.erase(root, ('etc',))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(root, plan.BED_FILE))

    def _make(self) -> None:
        made = self.plan
        os.makedirs(made.root, exist_ok=True)
        plan.save(made)
        self._say('%d network namespaces' % (len(made.members) + 1))
        self.network.make({name: made.address(name)
                           for name in made.members})
        self._make_members(made.members)

    def _make_members(self, names: Sequence[str]) -> None:
        made = self.plan
        drives = [image for name in names
                  for image in storage.images(made.conf(name))]
        self._say('%d drives, XFS on loop devices' % len(drives))
        storage.make_loops(made.root, drives)
        for name in names:
            configure.prepare(made, name)
        self._say('configuration and rings')
        rings.rebalance(made)
        self._push_rings()

    def _push_rings(self) -> None:
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

    def await_all(self) -> None:
        """Return when everything answers that should."""
        names = self.plan.members
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(lambda name: self.member(name).await_servers(),
                          names))

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
        found = self.member(name)
        if not isinstance(found, Node):
            raise BadConfig('%s is no storage node' % name)
        return found

    @property
    def nodes(self) -> List[Node]:
        """All storage nodes."""
        return [self.node(name) for name in self.plan.nodes]

    def status(self) -> Dict[str, Dict[str, List[int]]]:
        """Member to process to its pids; none: it should run and does
        not."""
        found = processes.under(self.plan.root)
        report = {}
        for name in self.plan.members:
            running = found.get(self.plan.path(name), {})
            report[name] = {process: running.get(process, []) for process
                            in self.member(name).expected()}
        return report

    # -- talking ---------------------------------------------------------

    def client(self, user: str = 'test:tester', key: str = 'testing',
               proxy: str = 'p1', seconds: float = 60.0) -> http.Client:
        """A user at a proxy, in whose namespace its requests are made."""
        conf = self.member(proxy).conf
        server = (conf.address, conf.proxy_port)
        return http.Client(
            lambda: self.network.connect(proxy, server, seconds),
            conf.address, conf.proxy_port, user, key)

    @contextlib.contextmanager
    def inside(self, name: str = 'p1') -> Iterator[None]:
        """The calling thread is in a member's namespace meanwhile: clients
        of other makes reach the bed from there."""
        self.member(name)
        with self.network.inside(name):
            yield

    def direct(self, node: str, method: str, path: str, policy: int = 0,
               headers: Optional[Mapping[str, str]] = None,
               body: Any = None, device: str = '',
               seconds: float = 30.0) -> http.Reply:
        """One request to a node's object server, past the proxies.

        :param path: ``/account/container/object``
        :param device: the object's there if nothing is said
        """
        place = self._place(node, path, policy, device)
        sent = {'X-Backend-Storage-Policy-Index': str(policy)}
        sent.update(headers or {})
        conf = self.node(node).conf
        return http.request(
            lambda: self.network.connect(
                node, (conf.address, place.port), seconds),
            conf.address, place.port, method, '/%s/%d%s' % (
                place.device, place.partition, http.quote(path)),
            body, sent)

    def _place(self, node: str, path: str, policy: int,
               device: str) -> look.Place:
        for place in self.locate(path, policy):
            if place.node == node and device in ('', place.device):
                return place
        raise BadConfig('no device %s of %s in the rings' % (device, node))

    def run(self, name: str, command: Sequence[str],
            **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command in a member's namespace, to its end.

        :param options: as ``subprocess.run`` takes them
        """
        self.member(name)
        options.setdefault('stdin', subprocess.DEVNULL)
        return subprocess.run(
            self.network.entrance(name) + list(command), **options)

    def tool(self, node: str, *words: str,
             seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        """``swift-dss WORDS`` as that node's operator calls it: in its
        namespace, with its ``dss.conf`` where the words say ``{conf}``."""
        path = self.node(node).conf.path('etc', 'dss.conf')
        return self.run(
            node, [sys.executable, '-m', 'swift_dss.cli.main']
            + [word.replace('{conf}', path) for word in words],
            capture_output=True, text=True, timeout=seconds)

    # -- looking ---------------------------------------------------------

    def policy_of(self, container: str) -> int:
        """Index of a container's storage policy."""
        if container not in self._policies:
            reply = self.client().head(container)
            self._policies[container] = POLICIES.index(
                reply.headers['x-storage-policy'])
        return self._policies[container]

    def locate(self, path: str, policy: int = 0) -> List[look.Place]:
        """Primaries in ring order, then handoffs, of
        ``/account/container/object``."""
        return look.locate(self.plan, path, policy)

    def primaries(self, path: str, policy: int = 0) -> List[str]:
        """Nodes of the primaries, in ring order."""
        return [place.node for place in self.locate(path, policy)
                if place.primary is not None]

    def hash_of(self, path: str) -> str:
        """Swift's hash of an object, which its keys in S3 contain."""
        return look.hash_of(self.plan, path)

    def files(self, path: str) -> List[look.Found]:
        """Every file of an object on any node's disks."""
        return [found for name in self.plan.nodes
                for found in look.files(self.plan, name, path)]

    def quarantined(self) -> List[str]:
        """Everything that any server has quarantined."""
        return [path for node in self.nodes
                for path in look.quarantined(node.conf)]

    # -- changing --------------------------------------------------------

    def set_options(self, options: plan.Options,
                    nodes: Sequence[str] = ()) -> None:
        """Change ``dss.conf`` and restart the tier daemons.

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

    def kill(self, name: str) -> int:
        """End all processes of a member without asking.

        :returns: how many there were
        """
        return self.member(name).kill()

    def revive(self, name: str) -> None:
        """Start what a member lacks, and wait until it answers."""
        self.member(name).start()
        self.member(name).await_servers()

    def partition(self, name: str, others: Sequence[str]) -> None:
        """Lose every packet between a member and some others."""
        for other in others:
            self.member(other)
        self.network.cut(name, self.plan.address(name), {
            other: self.plan.address(other) for other in others
            if other != name})

    def heal(self, *names: str) -> None:
        """Lose no packet of these members any more; none are all."""
        self.network.heal({name: self.plan.address(name)
                           for name in names or self.plan.members})


def _members_in(root: str) -> List[str]:
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return []
    return [name for name in names if os.path.isdir(
        os.path.join(root, name, 'log'))]
