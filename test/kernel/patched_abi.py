"""What classified vectors do, call by call. Runs in a laboratory guest.

``patched_abi.py DEVICE KIND...`` makes file systems of each kind and prints
one line of JSON for each statement about the interface: file system, name,
and '' or what was found instead. An unpatched kernel fails most of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import struct
import sys
from typing import Any, Callable, Iterator, List, Sequence, Tuple

import uring
from patched_view import mounted

from swift_dss.io.carriers.classified import O_CLASSIFIED, RWF_CLASSIFIED

_LIBC = ctypes.CDLL(None, use_errno=True)
_OPENAT2, _IOPRIO_GET = 437, 252
_IO_SETUP, _IO_SUBMIT = 206, 209
_AIO_PREAD, _AIO_PREADV = 0, 7
#: It has two names.
_REFUSED = errno.errorcode[errno.EOPNOTSUPP]
_PAGE = bytes(range(256)) * 16

Check = Callable[[str], Any]
CHECKS: List[Tuple[str, Check]] = []


def check(function: Check) -> Check:
    """A statement: returns None or '' if it holds, else what was found."""
    CHECKS.append((function.__name__, function))
    return function


def first(class_id: int) -> bytearray:
    return bytearray((class_id,))


def opened(path: str, flags: int = os.O_RDWR) -> int:
    return os.open(path, flags | O_CLASSIFIED | os.O_CREAT, 0o600)


def differs(result: Any, wanted: Any) -> str:
    return '' if result == wanted else '%r, not %r' % (result, wanted)


def refusal(call: Callable[..., Any], *args: Any) -> str:
    """The name of the errno that a call fails with."""
    try:
        return 'success: %r' % (call(*args),)
    except OSError as err:
        return errno.errorcode[err.errno or 0]


def filled(path: str, data: bytes = _PAGE) -> int:
    """A classified descriptor of a file with these bytes."""
    with open(path, 'wb') as target:
        target.write(data)
    return opened(path)


@check
def the_flag_is_shown(path: str) -> str:
    shown = fcntl.fcntl(opened(path), fcntl.F_GETFL)
    return differs(shown & O_CLASSIFIED, O_CLASSIFIED)


@check
def openat2_knows_the_flag(path: str) -> str:
    how = struct.pack('=QQQ', os.O_RDWR | O_CLASSIFIED | os.O_CREAT,
                      0o600, 0)
    fd = _LIBC.syscall(_OPENAT2, -100, path.encode(), how, len(how))
    return '' if fd >= 0 else errno.errorcode[ctypes.get_errno()]


@check
def setfl_does_not_switch_it(path: str) -> str:
    fd = filled(path)
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    plain = os.open(path, os.O_RDWR)
    fcntl.fcntl(plain, fcntl.F_SETFL, O_CLASSIFIED)
    return differs([bool(fcntl.fcntl(each, fcntl.F_GETFL) & O_CLASSIFIED)
                    for each in (fd, plain)], [True, False])


@check
def a_nameless_file_can_have_it(path: str) -> str:
    fd = os.open(os.path.dirname(path),
                 os.O_TMPFILE | os.O_RDWR | O_CLASSIFIED, 0o600)
    return differs((os.writev(fd, [first(9), b'xy']), os.pread(fd, 9, 0)),
                   (2, b'xy'))


@check
def a_folder_or_a_pipe_cannot_have_it(path: str) -> str:
    os.mkfifo(path)
    return differs([
        refusal(os.open, os.path.dirname(path), os.O_RDONLY | O_CLASSIFIED),
        refusal(os.open, path, os.O_RDWR | O_CLASSIFIED)], ['EINVAL'] * 2)


@check
def writev_counts_and_writes_the_data_only(path: str) -> str:
    fd = opened(path)
    counts = [os.writev(fd, [first(3), b'abc', b'', b'de']),
              os.writev(fd, [first(4), b'f'])]
    return differs((counts, os.lseek(fd, 0, os.SEEK_CUR),
                    os.pread(fd, 99, 0)), ([5, 1], 6, b'abcdef'))


@check
def readv_counts_and_reads_the_data_only(path: str) -> str:
    fd = filled(path, b'abcdef')
    byte, short, long = first(31), bytearray(2), bytearray(9)
    counts = [os.readv(fd, [byte, short, long]), os.readv(fd, [byte, short])]
    return differs((counts, bytes(byte), bytes(short), bytes(long)),
                   ([6, 0], b'\x1f', b'ab', b'cdef\0\0\0\0\0'))


@check
def preadv_and_pwritev_have_it(path: str) -> str:
    fd = filled(path)
    data = bytearray(4)
    counts = [os.pwritev(fd, [first(7), b'data'], 100),
              os.preadv(fd, [first(7), data], 100)]
    return differs((counts, bytes(data)), ([4, 4], b'data'))


@check
def preadv2_and_pwritev2_have_it_with_other_flags(path: str) -> str:
    fd = filled(path)
    data = bytearray(4)
    counts = [os.pwritev(fd, [first(7), b'data'], 100, os.RWF_DSYNC),
              os.preadv(fd, [first(7), data], 100, os.RWF_NOWAIT)]
    return differs((counts, bytes(data)), ([4, 4], b'data'))


@check
def a_single_call_can_have_it(path: str) -> str:
    filled(path)
    fd = os.open(path, os.O_RDWR)
    data = bytearray(6)
    counts = [os.pwritev(fd, [first(8), b'data'], 1, RWF_CLASSIFIED),
              os.preadv(fd, [first(8), data], 0, RWF_CLASSIFIED),
              os.preadv(fd, [bytearray(1), bytearray(1)], 0)]
    return differs((counts, bytes(data)), ([4, 6, 2], b'\0data\5'))


@check
def both_flags_take_one_byte(path: str) -> str:
    fd = filled(path)
    data = bytearray(4)
    counts = [os.pwritev(fd, [first(8), b'data'], 0, RWF_CLASSIFIED),
              os.preadv(fd, [first(8), data], 0, RWF_CLASSIFIED)]
    return differs((counts, bytes(data)), ([4, 4], b'data'))


@check
def a_single_call_on_a_pipe_is_refused(path: str) -> str:
    ends = os.pipe()
    return differs([
        refusal(os.pwritev, ends[1], [first(8), b'x'], -1, RWF_CLASSIFIED),
        refusal(os.preadv, ends[0], [first(8), first(0)], -1,
                RWF_CLASSIFIED)], [_REFUSED] * 2)


@check
def a_class_is_0_to_31(path: str) -> str:
    fd = filled(path, b'')
    good = [os.pwritev(fd, [first(value), b'x'], value)
            for value in range(32)]
    bad = [refusal(os.pwritev, fd, [first(value), b'x'], 100)
           for value in (32, 33, 64, 128, 255)]
    return differs((good, bad, os.fstat(fd).st_size),
                   ([1] * 32, ['EINVAL'] * 5, 32))


@check
def a_first_element_of_another_length_is_refused(path: str) -> str:
    fd = filled(path)
    results = [
        refusal(os.writev, fd, []), refusal(os.writev, fd, [b'', b'x']),
        refusal(os.writev, fd, [b'\3\3', b'x']),
        refusal(os.readv, fd, [bytearray(4096)]),
        refusal(os.readv, fd, [bytearray(0), bytearray(9)]),
        refusal(os.preadv, fd, [bytearray(2), bytearray(9)], 0)]
    return differs((results, os.lseek(fd, 0, os.SEEK_CUR),
                    os.pread(fd, 4096, 0) == _PAGE),
                   (['EINVAL'] * 6, 0, True))


@check
def a_class_alone_moves_nothing(path: str) -> str:
    fd = filled(path)
    return differs([os.writev(fd, [first(3)]), os.readv(fd, [first(3)]),
                    os.lseek(fd, 0, os.SEEK_CUR)], [0, 0, 0])


@check
def a_bad_pointer_is_efault(path: str) -> str:
    fd = filled(path)
    data = ctypes.create_string_buffer(4)
    vector = struct.pack('=QQQQ', 8, 1, ctypes.addressof(data), 4)
    answers = []
    for number in (19, 20):  # readv, writev
        result = _LIBC.syscall(number, fd, vector, 2)
        answers.append((result, errno.errorcode.get(ctypes.get_errno())))
    result = _LIBC.syscall(19, fd, ctypes.c_void_p(8), 2)
    answers.append((result, errno.errorcode.get(ctypes.get_errno())))
    return differs(answers, [(-1, 'EFAULT')] * 3)


@check
def there_may_be_1024_buffers(path: str) -> str:
    fd = filled(path, b'')
    return differs([
        os.writev(fd, [first(3)] + [b'ab'] * 1024),
        refusal(os.writev, fd, [first(3)] + [b'ab'] * 1025)],
        [2048, 'EINVAL'])


@check
def appending_appends(path: str) -> str:
    filled(path, b'abc')
    fd = opened(path, os.O_RDWR | os.O_APPEND)
    return differs((os.writev(fd, [first(5), b'de']),
                    os.pread(fd, 9, 0)), (2, b'abcde'))


@check
def whoever_does_not_know_reads_and_writes_the_bytes(path: str) -> str:
    fd, other = filled(path), opened(path + '.copy')
    os.pwrite(fd, b'\3ab', 10)
    os.lseek(fd, 20, os.SEEK_SET)
    os.write(fd, b'\4cd')
    wanted = _PAGE[:10] + b'\3ab' + _PAGE[13:20] + b'\4cd' + _PAGE[23:]
    os.lseek(fd, 0, os.SEEK_SET)
    with mmap.mmap(fd, 4096, prot=mmap.PROT_READ) as mapped:
        by_map = bytes(mapped)
    sent = os.sendfile(other, fd, 0, 4096)
    copied = os.copy_file_range(fd, other, 4096, 0, 4096)
    return differs(
        (os.read(fd, 4096) == wanted, by_map == wanted, sent, copied,
         os.pread(other, 9999, 0) == wanted * 2),
        (True, True, 4096, 4096, True))


@check
def the_thread_keeps_its_priority(path: str) -> str:
    fd = filled(path)
    before = _LIBC.syscall(_IOPRIO_GET, 1, 0)
    os.writev(fd, [first(5), b'x'])
    refusal(os.writev, fd, [first(77), b'x'])
    return differs(_LIBC.syscall(_IOPRIO_GET, 1, 0), before)


@check
def aio_refuses_vectors_and_takes_the_rest(path: str) -> str:
    fd = filled(path)
    context = ctypes.c_ulong(0)
    if _LIBC.syscall(_IO_SETUP, 8, ctypes.byref(context)):
        return 'io_setup: errno %d' % ctypes.get_errno()
    data = ctypes.create_string_buffer(4)
    vector = ctypes.create_string_buffer(struct.pack(
        '=QQ', ctypes.addressof(data), 4))
    answers = []
    for code, place, length in (
            (_AIO_PREADV, vector, 1), (_AIO_PREAD, data, 4)):
        block = ctypes.create_string_buffer(struct.pack(
            '=QIiHhIQQqQII', 0, 0, 0, code, 0, fd,
            ctypes.addressof(place), length, 0, 0, 0, 0))
        blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
        result = _LIBC.syscall(_IO_SUBMIT, context, 1, blocks)
        answers.append(result if result >= 0
                       else errno.errorcode[ctypes.get_errno()])
    return differs((answers, data.raw), ([_REFUSED, 1], _PAGE[:4]))


@check
def io_uring_refuses_vectors_and_takes_the_rest(path: str) -> str:
    fd = filled(path)
    plain = os.open(path, os.O_RDWR)
    data = bytearray(4)
    with uring.Ring() as ring:
        answers = [
            ring.vector(uring.READV, fd, [data], 0),
            ring.vector(uring.WRITEV, fd, [data], 0),
            ring.vector(uring.READV, plain, [data], 0, RWF_CLASSIFIED),
            ring.vector(uring.READV, plain, [data], 0),
            ring.buffer(uring.READ, fd, data, 0)]
    return differs((answers, bytes(data)),
                   ([-errno.EOPNOTSUPP] * 3 + [4, 4], _PAGE[:4]))


def results(folder: str) -> Iterator[Tuple[str, str]]:
    for number, (name, function) in enumerate(CHECKS):
        try:
            wrong = function(os.path.join(folder, '%d' % number))
        except Exception as err:
            wrong = '%s: %s' % (type(err).__name__, err)
        for fd in range(3, 100):
            with contextlib.suppress(OSError):
                os.close(fd)
        yield name, wrong or ''


def main(device: str, kinds: Sequence[str]) -> int:
    for kind in kinds:
        with mounted(device, kind) as folder:
            for name, wrong in results(folder):
                print(json.dumps([kind, name, wrong]), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2:]))
