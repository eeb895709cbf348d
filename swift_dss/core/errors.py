"""The one error tree.

Each class carries the HTTP status a server answers with, the exit code a
command ends with and the name of the counter that goes up. Placement
errors fail open (the data is written unclassified and counted); integrity
errors fail closed.
"""

from __future__ import annotations

import errno
from typing import Optional


class DssError(Exception):
    """Anything of ours that a user or operator can meet."""

    http_status = 500
    exit_code = 1
    counter = 'errors'


class BadClassInput(DssError):
    """A header, file or option that a client gave is wrong.

    :param field: the header, option or section that is wrong
    :param reason: one sentence, without the field's name
    :param position: byte, character or entry at fault, if it has one
    """

    http_status = 400
    exit_code = 2
    counter = 'bad_input'

    def __init__(self, field: str, reason: str,
                 position: Optional[int] = None) -> None:
        where = '' if position is None else ' at %d' % position
        super().__init__('%s%s: %s' % (field, where, reason))
        self.field = field
        self.reason = reason
        self.position = position


class TooManySpans(BadClassInput):
    """A class map over the limit published in ``/info``."""

    http_status = 413
    counter = 'too_many_spans'


class ClassNotAllowed(BadClassInput):
    """The account may not use this class."""

    http_status = 403
    counter = 'class_not_allowed'


class OfLargeObject(DssError):
    """The object is a segment, and its manifest says which class it has."""

    http_status = 409
    counter = 'of_large_object'


class BadConfig(DssError):
    """A configuration file, option or pipeline that cannot be used."""

    exit_code = 78
    counter = 'bad_config'


class DamagedRecord(DssError):
    """A residency record or index row that fails its checksum."""

    exit_code = 65
    counter = 'damaged_records'


class RottenBytes(DamagedRecord):
    """A block of a local tier has other bytes than were written there."""

    counter = 'rotten'


class TierUnavailable(DssError):
    """A tier of this node is not there (an unmounted HDD, for one)."""

    http_status = 507
    exit_code = 69
    counter = 'tier_unavailable'


class RemoteUnavailable(DssError):
    """S3 did not answer within the deadline.

    :param retry_after_seconds: when the client should come back
    """

    http_status = 503
    exit_code = 75
    counter = 'remote_unavailable'

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class RemoteCorrupt(DssError):
    """S3 answered with bytes that are not the ones we stored."""

    http_status = 503
    exit_code = 76
    counter = 'remote_corrupt'


class TierFull(DssError):
    """No room on a tier for bytes that must go there."""

    http_status = 507
    exit_code = 73
    counter = 'tier_full'


class Pinned(DssError):
    """The version was pinned after it had been chosen to leave."""

    http_status = 409
    counter = 'pinned'


class VersionGone(DssError):
    """The version was overwritten, deleted or moved during the call."""

    http_status = 404
    exit_code = 1
    counter = 'version_gone'


#: errno values that mean "no room", translated once at the system call.
FULL_ERRNOS = frozenset((errno.ENOSPC, errno.EDQUOT))
