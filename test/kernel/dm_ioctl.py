"""What ``dmsetup`` does, without starting it.

A campaign makes and removes thousands of devices; starting a program costs
a guest twenty times what the call to the kernel does. Layout and numbers are
those of ``linux/dm-ioctl.h``, version 4.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Callable, Dict, List, Tuple

_CONTROL = '/dev/mapper/control'
_HEAD_BYTES = 312
_SPEC = struct.Struct('<QQiI16s')
#: version, data_size, data_start, target_count, open_count, flags,
#: event_nr, padding, dev, name, uuid, data
_IOCTL = struct.Struct('<3I I I I i I I I Q 128s 129s 7s')
_DATA_BYTES = 1 << 16

_CREATE, _REMOVE, _SUSPEND, _STATUS, _LOAD, _TABLE_STATUS, _MESSAGE = (
    3, 4, 6, 7, 9, 12, 14)
_SUSPENDED, _BUFFER_FULL, _SKIP_LOCKFS, _NOFLUSH, _DATA_OUT = (
    1 << 1, 1 << 8, 1 << 10, 1 << 11, 1 << 16)

_LIBC = ctypes.CDLL(None, use_errno=True)


def _call(command: int, name: str, flags: int = 0, targets: int = 0,
          data: bytes = b'') -> Tuple[int, int, bytes]:
    """One call.

    :returns: flags, device number, data
    :raises OSError: the kernel refused
    """
    buffer = ctypes.create_string_buffer(_HEAD_BYTES + _DATA_BYTES)
    _IOCTL.pack_into(
        buffer, 0, 4, 0, 0, len(buffer), _HEAD_BYTES, targets, 0, flags, 0,
        0, 0, name.encode(), b'', b'')
    buffer[_HEAD_BYTES:_HEAD_BYTES + len(data)] = data
    fd = os.open(_CONTROL, os.O_RDWR)
    try:
        # Releases the lock of the interpreter, unlike fcntl.ioctl: some
        # calls wait for requests of other threads.
        if _LIBC.ioctl(fd, ctypes.c_ulong(
                3 << 30 | _HEAD_BYTES << 16 | 0xfd << 8 | command),
                buffer) < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
    finally:
        os.close(fd)
    fields = _IOCTL.unpack_from(buffer)
    if fields[7] & _BUFFER_FULL:
        raise OSError('the answer has over %d bytes' % _DATA_BYTES)
    return fields[7], fields[10], buffer.raw[fields[4]:]


def _table(text: str) -> Tuple[int, bytes]:
    """A table as the kernel takes it: how many targets, their bytes."""
    lines = [line for line in text.split('\n') if line.strip()]
    parts = []
    for line in lines:
        begin, length, kind, *words = line.split()
        arguments = ' '.join(words).encode() + b'\0'
        arguments += bytes(-len(arguments) % 8)
        parts.append(_SPEC.pack(
            int(begin), int(length), 0, _SPEC.size + len(arguments),
            kind.encode()) + arguments)
    return len(lines), b''.join(parts)


def _load(name: str, text: str) -> None:
    count, data = _table(text)
    _call(_LOAD, name, targets=count, data=data)


def _create(words: List[str]) -> str:
    name, _option, text = words
    _call(_CREATE, name)
    try:
        _load(name, text)
        _call(_SUSPEND, name)
    except OSError:
        _call(_REMOVE, name)
        raise
    return ''


def _reload(words: List[str]) -> str:
    name, _option, text = words
    _load(name, text)
    return ''


def _suspend(words: List[str]) -> str:
    flags = _SUSPENDED
    for option, flag in (('--noflush', _NOFLUSH),
                         ('--nolockfs', _SKIP_LOCKFS)):
        if option in words:
            words.remove(option)
            flags |= flag
    _call(_SUSPEND, words[0], flags)
    return ''


def _resume(words: List[str]) -> str:
    _call(_SUSPEND, words[0])
    return ''


def _remove(words: List[str]) -> str:
    _call(_REMOVE, words[0])
    return ''


def _message(words: List[str]) -> str:
    name, sector, *rest = words
    flags, _device, data = _call(
        _MESSAGE, name, data=struct.pack('<Q', int(sector))
        + ' '.join(rest).encode() + b'\0')
    return data.split(b'\0')[0].decode().strip() if flags & _DATA_OUT else ''


def _status(words: List[str]) -> str:
    _flags, _device, data = _call(_TABLE_STATUS, words[0])
    begin, length, _status, _next, kind = _SPEC.unpack_from(data)
    return '%d %d %s %s' % (
        begin, length, kind.rstrip(b'\0').decode(),
        data[_SPEC.size:].split(b'\0')[0].decode())


_VERBS: Dict[str, Callable[[List[str]], str]] = {
    'create': _create, 'load': _reload, 'suspend': _suspend,
    'resume': _resume, 'remove': _remove, 'message': _message,
    'status': _status}


def dmsetup(*words: str) -> str:
    """``dmsetup``'s words for what is above; tables of one line or more.

    :returns: what it would print
    :raises RuntimeError: what the kernel refused, and its error
    """
    verb, *rest = words
    try:
        return _VERBS[verb](rest)
    except OSError as error:
        raise RuntimeError('dmsetup %s: %s' % (' '.join(words),
                                               error)) from error


def dm_path(name: str) -> str:
    """The node of a mapped device."""
    _flags, device, _data = _call(_STATUS, name)
    return '/dev/dm-%d' % (device & 0xff | device >> 12 & 0xfff00)
