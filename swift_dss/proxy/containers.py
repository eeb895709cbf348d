"""Requests for containers (default class) and accounts (allowed classes).
"""

from __future__ import annotations

from typing import Any

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request, wsgi_to_str

from swift_dss.core.errors import ClassNotAllowed
from swift_dss.proxy.accounts import canonical
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.services import Services
from swift_dss.proxy.trusted import env_key
from swift_dss.proxy.wsgi import App, Body, Env
from swift_dss.strategy.classify import check_allowed
from swift_dss.wire import names
from swift_dss.wire.headers import parse_object_class


_CONTAINER_CLASS = env_key(names.CONTAINER_CLASS)
_ACCOUNT_CLASSES = env_key(names.ACCOUNT_CLASSES)


class Containers:
    """Set and show classes of containers and accounts."""

    def __init__(self, app: App, services: Services) -> None:
        self._app = app
        self._services = services

    def set_default(self, request: ProxyRequest) -> Body:
        """PUT or POST of a container: its default class, if given.

        Auth decides further down, in the proxy server.

        :raises BadClassInput: no such class
        :raises ClassNotAllowed: the account may not use it
        """
        self._services.strip(request.env)
        text = request.env.get(_CONTAINER_CLASS)
        if text is not None:
            stored = ''
            if text.strip():
                class_id = parse_object_class(
                    wsgi_to_str(text), request.state.table,
                    names.CONTAINER_CLASS)
                allowed = self._services.accounts.allowed(
                    request.env, request.target.account, request.state.table)
                check_allowed({class_id}, allowed, names.CONTAINER_CLASS)
                stored = str(class_id)
            request.env[env_key(names.CONTAINER_SYSMETA_CLASS)] = stored
        return self._app(request.env, request.start)

    def show_default(self, request: ProxyRequest) -> Body:
        """GET or HEAD of a container."""
        self._services.strip(request.env)

        def show(status: str, headers: Any, exc_info: Any = None) -> Any:
            text = HeaderKeyDict(headers).get(names.CONTAINER_SYSMETA_CLASS)
            if text and text.isdigit():
                headers = list(headers) + [(
                    names.CONTAINER_CLASS,
                    request.state.table.name_of(int(text)))]
            return request.start(status, headers, exc_info)

        return self._app(request.env, show)

    def set_allowed(self, request: ProxyRequest) -> Body:
        """Set an account's classes by PUT or POST of a reseller admin.

        :raises ClassNotAllowed: the client is not a reseller admin
        """
        self._services.strip(request.env)
        text = request.env.get(_ACCOUNT_CLASSES)
        if text is not None:
            self._check_reseller(request.env)
            request.env[env_key(names.ACCOUNT_SYSMETA_CLASSES)] = canonical(
                wsgi_to_str(text), request.state.table)
            self._services.accounts.forget(request.target.account)
        return self._app(request.env, request.start)

    def show_allowed(self, request: ProxyRequest) -> Body:
        """GET or HEAD of an account."""
        self._services.strip(request.env)

        def show(status: str, headers: Any, exc_info: Any = None) -> Any:
            if status.startswith('2'):
                text = self._services.accounts.shown(
                    HeaderKeyDict(headers).get(
                        names.ACCOUNT_SYSMETA_CLASSES, ''),
                    request.state.table)
                if text:
                    headers = list(headers) + [
                        (names.ACCOUNT_CLASSES, text)]
            return request.start(status, headers, exc_info)

        return self._app(request.env, show)

    def _check_reseller(self, env: Env) -> None:
        # Some auth systems say who is a reseller admin only while they
        # authorize, which they otherwise do below us.
        if 'swift.authorize' in env:
            refusal = env['swift.authorize'](Request(env))
            if refusal:
                raise refusal
        if not env.get('reseller_request'):
            raise ClassNotAllowed(names.ACCOUNT_CLASSES, 'only a reseller '
                                  'admin may set the classes of an account')
