"""Share the answers of object servers among the workers of a proxy.

One worker asks a node for all workers of the proxy server. It keeps the answer
in ``<run_dir>/proxy``, a file for each node, replaced whole by rename; the
others read the file. While a worker asks, it holds a lock that the kernel
drops when the process dies.

The folder is only a cache. A file that is damaged, of another boot or of
another server counts as missing, and without the folder each worker asks for
itself. Files hold only figures of devices. Still only Swift's user may enter
the folder, because false figures could make the proxy refuse writes.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
import zlib
from contextlib import contextmanager
from typing import (
    Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional, Tuple, Union)
from urllib.parse import quote

from swift_dss.core.errors import DamagedRecord, DssError
from swift_dss.wire.node import pressure as wire
from swift_dss.wire.jsonfields import Fields

#: Largest answer that is read: 1,000 devices have less.
MAX_ANSWER_BYTES = 1 << 20
_MAX_HEAD_BYTES = 4096
_VERSION = 1
#: A folder that could not be used is tried again after so long.
_AGAIN_SECONDS = 60.0
_BOOT_ID = '/proc/sys/kernel/random/boot_id'
Server = Tuple[str, int]
#: A node by its own name; a server that says none is a node.
NodeKey = Union[Server, str]


class Answer(NamedTuple):
    """An object server's answer.

    :param devices: name to (age, pressure)
    :param node: name that all servers of its node share; '' if it sent none
    :param ask_after: seconds until the next question
    :param raw: the encoded form of ``devices``
    :param since: age of ``raw`` when it came, seconds
    """

    devices: Mapping[str, Tuple[float, wire.Pressure]]
    node: str = ''
    ask_after: float = 0.0
    raw: bytes = b''
    since: float = 0.0


class Heard(NamedTuple):
    """The last answer of a node, and the last question to it.

    :param asked_at: monotonic seconds, the same for all processes
    :param answered_at: before ``asked_at`` if the last question got no
        answer, or none yet
    """

    asked_at: float
    answered_at: float
    answer: Answer


NOTHING = Heard(0.0, 0.0, Answer({}))


class Shared:
    """The folder of one proxy server. Each worker has its own object.

    Nothing here blocks for longer than a small file of a tmpfs takes, so
    green threads may call it.

    :param run_dir: must be there; the folder in it is made
    :param clock: monotonic seconds, the same for all processes
    """

    def __init__(self, run_dir: str, logger: Any,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = os.path.join(run_dir, 'proxy')
        self._logger = logger
        self._clock = clock
        self._boot = ''
        self._usable = False
        self._not_before = float('-inf')
        self._said = ''
        #: First line and content of what was read last: while a worker
        #: waits it looks often, and nearly always sees the same.
        self._last: Dict[NodeKey, Tuple[bytes, Heard]] = {}

    def read(self, key: NodeKey) -> Optional[Heard]:
        """The last answer to any worker of this machine; None if there is
        none.
        """
        if not self._ready():
            return None
        try:
            with _opened(self._path(key), os.O_RDONLY) as source:
                raw = os.read(source, _MAX_HEAD_BYTES)
                head, _, body = raw.partition(b'\n')
                last = self._last.get(key)
                if last is not None and last[0] == head:
                    return last[1]
                body += _rest_of(source, len(raw))
            heard = self._decoded(head, body, key)
            self._last[key] = head, heard
            return heard
        except FileNotFoundError:
            return None
        except DssError as err:
            self._logger.increment('dss.admission.shared_damaged')
            self._logger.debug('dss: %s: %s', self._path(key), err)
        except OSError as err:
            self._give_up(err)
        return None

    def write(self, key: NodeKey, heard: Heard) -> None:
        """Let the others know; call it while ``asking`` is held.

        No fsync: nothing of it is worth anything after a power cut.
        """
        if not self._ready():
            return
        path = self._path(key)
        try:
            with _opened(path + '.tmp', os.O_WRONLY | os.O_CREAT
                         | os.O_TRUNC) as target:
                _write(target, self._encoded(key, heard))
            os.rename(path + '.tmp', path)
        except OSError as err:
            self._give_up(err)

    @contextmanager
    def asking(self, key: NodeKey) -> Iterator[bool]:
        """Whether this worker is the one to ask now. True also if that
        cannot be told."""
        if not self._ready():
            yield True
            return
        try:
            lock = os.open(self._path(key) + '.lock', os.O_RDWR | os.O_CREAT
                           | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as err:
            self._give_up(err)
            yield True
            return
        try:
            # Of the open file, so green threads of one process exclude
            # each other as well; the kernel drops it with the process.
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mine = True
            except BlockingIOError:
                mine = False
            except OSError:
                mine = True
            yield mine
        finally:
            os.close(lock)

    def _ready(self) -> bool:
        """Make the folder once; False while it cannot be shared."""
        if self._usable:
            return True
        now = self._clock()
        if now < self._not_before:
            return False
        try:
            self._boot = _boot_id()
            self._make()
        except OSError as err:
            self._give_up(err)
            return False
        self._usable = True
        return True

    def _make(self) -> None:
        """Not before the first question: a worker has the user then that
        it keeps, while a parent that only reads its configuration may be
        root."""
        try:
            os.mkdir(self._folder, 0o700)
        except FileExistsError:
            pass
        status = os.lstat(self._folder)
        if not stat.S_ISDIR(status.st_mode):
            raise OSError('%s is not a folder' % self._folder)
        if status.st_uid != os.geteuid():
            raise OSError('%s belongs to user %d, and not to the user of '
                          'this process (%d)' % (
                              self._folder, status.st_uid, os.geteuid()))
        if status.st_mode & 0o077:
            raise OSError('%s has mode %04o; give it 0700' % (
                self._folder, stat.S_IMODE(status.st_mode)))

    def _give_up(self, err: OSError) -> None:
        """Each worker asks for itself, for a while."""
        self._usable = False
        self._not_before = self._clock() + _AGAIN_SECONDS
        if str(err) != self._said:
            self._said = str(err)
            self._logger.warning(
                'dss: every worker asks object servers for itself how full '
                'they are, since the answers cannot be shared: %s', err)

    def _path(self, key: NodeKey) -> str:
        # Both come from others: the ring, and the server's own word.
        kind, name = ('node', key) if isinstance(key, str) else (
            'server', '%s:%d' % key)
        return os.path.join(self._folder, '%s-%s' % (
            kind, quote(name, safe=':')[:128]))

    def _encoded(self, key: NodeKey, heard: Heard) -> bytes:
        answer = heard.answer
        head = json.dumps({
            'version': _VERSION, 'boot': self._boot, 'of': _text(key),
            'asked_at': heard.asked_at, 'answered_at': heard.answered_at,
            'node': answer.node, 'ask_after': answer.ask_after,
            'since': answer.since, 'bytes': len(answer.raw),
            'crc': zlib.crc32(answer.raw)})
        return head.encode('ascii') + b'\n' + answer.raw

    def _decoded(self, head: bytes, body: bytes, key: NodeKey) -> Heard:
        """:raises DamagedRecord: no worker wrote it here for this server since
        the machine started
        """
        fields = Fields(head, 'shared answer')
        if fields.whole('version') != _VERSION or \
                fields.text('boot') != self._boot or \
                fields.text('of') != _text(key):
            raise DamagedRecord('shared answer: of another boot, version or '
                                'server')
        if len(body) != fields.whole('bytes') or \
                zlib.crc32(body) != fields.whole('crc'):
            raise DamagedRecord('shared answer: not whole')
        asked_at = fields.number('asked_at')
        answered_at = fields.number('answered_at')
        if max(asked_at, answered_at) > self._clock():
            raise DamagedRecord('shared answer: from the future')
        since = fields.number('since')
        return Heard(asked_at, answered_at, Answer(
            wire.Devices(body, since) if body else {}, fields.text('node'),
            fields.number('ask_after'), body, since))


def _text(key: NodeKey) -> str:
    return key if isinstance(key, str) else '%s:%d' % key


def _boot_id() -> str:
    """Monotonic seconds of another boot mean other times."""
    with open(_BOOT_ID, encoding='ascii') as source:
        return source.read(64).strip()


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    opened = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield opened
    finally:
        os.close(opened)


def _rest_of(source: int, done: int) -> bytes:
    size = os.fstat(source).st_size
    most = MAX_ANSWER_BYTES + _MAX_HEAD_BYTES
    if size > most:
        raise DamagedRecord('shared answer: %d bytes, and %d are the most'
                            % (size, most))
    return os.read(source, size - done) if size > done else b''


def _write(target: int, raw: bytes) -> None:
    while raw:
        raw = raw[os.write(target, raw):]
