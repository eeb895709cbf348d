"""Backend headers and object metadata to class maps.

A PUT brings the map as the sysmeta that is stored with the object: of a
client's the proxy set it (gatekeeper keeps clients out), of a subrequest of
ssync it is that of the data file. A proxy of an earlier release says the same
in ``X-Backend-Dss-Map``, too. A map that cannot be read does not fail the
request: placement fails open, counted, and the bytes are the same.
"""

from __future__ import annotations

import functools
from typing import Any, Mapping, Optional

from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import CLASS_ID_MAX
from swift_dss.core.residency import Tier, tier_text
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.strategy.fragments import fragment_map
from swift_dss.wire import classmap, names

_DAMAGED = 'dss.errors.class_map'
#: Bits of a set of tiers to the value of a header.
_TIER_TEXTS = [tier_text(Tier(bits)) for bits in range(8)]
#: The same of a device whose SSD and HDD the kernel keeps apart: which of
#: both has the bytes is not known above it, and may change at any time.
_BLOCK_TEXTS = [text.replace('ssd', 'block') for text in _TIER_TEXTS]
#: Names of metadata, and of the first part of a long one.
_STORED_NAMES = tuple(
    (name, name + '-0')
    for name in (names.TRANSIENT_MAP, names.SYSMETA_MAP))
#: Names of headers, their keys in a WSGI environment, and that of the first
#: part of a long one.
_REQUEST_NAMES = tuple(
    (name, 'HTTP_' + name.upper().replace('-', '_'),
     'HTTP_' + name.upper().replace('-', '_') + '_0')
    for name in (names.BACKEND_MAP, names.TRANSIENT_MAP, names.SYSMETA_MAP))


def of_request(request: Any, logger: Any) -> ClassMap:
    """The map that a PUT must be written with.

    :param request: ``swob.Request``
    """
    env = request.environ
    for name, key, first in _REQUEST_NAMES:
        # Swift normalises each name at every lookup in headers.
        text = env.get(key)
        if text is not None or first in env:
            class_map = _read(name, text, request.headers, logger)
            if class_map is not None:
                return class_map
    return UNCLASSIFIED_MAP


def of_metadata(metadata: Mapping[str, str], logger: Any) -> ClassMap:
    """The map in force of a stored object.

    :param metadata: as a diskfile has it: names in title case
    """
    for name, first in _STORED_NAMES:
        text = metadata.get(name)
        if text is not None or first in metadata:
            class_map = _read(name, text, metadata, logger)
            if class_map is not None:
                return class_map
    return UNCLASSIFIED_MAP


def auto_of(metadata: Mapping[str, str]) -> Optional[int]:
    """The class of the bytes that open the file, if the node is to find
    them; None if it is not, or the metadata says no class.

    :param metadata: of a PUT: names in title case
    """
    text = metadata.get(names.SYSMETA_AUTO, '')
    if not text.isdigit() or int(text) > CLASS_ID_MAX:
        return None
    return int(text)


def for_fragment(class_map: ClassMap, storage_policy: Any,
                 table: Any) -> ClassMap:
    """The same map in the offsets of this policy's stored bytes."""
    segment = getattr(storage_policy, 'ec_segment_size', None)
    if segment is None or class_map.is_uniform:
        return class_map
    return fragment_map(class_map, segment, storage_policy.fragment_size,
                        table)


def with_tier(response: Any, opened: Any) -> Any:
    """The response, with the tiers that hold the version."""
    residency = getattr(opened, 'dss_residency', None)
    if residency is not None and response.status_int < 400:
        node, device = opened.manager.dss_node, opened.dss_device
        texts = _BLOCK_TEXTS if node.is_block(device) else _TIER_TEXTS
        # Their names are in title case, which Swift would see to.
        dict.update(response.headers, {
            names.BACKEND_TIER: texts[
                residency.tiers if residency.extents else Tier.SSD],
            names.BACKEND_BACKLOG: str(node.backlog_ms(device))})
    return response


def with_at_hand(response: Any, opened: Any) -> Any:
    """The response, with whether all bytes are on the SSD."""
    residency = getattr(opened, 'dss_residency', None)
    if residency is not None and response.status_int < 400:
        response.headers[names.BACKEND_AT_HAND] = str(int(
            not residency.extents or residency.bytes_on(Tier.SSD)
            == residency.content_length))
    return response


def _read(name: str, text: Optional[str], headers: Mapping[str, str],
          logger: Any) -> Optional[ClassMap]:
    try:
        if text is not None:
            return _decode(text)
        return classmap.from_headers(name, headers)
    except BadClassInput as err:
        logger.increment(_DAMAGED)
        logger.warning('dss: %s is damaged, taken as unclassified: %s',
                       name, err)
        return UNCLASSIFIED_MAP


@functools.lru_cache(maxsize=512)
def _decode(text: str) -> ClassMap:
    return classmap.decode(text)
