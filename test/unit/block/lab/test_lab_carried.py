"""Programs of another Debian run by their own C library."""

from __future__ import annotations

import os
import pathlib
import platform
import re
import shutil
import subprocess

import pytest

from swift_dss.block.lab import carried

_LOADER = pathlib.Path('/lib64/ld-linux-x86-64.so.2')

pytestmark = pytest.mark.skipif(
    platform.machine() != 'x86_64' or not _LOADER.exists()
    or not shutil.which('dash'), reason='no Debian of x86_64 here')


@pytest.fixture
def root(tmp_path):
    """As unpacked packages are: a shell, its libraries, a script."""
    libraries = tmp_path / 'usr' / 'lib' / carried.TRIPLET
    for folder in (tmp_path / 'usr' / 'bin', tmp_path / 'usr' / 'lib64',
                   libraries):
        folder.mkdir(parents=True)
    shell = str(shutil.which('dash'))
    shutil.copy(shell, tmp_path / 'usr' / 'bin' / 'shell')
    shutil.copy(_LOADER, tmp_path / 'usr' / 'lib64')
    needed = subprocess.run(['ldd', shell], check=True, capture_output=True,
                            text=True).stdout
    for path in re.findall(r'=> (/\S+) \(0x', needed):
        shutil.copy(path, libraries)
    (tmp_path / 'usr' / 'bin' / 'script').write_text('#!/bin/sh\ntrue\n')
    (tmp_path / 'usr' / 'bin' / 'script').chmod(0o755)
    return tmp_path


def _said(*command):
    return subprocess.run(list(map(str, command)), check=True,
                          capture_output=True, text=True).stdout


def test_a_program_is_started_with_the_libraries_beside_it(root):
    carried.carry(str(root))
    maps = _said(root / 'usr' / 'bin' / 'shell', '-c',
                 'while read line; do echo "$line"; done < /proc/$$/maps')
    libraries = [line.split()[-1] for line in maps.splitlines()
                 if '.so' in line]
    assert any('libc.so' in path for path in libraries)
    assert [path for path in libraries if not path.startswith(
        str(root) + '/')] == []


def test_a_program_knows_the_name_it_was_called_by(root):
    """Some find others beside them by it; links lead to many."""
    carried.carry(str(root))
    name = root / 'name'
    os.symlink('usr/bin/shell', name)
    assert _said(name, '-c', 'echo "$0" "$@"', name, 'a b', '').split(
        '\n')[0] == '%s a b ' % name
    assert _said(name, '-c', 'echo "$0"') == '%s\n' % name


def test_scripts_and_libraries_stay(root):
    libraries = root / 'usr' / 'lib' / carried.TRIPLET
    before = {path: path.read_bytes() for path in [
        root / 'usr' / 'bin' / 'script', *libraries.iterdir()]}
    carried.carry(str(root))
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(os.listdir(root / 'usr' / 'bin')) == [
        'script', 'shell', 'shell.carried']


def test_the_compiler_finds_the_assembler_of_its_own(root):
    shutil.copy(root / 'usr' / 'bin' / 'shell',
                root / 'usr' / 'bin' / (carried.TRIPLET + '-as'))
    carried.carry(str(root))
    assembler = root / 'usr' / carried.TRIPLET / 'bin' / 'as'
    assert _said(assembler, '-c', 'echo it runs') == 'it runs\n'
