"""Backend headers and object metadata to class maps.

A client's PUT brings the map in ``X-Backend-Dss-Map`` (the proxy set it;
gatekeeper keeps clients out); a subrequest of ssync brings the sysmeta of
the data file instead. A map that cannot be read does not fail the request:
placement fails open, counted, and the bytes are the same.
"""

from __future__ import annotations

import functools
from typing import Any, Mapping, Optional

from swift_dss.core.errors import BadClassInput
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.strategy.fragments import fragment_map
from swift_dss.wire import classmap, names

#: Names of headers, and their keys in a WSGI environment.
_REQUEST_NAMES = tuple(
    (name, 'HTTP_' + name.upper().replace('-', '_'))
    for name in (names.BACKEND_MAP, names.TRANSIENT_MAP, names.SYSMETA_MAP))
_DAMAGED = 'dss.errors.class_map'


def of_request(request: Any, logger: Any) -> ClassMap:
    """The map that a PUT must be written with.

    :param request: ``swob.Request``
    """
    env = request.environ
    for name, key in _REQUEST_NAMES:
        # Swift normalises each name at every lookup in headers.
        if key in env or key + '_0' in env:
            found = _read(name, request.headers, logger)
            if found is not None:
                return found
    return UNCLASSIFIED_MAP


def of_metadata(metadata: Mapping[str, str], logger: Any) -> ClassMap:
    """The map in force of a stored object.

    :param metadata: as a diskfile has it: names in title case
    """
    for name in (names.TRANSIENT_MAP, names.SYSMETA_MAP):
        found = _read(name, metadata, logger)
        if found is not None:
            return found
    return UNCLASSIFIED_MAP


def for_fragment(class_map: ClassMap, storage_policy: Any,
                 table: Any) -> ClassMap:
    """The same map in the offsets of this policy's stored bytes."""
    segment = getattr(storage_policy, 'ec_segment_size', None)
    if segment is None or class_map.is_uniform:
        return class_map
    return fragment_map(class_map, segment, storage_policy.fragment_size,
                        table)


def _read(name: str, headers: Mapping[str, str],
          logger: Any) -> Optional[ClassMap]:
    text = headers.get(name)
    try:
        if text is not None:
            return _decode(text)
        if name + '-0' not in headers:
            return None
        return classmap.from_headers(name, headers)
    except BadClassInput as err:
        logger.increment(_DAMAGED)
        logger.warning('dss: %s is damaged, taken as unclassified: %s',
                       name, err)
        return UNCLASSIFIED_MAP


@functools.lru_cache(maxsize=512)
def _decode(text: str) -> ClassMap:
    return classmap.decode(text)
