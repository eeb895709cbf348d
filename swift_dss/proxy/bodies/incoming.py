"""Turn a PUT's headers into the requested classes and the facts of rules."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple

from swift.common.swob import Request, wsgi_to_str

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import DEFAULT_MAX_SPANS
from swift_dss.core.rules import RequestFacts
from swift_dss.core.spans import Span
from swift_dss.proxy.bodies import versioned
from swift_dss.proxy.settings import State
from swift_dss.proxy.target import Target
from swift_dss.proxy.trusted import Carried, env_key
from swift_dss.proxy.wsgi import Env
from swift_dss.wire import names
from swift_dss.wire.headers import (
    parse_flag, parse_object_class, parse_ranges)


_OBJECT_CLASS = env_key(names.OBJECT_CLASS)
_RANGE_CLASS = env_key(names.RANGE_CLASS)
_OBJECT_FILE = env_key(names.OBJECT_FILE)
_STORAGE_CLASS = env_key(names.STORAGE_CLASS)
_META_CLASS = env_key(names.S3_CLASS_META)
#: s3api's header for the content type of an upload's final object.
_UPLOAD_TYPE = 'HTTP_X_OBJECT_SYSMETA_S3API_CONTENT_TYPE'
_SLO_SIZE = 'HTTP_X_OBJECT_SYSMETA_SLO_SIZE'
_STATIC = 'HTTP_X_STATIC_LARGE_OBJECT'


class Asked(NamedTuple):
    """The classes that a request names.

    :param field: the header that named ``object_class``
    :param file_form: the body is a ``.dss`` object, or shall be one
    :param as_new: of a copy: do not take its source's class
    """

    object_class: Optional[int] = None
    ranges: Tuple[Span, ...] = ()
    file_form: bool = False
    field: str = names.OBJECT_CLASS
    as_new: bool = False

    @property
    def anything(self) -> bool:
        """True if the request names a class at all."""
        return bool(self.object_class is not None or self.ranges
                    or self.file_form)


NOTHING_ASKED = Asked()


def asked(env: Env, table: ClassTable, size: Optional[int],
          max_spans: int = DEFAULT_MAX_SPANS,
          carried: Optional[Carried] = None) -> Asked:
    """The classes that the headers of a PUT or POST name.

    A storage class counts if there is no header of ours, and then metadata
    ``X-Object-Meta-Dss-Class`` (S3's ``x-amz-meta-dss-class``), unless a copy
    took it from its source.

    :param size: the object's size where it is known
    :raises BadClassInput: a value is wrong, or two contradict each other
    :raises TooManySpans: more ranges than ``max_spans``
    """
    object_text = env.get(_OBJECT_CLASS)
    range_text = env.get(_RANGE_CLASS)
    file_form = _OBJECT_FILE in env and wants_file_form(env)
    meta_text = env.get(_META_CLASS)
    stored_as = env.get(_STORAGE_CLASS)
    if object_text is None and range_text is None and not file_form \
            and not meta_text and stored_as is None:
        return NOTHING_ASKED
    if file_form:
        if object_text is not None or range_text is not None:
            raise BadClassInput(
                names.OBJECT_FILE, 'the body carries the classes, so %s and '
                '%s cannot be given too' % (names.OBJECT_CLASS,
                                            names.RANGE_CLASS))
        return Asked(file_form=True, field=names.OBJECT_FILE)
    object_class = None
    field = names.OBJECT_CLASS
    ranges: Tuple[Span, ...] = ()
    if object_text is not None:
        object_class = parse_object_class(wsgi_to_str(object_text), table)
    elif stored_as is not None:
        field = names.STORAGE_CLASS
        object_class = _of_storage_class(stored_as.strip(), table)
    if object_class is None and meta_text and not (
            carried and carried.meta_class == meta_text):
        field = names.S3_CLASS_META
        object_class = parse_object_class(
            wsgi_to_str(meta_text), table, field)
    if range_text is not None:
        ranges = parse_ranges(wsgi_to_str(range_text), table, size,
                              max_spans)
    return Asked(object_class, ranges, False, field,
                 as_new=stored_as is not None and object_class is None)


def _of_storage_class(name: str, table: ClassTable) -> Optional[int]:
    """None for S3's own STANDARD, which is no wish: some clients send it with
    every upload.
    """
    known = table.storage_classes
    if name == names.STANDARD:
        return known.get(name)
    if name not in known:
        raise BadClassInput(names.STORAGE_CLASS, '%s is none of %s' % (
            ascii(name[:48]), ', '.join([names.STANDARD, *sorted(known)])))
    return known[name]


def consume(env: Env) -> None:
    """Take our headers off a request: the storage servers get the map."""
    for key in (_OBJECT_CLASS, _RANGE_CLASS, _OBJECT_FILE, _STORAGE_CLASS):
        env.pop(key, None)


def wants_file_form(env: Env) -> bool:
    """``X-DSS-Object-File: True``.

    :raises BadClassInput: the header is neither True nor False
    """
    text = env.get(_OBJECT_FILE)
    return text is not None and \
        parse_flag(names.OBJECT_FILE, wsgi_to_str(text))


def without_file_form(env: Env) -> None:
    """Take the wish for it off the requests of a copy, which has none."""
    env.pop(_OBJECT_FILE, None)


def is_manifest_put(env: Env) -> bool:
    """True if the body is, or stands for, a list of segments."""
    return 'HTTP_X_STATIC_LARGE_OBJECT' in env or \
        bool(env.get('HTTP_X_OBJECT_MANIFEST'))


def check_manifest(asked: Asked) -> None:
    """A manifest is no ``.dss`` body.

    :raises BadClassInput: it was said to be one
    """
    if asked.file_form:
        raise BadClassInput(
            names.OBJECT_FILE, 'a manifest is a list of segments; give the '
            'large object its class section with POST ?%s'
            % names.RECLASSIFY_QUERY)


def body_size(env: Env) -> Optional[int]:
    """Bytes of the request's body; None for a chunked upload, and where
    object versioning does not say it."""
    try:
        length: Optional[int] = Request(env).message_length()
    except (ValueError, AttributeError):
        # Swift itself refuses unreadable values, with its own words.
        return None
    # Swift's proxy reads such a body to its end, too.
    return None if length == 0 and versioned.is_upload(env) else length


def facts(env: Env, target: Target, state: State, size: Optional[int],
          asked: Asked, container_class: Optional[int]) -> RequestFacts:
    """The facts that rules match, by the names that users know.

    A large object counts with the size of the whole; an S3 multipart
    upload that begins, with an unknown one.
    """
    source = env.get('swift.source')
    seen = target.user_names(source)
    content_type = env.get('CONTENT_TYPE') or ''
    if _STATIC in env and _SLO_SIZE in env:
        size = _number(env[_SLO_SIZE])
    elif target.is_upload_marker(source):
        size = None
        content_type = env.get(_UPLOAD_TYPE) or ''
    return RequestFacts(
        account=seen.account, container=seen.container, obj=seen.obj,
        user=_user(env), content_type=wsgi_to_str(content_type), size=size,
        headers=_headers(env) if state.rules.look_at_headers else {},
        object_class=asked.object_class, ranges=asked.ranges,
        container_class=container_class)


def _user(env: Env) -> str:
    """The user's name as the auth system says it.

    Trust only the values that auth itself put into the environment. tempauth
    gives the groups, of which ``account:user`` is the user.
    """
    identity = env.get('keystone.identity')
    if isinstance(identity, dict) and identity.get('user'):
        return str(identity['user'][1])
    groups = (env.get('REMOTE_USER') or '').split(',')
    return next((group for group in groups if ':' in group), groups[0])


def _headers(env: Env) -> Mapping[str, str]:
    return {key[5:].replace('_', '-').lower(): wsgi_to_str(value)
            for key, value in env.items()
            if key.startswith('HTTP_') and isinstance(value, str)}


def _number(text: str) -> Optional[int]:
    return int(text) if text.isdigit() else None
