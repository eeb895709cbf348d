"""The classes and limits of a cluster, from its ``/info``.

For tools that make class maps before a server sees them. Needs no account:
``/info`` is open to all.
"""

from __future__ import annotations

import http.client
import json
import urllib.request
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import BadClassInput, DssError, TooManySpans
from swift_dss.core.limits import (
    CLASS_ID_MAX, DEFAULT_MAX_DSS_SECTION_BYTES, DEFAULT_MAX_SPANS)
from swift_dss.core.spans import ClassMap

OPTION = '--server'
#: An ``/info`` of Swift has some 10 KB.
_MAX_BYTES = 1024 * 1024
_TIMEOUT_SECONDS = 30.0


class ServerUnreachable(DssError):
    """A cluster does not say what classes it has."""

    exit_code = 69
    counter = 'server_unreachable'


class Server(NamedTuple):
    """A cluster, as its clients know it.

    :param table: its classes by id and name; how they are treated is not said
    :param max_spans: spans that one object may have
    :param max_section_bytes: of a ``.dss`` class section
    """

    table: ClassTable
    max_spans: int = DEFAULT_MAX_SPANS
    max_section_bytes: int = DEFAULT_MAX_DSS_SECTION_BYTES

    def check(self, class_map: ClassMap, section_bytes: int) -> None:
        """See that the cluster would take a map and its class section.

        :raises TooManySpans: it would not; names the limit
        """
        if len(class_map.spans) > self.max_spans:
            raise TooManySpans(OPTION, 'takes %d spans and not %d' % (
                self.max_spans, len(class_map.spans)))
        if section_bytes > self.max_section_bytes:
            raise TooManySpans(
                OPTION, 'takes a class section of %d bytes and not of %d'
                % (self.max_section_bytes, section_bytes))


def decode(raw: bytes, url: str) -> Server:
    """What an ``/info`` says.

    :param url: for errors
    :raises ServerUnreachable: it says nothing of classes, or nothing that can
        be understood
    """
    try:
        info: Any = json.loads(raw.decode('utf-8'))
    except (ValueError, RecursionError) as err:
        raise ServerUnreachable('%s: is no JSON: %s' % (url, err)) from err
    said = info.get('dss') if isinstance(info, dict) else None
    if not said:
        raise ServerUnreachable('%s: this Swift has no classes (no "dss" in '
                                'its /info)' % url)
    try:
        return Server(
            ClassTable.of(_spec(name, number) for name, number
                          in said['classes'].items()),
            int(said.get('max_spans', DEFAULT_MAX_SPANS)),
            int(said.get('max_section_bytes',
                         DEFAULT_MAX_DSS_SECTION_BYTES)))
    except (AttributeError, KeyError, TypeError, ValueError,
            OverflowError) as err:
        raise ServerUnreachable('%s: its /info cannot be understood: %s'
                                % (url, err)) from err


def read(server: str) -> Server:
    """Ask a cluster.

    Blocks for up to half a minute.

    :param server: its URL, or that of an account or object in it
    :raises BadClassInput: it is no URL of http or https
    :raises ServerUnreachable: it does not answer, or has no classes
    """
    url = info_url(server)
    try:
        # info_url lets http and https through alone.
        with urllib.request.urlopen(  # noqa: S310
                url, timeout=_TIMEOUT_SECONDS) as answer:
            raw = answer.read(_MAX_BYTES + 1)
    except (OSError, ValueError, http.client.HTTPException) as err:
        why = getattr(err, 'reason', None) or err
        raise ServerUnreachable('%s: %s' % (url, why)) from err
    if len(raw) > _MAX_BYTES:
        raise ServerUnreachable('%s: is more than %d bytes'
                                % (url, _MAX_BYTES))
    return decode(raw, url)


def info_url(server: str) -> str:
    """The URL of a cluster's ``/info``.

    :raises BadClassInput: ``server`` is no URL of http or https
    """
    try:
        parts = urlsplit(server)
        is_url = parts.scheme in ('http', 'https') and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        raise BadClassInput(OPTION, '%s is not http://HOST:PORT or https://...'
                            % ascii(server[:48]))
    before, is_path, _ = parts.path.partition('/v1/')
    root = before if is_path else parts.path.rstrip('/')
    if root.endswith(('/info', '/v1')):
        root = root.rpartition('/')[0]
    return '%s://%s%s/info' % (parts.scheme, parts.netloc, root)


def _spec(name: str, number: int) -> ClassSpec:
    if not isinstance(number, int) or not 0 <= number <= CLASS_ID_MAX:
        raise ValueError('class %s has id %s' % (name, number))
    return ClassSpec(number, name.lower(), 0)
