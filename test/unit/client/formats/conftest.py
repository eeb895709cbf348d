"""Classify a file as the command does."""

from __future__ import annotations

import pytest

from swift_dss.client.formats import known
from swift_dss.client.formats.readers import FileReader


@pytest.fixture
def classify():
    """``classify(path, ...)``: see :func:`known.classify`."""
    def command(path, *words, **options):
        with open(path, 'rb') as opened:
            return known.classify(FileReader(opened), *words, **options)
    return command
