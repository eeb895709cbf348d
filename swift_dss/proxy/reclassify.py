"""Out-of-band classification: POSTs that give an object other classes.

A POST replaces everything that the last POST set, so the class map that
a POST set has to be sent again with every later one. What it is, only the
object knows: one HEAD for each object POST.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from swift.common.swob import Request, Response, wsgi_quote
from swift.common.wsgi import make_pre_authed_request

from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.limits import (
    DEFAULT_MAX_DSS_SECTION_BYTES, DEFAULT_MAX_SPANS)
from swift_dss.core.spans import ClassMap
from swift_dss.proxy.target import Target
from swift_dss.proxy.trusted import env_key
from swift_dss.proxy.wsgi import Env
from swift_dss.wire import names
from swift_dss.wire.dssfile import Decoder


_READ_BYTES = 65536
_META = 'HTTP_X_OBJECT_META_'
#: What a POST may set on an object beside its metadata.
KEPT = ('Content-Encoding', 'Content-Disposition', 'Content-Language',
        'Cache-Control', 'Expires', 'X-Robots-Tag', 'X-Delete-At',
        'X-Object-Manifest')
_SETS_METADATA = frozenset(
    [env_key(name) for name in KEPT] + ['HTTP_X_DELETE_AFTER',
                                        'HTTP_X_REMOVE_DELETE_AT'])


def head(env: Env, app: Any, target: Target, newest: bool) -> Response:
    """The object's answer to a HEAD, its body closed.

    :param newest: ask every replica; a reclassification that keeps the
        metadata must not bring back old metadata
    """
    headers = {'X-Newest': 'true'} if newest else {}
    for name in ('X-Backend-Storage-Policy-Index',
                 'X-Backend-Allow-Reserved-Names'):
        if env_key(name) in env:
            headers[name] = env[env_key(name)]
    request = make_pre_authed_request(
        env, method='HEAD', path=wsgi_quote(target.path), headers=headers,
        swift_source='DSS')
    # The query is the client's business with its own request.
    request.environ['QUERY_STRING'] = ''
    response = request.get_response(app)
    response.body  # noqa: B018  # a HEAD has none; this closes it
    return response


def is_by_body(env: Env) -> bool:
    """True for ``POST ?dss-classes``, whose body is a class section."""
    return names.RECLASSIFY_QUERY in (env.get('QUERY_STRING') or '') and \
        names.RECLASSIFY_QUERY in Request(env).params


def sets_metadata(env: Env) -> bool:
    """True if the POST also sets metadata, as any POST may.

    One that only gives classes leaves the metadata as it is.
    """
    return any(key in _SETS_METADATA or key.startswith(_META)
               for key in env)


def keep_metadata(env: Env, found: Mapping[str, str]) -> None:
    """Send the object's own metadata again with this POST."""
    for name, value in found.items():
        lowered = name.lower()
        if lowered.startswith('x-object-meta-') or name.title() in KEPT or (
                lowered.startswith('x-object-transient-sysmeta-')
                and not lowered.startswith(_NOT_KEPT)):
            env[env_key(name)] = value


_NOT_KEPT = ('x-object-transient-sysmeta-dss-',
             'x-object-transient-sysmeta-crypto-')


def read_section(env: Env, size: int,
                 max_spans: int = DEFAULT_MAX_SPANS,
                 max_bytes: int = DEFAULT_MAX_DSS_SECTION_BYTES) -> ClassMap:
    """The map in the body of a ``POST ?dss-classes``.

    :param size: of the object; no entry may pass it
    :raises BadClassInput: at which byte and why
    :raises TooManySpans: longer than a class section may be
    """
    decoder = Decoder(object_bytes=size, max_section_bytes=max_bytes,
                      max_spans=max_spans)
    received = 0
    stream = env['wsgi.input']
    while True:
        chunk = stream.read(_READ_BYTES)
        if not chunk:
            break
        received += len(chunk)
        if received > max_bytes:
            raise TooManySpans(names.RECLASSIFY_QUERY,
                               'more than %d bytes' % max_bytes)
        decoder.feed(chunk)
    decoder.finish()
    if decoder.class_map is None:
        raise BadClassInput(names.RECLASSIFY_QUERY, 'has no class section')
    return decoder.class_map


def check_size(class_map: ClassMap, size: Optional[int]) -> None:
    """Spans must lie inside the object.

    :raises BadClassInput: the last one does not
    """
    if size is not None and class_map.end > size:
        raise BadClassInput(
            names.RANGE_CLASS, "a range ends at byte %d, past the object's "
            '%d bytes' % (class_map.end, size))
