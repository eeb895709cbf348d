"""One member of a bed: its processes, in its namespace."""

from __future__ import annotations

import functools
import json
import os
import time
from typing import Callable, Dict, List, Sequence

from swift_dss.aio import cluster, processes
from swift_dss.aio.bed import configure
from swift_dss.aio.bed.network import Network
from swift_dss.aio.bed.plan import DOOR_PORT, S3, Plan
from swift_dss.aio.layout import AioConf
from swift_dss.core.errors import DssError

_PASS_SECONDS = 300.0
_RSYNC = 'rsync'
_RSYNC_PORT = 873


class Member:
    """A node, a proxy or the S3.

    :param name: in the plan
    """

    def __init__(self, plan: Plan, network: Network, name: str) -> None:
        self.plan = plan
        self.name = name
        self._network = network

    @property
    def conf(self) -> AioConf:
        """The member, as an all-in-one cluster that lacks the rest."""
        return self.plan.conf(self.name)

    @property
    def address(self) -> str:
        """Where it is."""
        return self.plan.address(self.name)

    # -- processes -------------------------------------------------------

    def servers(self) -> Dict[str, int]:
        """The listening servers: name to port; 0 if it does not listen yet."""
        raise NotImplementedError

    def expected(self) -> List[str]:
        """Names of the processes that should be there."""
        return list(self.servers())

    def running(self) -> Dict[str, List[int]]:
        """Name to pids of those that are."""
        return processes.find(self.conf.root)

    def spawn(self, name: str, arguments: Sequence[str] = ()) -> int:
        """Start one process of this member.

        :returns: its pid
        """
        return self._open(name, arguments).pid

    def _log(self, name: str) -> str:
        return os.path.join(self.conf.log, name + '.log')

    def _open(self, name: str, arguments: Sequence[str]) -> processes.Child:
        conf = self.conf
        log = self._log(name)
        entrance = self._network.entrance(self.name)
        if name == _RSYNC:
            return processes.spawn(
                conf.root, name, log,
                ['--daemon', '--no-detach',
                 '--config=' + conf.path('etc', 'rsyncd.conf')],
                prefix=entrance, program=_RSYNC)
        return processes.spawn(
            conf.root, name, log,
            ['-m', 'swift_dss.aio.bed.run', configure.clock_file(conf),
             *self._command(name), *arguments], prefix=entrance,
            extra_env=self.plan.environment(self.name))

    def _command(self, name: str) -> List[str]:
        path = cluster.conf_file(self.conf, name)
        return ['swift_dss.aio.run', self.conf.etc, name, path]

    def start_servers(self) -> None:
        """Start servers that should run and do not; don't wait."""
        running = self.running()
        for name in self.servers():
            if name not in running:
                self.spawn(name)

    def start(self) -> None:
        """Start servers that should run and do not; don't wait."""
        self.start_servers()

    def kill(self) -> int:
        """End all of its processes without asking.

        :returns: how many there were
        """
        killed = 0
        # The first list lacks processes forked since.
        while self.running():
            killed += processes.kill(self.conf.root)
        return killed

    def restart(self, name: str) -> None:
        """End one process and start it again."""
        processes.end(self.conf.root, [name])
        self.spawn(name)
        self.await_servers()

    def await_servers(self) -> None:
        """Return when everything answers.

        :raises StartFailed: with the end of the log of a server that does not
        """
        for name, port in self.servers().items():
            if not port:
                continue
            self._await(name, functools.partial(self._answers, port),
                        'port %d' % port)

    def _answers(self, port: int) -> bool:
        try:
            self._network.connect(self.name, (self.address, port),
                                  1.0).close()
        except OSError:
            return False
        return True

    def _await(self, name: str, answers: Callable[[], bool],
               where: str) -> None:
        born = time.monotonic()

        def ready() -> bool:
            if answers():
                return True
            if time.monotonic() - born > processes.BIRTH_SECONDS and \
                    name not in self.running():
                raise self._failed(name, 'ended')
            return False
        if not processes.wait(ready, processes.PORT_DEADLINE_SECONDS):
            raise self._failed(name, 'does not answer on ' + where)

    def _failed(self, name: str, reason: str) -> processes.StartFailed:
        log = self._log(name)
        return processes.StartFailed('%s of %s %s; the end of %s:\n%s' % (
            name, self.name, reason, log, processes.tail(log)))


class Node(Member):
    """A storage node with its tier daemon."""

    def servers(self) -> Dict[str, int]:
        """The object server answers on the first device's port, as soon as
        the rings have it."""
        conf = self.conf
        ports = {'object-server': conf.device_port(conf.device_names[0])
                 if self.in_rings else 0,
                 'container-server': conf.container_port,
                 'account-server': conf.account_port}
        ports[_RSYNC] = _RSYNC_PORT
        return ports

    @property
    def in_rings(self) -> bool:
        """Do the rings have its drives?"""
        return self.name not in self.plan.waiting

    @property
    def has_daemon(self) -> bool:
        """Does it run our tier daemon?"""
        return not self.conf.plain

    def expected(self) -> List[str]:
        """Names of the processes that should be there."""
        return list(self.servers()) + ['tierd'] * self.has_daemon

    def start(self) -> None:
        """Start servers that should run and do not; don't wait."""
        super().start()
        if self.has_daemon and 'tierd' not in self.running():
            self.spawn('tierd')

    def _command(self, name: str) -> List[str]:
        if name == 'tierd':
            return [self.plan.daemon(self.name), '--config',
                    cluster.conf_file(self.conf, name)]
        if name == 'movers':
            return ['swift_dss.aio.bed.movers']
        return super()._command(name)

    def await_servers(self) -> None:
        """Return when everything answers."""
        super().await_servers()
        if self.has_daemon:
            path = self.conf.path('run', 'admin.sock')
            self._await('tierd', lambda: _listening(path), path)

    def run_once(self, *names: str) -> None:
        """One pass of some of Swift's daemons, each to its end.

        :raises DssError: one failed, or they took too long
        """
        conf = self.conf
        words = [conf.etc]
        for name in names:
            words += [name, cluster.conf_file(conf, name), self._log(name)]
        child = self._open('movers', words)
        try:
            status = child.wait(_PASS_SECONDS)
        except BaseException:
            child.kill()
            child.wait()
            raise
        if status:
            raise DssError('%s: %s\n%s' % (
                self.name, processes.tail(self._log('movers'), 1),
                '\n'.join(processes.tail(self._log(name), 5)
                          for name in names)))


class Proxy(Member):
    """A proxy."""

    def servers(self) -> Dict[str, int]:
        """One port."""
        return {'proxy-server': self.conf.proxy_port}


class Store(Member):
    """The S3: the second Swift, and the door in front of it."""

    def servers(self) -> Dict[str, int]:
        """The second Swift listens on loopback only."""
        ports = {'cloud-' + name: self.conf.cloud_port + offset
                 for name, offset in cluster.STORES}
        ports['door'] = DOOR_PORT
        return ports

    def _answers(self, port: int) -> bool:
        host = self.address if port == DOOR_PORT else '127.0.0.1'
        try:
            self._network.connect(self.name, (host, port), 1.0).close()
        except OSError:
            return False
        return True

    def _command(self, name: str) -> List[str]:
        conf = self.conf
        if name == 'door':
            return ['swift_dss.aio.bed.s3.door',
                    '--listen', '%s:%d' % (self.address, DOOR_PORT),
                    '--upstream', '127.0.0.1:%d' % conf.cloud_port,
                    '--control', conf.path('run', 'door.sock'),
                    '--names', self._names()]
        etc = conf.path('cloud', 'etc')
        server = name[len('cloud-'):]
        return ['swift_dss.aio.run', etc, server,
                os.path.join(etc, server + '.conf')]

    def _names(self) -> str:
        return json.dumps({self.plan.address(name): name
                           for name in self.plan.members})

    def make_bucket(self) -> None:
        """Make the gateways' bucket, unless it is there."""
        with self._network.inside(self.name):
            cluster.make_bucket(self.conf)


def member(plan: Plan, network: Network, name: str) -> Member:
    """A member of the kind that its name says."""
    if name == S3:
        return Store(plan, network, name)
    kind = Node if name in plan.nodes else Proxy
    return kind(plan, network, name)


def _listening(path: str) -> bool:
    try:
        return processes.listening_unix(path)
    except OSError:
        return False
