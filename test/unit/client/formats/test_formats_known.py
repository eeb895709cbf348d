"""Which format a file has; formats of others; libraries that are missing."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

from swift_dss.client.formats import contract, known
from swift_dss.client.formats.contract import (
    BadFile, Format, Hot, MissingLibrary, NoSuchFormat)

_PROGRAM = '''
import sys

class NoSwift:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('swift', 'eventlet', 'boto3', 'pyarrow',
                                  'h5py', 'numpy', 'fsspec'):
            raise ImportError(name)

sys.meta_path.insert(0, NoSwift())
from swift_dss.cli import main
sys.exit(main.main(['classify', sys.argv[1]]))
'''


class Entry:
    """An entry point of a package."""

    def __init__(self, made):
        self._made = made

    def load(self):
        return self._made


def hot(reader, wish):
    length = int.from_bytes(reader.exact(4, 4, 'header'), 'big')
    reader.check(0, length, 'header')
    yield Hot(0, length)
    yield Hot(length, 4096, is_needed=False)


MINE = Format('mine', lambda reader: reader.read(0, 4) == b'MINE', hot)


@pytest.fixture
def others(monkeypatch):
    monkeypatch.setattr(known, '_entry_points', lambda: [Entry(MINE)])


def test_a_format_of_others(tmp_path, classify, others):
    (tmp_path / 'f').write_bytes(
        b'MINE' + (90000).to_bytes(4, 'big') + bytes(999992))
    made = classify(tmp_path / 'f', limits=known.Limits(share=0.5))
    assert made.format_name == 'mine'
    # Its blocks of 64 KiB, as servers check them.
    assert made.plan.ranges == [(0, 131072)]
    (tmp_path / 'f').write_bytes(b'MINE' + b'\xff' * 4)
    with pytest.raises(BadFile, match='header at 0: claims 4294967295'):
        classify(tmp_path / 'f')


def test_names_are_unique_and_the_error_lists_them(tmp_path, classify,
                                                   others):
    names = [known_format.name for known_format in known.formats()]
    assert names[0] == 'mine' and len(set(names)) == len(names)
    (tmp_path / 'f').write_bytes(b'')
    with pytest.raises(NoSuchFormat, match='none of %s' % ', '.join(names)):
        classify(tmp_path / 'f')
    with pytest.raises(NoSuchFormat, match="'nine' is none of auto, mine"):
        classify(tmp_path / 'f', 'nine')


@pytest.mark.parametrize('size', [0, 1, 7, 11, 100, 600, 5000])
def test_no_format_stumbles_over_zeros(tmp_path, size):
    reader = known.Bounded(contract.Reader(size))
    reader.read = lambda offset, length: bytes(
        max(0, min(length, size - max(0, offset))))
    assert not any(known_format.fits(reader)
                   for known_format in known.formats())


def test_a_missing_library_is_named():
    with pytest.raises(MissingLibrary, match=r'pip install '
                       r'"swift-dss\[formats\]"'):
        contract.library('no_such_library', 'Mine')


def test_no_server_and_no_library_is_needed_for_a_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / 'z', 'w') as made:
        made.writestr('a', 'a')
    done = subprocess.run([sys.executable, '-c', _PROGRAM,
                           str(tmp_path / 'z')], capture_output=True,
                          text=True)
    assert done.returncode == 0 and 'zip' in done.stderr, done.stderr
