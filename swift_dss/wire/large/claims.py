"""Which manifests gave classes to a segment, and which.

Stored beside the class map that a POST sets: ``<manifest>=<spans>``, several
with ``;``. The manifest is eight digits of its path's hash, the spans are a
class id for every byte, or ``<offset>-<length>-<class>`` with ``,``. A
manifest says nothing of bytes in no span.

A segment that two manifests share has the higher-ranked class of both
(``strategy.large.shares``), and a manifest that gives another class takes its
first claim back. That needs both claims. Metadata has little room: of more
than eight claims the oldest are forgotten, and of more text all are.

Beside them, in a header of their own, are the manifests' paths in the
segment's account: ``<manifest>=<path>``, quoted, several with ``;``. Releases
before it read the claims alone. They get the room that the claims leave.
"""

from __future__ import annotations

import hashlib
import re
from typing import Dict, Mapping, Tuple
from urllib.parse import quote, unquote_to_bytes

from swift_dss.core.limits import (
    CLASS_ID_MAX, MAX_CLAIM_BYTES, MAX_CLAIMS, MAX_OBJECT_BYTES)
from swift_dss.core.spans import Span
from swift_dss.wire.headers import range_text

Spans = Tuple[Span, ...]
Claims = Mapping[str, Spans]
#: Of manifests, by their names in claims: ``/<container>/<object>``.
Paths = Mapping[str, str]

_OWNER = re.compile(r'[0-9a-f]{8}')


def owner_of(path: str) -> str:
    """The name of a manifest in claims.

    :param path: account, container and object
    """
    return hashlib.sha256(path.encode('utf-8', 'surrogateescape')
                          ).hexdigest()[:8]


def everywhere(class_id: int) -> Spans:
    """One class for every byte that there may ever be."""
    return (Span(0, MAX_OBJECT_BYTES, class_id),)


def encode(claims: Claims) -> str:
    """The text of claims, '' if they are too long to be kept.

    :param claims: the newest last
    """
    kept = list(claims.items())[-MAX_CLAIMS:]
    text = ';'.join('%s=%s' % (owner, _spans_text(spans))
                    for owner, spans in kept)
    return text if len(text) <= MAX_CLAIM_BYTES else ''


def decode(text: str) -> Dict[str, Spans]:
    """The claims that :func:`encode` wrote; {} for any other text, for
    placement fails open."""
    try:
        claims: Dict[str, Spans] = {}
        for claim in text.split(';') if text else ():
            owner, _, spans = claim.partition('=')
            if not _OWNER.fullmatch(owner):
                return {}
            claims[owner] = _parse_spans(spans)
        return claims
    except ValueError:
        return {}


def encode_paths(claims: Claims, paths: Paths) -> str:
    """The text of the paths of some claims: the newest that there is room
    for.

    :param paths: those that are known, as plain text
    """
    room = MAX_CLAIM_BYTES - len(encode(claims))
    kept = []
    for owner in reversed(list(claims)[-MAX_CLAIMS:]):
        if owner in paths:
            text = '%s=%s' % (owner, quote(paths[owner].encode(
                'utf-8', 'surrogateescape')))
            room -= len(text) + 1
            if room >= 0:
                kept.append(text)
    return ';'.join(reversed(kept))


def decode_paths(text: str) -> Dict[str, str]:
    """The paths that :func:`encode_paths` wrote; other text is left out."""
    paths = {}
    for row in text.split(';'):
        owner, _, quoted = row.partition('=')
        path = unquote_to_bytes(quoted).decode('utf-8', 'surrogateescape')
        if _OWNER.fullmatch(owner) and len(path.split('/', 2)) == 3 \
                and path.startswith('/'):
            paths[owner] = path
    return paths


def _spans_text(spans: Spans) -> str:
    if len(spans) == 1 and spans == everywhere(spans[0].class_id):
        return str(spans[0].class_id)
    return range_text(spans)


def _parse_spans(text: str) -> Spans:
    if text.isdigit():
        return everywhere(_class_id(text))
    spans = []
    cursor = 0
    for entry in text.split(','):
        offset, length, class_id = entry.split('-')
        span = Span(int(offset), int(length), _class_id(class_id))
        if span.offset < cursor or span.length <= 0 or \
                span.end > MAX_OBJECT_BYTES:
            raise ValueError(text)
        cursor = span.end
        spans.append(span)
    return tuple(spans)


def _class_id(text: str) -> int:
    class_id = int(text)
    if not 0 <= class_id <= CLASS_ID_MAX:
        raise ValueError(text)
    return class_id
