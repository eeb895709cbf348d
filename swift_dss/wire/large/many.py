"""Many requests about objects in one, and its answer.

A proxy that classifies the segments of a large object sends an object server
their HEADs, and then their POSTs, by the hundred. JSON both ways::

    {"v": 1, "ask": [[method, path, {header: value, ...}], ...]}
    {"v": 1, "said": [[status, {header: value, ...}], ...]}

A path is that of a backend request, ``/device/partition/account/container/
object``, not quoted. A POST sets a class map and nothing else
(``wire.registers``). Text is WSGI's: a byte is a character.
"""

from __future__ import annotations

import json
from typing import Any, List, Mapping, NamedTuple, Sequence

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import MAX_ASKED
from swift_dss.wire import names
from swift_dss.wire.registers import NEVER

_VERSION = 1


class Ask(NamedTuple):
    """One request.

    :param method: HEAD or POST
    """

    method: str
    path: str
    headers: Mapping[str, str]


class Said(NamedTuple):
    """Its answer.

    :param headers: of a HEAD's success; else none
    """

    status: int
    headers: Mapping[str, str]


def encode_question(asked: Sequence[Ask]) -> bytes:
    """As it goes over the wire."""
    return json.dumps({'v': _VERSION, 'ask': asked}).encode('ascii')


def decode_question(raw: bytes) -> List[Ask]:
    """Read a question.

    :raises DamagedRecord: it is no question, or asks for more than it may
    """
    try:
        rows = _rows(raw, 'ask')
        asked = [Ask(_text(row[0]), _text(row[1]), _headers(row[2]))
                 for row in rows]
        if len(asked) > MAX_ASKED:
            raise ValueError('%d requests' % len(asked))
        for request in asked:
            _check(request)
    except (ValueError, KeyError, TypeError, IndexError,
            RecursionError) as err:
        raise DamagedRecord('many requests: %s' % err) from err
    return asked


def encode_answer(said: Sequence[Said]) -> bytes:
    """In the order of the question."""
    return json.dumps({'v': _VERSION, 'said': said}).encode('ascii')


def decode_answer(raw: bytes, count: int) -> List[Said]:
    """:raises DamagedRecord: it is no answer to ``count`` requests."""
    try:
        said = [Said(int(row[0]), _headers(row[1]))
                for row in _rows(raw, 'said')]
        if len(said) != count:
            raise ValueError('%d answers' % len(said))
    except (ValueError, KeyError, TypeError, IndexError,
            RecursionError) as err:
        raise DamagedRecord('answers to many requests: %s' % err) from err
    return said


def _check(request: Ask) -> None:
    if not request.path.startswith('/'):
        raise ValueError('%r is no path' % request.path[:80])
    if request.method == 'HEAD':
        return
    if request.method != 'POST' or \
            request.headers.get(names.META_AT) != NEVER:
        raise ValueError('a %s that sets more than classes'
                         % request.method[:20])


def _rows(raw: bytes, name: str) -> List[Any]:
    fields = json.loads(raw)
    rows = fields[name]
    if fields['v'] != _VERSION or not isinstance(rows, list):
        raise ValueError('another version')
    return rows


def _headers(value: Any) -> Mapping[str, str]:
    return {_text(name): _text(text) for name, text in value.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError('%r is no text' % (value,))
    value.encode('latin-1')
    return value
