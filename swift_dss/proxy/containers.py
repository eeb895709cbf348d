"""Requests for containers (default class, lifecycle rules) and accounts
(allowed classes)."""

from __future__ import annotations

from typing import Any, Optional

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import (
    HTTPServiceUnavailable, Request, wsgi_to_str)

from swift_dss.core.errors import ClassNotAllowed
from swift_dss.proxy import authorize, listing
from swift_dss.proxy.accounts import canonical
from swift_dss.proxy.lifecycle.buckets import Buckets
from swift_dss.proxy.replicas import container_info
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.seeing import pages, wishes
from swift_dss.proxy.services import Services
from swift_dss.proxy.trusted import env_key, set_headers
from swift_dss.proxy.work.rows import Unreachable
from swift_dss.proxy.wsgi import App, Body, Env
from swift_dss.strategy.classify import check_allowed
from swift_dss.wire import names
from swift_dss.wire.headers import parse_object_class
from swift_dss.wire.s3 import lifecycle


_CONTAINER_CLASS = env_key(names.CONTAINER_CLASS)
_ACCOUNT_CLASSES = env_key(names.ACCOUNT_CLASSES)
_DEFAULT_KEY = names.CONTAINER_SYSMETA_CLASS[
    len('X-Container-Sysmeta-'):].lower()


class Containers:
    """Set and show classes of containers and accounts.

    :param buckets: hears of lifecycle rules
    """

    def __init__(self, app: App, services: Services,
                 buckets: Buckets) -> None:
        self._app = app
        self._services = services
        self._buckets = buckets

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
        if names.ENV_LIFECYCLE in request.env:
            self._set_lifecycle(request)
        return self._app(request.env, request.start)

    def _set_lifecycle(self, request: ProxyRequest) -> None:
        """
        :raises HTTPException: the client may not, or it cannot be noted
        """
        env = request.env
        refusal = authorize.refusal(env, self._app, request.target)
        if refusal is not None:
            raise refusal
        rules = env[names.ENV_LIFECYCLE]
        if rules is not None:
            table = request.state.table
            check_allowed(
                {table.storage_classes[transition.storage_class]
                 for rule in rules.rules for transition in rule.transitions
                 if transition.storage_class in table.storage_classes},
                self._services.accounts.allowed(
                    env, request.target.account, table), 'Transition')
        set_headers(env, lifecycle.to_headers(
            names.CONTAINER_SYSMETA_LIFECYCLE, rules))
        try:
            if rules is not None:
                # First: rules that nobody knows of would never be followed.
                self._buckets.note(env, request.target)
        except Unreachable as err:
            raise HTTPServiceUnavailable(
                body=b'The lifecycle configuration cannot be noted now.',
                headers={'Retry-After': '5'}) from err

    def show_default(self, request: ProxyRequest) -> Body:
        """GET or HEAD of a container.

        :raises BadClassInput: the query asks for classes in wrong words
        """
        self._services.strip(request.env)

        def show(status: str, headers: Any, exc_info: Any = None) -> Any:
            text = HeaderKeyDict(headers).get(names.CONTAINER_SYSMETA_CLASS)
            if text and text.isdigit():
                headers = list(headers) + [(
                    names.CONTAINER_CLASS,
                    request.state.table.name_of(int(text)))]
            return request.start(status, headers, exc_info)

        if request.method == 'GET':
            wish = wishes.of(request)
            listed = request._replace(start=show)
            return listing.call(self._app, listed) if wish is None \
                else pages.call(self._app, listed, wish)
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


def default_class(app: App, request: ProxyRequest) -> Optional[int]:
    """The default class of the container that an upload is to; None if it
    has none."""
    env, target = request.env, request.target
    container = target.user_container(request.source)
    env.setdefault('swift.infocache', {})
    if container != target.container:
        target = target._replace(container=container)
        env = dict(env, PATH_INFO=target.path)
    info = container_info(env, app, target)
    text = (info.get('sysmeta') or {}).get(_DEFAULT_KEY, '')
    return int(text) if text.isdigit() else None
