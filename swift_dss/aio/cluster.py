"""Bring a cluster up and down."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence

from swift_dss.aio import (
    clients, configs, layout, parts, processes, rings, storage, tables,
    throttle)
from swift_dss.aio.layout import CLOUD_BUCKET, CLOUD_USER, AioConf
from swift_dss.core.errors import BadConfig, DssError
from swift_dss.io.capacity import Capacity

if TYPE_CHECKING:
    from swiftclient.client import Connection

#: Name -> port offset, in the order of start.
STORES = (('object-server', 1), ('container-server', 2),
          ('account-server', 3), ('proxy-server', 0))

#: The background daemons, and the configuration file of each.
DAEMONS = (
    ('object-replicator', 'object-server.conf'),
    ('object-reconstructor', 'object-server.conf'),
    ('object-auditor', 'object-server.conf'),
    ('object-updater', 'object-server.conf'),
    ('object-expirer', 'object-server.conf'),
    ('container-replicator', 'container-server.conf'),
    ('container-updater', 'container-server.conf'),
    ('container-auditor', 'container-server.conf'),
    ('account-replicator', 'account-server.conf'),
    ('account-auditor', 'account-server.conf'),
    ('account-reaper', 'account-server.conf'),
)

#: Everything of a run but its logs.
FOLDERS = ('etc', 'devices', 'hdd', 'run', 'state', 'images', 'cloud')


class Cluster:
    """One all-in-one cluster, running or not.

    :param say: gets one line for each step
    """

    def __init__(self, conf: AioConf,
                 say: Optional[processes.Say] = None) -> None:
        self.conf = conf
        self._say = say or (lambda line: None)

    # -- up and down -----------------------------------------------------

    def start(self, keep: bool = False) -> None:
        """Make everything and wait until it answers.

        :param keep: use the data and configuration of an earlier run
        :raises DssError: with the log of the failed server; nothing is left
            running
        """
        layout.check(self.conf)
        if not self.conf.plain:
            clients.require()
        self._refuse_running()
        self.clear(erase=not keep)
        if not keep:
            self._check_ports()
        try:
            self._make(keep)
            self._start_all()
        except BaseException:
            self.clear(erase=False)
            raise

    def stop(self, keep: bool = False) -> None:
        """End all processes; unmount; forget the data unless ``keep``."""
        self.clear(erase=not keep)

    def clear(self, erase: bool) -> None:
        """Remove whatever this or an earlier run left behind."""
        root = self.conf.root
        left = processes.find(root)
        if left:
            self._say('ending %d processes' % sum(map(len, left.values())))
            processes.end(root)
        undone = storage.unmake(root)
        if undone:
            self._say('removed %d mounts and loop devices' % undone)
        throttle.remove(self.conf.cgroup_name)
        if erase:
            storage.erase(root, FOLDERS)

    @classmethod
    def running(cls, root: str) -> Cluster:
        """The cluster that runs in a folder.

        :raises BadConfig: none does
        """
        if 'proxy-server' not in processes.find(root):
            raise BadConfig('no cluster runs in %s; "swift-dss aio start '
                            '--root %s" starts one' % (root, root))
        return cls(layout.load(root))

    def _refuse_running(self) -> None:
        running = processes.find(self.conf.root)
        if 'proxy-server' in running:
            raise BadConfig('a cluster is running in %s already; '
                            '"swift-dss aio stop --root %s" ends it'
                            % (self.conf.root, self.conf.root))
        if running:
            self._say('an earlier run left %s' % ', '.join(sorted(running)))

    def _check_ports(self) -> None:
        base = self.conf.base_port
        taken = [port for port in range(base, base + layout.PORTS)
                 if not processes.port_free(port)]
        if taken:
            raise BadConfig('ports %s are taken; give another --base-port'
                            % ', '.join(map(str, taken)))

    # -- making ----------------------------------------------------------

    def _make(self, keep: bool) -> None:
        conf = self.conf
        os.makedirs(conf.root, exist_ok=True)
        if not keep:
            shutil.rmtree(conf.log, ignore_errors=True)
        for folder in (conf.log, conf.run, conf.path('run', 'recon')):
            os.makedirs(folder, exist_ok=True)
        self._say('%d SSDs and HDDs as %s' % (
            conf.devices, 'XFS on loop devices'
            if conf.storage == 'loops' else 'folders'))
        storage.make(conf)
        if not conf.plain:
            for device in conf.device_names:
                Capacity(conf.path('hdd', device), device).initialise()
        if not (keep and os.path.exists(conf.path('etc', 'swift.conf'))):
            self._configure()
        layout.save(conf)

    def _configure(self) -> None:
        conf = self.conf
        self._say('configuration and rings')
        missing = parts.missing()
        if missing and not conf.plain:
            self._say('not installed, stock Swift instead: %s'
                      % ', '.join(missing))
        configs.write(conf, configs.cluster_files(conf))
        names = conf.device_names
        for name, replicas, port in (
                ('account', 3, conf.account_port),
                ('container', 3, conf.container_port),
                ('object', conf.replicas, conf.object_port),
                ('object-1', 3, conf.object_port),
                ('object-2', conf.replicas, conf.object_port)):
            rings.write(conf.etc, name, replicas, port, names)
        if conf.plain:
            return
        configs.write(conf, configs.cloud_files(conf))
        tables.write(conf)
        for name, offset in (('object', 1), ('container', 2),
                             ('account', 3)):
            rings.write(conf.path('cloud', 'etc'), name, 1,
                        conf.cloud_port + offset, ['c1'])

    # -- starting --------------------------------------------------------

    def _start_all(self) -> None:
        conf = self.conf
        procs = self._throttle()
        awaited: Dict[str, int] = {}
        if not conf.plain:
            for name, offset in STORES:
                self._spawn_cloud(name)
                awaited['cloud-' + name] = conf.cloud_port + offset
        for name, offset in STORES:
            self.spawn(name, procs)
            awaited[name] = conf.base_port + offset
        self._await_ports(awaited)
        if not conf.plain:
            self._make_bucket()
        if configs.has(conf, 'tier'):
            self.spawn('tierd', procs)
            self._await_tierd()
        if conf.background:
            for name, _conf_file in DAEMONS:
                self.spawn(name, procs)
            self._say('%d background daemons started' % len(DAEMONS))

    def _throttle(self) -> List[str]:
        conf = self.conf
        if conf.plain or not conf.hdd_iops:
            return []
        if conf.storage != 'loops':
            self._say('folders: SSD and HDD are equally fast')
            return []
        devices = [device for image, device
                   in storage.loops(conf.root).items()
                   if os.path.basename(image).startswith('hdd-')]
        try:
            procs = throttle.apply(conf.cgroup_name, devices, conf.hdd_iops)
        except OSError as err:
            self._say('HDDs are not throttled: %s' % err)
            return []
        self._say('HDDs throttled to %d operations a second'
                  % conf.hdd_iops)
        return procs

    def spawn(self, name: str, procs: Optional[Sequence[str]] = None,
              arguments: Sequence[str] = (),
              extra_env: Optional[Dict[str, str]] = None) -> int:
        """Start one server or daemon of the main cluster.

        :param procs: ``cgroup.procs`` files; None finds them
        :returns: its pid
        """
        conf = self.conf
        conf_file = self.conf_file(name)
        groups = self.cgroup_procs() if procs is None else list(procs)
        log = os.path.join(conf.log, name + '.log')
        if name == 'tierd':
            command = ['-m', 'swift_dss.tier.main', '--config', conf_file]
        else:
            command = ['-m', 'swift_dss.aio.run', conf.etc, name, conf_file]
        return processes.spawn(conf.root, name, log,
                               command + list(arguments), groups,
                               extra_env).pid

    def run_once(self, name: str, *arguments: str,
                 timeout_seconds: float = 300.0) -> None:
        """One pass of a daemon, to its end.

        :raises DssError: it failed or took too long
        """
        conf = self.conf
        log = os.path.join(conf.log, name + '.log')
        child = processes.spawn(
            conf.root, name + '-once', log,
            ['-m', 'swift_dss.aio.run', conf.etc, name,
             self.conf_file(name), 'once'] + list(arguments),
            self.cgroup_procs())
        try:
            status = child.wait(timeout_seconds)
        except BaseException:
            child.kill()
            child.wait()
            raise
        if status:
            raise DssError('%s ended with %d:\n%s' % (
                name, status, processes.tail(log)))

    def conf_file(self, name: str) -> str:
        """The configuration file of a server or daemon."""
        return conf_file(self.conf, name)

    def cgroup_procs(self) -> List[str]:
        """Where a new server joins the throttled cgroup, if there is
        one."""
        return [path for path in (
            os.path.join(root, self.conf.cgroup_name, 'cgroup.procs')
            for root in (throttle.V1_ROOT, throttle.V2_ROOT))
            if os.path.exists(path)]

    def _spawn_cloud(self, name: str) -> None:
        conf = self.conf
        etc = conf.path('cloud', 'etc')
        processes.spawn(
            conf.root, 'cloud-' + name,
            os.path.join(conf.log, 'cloud-%s.log' % name),
            ['-m', 'swift_dss.aio.run', etc, name,
             os.path.join(etc, name + '.conf')])

    def start_cloud(self) -> None:
        """Bring the S3 cloud back after :meth:`stop_cloud`."""
        awaited = {}
        for name, offset in STORES:
            self._spawn_cloud(name)
            awaited['cloud-' + name] = self.conf.cloud_port + offset
        self._await_ports(awaited)

    def stop_cloud(self) -> None:
        """Make the S3 cloud unreachable."""
        processes.end(self.conf.root,
                      ['cloud-' + name for name, _offset in STORES])

    def restart(self, name: str) -> None:
        """End one server and start it again."""
        processes.end(self.conf.root, [name])
        self.spawn(name)
        if name == 'tierd':
            self._await_tierd()
        elif name in dict(STORES):
            self._await_ports({
                name: self.conf.base_port + dict(STORES)[name]})

    def _await_ports(self, awaited: Dict[str, int]) -> None:
        born = time.monotonic()
        deadline = born + processes.PORT_DEADLINE_SECONDS
        for name, port in awaited.items():
            def answers(port: int = port, name: str = name) -> bool:
                if processes.listening(port):
                    return True
                self._check_alive(name, born)
                return False
            if not processes.wait(answers, deadline - time.monotonic()):
                raise self._failed(name, 'does not answer on port %d' % port)
        self._say('%d servers answer' % len(awaited))

    def _await_tierd(self) -> None:
        admin = self.conf.path('run', 'admin.sock')
        born = time.monotonic()

        def answers() -> bool:
            if processes.listening_unix(admin):
                return True
            self._check_alive('tierd', born)
            return False
        if not processes.wait(answers, processes.PORT_DEADLINE_SECONDS):
            raise self._failed('tierd', 'does not answer on %s' % admin)
        self._say('the tier daemon answers')

    def _check_alive(self, name: str, born: float) -> None:
        if time.monotonic() - born > processes.BIRTH_SECONDS and \
                name not in processes.find(self.conf.root):
            raise self._failed(name, 'ended')

    def _failed(self, name: str, reason: str) -> processes.StartFailed:
        log = os.path.join(self.conf.log, name + '.log')
        return processes.StartFailed('%s %s; the end of %s:\n%s' % (
            name, reason, log, processes.tail(log)))

    def _make_bucket(self) -> None:
        make_bucket(self.conf)

    # -- looking ---------------------------------------------------------

    def expected(self) -> List[str]:
        """Names of the processes that should be there."""
        names = [name for name, _offset in STORES]
        if not self.conf.plain:
            names += ['cloud-' + name for name, _ in STORES]
        if configs.has(self.conf, 'tier'):
            names.append('tierd')
        if self.conf.background:
            names += [name for name, _conf_file in DAEMONS]
        return names

    def connection(self, account: str = 'test', user: str = 'tester',
                   key: str = 'testing') -> Connection:
        """A Swift client of one of the cluster's users.

        :raises BadConfig: python-swiftclient is not installed
        """
        return clients.connection(
            self.conf.auth_url, '%s:%s' % (account, user), key,
            retries=2, max_backoff=2)


def conf_file(conf: AioConf, name: str) -> str:
    """The configuration file of a server or daemon."""
    conf_name = dict(DAEMONS).get(name, name + '.conf')
    return os.path.join(
        conf.etc, 'dss.conf' if name == 'tierd' else conf_name)


def make_bucket(conf: AioConf) -> None:
    """Make the gateways' bucket in the S3 cloud, unless it is there."""
    account, user, key = CLOUD_USER
    connection = clients.connection(
        conf.cloud_url + '/auth/v1.0', '%s:%s' % (account, user), key,
        retries=3)
    connection.put_container(CLOUD_BUCKET)
    connection.close()


def printer(stream: object = None) -> processes.Say:
    """Lines with the seconds since now in front."""
    begin = time.monotonic()

    def say(line: str) -> None:
        print('[%5.1f s] %s' % (time.monotonic() - begin, line),
              file=stream or sys.stdout, flush=True)  # type: ignore
    return say
