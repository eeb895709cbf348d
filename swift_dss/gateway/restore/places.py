"""Keep records of accounts and containers in the bucket.

An object alone does not restore the ACLs, policy or versioning of its
container. For every account and container with uploads, the bucket keeps the
metadata (``accounts/<hash>``, ``containers/<hash>`` under the prefix: the
record is sealed like any other) and looked at again from time to time, a few
at a time, so that the cost does not grow with their number.

Talks to account and container servers by their backend protocol over the
rings, as Swift's own daemons do. Plain sockets, no eventlet.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import zlib
from typing import (
    Any, Dict, Iterator, List, Mapping, NamedTuple, Optional,
    Set, Tuple)
from urllib.parse import quote

from swift_dss.core.errors import (
    DamagedRecord, DssError, TierUnavailable)
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.bundle.troubles import Troubles
from swift_dss.gateway.form import digests
from swift_dss.gateway.form.cluster import cluster_id
from swift_dss.gateway.form.encrypt import close_envelope
from swift_dss.gateway.link.client import S3Client, S3Down
from swift_dss.gateway.peers.ranks import open_ring
from swift_dss.io import steps
from swift_dss.wire.parsing import parsing

FOLDERS = ('accounts/', 'containers/')
#: A record of a place, packed or not; Swift's own limits are far below.
MAX_BYTES = 1024 * 1024
_TIMEOUT_SECONDS = 10.0
#: Places looked at in one go, and how long until each comes again.
_AT_ONCE = 20
#: Containers remembered in memory, so that not each object costs a write.
_NOTED = 10000
AGAIN_SECONDS = 600.0
_KEPT = ('x-%s-meta-', 'x-%s-sysmeta-')
_ACLS = ('x-container-read', 'x-container-write', 'x-container-sync-key',
         'x-container-sync-to', 'x-versions-location')
POLICY_HEADER = 'x-backend-storage-policy-index'
#: When it was made; account servers say it by the second name alone.
PUT_HEADERS = ('x-backend-put-timestamp', 'x-put-timestamp')
#: Which shard ranges a container had is nothing that comes back.
_NOT_KEPT = 'x-container-sysmeta-shard'


class Place(NamedTuple):
    """One account or container, as the bucket has it.

    :param path: ``/account`` or ``/account/container``
    :param headers: the headers that restore it, names in lower case
    :param cluster: id of the cluster that wrote the record; '' in those of
        earlier releases
    """

    path: str
    headers: Mapping[str, str]
    cluster: str = ''

    @property
    def is_account(self) -> bool:
        """False for a container."""
        return self.path.count('/') == 1


class Servers:
    """Account and container servers, by the rings of ``swift_dir``."""

    def __init__(self, swift_dir: str) -> None:
        self._swift_dir = swift_dir
        self._rings: Dict[str, Any] = {}

    @property
    def cluster(self) -> str:
        """Id of the cluster that they are of."""
        return cluster_id(self._swift_dir)

    def head(self, path: str) -> Optional[Dict[str, str]]:
        """Headers of an account or container; None only if all servers miss
        it, because one of them may have a new drive.

        :raises TierUnavailable: the answer is unknown
        """
        silent = 0
        for node, part in self._nodes(path):
            try:
                status, headers = self._request(node, part, 'HEAD', path, {})
            except OSError:
                status, headers = 0, {}
            if status // 100 == 2:
                return headers
            silent += status != 404
        if silent:
            raise TierUnavailable('%d servers have not answered for %s' % (
                silent, path))
        return None

    def put(self, path: str, headers: Mapping[str, str]) -> int:
        """PUT to every server of a place or a container's row; how many
        took it.

        :param path: ``/account``, ``/account/container``, or of an object:
            its row in the container's listing
        :raises TierUnavailable: none of them did
        :raises DamagedRecord: HTTP cannot carry these headers
        """
        done = 0
        said = ''
        parts = path.split('/', 3)
        for node, part in self._nodes('/'.join(parts[:3])):
            try:
                status, _ = self._request(node, part, 'PUT', path, headers)
            except OSError as err:
                said = str(err)
                continue
            done += status // 100 == 2
            said = 'status %d' % status
        if not done:
            raise TierUnavailable('no server took %s: %s' % (path, said))
        return done

    def ring(self, name: str) -> Any:
        """A ring by Swift's file name.

        :raises NoRing: there is none that can be read
        """
        if name not in self._rings:
            self._rings[name] = open_ring(self._swift_dir, name)
        return self._rings[name]

    def _nodes(self, path: str) -> Iterator[Any]:
        parts = path.lstrip('/').split('/', 1)
        ring = self.ring('account' if len(parts) == 1 else 'container')
        part, nodes = ring.get_nodes(*parts)
        for node in nodes:
            yield node, part

    def _request(self, node: Mapping[str, Any], part: int, method: str,
                 path: str, headers: Mapping[str, str]
                 ) -> Tuple[int, Dict[str, str]]:
        connection = http.client.HTTPConnection(
            node['ip'], node['port'], timeout=_TIMEOUT_SECONDS)
        try:
            connection.request(
                method, quote('/%s/%d%s' % (node['device'], part, path),
                              errors='surrogatepass'),
                headers=dict(headers, **{
                    'User-Agent': 'swift-dss-gateway',
                    'X-Backend-Allow-Reserved-Names': 'true'}))
            answer = connection.getresponse()
            answer.read()
            return int(answer.status), {
                name.lower(): value for name, value in answer.getheaders()}
        except http.client.HTTPException as err:
            raise OSError('%s: %r' % (path, err)) from err
        except ValueError as err:
            # The record's matter, and not the server's.
            raise DamagedRecord('%s: HTTP cannot carry its headers: %s' % (
                path, err)) from err
        finally:
            connection.close()


def place_of(path: str, headers: Mapping[str, str],
             cluster: str = '') -> Place:
    """The bucket's record of a place."""
    kind = 'account' if path.count('/') == 1 else 'container'
    kept = tuple(prefix % kind for prefix in _KEPT)
    return Place(path, {
        name: value for name, value in headers.items()
        if (name.startswith(kept) or name in _ACLS
            or name == POLICY_HEADER or name in PUT_HEADERS)
        and not name.startswith(_NOT_KEPT)}, cluster)


def encode(place: Place) -> bytes:
    """The record of a place."""
    return zlib.compress(json.dumps(
        {'v': 1, 'path': place.path, 'headers': dict(place.headers),
         'cluster': place.cluster},
        sort_keys=True, separators=(',', ':')).encode('ascii'))


def decode(raw: bytes) -> Place:
    """:raises DamagedRecord: it is not what :func:`encode` wrote."""
    with parsing('place'):
        inflate = zlib.decompressobj()
        fields = json.loads(inflate.decompress(raw, MAX_BYTES))
        if fields['v'] != 1 or not inflate.eof:
            raise ValueError('another version, or cut off')
        place = Place(str(fields['path']), {
            str(name): str(value)
            for name, value in fields['headers'].items()},
            str(fields.get('cluster', '')))
    if not place.path.startswith('/') or place.path.count('/') not in (1, 2):
        raise DamagedRecord('place: %r is neither account nor container'
                            % place.path)
    return place


def key_of(prefix: str, path: str) -> str:
    """Where the bucket has a place; its name does not show."""
    folder = FOLDERS[0] if path.count('/') == 1 else FOLDERS[1]
    return '%s%s%s' % (prefix, folder, hashlib.sha256(
        path.encode('utf-8', 'surrogatepass')).hexdigest()[:32])


class Places:
    """Keeps the bucket's records of places. Called by one thread.

    :param troubles: is told why a place was put off
    """

    def __init__(self, around: Around, shelves: Shelves, servers: Servers,
                 troubles: Troubles) -> None:
        self._conf = around.conf
        self._client = shelves.client
        self._book = shelves.book
        self._keys = shelves.keys
        self._servers = servers
        self._metrics = around.metrics
        self._clock = around.clock
        self._troubles = troubles
        #: Containers that the book has for sure.
        self._noted: Set[str] = set()

    def note(self, name: str) -> None:
        """An object of this name went up."""
        parts = name.split('/', 3)
        if len(parts) != 4 or parts[0]:
            return
        path = '/%s/%s' % (parts[1], parts[2])
        if path in self._noted:
            return
        self._book.note_places(['/' + parts[1], path])
        if len(self._noted) >= _NOTED:
            self._noted.clear()
        self._noted.add(path)

    def run(self) -> None:
        """Look at those that are due; one that fails is put off.

        :raises S3Down: the rest another time
        """
        for path, digest in self._book.due_places(
                self._clock.wall(), _AT_ONCE):
            try:
                self._look(path, digest)
            except S3Down:
                raise
            except (DssError, OSError) as err:
                self._book.looked_at(
                    path, self._clock.wall() + AGAIN_SECONDS / 10, digest)
                self._metrics.count('gateway.places_unavailable')
                self._troubles.note(
                    err if isinstance(err, DssError)
                    else TierUnavailable('%s: %s' % (path, err)))

    def _look(self, path: str, digest: str) -> None:
        headers = self._servers.head(path)
        key = key_of(self._conf.prefix, path)
        if headers is None:
            self._client.delete(key)
            self._book.forget_place(path)
            self._noted.discard(path)
            return
        raw = encode(place_of(path, headers, self._servers.cluster))
        now_digest = hashlib.sha256(raw).hexdigest()
        if now_digest != digest:
            data = self._close(key, raw)
            self._client.put(key, data, digests.md5(data).digest())
            steps.reached('place.sent')
            self._metrics.count('gateway.places_sent')
        self._book.looked_at(
            path, self._clock.wall() + AGAIN_SECONDS, now_digest)

    def _close(self, key: str, data: bytes) -> bytes:
        """Seal a record, where there is a key."""
        if not self._keys:
            return data
        return close_envelope(self._keys.new(key.encode(
            'utf-8', 'surrogatepass') + data), data)


def listed(client: S3Client, prefix: str) -> List[str]:
    """Keys of all places, accounts first."""
    return [item.key for folder in FOLDERS
            for item in client.listing(prefix + folder)]


def ring_there(swift_dir: str) -> bool:
    """False where there are no rings to find servers by."""
    return os.path.exists(os.path.join(swift_dir, 'container.ring.gz'))
