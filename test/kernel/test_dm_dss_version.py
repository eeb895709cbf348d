"""DKMS, modinfo and the target name one version."""

from __future__ import annotations

import os
import subprocess

import dss_lab

from swift_dss.block.lab import build

_PACKAGE = '. %s; echo "$PACKAGE_VERSION"'


def dkms_version(folder):
    """As dkms reads it: its configuration is a shell script."""
    return subprocess.run(
        ['bash', '-c', _PACKAGE % os.path.join(folder, 'dkms.conf')],
        capture_output=True, text=True, check=True).stdout.strip()


def versions(module):
    """Of the file, and of the target in a kernel."""
    told = subprocess.run(
        ['/sbin/modinfo', '-F', 'version', module], capture_output=True,
        text=True, check=True).stdout.strip()
    return told, dss_lab.found('dss_version.py', module=module)


def test_module_and_target_have_the_version_of_the_package():
    version = dkms_version(build.kmod())
    module = build.module(build.kernel(dss_lab.VARIANT, print), 'dm-dss',
                          print)
    assert versions(module) == (version, ['v' + version])


def test_another_version_of_the_package_is_theirs_too(tmp_path):
    module = dss_lab.wrong_twin(str(tmp_path), [(
        'dkms.conf', 'PACKAGE_VERSION="%s"' % dkms_version(build.kmod()),
        'PACKAGE_VERSION="7.8.9"')])
    assert versions(module) == ('7.8.9', ['v7.8.9'])
