"""POST classes to all object servers of a version.

It is the POST that the proxy sends for a client who reclassifies (``objserver.
posts``): it sets the class map alone. Its time is that of the upload and a few
ticks of Swift's clock. So it wins over the upload's own map, and loses against
each later upload, deletion and class that a client gave. The rank of the node
is in the ticks: two nodes that both gave classes never gave them at one time,
and replicas agree on the later one.
"""

from __future__ import annotations

import http.client
from typing import Any, Dict, Mapping, NamedTuple
from urllib.parse import quote

from swift.common.utils import Timestamp

from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.wire import classmap, names, registers

_TIMEOUT_SECONDS = 5.0
_TICK_SECONDS = 0.00001


class Told(NamedTuple):
    """Answers of object servers.

    :param taken: servers that have the classes now
    :param passed: servers that have no such version, or newer classes
    :param asked: all servers
    """

    taken: int
    passed: int
    asked: int

    @property
    def is_done(self) -> bool:
        """Whether most answered; replication brings it to the others."""
        return 2 * (self.taken + self.passed) > self.asked


def time_of(version: VersionId, rank: int) -> str:
    """The time of classes that a node of this rank gives."""
    base = float(Timestamp(version.timestamp.partition('_')[0]))
    return str(Timestamp(base + (rank + 1) * _TICK_SECONDS).internal)


class Teller:
    """Blocks for some seconds a server that does not answer.

    :param ranks: of this node's devices
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    def rank(self, version: VersionId) -> int:
        """Whose turn it is: 0 is first.

        :raises NoRing: the policy has none here
        """
        return self._ranks.place(version)[0]

    def post(self, version: VersionId, name: str,
             class_map: ClassMap) -> Told:
        """Give a version its classes.

        :param name: ``/account/container/object``
        :raises NoRing: the policy has none here
        :raises TooManySpans: the map does not fit its headers
        """
        headers = dict(
            classmap.to_headers(names.TRANSIENT_MAP, class_map),
            **registers.class_alone(time_of(version, self.rank(version))), **{
                'X-Backend-Storage-Policy-Index': str(version.policy),
                'X-Backend-Allow-Reserved-Names': 'true',
                'User-Agent': 'swift-dss-tierd', 'Content-Length': '0'})
        partition, nodes = self._ranks.primaries(version.policy,
                                                 version.object_hash)
        said = [_status(node, partition, name, headers) for node in nodes]
        return Told(sum(status // 100 == 2 for status in said),
                    sum(status in (404, 409) for status in said), len(said))


def _status(node: Mapping[str, Any], partition: str, name: str,
            headers: Dict[str, str]) -> int:
    """A server's answer; 0 if it gives none."""
    path = quote('/%s/%s%s' % (node['device'], partition, name),
                 errors='surrogatepass')
    connection = http.client.HTTPConnection(
        node['ip'], node['port'], timeout=_TIMEOUT_SECONDS)
    try:
        connection.request('POST', path, None, headers)
        answer = connection.getresponse()
        answer.read(4096)
        return int(answer.status)
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
