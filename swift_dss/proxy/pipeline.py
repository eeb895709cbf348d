"""Refuse to start in the wrong place of the pipeline.

Swift hands every middleware the list of all of them, in order, once the
pipeline is loaded (after it added what it requires itself): an attribute
``_pipeline`` that our filter has as a property. The middleware below ours is
known earlier: walk ``.app`` at construction.
"""

from __future__ import annotations

from typing import Any, List, Sequence

from swift.common.wsgi import ConfigFileError

from swift_dss.core.errors import BadConfig

RIGHT_PLACE = (
    'put dss below everything that makes several requests of one and above '
    'encryption: "... slo dlo versioned_writes symlink dss [keymaster '
    'encryption] proxy-logging proxy-server"')

#: Must be above us, where it is in the pipeline at all.
_ABOVE = {
    'tempauth': 'it is before auth',
    'keystoneauth': 'it is before auth',
    's3api': 's3api is below it',
    'bulk': 'bulk is below it',
    'tempurl': 'tempurl is below it',
    'formpost': 'formpost is below it',
    'copy': 'copy is below it, so a COPY would lose its class',
    'slo': 'slo is below it, so a manifest would look like an object',
    'dlo': 'dlo is below it, so a manifest would look like an object',
    'versioned_writes':
        'versioned_writes is below it, so versions would lose their class',
    'symlink': 'symlink is below it, so a link would look like its target',
    'gatekeeper': 'gatekeeper is below it, so clients could forge classes',
}
#: Must be below us, where it is in the pipeline at all.
_BELOW = {
    'encryption': 'encryption is above it',
    'keymaster': 'the keymaster is above it',
    'kms_keymaster': 'the keymaster is above it',
    'kmip_keymaster': 'the keymaster is above it',
}
_CRYPTO = {'encrypter': 'encryption', 'decrypter': 'encryption',
           'crypto': 'encryption'}
#: Filters that change no row of a listing but for what is behind its ETag.
_STRAIGHT = frozenset((
    'account_quotas', 'auth_token', 'bulk', 'container_quotas',
    'container_sync', 'copy', 'dlo', 'formpost', 'keystoneauth',
    'proxy_logging', 'ratelimit', 'read_only', 's3api', 'slo', 'staticweb',
    'symlink', 'tempauth', 'tempurl', 'versioned_writes'))


class WrongPlace(BadConfig, ConfigFileError):
    """Swift prints a ConfigFileError as one line and does not start."""


def check(above: Sequence[str], below: Sequence[str],
          whole: bool = True) -> None:
    """Check our place between two lists of middleware names.

    :param above: names from the client's side down to us
    :param below: names from us to the proxy application
    :param whole: ``above`` is complete; False if it is not known yet
    :raises WrongPlace: the text names the error and the right place
    """
    for name in below:
        if name in _ABOVE or _is_unknown_auth(name):
            _refuse(_ABOVE.get(name, 'it is before auth (%s)' % name))
    for name in above:
        if name in _BELOW:
            _refuse(_BELOW[name])
    if whole and 'gatekeeper' not in above:
        _refuse('there is no gatekeeper above it, so clients could forge '
                'classes')
    if whole and above.count('dss') + below.count('dss'):
        _refuse('it appears twice')


def names_of(apps: Sequence[Any]) -> List[str]:
    """The names of these WSGI applications in the paste configuration."""
    return [_name_of(app) for app in apps]


def is_straight(app: Any) -> bool:
    """True if every filter from ``app`` down to ours changes no row of a
    listing but for what is behind its ETag."""
    while app is not None:
        name = _name_of(app)
        if name not in _STRAIGHT:
            return name == 'dss'
        # Keystone's has another name for it.
        app = getattr(app, 'app', None) or getattr(app, '_app', None)
    return False


def below_of(app: Any) -> List[Any]:
    """``app`` and the applications below it, down to the proxy application."""
    apps: List[Any] = []
    while app is not None and app not in apps:
        apps.append(app)
        app = getattr(app, 'app', None)
    return apps


def _name_of(app: Any) -> str:
    return name_of_module(type(app).__module__)


def name_of_module(module: str) -> str:
    """The name of a filter whose class or factory is in a module."""
    if module == 'swift_dss.proxy.admit.retry_after':
        return 'dss_retry_after'
    if module.startswith('swift_dss.proxy.s3'):
        return 's3api'
    if module.startswith('swift_dss.proxy'):
        return 'dss'
    parts = module.split('.')
    if 'versioned_writes' in parts or 's3api' in parts:
        return 'versioned_writes' if 'versioned_writes' in parts else 's3api'
    return _CRYPTO.get(parts[-1], parts[-1])


def _is_unknown_auth(name: str) -> bool:
    return name.endswith('auth') or name in ('swauth', 'auth_token')


def _refuse(reason: str) -> None:
    raise WrongPlace('the filter dss is in the wrong place of the pipeline: '
                     '%s; %s' % (reason, RIGHT_PLACE))
