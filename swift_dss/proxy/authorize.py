"""A client without the right to a request gets only auth's answer."""

from __future__ import annotations

from typing import Optional

from swift.common.swob import Request, Response
from swift.proxy.controllers.base import get_container_info

from swift_dss.proxy.target import Target
from swift_dss.proxy.wsgi import App, Env

_READS = ('GET', 'HEAD')


def refusal(env: Env, app: App, target: Target) -> Optional[Response]:
    """Auth's answer to the request; None if it may go on.

    Asks as the proxy server does further down. Idempotent.
    """
    if 'swift.authorize' not in env:
        return None
    request = Request(env)
    reads = env['REQUEST_METHOD'] in _READS
    if target.obj or target.container and reads:
        request.acl = get_container_info(env, app, swift_source='DSS').get(
            'read_acl' if reads else 'write_acl')
    answer: Optional[Response] = env['swift.authorize'](request)
    return answer
