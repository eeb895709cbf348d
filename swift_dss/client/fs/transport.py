"""smart_open's transport for ``dss://container/object``.

smart_open finds it after ``smart_open.transport.register_transport(
'swift_dss.client.fs.transport')``. ``transport_params`` are the options of
the file system, and ``dss_class`` and ``headers`` of the object.
"""

from __future__ import annotations

from typing import Any, Dict

import fsspec

#: smart_open looks these up by name.
SCHEME = 'dss'

#: Words of one file; all others are the file system's.
_OF_FILE = ('dss_class', 'headers', 'block_size', 'cache_type',
            'cache_options')


def parse_uri(uri_as_string: str) -> Dict[str, str]:
    """What smart_open shows of a URI.

    :raises ValueError: it names no object
    """
    scheme, _, path = uri_as_string.partition('://')
    container, _, name = path.partition('/')
    if scheme != SCHEME or not container or not name:
        raise ValueError('%r is not dss://container/object'
                         % uri_as_string[:200])
    return {'scheme': scheme, 'container': container, 'name': name,
            'uri_path': path}


def open_uri(uri: str, mode: str, transport_params: Dict[str, Any]) -> Any:
    """The binary file that smart_open reads or writes."""
    return open(parse_uri(uri)['uri_path'], mode, **transport_params)


def open(path: str, mode: str, **params: Any) -> Any:
    """Open ``container/object``.

    :param mode: ``rb``, ``wb`` or ``xb``
    """
    words = {name: params.pop(name) for name in _OF_FILE if name in params}
    return fsspec.filesystem(SCHEME, **params).open(path, mode, **words)
