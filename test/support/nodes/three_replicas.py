"""Three object servers in one process, a proxy's POST, and replication.

Real controllers and diskfiles on three folders. What is simple here is the
proxy server below the filter, which sends every POST to the replicas that
it is told to, in its own order, and the network of ssync: its own functions
decide what is missing, what is sent is what its sender sends.
"""

from __future__ import annotations

import io
import os
import random
from typing import Any, Dict, Iterator, List, Optional, Sequence

import eventlet
from support.rigs.dss_disk import Disk
from swift.common.swob import HTTPServiceUnavailable, Request, Response
from swift.common.utils import Timestamp
from swift.obj.server import ObjectController
from swift.obj.ssync_receiver import decode_missing, encode_wanted
from swift.obj.ssync_sender import encode_missing
from support import swift_files

from swift_dss.objserver.server import DssObjectController

BODY = b'x' * 100
_PATH = '/sda/7%s'


class Replica:
    """One object server and its disk.

    :param is_stock: Swift's own server and diskfile
    :param has_stock_policy: Swift's own diskfile, whatever the server
    :param hdd: its device has an HDD
    """

    def __init__(self, root: str, is_stock: bool = False,
                 has_stock_policy: bool = False, hdd: bool = False) -> None:
        os.makedirs(root)
        self.disk = Disk(root, hdd=hdd)
        kind = ObjectController if is_stock else DssObjectController
        policy = self.disk.policies[0]
        policy.diskfile_module = 'egg:swift#replication.fs' \
            if is_stock or has_stock_policy else 'egg:swift_dss#dss.fs'
        self.server = kind(dict(self.disk.options, log_level='ERROR',
                                swift_dir=root))
        self.policy = policy

    def ask(self, method: str, name: str, headers: Any,
            body: bytes = b'') -> Response:
        """Its answer to a backend request for ``/a/c/<name>``."""
        made = Request.blank(_PATH % name, environ={
            'REQUEST_METHOD': method, 'wsgi.input': io.BytesIO(body)})
        made.headers.update(headers)
        made.headers['X-Backend-Storage-Policy-Index'] = '0'
        return made.get_response(self.server)

    def put(self, name: str, **headers: str) -> None:
        """A PUT; ``X_Timestamp`` and so on name headers."""
        said = {key.replace('_', '-'): value
                for key, value in headers.items()}
        said.setdefault('X-Timestamp', Timestamp.now().internal)
        answer = self.ask('PUT', name, dict(said, **{
            'Content-Type': 'a/b', 'Content-Length': str(len(BODY))}), BODY)
        assert answer.status_int == 201, answer.status

    def opened(self, name: str) -> Any:
        """The object's diskfile, open; also an expired one, as in ssync."""
        disk_file = self.server.get_diskfile(
            'sda', '7', *name[1:].split('/', 2), policy=self.policy,
            open_expired=True)
        disk_file.open()
        return disk_file

    def metadata(self, name: str) -> Dict[str, str]:
        """The object's metadata in force."""
        disk_file = self.opened(name)
        with disk_file:
            return dict(disk_file.get_metadata())

    def meta_names(self, name: str) -> List[str]:
        """The names of its ``.meta`` files."""
        return [name for name in sorted(os.listdir(self.folder(name)))
                if name.endswith('.meta')]

    def folder(self, name: str) -> str:
        """The folder of the object's files."""
        return swift_files.object_folder(
            self.disk.devices, self.policy, name)

    def timestamps(self, name: str) -> Dict[str, Any]:
        """What a sender of ssync offers, and a receiver has."""
        disk_file = self.opened(name)
        with disk_file:
            return {'ts_data': disk_file.data_timestamp,
                    'ts_meta': disk_file.timestamp,
                    'ts_ctype': disk_file.content_type_timestamp}


def replicate(source: Replica, target: Replica, name: str) -> Optional[str]:
    """One object from one replica to another, as ssync does it.

    :returns: the parts that were wanted; None if they are the same
    """
    offered = encode_missing('0' * 32, **source.timestamps(name))
    wanted = encode_wanted(decode_missing(offered), target.timestamps(name))
    if wanted is None:
        return None
    parts = wanted.split()[1]
    disk_file = source.opened(name)
    with disk_file:
        if 'd' in parts:
            _send(target, 'PUT', name, {
                key: value for key, value
                in disk_file.get_datafile_metadata().items() if key != 'name'},
                BODY)
        if 'm' in parts and disk_file.data_timestamp != disk_file.timestamp:
            _send(target, 'POST', name, disk_file.get_metafile_metadata())
    return parts


def _send(target: Replica, method: str, name: str, headers: Any,
          body: bytes = b'') -> None:
    said = {key.lower(): value for key, value in headers.items()}
    answer = target.ask(method, name, dict(said, **{
        'X-Backend-Replication': 'True',
        'X-Backend-Replication-Headers': ' '.join(
            key for key in said if key != 'etag')}), body)
    assert answer.is_success, (method, answer.status)


def settle(replicas: Sequence[Replica], name: str) -> int:
    """Replicate until nothing moves; how many rounds that took."""
    for number in range(10):
        moved = [replicate(source, target, name) for source in replicas
                 for target in replicas if source is not target]
        if not any(moved):
            return number
    raise AssertionError('%s: replicas do not agree: %r' % (name, [
        replica.meta_names(name) for replica in replicas]))


class Proxy:
    """What stands below the filter.

    :param missed: replicas (by number) that the next POST does not reach
    """

    def __init__(self, replicas: Sequence[Replica],
                 dice: random.Random) -> None:
        self.replicas = replicas
        self.dice = dice
        self._last = Timestamp.now()

    def now(self) -> str:
        """A timestamp of its own for each request, as clients' have."""
        self._last = max(Timestamp.now(), Timestamp(self._last, delta=1))
        return str(self._last.internal)

    def __call__(self, env: Any, start: Any) -> Any:
        request = Request(env)
        if env['REQUEST_METHOD'] == 'HEAD':
            answer = self._head(request)
        else:
            answer = self._post(request)
        return answer(env, start)

    def _head(self, request: Request) -> Response:
        answers = [replica.ask('HEAD', request.path_info[3:], {})
                   for replica in self.replicas]
        if 'X-Newest' not in request.headers:
            return self.dice.choice(answers)
        return max(answers, key=lambda answer: Timestamp(
            answer.headers['X-Backend-Timestamp']))

    def _post(self, request: Request) -> Response:
        headers = {name: value for name, value in request.headers.items()
                   if name != 'Host'}
        headers.setdefault('X-Timestamp', self.now())
        reached = list(self.replicas)
        self.dice.shuffle(reached)
        if self.dice.random() < 0.5:
            reached.pop()
        codes = []
        for replica in reached:
            for _step in range(self.dice.randrange(3)):
                eventlet.sleep(0)
            codes.append(replica.ask(
                'POST', request.path_info[3:], headers))
        good = [answer for answer in codes if answer.status_int == 202]
        bad = [answer for answer in codes if answer.status_int == 409]
        if len(good) >= 2:
            return good[0]
        return bad[0] if len(bad) >= 2 else HTTPServiceUnavailable()


def names_of(count: int) -> Iterator[str]:
    """``/a/c/0`` and on."""
    return ('/a/c/%d' % number for number in range(count))
