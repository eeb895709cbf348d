"""Swift's client, which no server needs: an extra of the package has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swift_dss.core.errors import BadConfig

if TYPE_CHECKING:
    from swiftclient.client import Connection


def require() -> None:
    """Find out before anything is made.

    :raises BadConfig: python-swiftclient is not installed
    """
    try:
        import swiftclient.client  # noqa: F401 who connects imports it again
    except ImportError as err:
        raise BadConfig('this needs python-swiftclient (%s): pip install '
                        '"swift-dss[aio]"' % err) from err


def connection(auth_url: str, user: str, key: str,
               **options: Any) -> Connection:
    """A connection by v1 auth, which is made at its first request.

    :param user: ``ACCOUNT:USER``
    :param options: further ones of ``swiftclient.Connection``
    :raises BadConfig: python-swiftclient is not installed
    """
    require()
    from swiftclient.client import Connection
    return Connection(authurl=auth_url, user=user, key=key, **options)
