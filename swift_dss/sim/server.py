"""The object server of a simulated node: the product's own, in this thread.

Controllers, diskfiles and ssync's receiver are the real ones, Swift's and
ours. Requests are calls. Events go to the node's spool, and requests to the
tier daemon's socket go to the daemon of the node.
"""

from __future__ import annotations

import contextlib
import io
from typing import (
    Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple)

import eventlet
from eventlet import tpool
from swift.common import storage_policy, utils
from swift.common.storage_policy import StoragePolicyCollection
from swift.common.swob import Request, Response
from swift.common.utils import quote
from swift.obj import ssync_receiver, ssync_sender

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.objserver import fetch, settings
from swift_dss.objserver.server import DssObjectController
from swift_dss.sim.world.ring import DEVICE
from swift_dss.wire.control import Event, decode_event

#: Answers to the one request of a connection to a tier daemon.
Serve = Callable[[Any], None]
#: The diskfile of a stock object server.
_STOCK_FILE = 'egg:swift#replication.fs'
#: Run folders of nodes, and the servers of their daemons, if they run.
_daemons: Dict[str, Callable[[], Optional[Serve]]] = {}


class Quiet:
    """A logger of Swift's that says and counts nothing."""

    thread_locals = (None, None)

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_args: Any, **_named: Any) -> None:
        return None


class _Events:
    """Takes the object servers' events for the daemon.

    :param say: keeps an event until the daemon reads it
    """

    def __init__(self, say: Callable[[Event], None]) -> None:
        self._say = say

    def send(self, event: Event) -> None:
        self._say(event)

    def tell(self, event: Event) -> bool:
        self._say(event)
        return True

    def send_read(self, device: str, raw: bytes,
                  at_once: bool = False) -> None:
        self._say(decode_event(raw))

    def send_what_waits(self, device: str) -> None:
        """Nothing waits here."""


class ObjectServer:
    """One life of the process.

    :param say: keeps an event until the tier daemon reads it
    :param daemon: the server at the daemon's socket; None: it is down
    :param expires: told of changes of the expirer's queue: verb, entry and
        timestamp of the request
    """

    def __init__(self, conf: NodeConf, table: ClassTable, policies: Any,
                 say: Callable[[Event], None],
                 daemon: Callable[[], Optional[Serve]],
                 expires: Callable[[str, str, str], None]) -> None:
        quiet = Quiet()
        node = settings.Node(conf, quiet)
        node._table._value = table
        node.events = _Events(say)  # type: ignore[assignment]
        settings._nodes[(conf.run_dir, conf.devices)] = node
        _daemons[conf.run_dir] = daemon
        self.app = DssObjectController({
            'devices': conf.devices, 'mount_check': 'false',
            'dss_conf': conf.run_dir, 'swift_dir': conf.swift_dir,
            # Nobody reads the lines, and they are 5 % of a run.
            'log_requests': 'false',
            'fallocate_reserve': '0', 'disable_fallocate': 'true'}, quiet)
        # No container server is there; of those of objects none is told.
        self.app.async_update = lambda verb, _account, _container, entry, \
            _host, _partition, _device, headers, *_: expires(
                verb, entry, headers['x-timestamp'])
        self.managers: Mapping[Any, Any] = {
            policy: self.app._diskfile_router[policy] for policy in policies}

    def ask(self, method: str, name: str, partition: str, policy: int,
            headers: Mapping[str, str], body: bytes = b'') -> Response:
        """The answer to a backend request.

        :param name: ``/account/container/object``
        """
        request = Request.blank(
            quote('/%s/%s%s' % (DEVICE, partition, name)), environ={
                'REQUEST_METHOD': method, 'wsgi.input': io.BytesIO(body)})
        request.headers.update(headers)
        request.headers['X-Backend-Storage-Policy-Index'] = str(policy)
        if method == 'PUT':
            request.headers['Content-Length'] = str(len(body))
        return request.get_response(self.app)


class _Policies:
    """Storage policies as ``swift.conf`` of the simulation has them."""

    def __init__(self) -> None:
        self.found: Optional[StoragePolicyCollection] = None

    def __call__(self) -> StoragePolicyCollection:
        if self.found is None:
            self.found = StoragePolicyCollection([
                storage_policy.StoragePolicy(
                    0, 'ours', is_default=True,
                    diskfile_module='egg:swift_dss#dss.fs'),
                storage_policy.StoragePolicy(
                    1, 'stock', diskfile_module=_STOCK_FILE)])
        return self.found


policies = _Policies()


class Line:
    """The object server's end of a connection to its tier daemon."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._asked = b''
        self._reply: Optional[io.BytesIO] = None

    def sendall(self, raw: bytes) -> None:
        self._asked += raw

    def recv(self, most: int) -> bytes:
        if self._reply is None:
            end = _DaemonEnd(self._asked)
            self._serve(end)
            self._reply = io.BytesIO(b''.join(end.said))
        return self._reply.read(most)

    def close(self) -> None:
        """No more is wanted."""


class _DaemonEnd:

    def __init__(self, asked: bytes) -> None:
        self._asked = io.BytesIO(asked)
        self.said: List[bytes] = []

    def settimeout(self, seconds: float) -> None:
        """No reader stalls here."""

    def recv(self, most: int) -> bytes:
        return self._asked.read(most)

    def sendall(self, raw: bytes) -> None:
        self.said.append(bytes(raw))


def _dial(run_dir: str, patience: float) -> Line:
    serve = _daemons[run_dir]()
    if serve is None:
        raise ConnectionRefusedError('the tier daemon is down')
    return Line(serve)


def _here(work: Callable[..., Any], *args: Any, **named: Any) -> Any:
    return work(*args, **named)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Have Swift's modules of this process live by the simulation: its
    policies and hashes without salt, no event loop, no sockets."""
    def nobody_waits(*_args: Any) -> None:
        return None
    exchanged: List[Tuple[Any, str, Any]] = [
        (storage_policy, '_POLICIES', policies()),
        (utils, 'HASH_PATH_SUFFIX', b''), (utils, 'HASH_PATH_PREFIX', b''),
        (ssync_sender, 'sleep', nobody_waits),
        (ssync_receiver, 'sleep', nobody_waits),
        (eventlet, 'sleep', nobody_waits), (tpool, 'execute', _here),
        (fetch, 'dial', _dial)]
    before = [(module, name, getattr(module, name))
              for module, name, _ in exchanged]
    nodes = dict(settings._nodes)
    for module, name, value in exchanged:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        settings._nodes.clear()
        settings._nodes.update(nodes)
        _daemons.clear()
