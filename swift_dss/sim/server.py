"""The object server of a simulated node: the product's own, in this thread.

Controllers, diskfiles and ssync's receiver are the real ones, Swift's and
ours. Requests are calls. Events go to the node's spool, and requests to the
tier daemon's socket go to the daemon of the node.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import random
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple)

from eventlet import tpool
from swift.common import storage_policy, swob, utils
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.storage_policy import StoragePolicyCollection
from swift.common.swob import Request, Response
from swift.common.utils import quote
from swift.obj import diskfile, reconstructor, ssync_receiver, ssync_sender

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.io import waiting
from swift_dss.objserver import extents, fetch, settings
from swift_dss.objserver.server import DssObjectController
from swift_dss.objserver.travel.newest import Newest
from swift_dss.sim.conf import SCHEMES, SEGMENT_BYTES, Scheme
from swift_dss.sim.world.ring import CODED, DEVICE, OURS, STOCK
from swift_dss.wire import names
from swift_dss.wire import newest as wire
from swift_dss.wire.control import Event, decode_event
from swift_dss.wire.records.blocks import BLOCK_BYTES

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
        self._options = {
            'devices': conf.devices, 'mount_check': 'false',
            'dss_conf': conf.run_dir, 'swift_dir': conf.swift_dir,
            # Nobody reads the lines, and they are 5 % of a run.
            'log_requests': 'false',
            'fallocate_reserve': '0', 'disable_fallocate': 'true'}
        self.app = DssObjectController(dict(self._options), quiet)
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
                'REQUEST_METHOD': method, 'wsgi.input': _Phases(body)})
        request.headers.update(headers)
        request.headers['X-Backend-Storage-Policy-Index'] = str(policy)
        if method == 'PUT':
            request.headers['Content-Length'] = str(len(body))
        return request.get_response(self.app)

    def newest(self, question: wire.Question) -> List[wire.Said]:
        """The answer to another node's gateway."""
        raw = wire.encode_question(question)
        request = Request.blank(names.NEWEST_PATH, environ={
            'REQUEST_METHOD': 'POST', 'wsgi.input': io.BytesIO(raw),
            'CONTENT_LENGTH': str(len(raw))})
        # The listing of the last question was remembered by the real clock.
        answering = Newest(self._options, Quiet(), self.managers)
        return wire.decode_answer(request.get_response(answering).body,
                                  len(question.asked))


class _Phases(io.BytesIO):
    """The body of a request. All of it is there before a server answers,
    the word to commit too."""

    def read(self, *most: Any) -> bytes:
        """Other requests may begin before these bytes are there."""
        meanwhile.wait()
        return super().read(*most)

    def set_hundred_continue_response_headers(self, headers: Any) -> None:
        """Nobody waits for them."""

    def send_hundred_continue_response(self) -> None:
        """Nobody waits for it."""


class _Policies:
    """Storage policies as ``swift.conf`` of the simulation has them."""

    def __init__(self) -> None:
        self._made: Dict[Scheme, StoragePolicyCollection] = {}
        #: Of the run.
        self.scheme = SCHEMES[0]

    def __call__(self) -> StoragePolicyCollection:
        if self.scheme not in self._made:
            self._made[self.scheme] = StoragePolicyCollection([
                storage_policy.StoragePolicy(
                    OURS, 'ours', is_default=True,
                    diskfile_module='egg:swift_dss#dss.fs'),
                storage_policy.StoragePolicy(
                    STOCK, 'stock', diskfile_module=_STOCK_FILE),
                storage_policy.ECStoragePolicy(
                    CODED, 'coded', diskfile_module='egg:swift_dss#dss_ec.fs',
                    ec_type='liberasurecode_rs_vand',
                    ec_ndata=self.scheme.data,
                    ec_nparity=self.scheme.parity,
                    ec_segment_size=SEGMENT_BYTES)])
        return self._made[self.scheme]


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


def _sender(daemon: Any, *args: Any, **options: Any) -> Any:
    return daemon.sender(*args, **options)


class Meanwhile:
    """Requests that are in flight at a time at one server: each begins where
    the one before it waits for bytes or a thread, or behind it.
    """

    def __init__(self) -> None:
        self._left: List[Callable[[], None]] = []
        self._begins: Callable[[], bool] = bool

    def do(self, requests: Iterable[Callable[[], None]],
           begins: Callable[[], bool]) -> None:
        """Do all of them, in their order.

        :param begins: asked where a request waits: does the next one begin?
        """
        self._left, self._begins = list(requests), begins
        while self._left:
            self._left.pop(0)()

    def wait(self) -> None:
        """A request waits here. Nothing happens where it is alone."""
        if self._left and self._begins():
            self._left.pop(0)()


#: Of this process.
meanwhile = Meanwhile()


def _in_thread(work: Callable[..., Any], *args: Any, **named: Any) -> Any:
    meanwhile.wait()
    return work(*args, **named)


class _Pile:
    """Green threads that are over when they begin."""

    def __init__(self, size: int) -> None:
        self._done: List[Any] = []

    def spawn(self, work: Callable[..., Any], *args: Any) -> None:
        self._done.append(work(*args))

    def __iter__(self) -> _Pile:
        return self

    def __next__(self) -> Any:
        if not self._done:
            raise StopIteration
        return self._done.pop(0)


class _Attributes:
    """In place of a module that makes an object for each look."""

    setxattr = staticmethod(diskfile.xattr.setxattr)

    @staticmethod
    def getxattr(target: Any, name: bytes) -> bytes:
        """As ``xattr.getxattr``, of a file that is open or a path."""
        return os.getxattr(target if isinstance(target, (int, str))
                           else target.fileno(), name)


#: Functions of Swift's that look at their arguments alone, and the entry
#: points of its packages. Each answer is remembered: they were 7 % of a run.
_PURE: List[Tuple[Any, str, Any]] = [
    (swob, 'header_to_environ_key', functools.lru_cache(maxsize=4096)(
        swob.header_to_environ_key)),
    (HeaderKeyDict, '_title', staticmethod(functools.lru_cache(maxsize=4096)(
        HeaderKeyDict._title))),
    (storage_policy, 'load_pkg_resource', functools.lru_cache(maxsize=None)(
        storage_policy.load_pkg_resource)),
    (diskfile, 'xattr', _Attributes)]


@contextlib.contextmanager
def installed(scheme: Scheme = SCHEMES[0]) -> Iterator[None]:
    """Have Swift's modules of this process live by the simulation: its
    policies and hashes without salt, no event loop, no sockets.

    :param scheme: of the erasure-coded policy
    """
    def nobody_waits(*_args: Any) -> None:
        return None
    policies.scheme = scheme
    exchanged: List[Tuple[Any, str, Any]] = [
        (storage_policy, '_POLICIES', policies()),
        (utils, 'HASH_PATH_SUFFIX', b''), (utils, 'HASH_PATH_PREFIX', b''),
        (ssync_sender, 'sleep', nobody_waits),
        (ssync_receiver, 'sleep', nobody_waits),
        (waiting, 'sleep', nobody_waits), (tpool, 'execute', _in_thread),
        (reconstructor, 'GreenPile', _Pile),
        (reconstructor, 'GreenAsyncPile', _Pile),
        (reconstructor, 'ssync_sender', _sender),
        # Draws the primaries that a lone tombstone is brought to.
        (reconstructor, 'random', random.Random(0)),
        (fetch, 'dial', _dial),
        # A read takes one trip to its disk for each block.
        (extents, 'IO_WINDOW_BYTES', BLOCK_BYTES),
        (extents, 'AHEAD_BYTES', BLOCK_BYTES),
        (extents, 'TRIP_BYTES', BLOCK_BYTES)] + _PURE
    before = [(module, name, vars(module)[name])
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
