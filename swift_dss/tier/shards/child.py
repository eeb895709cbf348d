"""One shard: the daemon with a part of the node's devices."""

from __future__ import annotations

import ctypes
import os
import signal
from dataclasses import replace
from typing import Dict, List, Optional

from swift_dss.core.config import NodeConf, Shard
from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.pack import book_path
from swift_dss.tier.inforce import Source
from swift_dss.tier.shards import files

_PR_SET_PDEATHSIG = 1


class Part(Source):
    """The files of a node, as one of its shards reads them.

    :param path: of ``dss.conf``
    :param number: of the shard
    """

    def __init__(self, path: str, number: int) -> None:
        super().__init__(path)
        self._number = number
        #: As it was at the start: a shard that gets other devices is
        #: started again.
        self._shard: Optional[Shard] = None

    def conf(self) -> NodeConf:
        """The shard's part of the configuration.

        :raises BadConfig: as :meth:`Source.conf`, or it is not written down
            who has which device
        """
        conf = super().conf()
        if self._shard is None:
            devices = files.read(conf).devices
            self._shard = Shard(
                self._number, max(devices.values(), default=0) + 1,
                frozenset(name for name, number in devices.items()
                          if number == self._number))
            if not self._shard.devices:
                raise BadConfig('shard %d has no device' % self._number)
        return shared_out(replace(conf, shard=self._shard))


def sources(path: str) -> List[Source]:
    """The files as each shard of a node reads them, or as the one daemon of
    a node without shards does.

    :raises BadConfig: they cannot be read, or the layout cannot
    """
    whole = Source(path)
    numbers = sorted(set(files.read(whole.conf()).devices.values()))
    return [Part(path, number) for number in numbers] or [whole]


class Books:
    """The bundle books of a node's shards, opened when they are wanted. A
    daemon may have them open too: both may write.

    :raises BadConfig: the layout cannot be read
    """

    def __init__(self, conf: NodeConf) -> None:
        self._conf = conf
        self._devices = files.read(conf).devices
        self._open: Dict[str, Book] = {}

    def of_device(self, device: str) -> Book:
        """The book of the shard that has a device; that of the first one,
        or of a node without shards, if none has it yet."""
        path = book_path(self._conf.of_shard(
            self._devices.get(device, 0)).state_dir)
        if path not in self._open:
            self._open[path] = Book(path)
        return self._open[path]

    def close(self) -> None:
        """Let all files go."""
        for book in self._open.values():
            book.close()


def shared_out(conf: NodeConf) -> NodeConf:
    """A shard's part of what is limited for the node.

    The link, budgets and connections are divided evenly, once: a shard
    takes nothing of what another leaves idle. What tells of the node as a
    whole (the page, recon) is the parent's.
    """
    assert conf.shard is not None
    count = conf.shard.count

    def part(amount: int) -> int:
        """At least 1 of what is not 0, which means no limit."""
        return -(-amount // count)

    tier, gateway, prefetch = conf.tier, conf.gateway, conf.prefetch
    return replace(
        conf, recon_cache_path='',
        tier=replace(tier, prometheus_port=0,
                     index_bytes=part(tier.index_bytes)),
        gateway=replace(
            gateway, uploads=part(gateway.uploads),
            fills=part(gateway.fills),
            queue_bytes=part(gateway.queue_bytes),
            scrub_bytes_per_second=part(gateway.scrub_bytes_per_second)),
        prefetch=replace(
            prefetch, workers=part(prefetch.workers),
            budget_bytes=part(prefetch.budget_bytes),
            state_bytes=part(prefetch.state_bytes),
            bytes_per_second=part(prefetch.bytes_per_second),
            dollars_per_day=prefetch.dollars_per_day / count))


def die_with_parent(parent: int) -> None:
    """Have this process be told to stop when its parent is gone.

    :param parent: process id
    :raises TierUnavailable: it is gone already
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise TierUnavailable('the daemon that started this shard is gone')


def admin_socket(conf: NodeConf, number: int) -> str:
    """Path of a shard's admin socket."""
    return os.path.join(conf.of_shard(number).sockets_dir, 'admin.sock')
