"""Zero-copy sends, with a stand-in for the kernel's MD5 socket.

The stand-in takes the bytes that are spliced into it and answers with
their MD5, like an AF_ALG socket, which this kernel may lack.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from typing import Any, Callable, List

import pytest
from support.rigs.dss_disk import Disk
from swift.common.splice import splice

from swift_dss.core.spans import ClassMap, Span
from swift_dss.objserver import zero_copy

BODY = os.urandom(700001)


class _Digester:
    """The other end of the stand-in; one object a socket."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __call__(self) -> int:
        ours, theirs = socket.socketpair()
        threading.Thread(target=self._serve, args=(theirs,)).start()
        return ours.detach()

    def _serve(self, connection: Any) -> None:
        digest, left = hashlib.md5(), self._size
        with connection:
            while left:
                data = connection.recv(65536)
                if not data:
                    return
                digest.update(data)
                left -= len(data)
            connection.sendall(digest.digest())


def _send(disk: Disk, monkeypatch: Any) -> bytes:
    monkeypatch.setattr(zero_copy, 'get_md5_socket', _Digester(len(BODY)))
    # What the kernel sends from the file nobody can check before.
    disk.ours.use_splice, disk.ours.pipe_size = True, 65536
    disk_file = disk.open_file('o')
    with disk_file.open():
        reader = disk_file.reader()
    assert reader.can_zero_copy_send()
    mine, client = socket.socketpair()
    got: List[bytes] = []

    def receive() -> None:
        got.extend(iter(lambda: client.recv(65536), b''))

    thread = threading.Thread(target=receive)
    thread.start()
    reader.zero_copy_send(mine.fileno())
    mine.close()
    thread.join()
    client.close()
    return b''.join(got)


pytestmark = pytest.mark.skipif(
    not splice.available, reason='no splice() in this C library')


def test_a_whole_object_is_sent_from_the_pool(
        disk: Disk, green: None, monkeypatch: Any) -> None:
    disk.without_sums()
    disk.put('o', BODY, ClassMap.uniform(5))
    classes: List[int] = []
    monkeypatch.setattr(disk.carrier, 'enter', classes.append)
    assert _send(disk, monkeypatch) == BODY
    assert set(classes) == {5}
    assert not disk.quarantined()


def test_a_wrong_byte_is_still_found(
        disk: Disk, green: None, monkeypatch: Any) -> None:
    disk.without_sums()
    disk.put('o', BODY, ClassMap.uniform(5))
    with open(disk.data_path('o'), 'rb+') as target:
        target.write(b'wrong')
    assert _send(disk, monkeypatch) != BODY
    assert disk.quarantined()


@pytest.mark.parametrize('class_map', [
    ClassMap.uniform(2), ClassMap.from_spans([Span(0, 9, 1)], 5),
    ClassMap.uniform(5)])
def test_stubs_mixed_and_checked_objects_take_the_other_way(
        disk: Disk, class_map: Any) -> None:
    disk.ours.use_splice = True
    disk.put('o', BODY, class_map)
    disk_file = disk.open_file('o')
    with disk_file.open():
        reader: Callable[..., Any] = disk_file.reader()
    assert not reader.can_zero_copy_send()  # type: ignore[attr-defined]
    assert b''.join(reader) == BODY  # type: ignore[call-overload]
