"""tar: a list of the members reads hot bytes only."""

from __future__ import annotations

import io
import tarfile

import pytest
from support.format_files import MIB, Recorder

from swift_dss.client.formats.contract import BadFile


class Zeros(io.RawIOBase):
    """As many as are asked for."""

    def read(self, size=-1):
        return bytes(size)


def archive(path, members=80, size=MIB, **options):
    with tarfile.open(path, 'w', **options) as made:
        for number in range(members):
            info = tarfile.TarInfo('dir/member-%d' % number)
            info.size = size
            made.addfile(info, Zeros())
    return path


@pytest.mark.parametrize('kind', [
    tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_listing_reads_hot_bytes_only(tmp_path, classify, kind):
    members = 80
    path = tmp_path / 'a.tar'
    with tarfile.open(path, 'w', format=kind) as made:
        for number in range(members):
            info = tarfile.TarInfo('dir/%d%s' % (
                number, 'x' * 150 if number % 7 == 0
                and kind != tarfile.USTAR_FORMAT else ''))
            info.size = MIB
            made.addfile(info, Zeros())
    made = classify(path)
    assert made.format_name == 'tar'
    assert made.plan.hot_bytes <= 0.02 * made.size
    read = Recorder(path)
    with tarfile.open(fileobj=read) as opened:
        assert len(opened.getnames()) == members
    assert read.reads and read.cold(made.plan.ranges) == []


def test_small_members_have_more_than_2_percent_hot(tmp_path, classify):
    made = classify(archive(tmp_path / 'a', members=400, size=10000))
    assert 0.02 < made.plan.hot_bytes / made.size < 0.15


def test_too_many_members_are_refused(tmp_path, classify):
    with pytest.raises(BadFile, match='lies in 1501 places'):
        classify(archive(tmp_path / 'a', members=1500, size=20000,
                         format=tarfile.GNU_FORMAT))


def test_very_small_members_are_one_range(tmp_path, classify):
    made = classify(archive(tmp_path / 'a', members=3000, size=100))
    assert made.plan.ranges == [(0, made.size)]


@pytest.mark.parametrize('change, said', [
    (lambda raw: raw[:-100000], 'tar (member|header) at .*'),
    (lambda raw: raw[:3 * 512] + b'\1' * 512 + raw[4 * 512:],
     'tar header at 1536: has a wrong checksum'),
    (lambda raw: raw[:124] + b'\x80' + b'\xff' * 11 + raw[136:],
     'tar header at 0')])
def test_damage_is_named(tmp_path, classify, change, said):
    path = tmp_path / 'a'
    with tarfile.open(path, 'w', format=tarfile.USTAR_FORMAT) as made:
        for number, size in enumerate((1000, 200000)):
            info = tarfile.TarInfo('m%d' % number)
            info.size = size
            made.addfile(info, Zeros())
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadFile, match=said):
        classify(path, 'tar')


def test_names_of_names_end(tmp_path, classify):
    """A thousand headers that each announce another one."""
    info = tarfile.TarInfo('././@LongLink')
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 10
    header = info.tobuf(tarfile.GNU_FORMAT) + b'x' * 512
    (tmp_path / 'a').write_bytes(header * 3000)
    with pytest.raises(BadFile, match='tar header at 0'):
        classify(tmp_path / 'a')
