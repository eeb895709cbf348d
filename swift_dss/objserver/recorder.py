"""A trace of clients' reads, writes and deletes on this node's devices.

Off, it costs one comparison of two numbers a request and a look at one file
a second. On, a request adds a line to a list; the list goes to a file in a
pool thread once it is large or a second old. Nothing here ever fails a
request or makes it wait: notes that cannot be written are counted and dropped.

Names do not leave the node: an object is the hash that Swift gives it, an
account a digest. Replicas and fragments on several devices are objects of
their own, as they are for the caches that the trace is for.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from functools import lru_cache
from typing import List, Optional

from swift_dss.core.errors import DssError
from swift_dss.core.residency import Tier
from swift_dss.core.version import VersionId
from swift_dss.io import waiting
from swift_dss.objserver.events import Home
from swift_dss.wire import tracing
from swift_dss.wire.tracing import TraceOrder

_LOOK_SECONDS = 1.0
_FLUSH_SECONDS = 1.0
_FLUSH_LINES = 512
#: Lines that may wait for a pool that is stuck.
_WAITING_LINES = 65536


class Recorder:
    """Of one process of a node."""

    def __init__(self, node: Home) -> None:
        self._node = node
        self._path = tracing.path_in(node.conf.run_dir)
        self._order: Optional[TraceOrder] = None
        self._next_look = 0.0
        self._lines: List[str] = []
        self._flush_due = 0.0
        self._timer_set = False
        self._waiting = 0
        self._device = ''

    def is_on(self) -> bool:
        """Whether a request is to be noted now."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            self._look()
        return self._order is not None

    def note(self, verb: str, account: Optional[str], version: VersionId,
             size: int, offset: int, length: int, class_id: int) -> None:
        """One request; call it only while :meth:`is_on`.

        :param verb: ``GET``, ``PUT`` or ``DELETE``
        :param length: 0 is all of it
        """
        if self._waiting + len(self._lines) >= _WAITING_LINES:
            self._node.logger.increment('dss.trace.dropped')
            return
        frag = '' if version.frag_index is None else '#%d' % \
            version.frag_index
        self._device = version.device
        at = '' if not length else ' %d %d' % (offset, offset + length - 1)
        self._lines.append('%.3f %s %s/%s-%s%s %d%s %d\n' % (
            time.time() * 1000.0, verb, _digest(account or ''),
            version.device, version.object_hash, frag, size, at, class_id))
        if len(self._lines) >= _FLUSH_LINES or \
                time.monotonic() >= self._flush_due:
            self.flush()
        elif not self._timer_set:
            self._set_timer()

    def flush(self) -> None:
        """Write the notes to the file, in a thread of the device that was used
        last.
        """
        lines, self._lines = self._lines, []
        self._flush_due = time.monotonic() + _FLUSH_SECONDS
        if lines and self._order is not None:
            self._waiting += len(lines)
            self._node.pool(Tier.SSD, self._device).background(
                self._write, self._order, lines)

    def _set_timer(self) -> None:
        self._timer_set = waiting.later(_FLUSH_SECONDS, self._rings)
        if not self._timer_set:
            self.flush()

    def _rings(self) -> None:
        self._timer_set = False
        self.flush()

    def _look(self) -> None:
        if self._order is None and not os.path.exists(self._path):
            return
        try:
            with open(self._path, 'rb') as source:
                order = tracing.decode(source.read())
        except FileNotFoundError:
            order = None
        except (OSError, DssError) as err:
            self._node.logger.warning('dss: %s: %s', self._path, err)
            order = None
        if order is not None and order.until <= time.time():
            order = None
        if self._order is not None and order != self._order:
            self.flush()
        self._order = order

    def _write(self, order: TraceOrder, lines: List[str]) -> None:
        path = os.path.join(order.folder, '%d%s' % (
            os.getpid(), tracing.SUFFIX))
        data = ''.join(lines).encode('utf-8')
        try:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(path).st_size + len(data) > \
                        order.process_bytes // 2:
                    os.rename(path, path + tracing.OLDER)
            with open(path, 'ab') as target:
                target.write(data)
        except OSError as err:
            self._node.logger.increment('dss.trace.dropped')
            self._node.logger.warning('dss: %s: %s', path, err)
        finally:
            self._waiting -= len(lines)


@lru_cache(maxsize=4096)
def _digest(account: str) -> str:
    return hashlib.sha256(account.encode('utf-8', 'replace')).hexdigest()[
        :12] if account else '-'
