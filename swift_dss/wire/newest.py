"""The question for the newest files of many objects, and its answer.

One request to an object server asks for objects of any of its devices and
partitions, so that a node is asked by the hundred. JSON both ways::

    {"v": 1, "records": false, "prove": false,
     "ask": [[device, policy, partition, hash, fragment or null], ...]}
    {"v": 1, "said": [[timestamp, key, local, quarantined, proven], null, ...]}

An answer's timestamp is that of the newest data file or tombstone, '' if
there is neither. Where ``records`` asks for it, its key is the S3 key that
the data file's record names, and ``local`` whether all bytes of that are on
the node's disks. ``quarantined`` is the timestamp of the newest data file of
the object in the device's quarantine, '' if there is none. Where ``prove``
asks for it, of one object, the server reads all bytes of that file from its
own disks, and ``proven`` says whether they are right; spaces come before the
answer meanwhile, so that no client takes the server for dead. Older servers do
not say the last three. None: the server cannot say (the device is not mounted,
the record is damaged).
"""

from __future__ import annotations

import json
import re
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import (
    MAX_ASKED, MAX_FRAGMENT_INDEX, MAX_POLICY_INDEX)

_HASH = re.compile(r'^[0-9a-f]{32}\Z')
_PARTITION = re.compile(r'^[0-9]{1,10}\Z')
_DEVICE = re.compile(r'^[^/.\0][^/\0]{0,254}\Z')
_VERSION = 1
Said = Optional[Tuple[str, str, bool, Optional[str], bool]]


class Asked(NamedTuple):
    """One object on one device."""

    device: str
    policy: int
    partition: str
    object_hash: str
    frag_index: Optional[int] = None


class Question(NamedTuple):
    """A question about some objects.

    :param asked: at most ``MAX_ASKED``
    :param records: which keys their records name
    :param prove: whether their bytes are right; of one object alone
    """

    asked: Sequence[Asked]
    records: bool
    prove: bool = False


def encode_question(question: Question) -> bytes:
    """As it goes over the wire."""
    return json.dumps({
        'v': _VERSION, 'records': question.records, 'prove': question.prove,
        'ask': [list(row) for row in question.asked]}).encode('ascii')


def decode_question(raw: bytes) -> Question:
    """Read a question.

    :raises DamagedRecord: it is no question
    """
    try:
        fields = json.loads(raw)
        asked = [_asked(*row) for row in fields['ask']]
        records, prove = fields['records'], fields.get('prove', False)
        if fields['v'] != _VERSION or not isinstance(records, bool) or \
                not isinstance(prove, bool) or len(asked) > MAX_ASKED or \
                prove and len(asked) != 1:
            raise ValueError('another version, or too many')
    except (ValueError, KeyError, TypeError, RecursionError) as err:
        raise DamagedRecord('question: %s' % err) from err
    return Question(asked, records, prove)


def encode_answer(said: Sequence[Said]) -> bytes:
    """In the order of the question."""
    return json.dumps({'v': _VERSION, 'said': list(said)}).encode('ascii')


def decode_answer(raw: bytes, count: int) -> List[Said]:
    """:raises DamagedRecord: it is no answer to ``count`` questions."""
    try:
        fields = json.loads(raw)
        said = [None if row is None else (
            _text(row[0]), _text(row[1]), row[2:3] == [True],
            row[3] if len(row) > 3 and isinstance(row[3], str) else None,
            row[4:5] == [True])
            for row in fields['said']]
        if fields['v'] != _VERSION or len(said) != count:
            raise ValueError('another version, or another number')
    except (ValueError, KeyError, TypeError, IndexError,
            RecursionError) as err:
        raise DamagedRecord('answer: %s' % err) from err
    return said


def _asked(device: Any, policy: Any, partition: Any, object_hash: Any,
           frag_index: Any) -> Asked:
    if not (_DEVICE.match(device) and _PARTITION.match(partition)
            and _HASH.match(object_hash) and type(policy) is int
            and 0 <= policy <= MAX_POLICY_INDEX and (
                frag_index is None or type(frag_index) is int
                and 0 <= frag_index <= MAX_FRAGMENT_INDEX)):
        raise ValueError('%r is no object' % ((
            device, policy, partition, object_hash, frag_index),))
    return Asked(device, policy, partition, object_hash, frag_index)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError('%r is no text' % (value,))
    return value
