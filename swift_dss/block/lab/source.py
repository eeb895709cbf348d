"""The kernel's source, as Debian packages it.

The first of: the file that ``SWIFT_DSS_KERNEL_SOURCE`` names, the newest
package that was fetched before, the package from the machine's own Debian
mirror, its backports included. So the source changes with ``lab build
--update``, not when Debian publishes.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from typing import Iterator, List, Sequence

from swift_dss.block.lab import cache
from swift_dss.core.errors import BadConfig

PACKAGE = 'linux-source-6.12'
ENVIRONMENT = 'SWIFT_DSS_KERNEL_SOURCE'

KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

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


def fetch_all(packages: Sequence[str], release: str, folder: str,
              say: cache.Say) -> List[str]:
    """Get packages of a release of Debian or its backports, and all that they
    need, as if nothing were installed.

    :param folder: gets them; must be empty
    :returns: their files
    :raises BuildFailed: the mirror does not have all of them
    """
    cache.need(['apt-get', 'dpkg-deb'], 'fetching %s' % packages[0])
    say('fetching %s of %s' % (', '.join(packages), release))
    with own_lists(release) as options:
        steps = _apt_get(folder, options + [
            '-oDir::State::Status=' + os.devnull], '--simulate',
            '--no-install-recommends', 'install', *packages)
        _apt_get(folder, options, 'download', *[
            '%s=%s' % step
            for step in re.findall(r'^Inst (\S+) \((\S+)', steps, re.M)])
    return sorted(glob.glob(os.path.join(folder, '*.deb')))


def _download(package: str, folder: str, say: cache.Say) -> None:
    command = ['apt-get', 'download', '-qq', package]
    try:
        cache.call(command, folder, 'apt-get download %s' % package)
        return
    except cache.BuildFailed:
        say('it is not in the lists of apt here: asking the mirror, and its '
            'backports, with lists of our own')
    try:
        with own_lists() as options:
            _apt_get(folder, options, 'download', package)
    except cache.BuildFailed as err:
        raise BadConfig(
            "%s is neither on this machine's Debian mirror nor in its "
            'backports; %s may name a file of it: %s'
            % (package, ENVIRONMENT, err)) from err


@contextlib.contextmanager
def own_lists(release: str = '') -> Iterator[List[str]]:
    """Options that let apt use the machine's sources, and backports of each,
    by new lists of our own.

    :param release: have that one, from the same mirror, in place of theirs
    :raises BuildFailed: the mirror does not answer
    """
    folder = tempfile.mkdtemp(prefix='apt-', dir=cache.root())
    try:
        lists = _own_lists(folder)
        _apt_get(folder, lists, 'update')
        options = lists + _with_backports(folder, _apt_get(
            folder, lists, 'indextargets', '--format',
            '$(REPO_URI) $(RELEASE)', 'Created-By: Packages',
            'Component: main'), release)
        _apt_get(folder, options, 'update')
        yield options
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _apt_get(folder: str, options: List[str], *words: str) -> str:
    return cache.call(['apt-get', '-qq', *options, *words], folder,
                      'apt-get %s' % ' '.join(words))


def _own_lists(folder: str) -> List[str]:
    """Options that let apt leave the machine's lists as they are. They need no
    root, and no lists that were fetched before."""
    os.makedirs(os.path.join(folder, 'lists', 'partial'))
    return ['-oDir::State::Lists=' + os.path.join(folder, 'lists'),
            '-oDir::Cache=' + folder, '-oAPT::Sandbox::User=root']


def _with_backports(folder: str, told: str, release: str) -> List[str]:
    """Options that let apt use the machine's sources, and backports of each.

    :param told: address and release of the sources, a line each
    :param release: have that one in place of theirs, if not empty
    """
    sources = dict.fromkeys(tuple(line.split()) for line in told.splitlines())
    # bookworm-updates and bookworm-security have none.
    archives = [(uri, release or name) for uri, name in sources
                if '-' not in name]
    if release:
        sources = dict.fromkeys(archives)
    sources.update(dict.fromkeys(
        (uri, name + '-backports') for uri, name in archives))
    key = '[signed-by=%s] ' % KEYRING if os.path.exists(KEYRING) else ''
    path = os.path.join(folder, 'sources.list')
    with open(path, 'w', encoding='utf-8') as target:
        target.writelines('deb %s%s %s main\n' % (key, uri, name)
                          for uri, name in sources)
    return ['-oDir::Etc::SourceList=' + path,
            '-oDir::Etc::SourceParts=' + os.devnull]


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
