"""tar: the header of each member.

Needed: all headers, those of long names and pax with them, the byte in front
of each (Python's tarfile reads it to see that the archive goes on), and the
blocks at the end. A tar has no other index: a list of its members reads every
header. So

* an archive whose members are shorter than 25 KiB on average has more than
  2 % of its bytes hot, and one of very short members all of them;
* an archive of more members than the server takes ranges cannot be
  classified, unless its members are so short that joined ranges do.

A compressed tar is no tar: nothing in it can be read without all before it.
"""

from __future__ import annotations

import struct
import tarfile
from typing import Iterator

from swift_dss.client.formats.contract import (
    BadFile, Format, Hot, Reader, Wish, reason_of)
from swift_dss.client.formats.readers import AsFile

_BLOCK_BYTES = 512
#: POSIX pads an archive to records of 20 blocks.
_RECORD_BYTES = 20 * _BLOCK_BYTES
#: Names and pax headers of one member.
_MAX_HEADER_BYTES = 1 << 20


def _fits(reader: Reader) -> bool:
    return reader.read(257, 5) == b'ustar'


def _hot(reader: Reader, _: Wish) -> Iterator[Hot]:
    at = 0
    try:
        with tarfile.open(fileobj=AsFile(reader, _MAX_HEADER_BYTES),
                          mode='r:') as archive:
            while True:
                member = archive.next()
                if member is None:
                    at = archive.offset
                    break
                # Else it keeps them all.
                archive.members = []  # type: ignore[attr-defined]
                at = member.offset
                length = member.offset_data - at
                reader.check(at, length, 'tar header')
                reader.check(member.offset_data, 0 if member.issparse()
                             else member.size, 'tar member')
                yield Hot(max(0, at - 1), length + 1)
    except (tarfile.TarError, ValueError, OverflowError, LookupError,
            RecursionError, struct.error) as err:
        raise BadFile('tar header', reason_of(err), at) from err
    if any(reader.read(at, _BLOCK_BYTES)):
        raise BadFile('tar header', 'has a wrong checksum', at)
    yield Hot(max(0, at - 1), _RECORD_BYTES + 1)


FORMAT = Format('tar', _fits, _hot)
