"""
``dss_retry_after`` brings ``Retry-After`` to S3 clients.

s3api answers a 503 from below with an error document of its own, without
the headers that came with it. This filter stands left of s3api and gives
the answer the time that the ``dss`` filter, right of it, has computed::

    [pipeline:main]
    pipeline = catch_errors gatekeeper ... dss_retry_after s3api <auth> ...
        dss proxy-logging proxy-server

    [filter:dss_retry_after]
    use = egg:swift_dss#dss_retry_after

Answers that have the header, and all but 503, are left as they are.

It is also where listings that show classes come out again that went past the
filters right of it (``swift_dss.proxy.seeing.straight``).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from swift_dss.proxy.pipeline import is_straight
from swift_dss.proxy.seeing import straight
from swift_dss.proxy.wsgi import App, Body, Env, Start

_KEY = 'swift_dss.retry_after'


def tell(env: Env, seconds: str) -> None:
    """Note for the filter on the left when the client may come again.

    ``env`` may be another than the one it saw, of the same request: Swift
    hands its infocache on.
    """
    notes: List[str] = env.get('swift.infocache', {}).get(_KEY, [])
    notes.append(seconds)


class RetryAfter:
    """The WSGI filter; see the module."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._call = straight.call if is_straight(app) else _plainly

    def __call__(self, env: Env, start_response: Start) -> Body:
        notes: List[str] = []
        env.setdefault('swift.infocache', {})[_KEY] = notes

        def start(status: str, headers: Any, exc_info: Any = None) -> Any:
            if notes and status.startswith('503') and not any(
                    name.lower() == 'retry-after' for name, _ in headers):
                headers = [*headers, ('Retry-After', notes[-1])]
            return start_response(status, headers, exc_info)

        return self._call(self.app, env, start)


def _plainly(app: App, env: Env, start: Start) -> Body:
    return app(env, start)


def filter_factory(global_conf: Dict[str, str],
                   **local_conf: str) -> Callable[[App], RetryAfter]:
    """paste.deploy's entry point."""
    return RetryAfter
