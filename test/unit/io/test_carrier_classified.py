"""The carrier of patched kernels, on this kernel and on those of a fake.

What a real patched kernel does is in test/kernel/test_patched_carrier.py.
"""

from __future__ import annotations

import errno
import os
from typing import Any, Callable, List, Sequence

import pytest

from swift_dss.io import carriers
from swift_dss.io.carriers import classified
from swift_dss.io.classified import Piece, write_pieces

_PATCHED = classified.open_carrier().probe() is None


class Kernel:
    """A kernel that has classified vectors, or has them wrong.

    :param fault: ``''``, ``counts`` (the class is counted), ``writes``
        (the class is data) or ``any`` (each class is taken)
    """

    def __init__(self, monkeypatch: Any, fault: str = '') -> None:
        self._fault = fault
        self._pwritev: Callable[..., int] = os.pwritev
        self._preadv: Callable[..., int] = os.preadv
        self.classes: List[int] = []
        monkeypatch.setattr(os, 'pwritev', self.pwritev)
        monkeypatch.setattr(os, 'preadv', self.preadv)
        monkeypatch.setattr(os, 'readv', self.readv)
        # No such flag for open() here: fcntl says that there is.
        monkeypatch.setattr(
            classified.fcntl, 'fcntl',
            lambda fd, command: classified.O_CLASSIFIED)

    def _take(self, vector: Sequence[Any]) -> Sequence[Any]:
        class_id, = bytes(vector[0])
        if class_id > 31 and self._fault != 'any':
            raise OSError(errno.EINVAL, 'class')
        self.classes.append(class_id)
        return vector if self._fault == 'writes' else vector[1:]

    def pwritev(self, fd: int, vector: Sequence[Any], offset: int,
                flags: int = 0) -> int:
        if flags != classified.RWF_CLASSIFIED:
            return self._pwritev(fd, vector, offset, flags)
        wrote = self._pwritev(fd, self._take(vector), offset)
        return wrote + (self._fault == 'counts')

    def preadv(self, fd: int, vector: Sequence[Any], offset: int,
               flags: int = 0) -> int:
        if flags != classified.RWF_CLASSIFIED:
            return self._preadv(fd, vector, offset, flags)
        return self._preadv(fd, self._take(vector), offset)

    def readv(self, fd: int, vector: Sequence[Any]) -> int:
        return self._preadv(fd, self._take(vector), 0)


@pytest.mark.skipif(_PATCHED, reason='a patched kernel')
def test_a_kernel_without_the_patches_is_told_apart() -> None:
    assert classified.open_carrier().probe() in (
        'this kernel has no RWF_CLASSIFIED',
        'this kernel has no O_CLASSIFIED')


@pytest.mark.skipif(_PATCHED, reason='a patched kernel')
def test_asked_for_by_name_it_gives_way_to_ioprio() -> None:
    choice = carriers.choose('classified')
    assert choice.carrier.name in ('ioprio', 'null')
    assert choice.refused[0].startswith('classified: this kernel has no ')


def test_a_kernel_that_honours_it_is_taken_first(monkeypatch: Any) -> None:
    Kernel(monkeypatch)
    choice = carriers.choose('auto')
    assert choice.carrier.name == 'classified'
    assert choice.refused == []


@pytest.mark.parametrize('fault, reason', [
    ('counts', "RWF_CLASSIFIED: 5 bytes written, b'data' found"),
    ('writes', "RWF_CLASSIFIED: 5 bytes written, b'\\x05data' found"),
    ('any', 'RWF_CLASSIFIED: class 32 is not refused')])
def test_a_kernel_that_has_it_wrong_is_refused(
        monkeypatch: Any, fault: str, reason: str) -> None:
    Kernel(monkeypatch, fault)
    assert classified.open_carrier().probe() == reason


def test_a_flag_that_open_drops_is_no_flag(monkeypatch: Any) -> None:
    Kernel(monkeypatch)
    monkeypatch.setattr(classified.fcntl, 'fcntl', lambda fd, command: 2)
    assert classified.open_carrier().probe() == \
        'this kernel has no O_CLASSIFIED'


def test_each_call_has_its_class_and_counts_data_only(
        tmp_path: Any, monkeypatch: Any) -> None:
    kernel = Kernel(monkeypatch)
    carrier = classified.open_carrier()
    with open(str(tmp_path / 'x'), 'wb+') as target:
        fd = target.fileno()
        assert carrier.pwritev(fd, [b'ab', b'c'], 0, 31) == 3
        assert carrier.pread(fd, 8, 1, 4) == b'bc'
        assert carrier.pread(fd, 3, 0, 0) == b'abc'
    assert kernel.classes == [31, 4, 0]


@pytest.mark.skipif(_PATCHED, reason='a patched kernel')
def test_a_file_that_cannot_have_classes_is_read_and_written_all_the_same(
        tmp_path: Any) -> None:
    carrier = classified.open_carrier()
    with open(str(tmp_path / 'x'), 'wb+') as target:
        fd = target.fileno()
        assert carrier.pwritev(fd, [b'ab', b'c'], 0, 5) == 3
        assert carrier.pread(fd, 3, 0, 5) == b'abc'
    carrier.leave()


def test_other_errors_come_through(tmp_path: Any) -> None:
    carrier = classified.open_carrier()
    with open(str(tmp_path / 'x'), 'wb') as target:
        with pytest.raises(OSError) as caught:
            carrier.pread(target.fileno(), 3, 0, 5)
    assert caught.value.errno == errno.EBADF


def test_what_the_kernel_remembers_is_not_synced_for_its_class(
        tmp_path: Any, monkeypatch: Any) -> None:
    Kernel(monkeypatch)
    started: List[int] = []
    monkeypatch.setattr('swift_dss.io.classified.start_writeback',
                        lambda fd, offset, length: started.append(offset))
    pieces = [Piece(0, 4096, 3, [memoryview(bytes(4096))]),
              Piece(4096, 4096, 9, [memoryview(bytes(4096))])]
    with open(str(tmp_path / 'x'), 'wb') as target:
        write_pieces(classified.open_carrier(), target.fileno(), pieces)
        assert started == []
        carrier = classified.open_carrier()
        carrier.remembers = False
        write_pieces(carrier, target.fileno(), pieces)
    assert started == [0, 4096]
