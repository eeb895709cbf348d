"""What a device carries, by blkid's word."""

from __future__ import annotations

import os

import pytest

from swift_dss.block import control_devices
from swift_dss.core.errors import BadConfig

#: What blkid says of every partition of a GPT.
ENTRY = ['DEVNAME=/dev/sda1', 'PART_ENTRY_SCHEME=gpt', 'PART_ENTRY_NUMBER=1',
         'PART_ENTRY_NAME=dss-fast', 'PART_ENTRY_OFFSET=2048',
         'PART_ENTRY_SIZE=131072', 'PART_ENTRY_DISK=8:0']


@pytest.fixture
def blkid(tmp_path, monkeypatch):
    """Make a blkid that prints lines, and ends with a status."""
    monkeypatch.setenv('PATH', str(tmp_path) + os.pathsep
                       + os.environ['PATH'])

    def says(lines, status=0):
        program = tmp_path / 'blkid'
        program.write_text('#!/bin/sh\ncat <<END\n%s\nEND\nexit %d\n' % (
            '\n'.join(lines), status))
        program.chmod(0o755)
        return control_devices.signature('/dev/sda1')
    return says


def test_an_empty_partition_carries_nothing(blkid):
    assert blkid(ENTRY) is None
    assert blkid([], 2) is None


def test_what_is_in_a_partition_is_named(blkid):
    assert blkid(ENTRY + ['TYPE=xfs', 'LABEL=home']) == 'xfs "home"'
    assert blkid(ENTRY + ['PTTYPE=dos']) == 'dos'
    assert blkid(ENTRY + ['USAGE=other']) == 'something'


def test_two_signatures_are_an_error(blkid):
    with pytest.raises(BadConfig, match='several signatures'):
        blkid([], 8)
