"""An object that S3's RestoreObject gave another class for some days.

Stored beside the class map that does so, with the map of before: whatever sets
another class map removes both. ``<until> <state>``, and ``<given by>`` if
there is one: a header's value does not end in a space.
"""

from __future__ import annotations

import re
from email.utils import formatdate
from typing import Mapping, NamedTuple, Optional

from swift_dss.wire import names

#: The latest end: the last midnight that a header can name.
LAST = 253402214400
_TEXT = re.compile(r'(\d{1,12}) (ongoing|done)(?: ([a-z]+))?')


class Restored(NamedTuple):
    """A restoration.

    :param until: seconds since the epoch; then the class of before is due
    :param is_done: all bytes have come to the SSD since it began
    :param given_by: the giver of the class of before; '' for a client
    """

    until: int
    is_done: bool
    given_by: str = ''


def encode(restored: Restored) -> str:
    """The stored text: ASCII."""
    return ('%d %s %s' % (restored.until, 'done' if restored.is_done
                          else 'ongoing', restored.given_by)).strip()


def of_headers(headers: Mapping[str, str]) -> Optional[Restored]:
    """The restoration of an object; None if there is none, or none that can
    be read: it then keeps its class."""
    told = _TEXT.fullmatch(headers.get(names.RESTORED) or '')
    return told and Restored(int(told.group(1)), told.group(2) == 'done',
                             told.group(3) or '')


def shown(headers: Mapping[str, str]) -> str:
    """``x-amz-restore`` of an object; '' if it was not restored."""
    restored = of_headers(headers)
    if restored is None:
        return ''
    if not restored.is_done:
        return 'ongoing-request="true"'
    return 'ongoing-request="false", expiry-date="%s"' % formatdate(
        min(restored.until, LAST), usegmt=True)
