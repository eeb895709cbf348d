"""Get and renew the token of a Swift account.

The first of these that is there is used:

#. ``storage_url`` and ``token``, as they are;
#. ``auth_url``, ``user`` and ``key``: Swift's own auth (v1);
#. ``cloud``, ``auth``, ``auth_type`` and other words of openstacksdk:
   passwords, application credentials and all else that keystoneauth has,
   from ``clouds.yaml`` where ``cloud`` names an entry of it;
#. the environment: ``ST_AUTH``, ``ST_USER`` and ``ST_KEY`` (v1), else
   ``OS_*`` and ``OS_CLOUD``.
"""

from __future__ import annotations

import os
import ssl
import threading
from typing import Any, Dict, Mapping, NamedTuple, Optional, Union

#: The options that this module takes.
OPTIONS = ('storage_url', 'token', 'auth_url', 'user', 'key', 'cloud',
           'auth', 'auth_type', 'region_name', 'interface', 'verify',
           'cacert')


class Access(NamedTuple):
    """Where the account is, and what opens it.

    :param storage_url: ``https://host/v1/AUTH_account``
    :param tls: for aiohttp: True, False (no check) or a context
    """

    storage_url: str
    token: str
    tls: Union[bool, ssl.SSLContext] = True


class Login:
    """One account's access; its calls block and may come from any thread.

    :param options: some of :data:`OPTIONS`
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = {name: value for name, value in options.items()
                         if value is not None}
        self._lock = threading.Lock()
        self._region: Any = None
        self._access: Optional[Access] = None

    def access(self, refused: Optional[str] = None) -> Access:
        """A token that is believed to work.

        :param refused: a token that Swift refused; the answer is another
        :raises PermissionError: the credentials are refused or missing
        :raises ConnectionError: the auth service does not answer
        """
        with self._lock:
            known = self._access
            if known is None or known.token == refused:
                known = self._access = self._log_in(refused is not None)
            return known

    def _log_in(self, again: bool) -> Access:
        if 'storage_url' in self._options:
            if again:
                raise PermissionError('dss: the given token is refused')
            return Access(self._options['storage_url'].rstrip('/'),
                          self._options.get('token', ''),
                          _tls(self._options))
        from keystoneauth1 import exceptions
        try:
            return self._by_keystoneauth(again)
        except (exceptions.ConnectFailure, exceptions.ConnectTimeout) as err:
            raise ConnectionError('dss: auth does not answer: %s'
                                  % err) from err
        except exceptions.ClientException as err:
            raise PermissionError('dss: cannot log in: %s' % err) from err

    def _by_keystoneauth(self, again: bool) -> Access:
        if self._region is None:
            self._region = _region(self._words())
        session = self._region.get_session()
        if again:
            session.invalidate()
        token = session.get_token()
        url = session.get_endpoint(
            service_type='object-store',
            interface=self._region.get_interface('object-store'),
            region_name=self._region.get_region_name('object-store'))
        if not url:
            raise PermissionError('dss: the catalogue of this user has no '
                                  'object-store')
        return Access(url.rstrip('/'), token, _tls(self._region.config))

    def _words(self) -> Dict[str, Any]:
        """The words for openstacksdk."""
        words = dict(self._options)
        url, user, key = (words.pop(name, None)
                          for name in ('auth_url', 'user', 'key'))
        if not words and not url:
            url, user, key = map(os.environ.get,
                                 ('ST_AUTH', 'ST_USER', 'ST_KEY'))
        if url:
            if not user or not key:
                raise ValueError('dss: auth_url needs user and key')
            words.update(auth_type='v1password', auth={
                'auth_url': url, 'username': user, 'password': key})
        return words


def _region(words: Dict[str, Any]) -> Any:
    # It takes half a second: what has a token does without.
    from openstack import config
    from openstack import exceptions
    own = 'auth' in words
    try:
        # Credentials in full are not mixed with the environment's.
        return config.OpenStackConfig(
            load_envvars=not own, load_yaml_config=not own
            or 'cloud' in words).get_one(**words)
    except exceptions.ConfigException as err:
        raise PermissionError('dss: no usable credentials: %s'
                              % err) from err


def _tls(words: Mapping[str, Any]) -> Union[bool, ssl.SSLContext]:
    if words.get('verify') is False:
        return False
    if words.get('cacert'):
        return ssl.create_default_context(cafile=words['cacert'])
    return True
