"""Out-of-band classification: POSTs that give an object other classes.

A POST that only classifies sends the object servers the class map alone;
they merge it with the metadata that is there (``objserver.posts``). What
stock object servers have is one: there, the next POST erases the classes
unless it sets them again, so each POST repeats the class map with its time,
which costs a HEAD.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping, Optional

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import (
    HTTPServiceUnavailable, Request, Response, wsgi_quote)
from swift.common.utils import Timestamp, close_if_possible
from swift.common.wsgi import WSGIContext, make_pre_authed_request

from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.limits import (
    DEFAULT_MAX_DSS_SECTION_BYTES, DEFAULT_MAX_SPANS)
from swift_dss.core.spans import ClassMap
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.target import Target
from swift_dss.proxy.trusted import Carried, env_key, set_headers
from swift_dss.proxy.work.rows import Unreachable
from swift_dss.proxy.wsgi import App, Body, Env, Start
from swift_dss.wire import names, registers
from swift_dss.wire.dssfile import Decoder


_READ_BYTES = 65536
_META = 'HTTP_X_OBJECT_META_'
#: In the environment of a POST: its metadata is the object's own, so a class
#: in it is nobody's wish.
SAME_METADATA = 'swift_dss.same_metadata'
#: Headers that a POST may set beside the object's metadata.
KEPT = ('Content-Encoding', 'Content-Disposition', 'Content-Language',
        'Cache-Control', 'Expires', 'X-Robots-Tag', 'X-Delete-At',
        stored.DYNAMIC)
_SETS_METADATA = frozenset(
    [env_key(name) for name in (*KEPT, names.S3_TAGGING)] + [
        'HTTP_X_DELETE_AFTER', 'HTTP_X_REMOVE_DELETE_AT'])


def head(env: Env, app: Any, target: Target, newest: bool = False,
         also: Mapping[str, str] = MappingProxyType({})) -> Response:
    """The object's answer to a HEAD, its body closed.

    :param newest: ask every replica
    :param also: more headers of the question
    """
    headers = dict(also)
    if newest:
        headers['X-Newest'] = 'true'
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


def look(env: Env, app: Any, target: Target, newest: bool = False,
         also: Mapping[str, str] = MappingProxyType({})
         ) -> Optional[Mapping[str, str]]:
    """The headers of an object or a container; None if there is none.

    :param newest: ask every replica
    :param also: more headers of the question
    :raises Unreachable: it cannot be looked at now
    """
    answer = head(env, app, target, newest, also)
    if answer.status_int == 404:
        return None
    if not answer.is_success:
        raise Unreachable('%s: HEAD gives %d' % (
            target.path, answer.status_int))
    headers: Mapping[str, str] = answer.headers
    return headers


def is_by_body(env: Env) -> bool:
    """True for ``POST ?dss-classes``, whose body is a class section."""
    return names.RECLASSIFY_QUERY in (env.get('QUERY_STRING') or '') and \
        names.RECLASSIFY_QUERY in Request(env).params


def check_form(is_file_form: bool, is_said_twice: bool) -> None:
    """Check how a POST gives classes.

    :param is_said_twice: by its body and by headers
    :raises BadClassInput: not as a POST can
    """
    if is_file_form:
        raise BadClassInput(names.OBJECT_FILE, 'a POST has no data; send a '
                            'class section to ?%s' % names.RECLASSIFY_QUERY)
    if is_said_twice:
        raise BadClassInput(names.RECLASSIFY_QUERY, 'the body carries the '
                            'classes, so no header can')


def repeated(env: Env) -> Optional[Carried]:
    """The metadata of a POST that repeats the object's own."""
    if SAME_METADATA not in env:
        return None
    return Carried(None, env.get(env_key(names.S3_CLASS_META), ''))


def keep_tags(env: Env, headers: Mapping[str, str]) -> None:
    """Send the object's tags of S3 again with a POST that sets none."""
    if env_key(names.S3_TAGGING) not in env and headers.get(names.S3_TAGGING):
        set_headers(env, {names.S3_TAGGING: headers[names.S3_TAGGING]})


def sets_metadata(env: Env) -> bool:
    """True if the POST also sets metadata, as any POST may.

    One that only gives classes leaves the metadata as it is.
    """
    return any(key in _SETS_METADATA or key.startswith(_META)
               for key in env)


def classify(env: Env, start: Start, app: App, target: Target,
             at: str = '') -> Body:
    """POST the class map that ``env`` has, and nothing else.

    Object servers without this, if they are the most of the object's,
    refuse it: then the metadata goes along, as it is now. Of two POSTs at a
    time one may be lost there, as before.

    :param at: when it was decided, as a timestamp; '' is now
    :raises HTTPException: the metadata cannot be looked at
    """
    alone = dict(env)
    set_headers(alone, registers.class_alone(
        at or Timestamp.now().internal))
    context = WSGIContext(app)
    answer: Body = context._app_call(alone)
    headers = context._response_headers
    if context._response_status.startswith('409') and \
            names.MAP_AT not in HeaderKeyDict(headers):
        close_if_possible(answer)
        before = head(env, app, target, newest=True)
        if not before.is_success:
            raise HTTPServiceUnavailable(
                body=b'The object cannot be looked at now.')
        _keep_metadata(env, before.headers)
        return app(env, start)
    start(context._response_status, headers, context._response_exc_info)
    return answer


def _keep_metadata(env: Env, headers: Mapping[str, str]) -> None:
    """Send the object's own metadata again with this POST."""
    for name, value in headers.items():
        lowered = name.lower()
        if is_posted(name) or (
                lowered.startswith('x-object-transient-sysmeta-')
                and not lowered.startswith(_NOT_KEPT)):
            env[env_key(name)] = value


def is_posted(name: str) -> bool:
    """True for a header of metadata that a client may POST."""
    return name.lower().startswith('x-object-meta-') or name.title() in KEPT


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
        # Past the section, one byte is too many.
        chunk = stream.read(min(_READ_BYTES, decoder.wanted_bytes or 1))
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
