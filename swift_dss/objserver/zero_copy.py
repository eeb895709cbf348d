"""Swift's zero-copy send with the disk moved out of the event loop.

After ``BaseDiskFileReader.zero_copy_send`` of Swift 2.38, step for step:
splice disk to pipe, tee to a second pipe, splice that into a kernel MD5
socket, splice the first to the client. Only the first step can wait for a
disk, and it runs in the SSD's pool with the class of the object. Needs
AF_ALG; where the kernel lacks it Swift never comes here.
"""

from __future__ import annotations

import binascii
import errno
import fcntl
import os
from typing import Any

from swift.common.splice import splice, tee
from swift.common.utils import (
    F_SETPIPE_SZ, MD5_OF_EMPTY_STRING, get_md5_socket)
from swift.obj.diskfile import DROP_CACHE_WINDOW

from swift_dss.io import waiting


def send(reader: Any, client_fd: int) -> None:
    """Send a whole object; leaves the MD5 of the sent bytes in ``reader``.

    Does not close the reader.
    """
    reader._started_at_0 = True
    reader._bytes_read = 0
    client_pipe, hash_pipe = os.pipe(), os.pipe()
    md5_fd = get_md5_socket()
    try:
        size = fcntl.fcntl(client_pipe[0], F_SETPIPE_SZ, reader._pipe_size)
        fcntl.fcntl(hash_pipe[0], F_SETPIPE_SZ, size)
        _pump(reader, client_fd, client_pipe, hash_pipe, md5_fd, size)
    finally:
        if reader._bytes_read:
            reader._md5_of_sent_bytes = binascii.hexlify(
                os.read(md5_fd, 16)).decode('ascii')
        else:
            # Linux MD5 sockets answer all zeros if nothing was written.
            reader._md5_of_sent_bytes = MD5_OF_EMPTY_STRING
        for fd in client_pipe + hash_pipe + (md5_fd,):
            os.close(fd)


def _pump(reader: Any, client_fd: int, client_pipe: Any, hash_pipe: Any,
          md5_fd: int, size: int) -> None:
    fd = reader._fp.fileno()
    dropped = 0
    while True:
        in_pipe = reader.dss_bytes.splice_here(
            splice, fd, client_pipe[1], size)
        if not in_pipe:
            reader._read_to_eof = True
            reader._drop_cache(fd, dropped, reader._bytes_read - dropped)
            return
        reader._bytes_read += in_pipe
        copied = tee(client_pipe[0], hash_pipe[1], in_pipe, 0)
        if copied != in_pipe:
            # The digest would be wrong, and a good object quarantined.
            raise OSError(errno.EIO, 'tee() moved %d of %d bytes'
                          % (copied, in_pipe))
        hashed = splice(hash_pipe[0], None, md5_fd, None, in_pipe,
                        splice.SPLICE_F_MORE)[0]
        if hashed != in_pipe:
            raise OSError(errno.EIO, 'md5 socket took %d of %d bytes'
                          % (hashed, in_pipe))
        _to_client(client_pipe[0], client_fd, in_pipe)
        if reader._bytes_read - dropped > DROP_CACHE_WINDOW:
            reader._drop_cache(fd, dropped, reader._bytes_read - dropped)
            dropped = reader._bytes_read


def _to_client(pipe_fd: int, client_fd: int, length: int) -> None:
    while length > 0:
        try:
            length -= splice(pipe_fd, None, client_fd, None, length, 0)[0]
        except OSError as err:
            if err.errno != errno.EWOULDBLOCK:
                raise
            waiting.until_writable(client_fd)
