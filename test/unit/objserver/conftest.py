"""Fixtures of the object server's unit tests."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Iterator

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from support.rigs.dss_disk import Disk, scratch


@pytest.fixture
def scratch_folder() -> Iterator[str]:
    path = scratch()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def disk(scratch_folder: str) -> Disk:
    """A device with SSD and HDD."""
    return Disk(scratch_folder)
