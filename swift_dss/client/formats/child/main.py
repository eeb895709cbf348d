"""Classify one file, confined: ``python -m`` this module.

stdin is a job, a JSON object:

==========  ==============================================================
parent      process id; the child ends with it
size        bytes of the file
pieces      [offset, bytes, number of an open file] in order; each file has
            its bytes at the same offsets
spans       changes of class that the server takes
memory      bytes that may be allocated
cpu         seconds
==========  ==============================================================

stdout gets one JSON object: ``{"format": name, "ranges": [[offset, bytes],
...]}``, or ``{"error": kind, "reason": text}`` with one of the kinds below.
The child is of use only once its walls stand: it reads no byte of the file
before.
"""

from __future__ import annotations

import bisect
import contextlib
import importlib
import json
import os
import sys
from typing import Any, Dict, List, Sequence

from swift_dss.client.formats import known
from swift_dss.client.formats.child import walls
from swift_dss.client.formats.child.walls import NoWalls
from swift_dss.client.formats.contract import (
    BadFile, MissingLibrary, NoSuchFormat, Reader, reason_of)
from swift_dss.client.formats.plan import Limits

#: Kinds of errors: the walls do not stand; no format fits; the file is not
#: what it says; a library is missing; the classifier failed.
NO_WALLS, UNKNOWN, BAD, MISSING, CLASSIFIER_FAILED = (
    'no_walls', 'unknown', 'bad', 'missing', 'failed')
#: Longest answer: a child cannot write more.
ANSWER_BYTES = 1 << 20
#: Modules that classifiers import when they are called.
_LATE = ('av', 'h5py', 'pyarrow', 'pyarrow.ipc', 'pyarrow.orc',
         'pyarrow.parquet', 'zipfile', 'encodings.cp437', 'encodings.utf_8',
         'encodings.latin_1', 'encodings.utf_16_le')


class Pieces(Reader):
    """A file whose bytes lie in several.

    :param pieces: (offset, bytes, number of an open file), in order
    """

    def __init__(self, size: int, pieces: Sequence[Sequence[int]]) -> None:
        super().__init__(size)
        self._pieces = pieces
        self._starts = [piece[0] for piece in pieces]

    def read(self, offset: int, length: int) -> bytes:
        """See :class:`Reader`."""
        end = min(self.size, offset + length)
        parts: List[bytes] = []
        while offset < end:
            at = bisect.bisect_right(self._starts, offset) - 1
            start, held, handle = self._pieces[at]
            raw = os.pread(handle, min(end, start + held) - offset, offset)
            if not raw:
                raise OSError('the file ends at byte %d' % offset)
            parts.append(raw)
            offset += len(raw)
        return b''.join(parts)


def answer(job: Dict[str, Any]) -> Dict[str, Any]:
    """Put up the walls, then classify."""
    try:
        walls.die_with(job['parent'])
        _import_all()
        walls.limit(job['memory'], job['cpu'], ANSWER_BYTES)
        walls.close_in()
    except NoWalls as err:
        return _error(NO_WALLS, err)
    try:
        made = known.classify(Pieces(job['size'], job['pieces']),
                              limits=Limits(job['spans']))
    except NoSuchFormat as err:
        return _error(UNKNOWN, err)
    except BadFile as err:
        return _error(BAD, err)
    except MissingLibrary as err:
        return _error(MISSING, err)
    except Exception as err:
        return _error(CLASSIFIER_FAILED, err)
    return {'format': made.format_name, 'ranges': made.plan.ranges}


def _import_all() -> None:
    """Behind the walls no file is opened, and so no module."""
    list(known.formats())
    for name in _LATE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _error(kind: str, err: Exception) -> Dict[str, Any]:
    return {'error': kind, 'reason': reason_of(err)}


def main() -> None:
    """Do the job of stdin."""
    said = json.dumps(answer(json.load(sys.stdin)))
    os.write(1, said.encode('ascii'))
    # No library may clean up: it would need calls that are refused.
    os._exit(0)


if __name__ == '__main__':
    main()
