"""A trace file as a stream of bytes, whatever it is packed with.

gzip, xz and zstd are known by their first bytes; zstd takes the program of
that name. Nothing is unpacked to disk.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import shutil
import subprocess
import sys
import zlib
from typing import IO, Any, Iterator

from swift_dss.replay.traces.model import BadTrace

_GZIP, _XZ, _ZSTD = b'\x1f\x8b', b'\xfd7zXZ\x00', b'\x28\xb5\x2f\xfd'
#: Suffixes that say how a file is packed, and not what it is.
PACKED = ('.gz', '.xz', '.zst')
STDIN = '-'


@contextlib.contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """The unpacked bytes of ``path``; ``-`` is standard input.

    :raises BadTrace: it cannot be opened, or turns out to be damaged
    """
    try:
        with contextlib.ExitStack() as stack:
            raw = sys.stdin.buffer if path == STDIN else \
                stack.enter_context(open(path, 'rb'))
            yield _unpacked(path, raw, stack)
    except (EOFError, lzma.LZMAError, zlib.error) as err:
        raise BadTrace(path, '', '', 'damaged: %s' % err) from err
    except OSError as err:
        raise BadTrace(path, '', '', err.strerror or str(err)) from err


def _unpacked(path: str, raw: Any,
              stack: contextlib.ExitStack) -> IO[bytes]:
    magic: bytes = raw.peek(6)[:6]
    if magic.startswith(_GZIP):
        return io.BufferedReader(stack.enter_context(
            gzip.open(raw)))
    if magic == _XZ:
        return io.BufferedReader(stack.enter_context(
            lzma.open(raw)))
    if not magic.startswith(_ZSTD):
        plain: IO[bytes] = raw
        return plain
    if path == STDIN:
        raise BadTrace(path, '', '', 'zstd on standard input: unpack it '
                       'with "zstd -dc |" before')
    if not shutil.which('zstd'):
        raise BadTrace(path, '', '', 'reading it takes the program zstd')
    return stack.enter_context(_from_zstd(path))


@contextlib.contextmanager
def _from_zstd(path: str) -> Iterator[IO[bytes]]:
    with subprocess.Popen(
            ['zstd', '-dcq', '--', path], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE) as packer:
        assert packer.stdout is not None and packer.stderr is not None
        try:
            yield packer.stdout
        finally:
            if packer.stdout.read(1):
                # The reader stopped before the end.
                packer.kill()
            elif packer.wait():
                # Any other error in the stream comes from this.
                said = packer.stderr.read().decode('utf-8', 'replace')
                raise BadTrace(path, '', '', 'damaged: %s' % said.strip())
