"""``GET /dss/pressure``: how full this node's devices are, for proxies.

A proxy that judges writes asks about once a second, and sends with the
question the counts of its own answers (``X-Backend-Dss-Admissions``). They are
kept in ``<run_dir>/state/admitted/<pid>.json``, and the tier daemon adds them
up. Like recon, it is for the cluster's own network: object servers are not
reached by clients.

The price has a bound whatever the number of devices, ports and proxy
workers. Any port answers for all devices of the node and names the node, so
that a worker asks one port only. An answer is made twice a second at most. The
answer says when to ask again, so that a process answers about twenty questions
a second in all.
"""

from __future__ import annotations

import functools
import hashlib
import os
import socket
import time
from typing import Any, Dict, List, Optional, Tuple

from swift.common.constraints import check_drive
from swift.common.swob import Request, Response
from swift.common.utils import config_fallocate_value, config_true_value

from swift_dss.core.errors import DamagedRecord
from swift_dss.objserver.settings import Node, count, node_for
from swift_dss.wire import names
from swift_dss.wire.node import pressure as wire

#: Counts go to disk no more often than this.
_WRITE_SECONDS = 1.0
#: An answer is given again for so long.
_KEEP_SECONDS = 0.5
#: Questions a second that a process answers before it asks for patience.
_ASKS_PER_SECOND = 20.0
#: Questions are counted over so long.
_COUNT_SECONDS = 5.0
#: Longest time until the next question of a worker: well below the age at
#: which proxies take an answer for stale.
_MAX_ASK_AFTER_SECONDS = 10.0


class Pressures:
    """The WSGI application of one object server.

    :param conf: the server's options, which name ``dss_conf``
    """

    def __init__(self, conf: Any, logger: Any) -> None:
        self._conf = conf
        self._root = conf.get('devices', '/srv/node')
        self._mount_check = config_true_value(
            conf.get('mount_check', 'true'))
        self._reserve = config_fallocate_value(
            conf.get('fallocate_reserve', '1%'))
        self._logger = logger
        self._tally: Dict[int, Dict[str, int]] = {}
        self._written = 0.0
        self._body = b''
        self._made = -_KEEP_SECONDS
        self._asks = 0
        self._counting_since = 0.0
        self._ask_after = 0.0

    def __call__(self, env: Any, start_response: Any) -> Any:
        request = Request(env)
        if request.method != 'GET':
            return Response(status=405, request=request)(env, start_response)
        self._add(request.headers.get(names.BACKEND_ADMISSIONS))
        now = time.monotonic()
        self._count(now)
        node = node_for(self._conf, self._logger)
        if now - self._made >= _KEEP_SECONDS or \
                request.headers.get('Cache-Control') == 'no-cache':
            self._body, self._made = self._answer(node), now
        return Response(
            body=self._body, request=request,
            content_type='application/json', headers={
                names.BACKEND_NODE: identity(node),
                names.BACKEND_AGE: '%.3f' % (now - self._made),
                names.BACKEND_ASK_AFTER: '%.3f' % self._ask_after})(
                    env, start_response)

    def _answer(self, node: Node) -> bytes:
        pressures, rooms = {}, {}
        for device in self._devices(node.conf.run_dir):
            pressure = node.pressure(device)
            if pressure is not None:
                pressures[device] = pressure
            room = self._room(device)
            if room is not None:
                rooms[device] = room
        return wire.encode_node(pressures, time.time(), rooms)

    def _count(self, now: float) -> None:
        """Set the workers' interval by their number."""
        self._asks += 1
        seconds = now - self._counting_since
        if seconds >= _COUNT_SECONDS:
            # Each of N workers asks once in T seconds; N / T is the counted
            # rate. Scale T by the counted rate over the wanted one.
            much = self._asks / seconds / _ASKS_PER_SECOND
            self._ask_after = min(_MAX_ASK_AFTER_SECONDS, max(
                self._ask_after, 1.0) * much) if much > 0.5 else 0.0
            self._asks, self._counting_since = 0, now

    def _room(self, device: str) -> Optional[Tuple[int, int]]:
        """(bytes that Swift would still accept, size of the device); None if
        the device is not mounted.
        """
        try:
            stat = os.statvfs(check_drive(
                self._root, device, self._mount_check))
        except (ValueError, OSError):
            return None
        size = stat.f_blocks * stat.f_frsize
        reserve, is_percent = self._reserve
        kept = size * reserve / 100.0 if is_percent else reserve
        return max(0, int(stat.f_bavail * stat.f_frsize - kept)), size

    def _devices(self, run_dir: str) -> List[str]:
        try:
            return [name[:-len('.json')] for name in os.listdir(
                os.path.join(run_dir, 'state')) if name.endswith('.json')]
        except OSError:
            return []  # no daemon has been here yet

    def _add(self, text: Any) -> None:
        if not text:
            return
        try:
            said = wire.decode_tally(text)
        except DamagedRecord as err:
            count(self._logger, 'dss.errors.admissions')
            self._logger.warning('dss: %s', err)
            return
        for class_id, counts in said.items():
            into = self._tally.setdefault(class_id, {})
            for answer, number in counts.items():
                into[answer] = into.get(answer, 0) + number
        now = time.monotonic()
        if now - self._written >= _WRITE_SECONDS:
            self._written = now
            self._write()

    def _write(self) -> None:
        """No fsync: they are counters of this process's life."""
        folder = os.path.join(node_for(self._conf, self._logger).conf.run_dir,
                              'state', 'admitted')
        path = os.path.join(folder, '%d.json' % os.getpid())
        try:
            os.makedirs(folder, exist_ok=True)
            with open(path + '.tmp', 'w', encoding='ascii') as out:
                out.write(wire.encode_tally(self._tally))
            os.rename(path + '.tmp', path)
        except OSError as err:
            self._logger.warning('dss: %s: %s', path, err)


@functools.lru_cache(maxsize=16)
def identity(node: Node) -> str:
    """The same for all processes of a node, and for no other node."""
    return hashlib.sha256('\0'.join((
        socket.gethostname(), os.path.realpath(node.conf.run_dir),
        os.path.realpath(node.conf.devices))).encode(
            'utf-8', 'surrogateescape')).hexdigest()[:16]
