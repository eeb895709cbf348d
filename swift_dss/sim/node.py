"""One storage node: the product's own object server and tier daemon over a
real folder.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
from typing import (
    Callable, ContextManager, FrozenSet, List, Mapping, NamedTuple,
    Optional, Sequence, Tuple, TypeVar)

from swift.common.exceptions import ReplicationException
from swift.common.swob import Response

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import Admit
from swift_dss.core.errors import DssError
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.collect.keys import Wish
from swift_dss.io import steps, switch
from swift_dss.io.capacity import Capacity
from swift_dss.sim.conf import node_conf
from swift_dss.sim.daemon import PARTS, Daemon, Surroundings
from swift_dss.sim.disks import Disks, hash_of, names_in, policy_of
from swift_dss.sim.world.memory import AtWork
from swift_dss.sim.restore import restore
from swift_dss.sim.server import ObjectServer, Serve, policies
from swift_dss.sim.world.clock import Clock
from swift_dss.sim.world.power import Mains
from swift_dss.sim.world.ring import CODED, DEVICE, SimRing
from swift_dss.sim.world.s3 import Bucket
from swift_dss.sim.world.worn import Worn
from swift_dss.strategy.agreement import Answer
from swift_dss.wire import classmap, names
from swift_dss.wire.control import Event
from swift_dss.wire.newest import Asked, Question

#: Headers of a request that also sees expired objects.
OPEN_EXPIRED = {'X-Backend-Open-Expired': 'true'}
_SHARE = Wish()
_Done = TypeVar('_Done')


class Unreadable(Exception):
    """A replica is here, and its bytes cannot be had now."""


class Got(NamedTuple):
    """A server's answer to a GET of a fragment.

    :param timestamp: of the version or tombstone; '' if nothing is there
    :param body: of the fragment; None if nothing is there, or a tombstone
    :param frag_index: of the fragment; -1 none
    :param durable: the version is
    """

    timestamp: str
    body: Optional[bytes]
    frag_index: int
    durable: bool


class Crash(BaseException):
    """The process ends here. No ``Exception``: nothing of the product may
    catch it."""


def _crash(step: str) -> None:
    raise Crash(step)


class Node(Disks):
    """See the module.

    :param root: folder of the whole simulation
    :param reached: told this node's name and the step that its daemon is at
    :param expires: told of changes of the expirer's queue: verb, entry and
        timestamp of the request
    """

    def __init__(self, name: str, root: str, bucket: Bucket, ring: SimRing,
                 clock: Clock, table: ClassTable, logger: logging.Logger,
                 reached: Callable[[str, str], None],
                 expires: Callable[[str, str, str], None],
                 has_hdd: bool = True, worn: Optional[Worn] = None,
                 admit: Optional[Admit] = None) -> None:
        self.name = name
        self._reached = reached
        self._expires = expires
        super().__init__(os.path.join(root, name), bucket, ring, worn)
        self.clock = clock
        conf = node_conf(root, self.devices, self.hdd if has_hdd else '',
                         self.state, admit or Admit())
        self.around = Surroundings(
            name, conf, table, bucket, ring, clock, bucket.dice, logger,
            lambda object_hash, version, prove: None)
        #: Events of the object server that the daemon has not read yet.
        self.spool: List[Event] = []
        #: (hash, timestamp) of versions with bytes that went with an HDD, or
        #: that cannot be read any more.
        self.lost_with_hdd: FrozenSet[Tuple[str, str]] = frozenset()
        self.skew = 0.0
        #: Its SSD is new, and no restore has run since.
        self.is_wiped = False
        self.daemon: Optional[Daemon] = None
        self._is_unclean = False
        self._server: Optional[ObjectServer] = None

    # -- the object server -----------------------------------------------

    @property
    def server(self) -> ObjectServer:
        """The process that runs now."""
        if self._server is None:
            self._server = ObjectServer(
                self.around.conf, self.around.table, policies(),
                self.spool_event, self._answers, self._expires)
        return self._server

    def _answers(self) -> Optional[Serve]:
        return None if self.daemon is None else self.daemon.answers.serve

    def at_work(self) -> ContextManager[None]:
        """The context in which this node works: its clock, and disks that a
        power cut is ahead of."""
        return AtWork(self.memory, self.clock, self.skew, self.power)

    def ask(self, method: str, name: str, headers: Mapping[str, str],
            body: bytes = b'') -> Response:
        """The object server's answer, without its body."""
        object_hash = hash_of(name)
        with self.at_work():
            return self.server.ask(
                method, name, self.ring.partition(object_hash),
                policy_of(object_hash), headers, body)

    def put(self, name: str, timestamp: str, body: bytes,
            class_id: int, more: Mapping[str, str] = {}) -> bool:
        """Take a version; False if something newer is here, or the request
        ends early.

        :param more: headers of the request
        """
        class_map = ClassMap.uniform(class_id)
        headers = {'X-Timestamp': timestamp, 'Content-Type': 'text/plain'}
        headers.update(classmap.to_headers(names.SYSMETA_MAP, class_map))
        headers.update(more)
        return bool(self.ask('PUT', name, headers, body).status_int == 201)

    def delete(self, name: str, timestamp: str) -> bool:
        """Take a tombstone; False if something newer is here."""
        return self.ask('DELETE', name, {
            'X-Timestamp': timestamp}).status_int in (204, 404)

    def read(self, name: str,
             more: Mapping[str, str] = {}) -> Tuple[str, Optional[bytes]]:
        """(timestamp, bytes) of an object; (timestamp, None) of a
        tombstone, and of an expired object; ('', None) if there is
        nothing.

        :param more: headers of the request
        :raises Unreadable: its bytes cannot be had now
        """
        got = self._read(name, more)
        return got.timestamp, got.body

    def newest(self, object_hash: str, index: Optional[int],
               prove: bool) -> Optional[Answer]:
        """The server's answer to another node's gateway about an
        erasure-coded object.

        :param index: the fragment whose key is asked for
        """
        with self.at_work():
            said, = self.server.newest(Question([Asked(
                DEVICE, CODED, self.ring.partition(object_hash), object_hash,
                index)], True, prove))
        return None if said is None else Answer(*said)

    def read_fragment(self, name: str, preferences: str = '',
                      more: Mapping[str, str] = {}) -> Got:
        """The same of a fragment, the one with the highest index.

        :param preferences: as a proxy sends them; '' wants a durable one
        :raises Unreadable: its bytes cannot be had now
        """
        return self._read(name, dict(more, **{
            'X-Backend-Fragment-Preferences': preferences})
            if preferences else more)

    def _read(self, name: str, more: Mapping[str, str]) -> Got:
        with self.at_work():
            answer = self.ask('GET', name, dict(more, **{
                'X-Timestamp': '%016.5f' % self.clock.now}))
            headers = answer.headers
            if answer.status_int == 404:
                return Got(headers.get('X-Backend-Timestamp', ''), None, -1,
                           True)
            try:
                body = b''.join(answer.app_iter)
            except (ReplicationException, DssError) as err:
                raise Unreadable('%s: %s' % (self.name, err)) from err
        if answer.status_int != 200:
            raise Unreadable('%s: status %d' % (
                self.name, answer.status_int))
        if len(body) != int(headers['Content-Length']):
            raise Unreadable('%s: cut off' % self.name)
        stamp = headers['X-Backend-Data-Timestamp']
        return Got(stamp, body, int(headers.get(
            'X-Object-Sysmeta-Ec-Frag-Index', -1)),
            headers.get('X-Backend-Durable-Timestamp') == stamp)

    # -- the daemon ------------------------------------------------------

    def work(self, crash_after: int = 0, sweep: bool = False,
             parts: Sequence[str] = PARTS,
             then: Callable[[str], None] = _crash) -> str:
        """Let the daemon do its due work; returns the outcome.

        :param parts: of the daemon that get their turn
        :param crash_after: it dies at so many named steps from here; 0:
            it lives
        :param sweep: walk the device too
        :param then: happens at that step in place of a crash
        """
        try:
            self._until(crash_after, lambda: self._work(sweep, parts), then)
        except Crash as crash:
            self.kill()
            return 'dies at %s' % crash
        except DssError as err:
            return '%s: %s' % (type(err).__name__, err)
        return ''

    def _until(self, crash_after: int, do: Callable[[], _Done],
               then: Callable[[str], None] = _crash) -> _Done:
        """:raises Crash: it was at so many named steps; 0: never"""
        left = [crash_after]

        def on_step(name: str) -> None:
            self._reached(self.name, name)
            left[0] -= 1
            if left[0] == 0:
                then(name)

        # Others may be at work already, whom this one interrupts.
        before = steps.listen(on_step)
        try:
            with self.at_work():
                return do()
        finally:
            steps.listen(before)

    def _work(self, sweep: bool, parts: Sequence[str]) -> None:
        if self._is_unclean:
            # As the daemon does at its start.
            self._is_unclean, sweep = False, True
            switch.clean_tmp(self.ssd, self.around.conf.capacity.get(
                DEVICE, ''))
        daemon = self.daemon = self.daemon or Daemon(self.around)
        said, self.spool = self.spool, []
        try:
            daemon.work(said, parts)
        except BaseException:
            # A daemon that dies over a spool finds it again.
            self.spool = said + self.spool
            raise
        if sweep:
            daemon.sweep()

    def scrub(self) -> None:
        """Prove S3's copy of every version here, as the daemon does all the
        time at its own pace.
        """
        if self.daemon is None:
            return
        versions = [
            (self.version(object_hash, replica.timestamp, replica.frag_index),
             self.ring.partition(object_hash))
            for object_hash in self.hashes()
            for replica in self.all_of(object_hash) if replica.key]
        with self.at_work():
            self.daemon.scrub(versions)

    def demote(self) -> None:
        """``swift-dss tier demote --to remote`` of all that is here."""
        if self.daemon is None:
            return
        versions = [
            (self.version(object_hash, replica.timestamp, replica.frag_index),
             self.ring.partition(object_hash))
            for object_hash in self.hashes()
            for replica in self.all_of(object_hash)
            if replica.key and replica.local]
        with self.at_work():
            self.daemon.demote(versions)

    def collect(self, wish: Wish = _SHARE) -> None:
        """``swift-dss gateway gc`` on this node."""
        if self.daemon is not None:
            with self.at_work():
                self.daemon.collect(wish)

    def restore(self, crash_after: int = 0) -> str:
        """Run ``swift-dss gateway restore`` on this node; returns the outcome.

        :param crash_after: it is killed at so many named steps; 0: never
        """
        try:
            outcome, problems = self._until(
                crash_after, lambda: restore(self.around))
        except Crash as crash:
            return 'dies at %s' % crash
        except DssError as err:
            return '%s: %s' % (type(err).__name__, err)
        self.is_wiped = False
        said = '%d of %d written, %d obsolete' % (
            outcome.written, outcome.versions, outcome.obsolete)
        return said + ''.join('; ' + text for text in problems)

    def has_work(self) -> bool:
        """True if a daemon that is killed now is killed over something."""
        return bool(self.spool) or (
            self.daemon is not None and self.daemon.backlog() > 0)

    def believes(self, key: str) -> bool:
        """True while the daemon need not ask S3 again for a key."""
        return self.daemon is not None and self.daemon.believes(key)

    def backlog(self) -> int:
        """The backlog for S3, and versions that wait to be mended."""
        return 1 if self.daemon is None else self.daemon.backlog()

    def kill(self) -> None:
        """The daemon is gone, its files stay."""
        daemon, self.daemon = self.daemon, None
        if daemon is not None:
            daemon.close()

    def lose(self, is_lost: Callable[[str], bool]) -> None:
        """Files of the daemon's state are lost; it is killed first."""
        self.kill()
        for name in names_in(self.state):
            if is_lost(name):
                path = os.path.join(self.state, name)
                if os.path.isfile(path):
                    os.unlink(path)

    def lose_power(self, mains: Mains, dice: random.Random) -> int:
        """Lose all that is not durable; returns how much that was."""
        self.kill()
        self.spool = []
        self._server = None
        self._is_unclean = True
        self.memory.forget()
        lost = mains.power.cut((self.ssd, self.hdd), dice)
        for name in names_in(self.state):
            if name.endswith('.db'):
                lost += mains.databases.lose(
                    os.path.join(self.state, name), dice)
        return lost

    def new_ssd(self) -> None:
        """The SSD is replaced by an empty one."""
        self.kill()
        self.spool = []
        self._server = None
        self.is_wiped = True
        shutil.rmtree(self.ssd)
        os.makedirs(self.ssd)
        self.memory.forget()

    def new_hdd(self) -> None:
        """The HDD is replaced by an empty one, made ready by its operator.
        """
        self.kill()
        self.mount_hdd()
        self._server = None
        shutil.rmtree(self.hdd)
        os.makedirs(self.hdd)
        Capacity(self.hdd, DEVICE).initialise()
        self.memory.forget()
        self.lost_with_hdd |= self.without_bytes()

    def back_in_place(self, folders: Tuple[str, ...]) -> None:
        """Drives that were taken out are back, as old as they are."""
        self.kill()
        self.mount_hdd()
        self.spool = []
        self._server = None
        self.exchange_taken(folders)
        self.lost_with_hdd |= self.without_bytes()

    def spool_event(self, event: Event) -> None:
        """Keep an object server's event until the daemon reads it."""
        self.spool.append(event)
