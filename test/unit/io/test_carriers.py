"""Carriers: probing, the kernel's own view of a thread, the seam."""

from __future__ import annotations

import os
import sys
import threading
import types
from typing import Any, List

import pytest

from swift_dss.io import carriers
from swift_dss.io.carriers import Carrier, classified, ioprio


def _works() -> bool:
    return ioprio.open_carrier().probe() is None


def test_priorities_carry_every_class_and_zero_is_none() -> None:
    for class_id in range(32):
        assert ioprio.class_of(ioprio.priority_of(class_id)) == class_id
    assert ioprio.priority_of(0) == 0
    assert ioprio.priority_of(25) == 2 << 13 | 57 << 3 | 4


@pytest.mark.skipif(not _works(), reason='kernel without hint bits')
def test_the_kernel_has_the_class_of_each_thread_apart() -> None:
    carrier: Any = ioprio.open_carrier()
    before = carrier.current()
    seen: List[int] = []

    def work() -> None:
        for class_id in (7, 31, 0):
            carrier.enter(class_id)
            seen.append(ioprio.class_of(carrier.current()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [7, 31, 0]
    assert carrier.current() == before


@pytest.mark.skipif(not _works(), reason='kernel without hint bits')
def test_what_is_expected_is_asked_for_in_its_class(
        tmp_path: Any, monkeypatch: Any) -> None:
    carrier: Any = ioprio.open_carrier()
    seen: List[Any] = []
    monkeypatch.setattr(
        carriers.os, 'posix_fadvise', lambda *args: seen.append(
            (args[1:], ioprio.class_of(carrier.current()))))

    def work() -> None:
        carrier.expect(3, 4096, 65536, 7)
        # A hint of this one would have no class.
        classified.open_carrier().expect(3, 4096, 65536, 7)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [((65536, 4096, os.POSIX_FADV_WILLNEED), 7)]


@pytest.mark.skipif(
    not _works() or classified.open_carrier().probe() is None,
    reason='kernel without hint bits, or a patched one')
def test_auto_takes_ioprio_while_classified_is_not_there() -> None:
    choice = carriers.choose('auto')
    assert choice.carrier.name == 'ioprio'
    assert choice.refused[0].startswith('classified: ')


def test_a_carrier_that_cannot_carry_gives_way_and_says_why(
        monkeypatch: Any) -> None:
    class Broken(Carrier):
        name = 'classified'

        def probe(self) -> str:
            return 'no O_CLASSIFIED'

    module: Any = types.ModuleType('classified')
    module.open_carrier = Broken
    monkeypatch.setitem(
        sys.modules, 'swift_dss.io.carriers.classified', module)
    choice = carriers.choose('classified')
    assert choice.carrier.name == ('ioprio' if _works() else 'null')
    assert choice.refused[0] == 'classified: no O_CLASSIFIED'


def test_an_ioprio_that_fails_later_still_writes(
        tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(ioprio.ctypes, 'PyDLL', lambda *_, **__:
                        types.SimpleNamespace(syscall=lambda *_: -1))
    carrier: Any = ioprio.open_carrier()
    with open(str(tmp_path / 'x'), 'wb+') as target:
        assert carrier.pwritev(target.fileno(), [b'ab', b'c'], 0, 5) == 3
        assert carrier.pread(target.fileno(), 3, 0, 5) == b'abc'
