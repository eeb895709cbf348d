"""ZIP: a list of the members reads hot bytes only."""

from __future__ import annotations

import struct
import zipfile

import pytest
from support.format_files import MIB, Recorder

from swift_dss.client.formats.contract import BadFile


def archive(path, comment=b'', members=50, size=64 * MIB, zip64=False):
    """An archive whose members are mostly holes."""
    with zipfile.ZipFile(path, 'w') as made:
        for number in range(members):
            with made.open('dir/member-%d' % number, 'w',
                           force_zip64=zip64) as member:
                for _ in range(size // members // MIB + 1):
                    member.write(bytes(MIB))
        made.comment = comment
    return path


@pytest.mark.parametrize('comment', [b'', b'a comment', b'x' * 60000])
def test_listing_reads_hot_bytes_only(tmp_path, classify, comment):
    path = archive(tmp_path / 'a.zip', comment)
    made = classify(path)
    assert made.format_name == 'zip'
    assert made.plan.hot_bytes <= 0.02 * made.size
    read = Recorder(path)
    assert len(zipfile.ZipFile(read).namelist()) == 50
    assert read.reads and read.cold(made.plan.ranges) == []


def test_the_recorder_sees_a_member_that_is_read(tmp_path, classify):
    path = archive(tmp_path / 'a.zip', size=2 * MIB, members=2)
    read = Recorder(path)
    zipfile.ZipFile(read).read('dir/member-0')
    assert read.cold(classify(path).plan.ranges)


def test_zip64(tmp_path, classify, monkeypatch):
    monkeypatch.setattr(zipfile, 'ZIP_FILECOUNT_LIMIT', 10)
    path = archive(tmp_path / 'a.zip', size=3 * MIB, members=20, zip64=True)
    raw = path.read_bytes()
    assert b'PK\6\7' in raw
    read = Recorder(path)
    assert len(zipfile.ZipFile(read).namelist()) == 20
    assert read.cold(classify(path).plan.ranges) == []


def test_an_archive_behind_a_program(tmp_path, classify):
    path = archive(tmp_path / 'a.zip', size=MIB, members=1)
    path.write_bytes(b'#!/bin/sh\n' + bytes(99990) + path.read_bytes())
    made = classify(path)
    read = Recorder(path)
    assert zipfile.ZipFile(read).namelist() == ['dir/member-0']
    assert made.format_name == 'zip'
    assert read.cold(made.plan.ranges) == []


def test_an_empty_archive(tmp_path, classify):
    with zipfile.ZipFile(tmp_path / 'a.zip', 'w'):
        pass
    assert classify(tmp_path / 'a.zip').plan.ranges == [(0, 22)]


def damaged(tmp_path, change):
    path = archive(tmp_path / 'a.zip', size=MIB, members=1)
    raw = bytearray(path.read_bytes())
    change(raw)
    path.write_bytes(raw)
    return path


def longer_directory(raw):
    struct.pack_into('<L', raw, len(raw) - 10, 1 << 30)


def wrong_directory(raw):
    struct.pack_into('<L', raw, len(raw) - 10, 5)


def no_locator(raw):
    struct.pack_into('<L', raw, len(raw) - 10, 0xffffffff)


def no_end(raw):
    raw[-22:] = bytes(22)


@pytest.mark.parametrize('change, said', [
    (longer_directory, 'ZIP central directory at .*claims 1073741824 bytes'),
    (wrong_directory, 'ZIP central directory at .*does not begin'),
    (no_locator, 'ZIP64 locator at .*is not in front'),
    (no_end, 'ZIP end record at .*is not in the last')])
def test_damage_is_named(tmp_path, classify, change, said):
    with pytest.raises(BadFile, match=said):
        classify(damaged(tmp_path, change))
