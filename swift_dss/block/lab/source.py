"""The kernel's source, as Debian packages it.

The first of: the file that ``SWIFT_DSS_KERNEL_SOURCE`` names, the newest
package that was fetched before, the package from the machine's own Debian
mirror. So the source changes with ``lab build --update``, not when Debian
publishes.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from dataclasses import dataclass

from swift_dss.block.lab import cache
from swift_dss.core.errors import BadConfig

PACKAGE = 'linux-source-6.12'
ENVIRONMENT = 'SWIFT_DSS_KERNEL_SOURCE'

#: Most of the sources that a user-mode kernel does not need. Few patterns:
#: each is tried on each of ninety thousand names.
LEFT_OUT = ('*.dts*', '*/drivers/gpu/*.[ch]', '*/drivers/media/*.[ch]',
            '*/sound/*.[ch]', '*/tools/testing/*')


@dataclass(frozen=True)
class Source:
    """A packed kernel source.

    :param version: of the package, or of the file if it is none
    :param path: a ``.deb`` that has a tar file, or a ``.tar.xz``
    """

    version: str
    path: str


def find(say: cache.Say, update: bool = False) -> Source:
    """The source to build from, fetched if it must be.

    :param update: ask the mirror even if there is one already
    :raises BadConfig: there is none, and where it should come from
    """
    named = os.environ.get(ENVIRONMENT)
    if named:
        if not os.path.isfile(named):
            raise BadConfig('%s: no file %s' % (ENVIRONMENT, named))
        return _of(named)
    have = _fetched(PACKAGE)
    if have and not update:
        return _of(have)
    return _of(fetch(PACKAGE, say))


def fetch(package: str, say: cache.Say) -> str:
    """Get one package from the mirror, without installing it.

    :returns: its file in the cache
    """
    cache.need(['apt-get', 'dpkg-deb'], 'fetching %s' % package)
    folder = tempfile.mkdtemp(prefix='fetch-', dir=cache.root())
    try:
        say('fetching %s' % package)
        _download(package, folder, say)
        name, = os.listdir(folder)
        target = os.path.join(cache.root(), name)
        os.replace(os.path.join(folder, name), target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    # The newest file is the one in use.
    os.utime(target)
    return target


def _download(package: str, folder: str, say: cache.Say) -> None:
    command = ['apt-get', 'download', '-qq', package]
    try:
        cache.call(command, folder, 'apt-get download %s' % package)
        return
    except cache.BuildFailed as err:
        if os.geteuid():
            raise BadConfig(
                '%s is not to be had from this machine\'s Debian mirror '
                '(apt-get update; bookworm-backports has it): %s'
                % (package, err)) from err
    say('asking the mirror for its lists')
    cache.call(['apt-get', 'update', '-qq'], folder, 'apt-get update')
    cache.call(command, folder, 'apt-get download %s' % package)


def _fetched(package: str) -> str:
    packages = glob.glob(os.path.join(cache.root(), package + '_*.deb'))
    return max(packages, key=os.path.getmtime) if packages else ''


def _of(path: str) -> Source:
    name = os.path.basename(path)
    if name.endswith('.deb'):
        return Source(name.split('_')[1], path)
    # Identify a file without a version by its contents.
    with open(path, 'rb') as source:
        return Source(cache.digest([source.read()]), path)


def unpack(source: Source, folder: str) -> str:
    """Unpack the sources that a user-mode kernel needs.

    :returns: the top of the tree
    """
    archive = source.path
    if archive.endswith('.deb'):
        cache.call(['dpkg-deb', '--extract', archive, folder], folder,
                   'unpacking %s' % archive)
        archive, = glob.glob(os.path.join(
            folder, 'usr', 'src', 'linux-source-*.tar.xz'))
    tree = os.path.join(folder, 'tree')
    os.mkdir(tree)
    cache.call(['tar', '--extract', '--file', archive, '--directory', tree,
                '--strip-components=1']
               + ['--exclude=' + pattern for pattern in LEFT_OUT],
               folder, 'unpacking %s' % archive)
    shutil.rmtree(os.path.join(folder, 'usr'), ignore_errors=True)
    return tree
