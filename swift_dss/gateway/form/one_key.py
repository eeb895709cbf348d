"""Tell the failure of one key from a failure of all.

A walk of the bucket meets keys that are damaged, archived, sealed under a lost
key, planted, or always answered with 500. It skips, counts and names such a
key, and goes on. An S3 that is away, a prefix of another cluster or a full
disk is not the failure of a key: these end the walk. A server that refuses
every key tells nothing about any of them, so too many failures in a row end it
too.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Callable, Iterator

from swift_dss.core.errors import (
    BadConfig, DamagedRecord, DssError, RemoteCorrupt, RemoteUnavailable)
from swift_dss.gateway.form.encrypt import WrongSeal
from swift_dss.gateway.link.breaker import DEFAULT_THRESHOLD
from swift_dss.gateway.link.client import (
    S3Archived, S3Down, S3Missing, S3Rejected)

#: Refused or unanswered one after the other, with none in between that was
#: not. More than the breaker lets fail before it opens.
MAX_IN_A_ROW = 20
#: So often a key is asked for that S3 does not answer for, by a round that
#: takes its time.
MAX_TRIES = DEFAULT_THRESHOLD + 1
#: Errors of a single key, which tell nothing of the others.
_ITS_OWN = (DamagedRecord, RemoteCorrupt, WrongSeal, BadConfig, S3Archived)


class KeyFailures:
    """Decides for the keys of a walk, and of those after it. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_a_row = 0

    @contextmanager
    def of(self, key: str,
           skipped: Callable[[str, str], None]) -> Iterator[None]:
        """Around all that is done with one key. A key that is not there any
        more is no failure.

        :param skipped: told the key, and why it is skipped
        :raises DssError: it is not this key's failure
        """
        try:
            yield
        except S3Missing:
            self._went_well()
        except _ITS_OWN as err:
            self._went_well()
            skipped(key, str(err))
        except S3Down:
            raise
        except (S3Rejected, RemoteUnavailable) as err:
            if self._failed():
                raise
            skipped(key, str(err))
        else:
            self._went_well()

    def _went_well(self) -> None:
        with self._lock:
            self._in_a_row = 0

    def _failed(self) -> bool:
        """True if it cannot be the keys."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row <= MAX_IN_A_ROW:
                return False
            # The next walk looks for itself.
            self._in_a_row = 0
            return True


class Tries:
    """Judge a failure of one key in a round that waits and tries again while
    S3 is away.

    With S3 away the breaker opens before the tries are used up: then nothing
    is known of the key, and the tries start over.
    """

    def __init__(self) -> None:
        self._left = MAX_TRIES

    def are_used_up(self, err: DssError) -> bool:
        """Another try failed; True if that is this key's failure, and the
        next key's turn."""
        self._left = MAX_TRIES if isinstance(err, S3Down) else self._left - 1
        return self._left <= 0
