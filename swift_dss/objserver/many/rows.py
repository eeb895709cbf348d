"""Rows of containers, many at a time.

Swift's object server tells a container server of each object by a request of
its own. The POSTs of one question are of objects of few containers: their
rows go by Swift's own verb for many, ``UPDATE``. A row that it cannot say, or
that a container server refuses, goes the usual way, which saves it for later
where it must (``async_pending``). Rows for a server that does not answer are
saved at once: a hundred that wait for it one after another would outlast the
proxy's patience.
"""

from __future__ import annotations

import json
from typing import (
    Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple)

from swift.common.utils import Timestamp, quote

from swift_dss.io import waiting

#: Of a container server's answer; it says nothing that counts.
_MOST_BYTES = 1024


class Place(NamedTuple):
    """A replica of a container's database."""

    host: str
    device: str
    partition: str
    account: str
    container: str
    policy: int


class _Row(NamedTuple):
    item: Dict[str, Any]
    request: Any
    alone: Callable[[], Any]

    def save(self) -> None:
        """Leave it to the updater: Swift saves a row for a server without a
        name."""
        self.request.headers.update({
            'X-Container-Host': '', 'X-Container-Device': ''})
        self.alone()


class Rows:
    """Those of one question.

    :param seconds: that a container server may take
    :param connect_seconds: that it may take to accept a connection
    """

    def __init__(self, logger: Any, seconds: float,
                 connect_seconds: float) -> None:
        self._logger = logger
        self._seconds = seconds
        self._connect_seconds = connect_seconds
        #: Servers that gave no answer.
        self._silent: Set[str] = set()
        self._held: Dict[Place, List[_Row]] = {}

    def hold(self, account: str, container: str, obj: str, request: Any,
             headers: Any, policy: Any, alone: Callable[[], Any]) -> bool:
        """Send this update with others; False if it must go alone.

        :param request: that the update follows from
        :param headers: of the update
        :param alone: sends it alone
        """
        item = _item(obj, headers, int(policy))
        places = _places(request.headers)
        if item is None or not places or \
                request.headers.get('X-Container-Root-Db-State') \
                != 'unsharded' or _is_of_shard(request.headers):
            return False
        for host, device, partition in places:
            self._held.setdefault(Place(
                host, device, partition, account, container, int(policy)),
                []).append(_Row(item, request, alone))
        return True

    def send(self) -> None:
        """Send what was held. A row that is not taken goes alone."""
        held, self._held = self._held, {}
        for place, rows in held.items():
            if place.host in self._silent or not self._update(
                    place, [row.item for row in rows]):
                for row in rows:
                    if place.host in self._silent:
                        row.save()
                    else:
                        row.alone()

    def _update(self, place: Place, items: List[Dict[str, Any]]) -> bool:
        host, _, port = place.host.rpartition(':')
        try:
            status, _headers, _body = waiting.fetch(
                host.strip('[]'), int(port), quote('/%s/%s/%s/%s' % (
                    place.device, place.partition, place.account,
                    place.container)), {
                    'X-Timestamp': Timestamp.now().internal,
                    'X-Backend-Storage-Policy-Index': str(place.policy)},
                _MOST_BYTES, self._seconds, 'UPDATE',
                json.dumps(items).encode('ascii'), self._connect_seconds)
        except (OSError, ValueError) as err:
            self._silent.add(place.host)
            self._logger.warning('dss: rows of /%s/%s to %s: %s',
                                 place.account, place.container, place.host,
                                 err)
            return False
        if status // 100 != 2:
            self._logger.warning('dss: rows of /%s/%s: %s answers %d',
                                 place.account, place.container, place.host,
                                 status)
        return status // 100 == 2


def _places(headers: Any) -> List[Tuple[str, str, str]]:
    partition = headers.get('X-Container-Partition', '')
    hosts = _listed(headers.get('X-Container-Host', ''))
    devices = _listed(headers.get('X-Container-Device', ''))
    if not partition or len(hosts) != len(devices):
        return []
    return [(host, device, partition)
            for host, device in zip(hosts, devices)]


def _listed(text: str) -> List[str]:
    return [part.strip() for part in text.split(',') if part.strip()]


def _is_of_shard(headers: Any) -> bool:
    return bool(headers.get('X-Backend-Quoted-Container-Path')
                or headers.get('X-Backend-Container-Path'))


def _item(obj: str, headers: Any, policy: int) -> Optional[Dict[str, Any]]:
    """The row as a container server makes it of a single update."""
    kind = headers['x-content-type']
    # WSGI's form of other text is that server's business.
    if not kind.isascii():
        return None
    return {'name': obj, 'created_at': headers['x-timestamp'],
            'size': int(headers['x-size']), 'content_type': kind,
            'etag': headers['x-etag'], 'deleted': 0,
            'storage_policy_index': policy,
            'ctype_timestamp': headers.get('x-content-type-timestamp'),
            'meta_timestamp': headers.get('x-meta-timestamp')}
