"""Where the replicas of an object are: Swift's rings, as its proxy has them.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

from swift.common.storage_policy import POLICIES
from swift.common.swob import wsgi_to_str
from swift.proxy.controllers.base import (
    get_cache_key, get_container_info)

from swift_dss.proxy.pipeline import below_of
from swift_dss.proxy.target import Target
from swift_dss.proxy.wsgi import App, Env

Node = Dict[str, Any]


def container_info(env: Env, app: App, target: Target) -> Mapping[str, Any]:
    """Swift's knowledge of the container of a target, which is that of the
    request. May make a HEAD of it.

    :returns: as Swift's filters get it, or as they have left it in the request
        without a copy: not to be changed
    """
    known = env.setdefault('swift.infocache', {}).get(get_cache_key(
        wsgi_to_str(target.account), wsgi_to_str(target.container)))
    return known or get_container_info(  # type: ignore[no-any-return]
        env, app, swift_source='DSS')


class Placed(NamedTuple):
    """The devices of an object.

    :param policy: Swift's storage policy
    :param partition: of the ring
    :param nodes: of the ring, primaries only
    :param handoffs: where a write goes that those do not take
    """

    policy: Any
    partition: int
    nodes: List[Node]
    handoffs: Iterator[Node]

    @property
    def pieces(self) -> int:
        """How many devices share the bytes of one copy."""
        return getattr(self.policy, 'ec_ndata', 1)

    def length_of(self, size: int) -> int:
        """Bytes of an object that each device gets, about."""
        return -(-size // self.pieces)


class Replicas:
    """Looks objects up.

    :param app: what is below the filter; it knows the rings
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._proxy: Any = None

    @property
    def proxy(self) -> Any:
        """The proxy application at the end of the pipeline."""
        if self._proxy is None:
            self._proxy = below_of(self._app)[-1]
        return self._proxy

    def of(self, env: Env, target: Target) -> Optional[Placed]:
        """None where the pipeline ends in something without rings."""
        rings = getattr(self.proxy, 'get_object_ring', None)
        if rings is None:
            return None
        index = env.get('HTTP_X_BACKEND_STORAGE_POLICY_INDEX')
        if index is None:
            index = int(container_info(env, self._app, target).get(
                'storage_policy') or 0)
        policy = POLICIES.get_by_index(index)
        if policy is None:
            return None
        ring = rings(int(index))
        partition, nodes = ring.get_nodes(
            *(wsgi_to_str(name) for name in target))
        return Placed(policy, partition, nodes, ring.get_more_nodes(partition))
