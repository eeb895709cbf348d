"""Turn every failure of a foreign parser into one error.

Bytes from elsewhere may hold a JSON list in place of an object, an infinite
number, or brackets nested a hundred thousand deep; base64 and zlib raise
errors of their own. The reader of a record needs one fact: the record is
damaged.
"""

from __future__ import annotations

import zlib
from contextlib import contextmanager
from typing import Iterator

from swift_dss.core.errors import DamagedRecord

#: binascii's and json's errors, and those of str and bytes, are ValueErrors;
#: LookupError is a key or an index that is not there.
_ODD = (ValueError, LookupError, TypeError, AttributeError, OverflowError,
        RecursionError, zlib.error)


@contextmanager
def parsing(record: str) -> Iterator[None]:
    """Around a parser: whatever is odd in a record is one error.

    :param record: what to call the record in errors
    :raises DamagedRecord: the parser raised
    """
    try:
        yield
    except _ODD as err:
        raise DamagedRecord('%s: %s: %s' % (
            record, type(err).__name__, str(err)[:200])) from err
