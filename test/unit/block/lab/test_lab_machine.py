"""A guest's time limit is its own."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from swift_dss.block.lab import build, machine


def test_a_kernel_that_is_built_first_costs_the_guest_no_time(
        monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """It takes longer than most limits where no kernel is kept yet."""
    clock = [1000.0]
    kernel = tmp_path / 'kernel'
    kernel.write_text('#!/bin/sh\necho \'{"status": 0}\' > report\n')
    kernel.chmod(0o755)

    def built(*_args: Any) -> Any:
        clock[0] += 5000.0
        return SimpleNamespace(binary=str(kernel))

    monkeypatch.setattr(build, 'kernel', built)
    monkeypatch.setattr(build, 'module_paths', lambda *args: [])
    monkeypatch.setattr(machine, 'time', SimpleNamespace(
        monotonic=lambda: clock[0]))
    ended = machine.run(sys.executable, timeout=600.0)
    assert (ended.status, ended.killed) == (0, False)
    assert ended.real_seconds == 0.0


def test_a_guest_that_takes_longer_is_ended(
        monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    kernel = tmp_path / 'kernel'
    kernel.write_text('#!/bin/sh\nsleep 600\n')
    kernel.chmod(0o755)
    monkeypatch.setattr(build, 'kernel', lambda *args: SimpleNamespace(
        binary=str(kernel)))
    monkeypatch.setattr(build, 'module_paths', lambda *args: [])
    ended = machine.run(sys.executable, timeout=0.1)
    assert (ended.status, ended.killed) == (machine.TIMED_OUT, True)
    left = subprocess.run(['pgrep', '-f', str(kernel)],
                          stdout=subprocess.PIPE)
    assert not left.stdout
