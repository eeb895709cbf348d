"""List a container by asking its container servers directly.

For dynamic large objects: their segments are those listed at the time of the
read. Plain HTTP on the cluster's own network, as Swift's servers talk to one
another; any primary may answer.
"""

from __future__ import annotations

import http.client
import json
from typing import Any, List, Tuple
from urllib.parse import quote, urlencode

from swift_dss.core.errors import DamagedRecord, TierUnavailable
from swift_dss.gateway.peers.ranks import NoRing, open_ring

_SECONDS = 3.0
#: Entries of one page, and its largest size.
PAGE = 1000
_MAX_PAGE_BYTES = 4 * 1024 * 1024


class Listings:
    """Asks container servers. Blocks on the network, for seconds at worst.

    :param swift_dir: where the container ring is
    """

    def __init__(self, swift_dir: str) -> None:
        self._swift_dir = swift_dir
        self._ring: Any = None

    def page(self, account: str, container: str,
             prefix: str) -> List[Tuple[str, int]]:
        """Names and bytes of the first objects that begin with ``prefix``.

        :raises TierUnavailable: no container server answered
        """
        if self._ring is None:
            self._ring = self._load()
        part, nodes = self._ring.get_nodes(account, container)
        reasons = []
        for node in nodes:
            try:
                return _ask(node, part, account, container, prefix)
            except (OSError, http.client.HTTPException, ValueError,
                    LookupError, TypeError, DamagedRecord) as err:
                reasons.append('%s: %s' % (node['device'], err))
        raise TierUnavailable('no listing of %s/%s: %s' % (
            account, container, '; '.join(reasons) or 'no servers'))

    def _load(self) -> Any:
        try:
            return open_ring(self._swift_dir, 'container')
        except NoRing as err:
            raise TierUnavailable('no container ring: %s' % err) from err


def _ask(node: Any, part: int, account: str, container: str,
         prefix: str) -> List[Tuple[str, int]]:
    connection = http.client.HTTPConnection(
        node['ip'], int(node['port']), timeout=_SECONDS)
    try:
        connection.request('GET', '/%s/%d/%s/%s?%s' % (
            node['device'], part, quote(account, ''), quote(container, ''),
            urlencode({'format': 'json', 'prefix': prefix, 'limit': PAGE})))
        answer = connection.getresponse()
        raw = answer.read(_MAX_PAGE_BYTES)
        if answer.status == 204:
            return []
        if answer.status != 200:
            raise DamagedRecord('status %d' % answer.status)
        return [(str(row['name']), int(row['bytes']))
                for row in json.loads(raw.decode('utf-8')) if 'name' in row]
    finally:
        connection.close()
