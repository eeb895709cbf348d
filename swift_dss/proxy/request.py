"""A request on its way through the filter: one object."""

from __future__ import annotations

from typing import NamedTuple, Optional

from swift_dss.proxy.settings import State
from swift_dss.proxy.target import Target
from swift_dss.proxy.wsgi import Env, Start


class ProxyRequest(NamedTuple):
    """A request, as the handlers of the filter get it.

    :param env: the WSGI environment; handlers change it for the proxy server
    :param start: the client's ``start_response``
    :param target: from the path as it came in
    :param state: class table and rules that were in force when it came in
    """

    env: Env
    start: Start
    target: Target
    state: State

    @property
    def method(self) -> str:
        """``PUT``, ``GET`` ..."""
        return str(self.env['REQUEST_METHOD'])

    @property
    def source(self) -> Optional[str]:
        """The middleware that made the request; None for a client's."""
        return self.env.get('swift.source')
