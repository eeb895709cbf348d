"""The lifecycle configuration of a bucket, as its container keeps it.

JSON, compressed, in base64, cut over ``<name>-0``, ``<name>-1``, ... in the
container's sysmeta: all requests for the container fetch it, so it is short.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any, Dict, List, Mapping, Optional

from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.lifecycle import Lifecycle, Rule, Transition, When
from swift_dss.core.limits import (
    LIFECYCLE_CHUNK_BYTES, MAX_LIFECYCLE_BYTES, MAX_LIFECYCLE_CHUNKS)

_FIELD = 'lifecycle configuration'


def to_headers(name: str, lifecycle: Optional[Lifecycle]) -> Dict[str, str]:
    """Headers of a POST that sets a container's configuration.

    :param lifecycle: None takes it away
    :raises TooManySpans: it takes more room than there is
    """
    text = '' if lifecycle is None else encode(lifecycle)
    return {'%s-%d' % (name, number): text[
        number * LIFECYCLE_CHUNK_BYTES:(number + 1) * LIFECYCLE_CHUNK_BYTES]
        for number in range(MAX_LIFECYCLE_CHUNKS)}


def from_headers(name: str,
                 headers: Mapping[str, str]) -> Optional[Lifecycle]:
    """The configuration in a container's headers; None if it has none.

    :raises BadClassInput: it is damaged
    """
    text = ''.join(headers.get('%s-%d' % (name, number)) or ''
                   for number in range(MAX_LIFECYCLE_CHUNKS))
    return decode(text) if text else None


def encode(lifecycle: Lifecycle) -> str:
    """The stored text: ASCII.

    :raises TooManySpans: it takes more room than there is
    """
    raw = json.dumps([_row(rule) for rule in lifecycle.rules],
                     separators=(',', ':')).encode()
    text = base64.b64encode(zlib.compress(raw, 9)).decode('ascii')
    most = LIFECYCLE_CHUNK_BYTES * MAX_LIFECYCLE_CHUNKS
    if len(text) > most or len(raw) > MAX_LIFECYCLE_BYTES:
        raise TooManySpans(_FIELD, 'its %d rules take %d bytes when they are '
                           'stored, and there is room for %d: use fewer '
                           'rules, or shorter prefixes and tags' % (
                               len(lifecycle.rules), len(text), most))
    return text


def decode(text: str) -> Lifecycle:
    """The configuration that :func:`encode` wrote.

    :raises BadClassInput: it is damaged
    """
    try:
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(base64.b64decode(text, validate=True),
                                  MAX_LIFECYCLE_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise ValueError('too long, or cut off')
        return Lifecycle(tuple(_rule(row) for row in json.loads(raw)))
    except (ValueError, TypeError, IndexError, KeyError, zlib.error,
            binascii.Error, RecursionError) as err:
        raise BadClassInput(_FIELD, 'is damaged: %s' % err) from err


def _row(rule: Rule) -> List[Any]:
    return [rule.rule_id, int(rule.is_enabled), int(rule.is_old), rule.prefix,
            rule.tags, rule.size_over, rule.size_under,
            [[*_when_row(transition.when), transition.storage_class]
             for transition in rule.transitions],
            _when_row(rule.expiration) if rule.expiration else None]


def _when_row(when: When) -> List[Optional[int]]:
    return [when.days, when.date]


def _rule(row: Any) -> Rule:
    (rule_id, is_enabled, is_old, prefix, tags, size_over, size_under,
     transitions, expiration) = row
    return Rule(
        _text(rule_id), bool(is_enabled), _text(prefix),
        tuple((_text(key), _text(value)) for key, value in tags),
        _number(size_over), _number(size_under),
        tuple(Transition(_when(days, date), _text(storage_class))
              for days, date, storage_class in transitions),
        None if expiration is None else _when(*expiration), bool(is_old))


def _when(days: Any, date: Any) -> When:
    when = When(_number(days), _number(date))
    if (when.days is None) == (when.date is None):
        raise ValueError('neither days nor a date, or both')
    return when


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise ValueError('not a text: %r' % (text,))
    return text


def _number(number: Any) -> Optional[int]:
    if number is not None and type(number) is not int:
        raise ValueError('not a number: %r' % (number,))
    return number
