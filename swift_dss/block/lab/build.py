"""Build the laboratory's kernel, and our modules for it.

A kernel takes about thirteen minutes of one processor, once for each
combination of source, configuration and patches; a module takes seconds.
Both are kept (:mod:`swift_dss.block.lab.cache`).
"""

from __future__ import annotations

import glob
import os
import re
import shutil
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

from swift_dss.block.lab import cache, source
from swift_dss.block.lab.cache import Say
from swift_dss.core.errors import BadConfig

#: Name to the differences: (our patches, configuration fragments).
VARIANTS = {
    'plain': (False, ('uml-6.12.config',)),
    'patched': (True, ('uml-6.12.config',)),
    'debug': (True, ('uml-6.12.config', 'uml-debug.config')),
}

#: The boot options of a variant. KASAN would report the allocator's own checks
#: for writing their red zones.
BOOT_OPTIONS = {'debug': ('slub_debug=-',)}

#: Our modules, in the order of loading: name and its folder in kmod/.
MODULES = (('dm-dss-disk', 'lab'), ('dm-dss', '.'))
DISK_MODULE = 'dm-dss-disk'

#: Programs that building a user-mode kernel needs.
COMMANDS = ('bc', 'bison', 'dpkg-deb', 'flex', 'gcc', 'make', 'patch',
            'tar', 'xz')

#: Build facts go into a kernel's random numbers, so keep them the same on
#: every machine.
_SAME_KERNEL = ('KBUILD_BUILD_TIMESTAMP=2026-01-01', 'KBUILD_BUILD_VERSION=1',
                'KBUILD_BUILD_USER=swift-dss', 'KBUILD_BUILD_HOST=lab')

#: Subfolders of kmod/ that are not part of dm-dss.
_NOT_OF_DSS = ('lab', 'patches')


@dataclass(frozen=True)
class Kernel:
    """A kernel that was built.

    :param folder: its folder in the cache
    :param binary: the program to run
    :param tree: what modules are built against
    """

    variant: str
    folder: str

    @property
    def binary(self) -> str:
        """The kernel itself."""
        return os.path.join(self.folder, 'linux')

    @property
    def tree(self) -> str:
        """Headers, configuration and scripts."""
        return os.path.join(self.folder, 'tree')


def kmod() -> str:
    """The folder of our C."""
    return os.path.join(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))), 'kmod')


def patches(variant: str) -> List[str]:
    """The patches of a variant, in their order."""
    folders = ['lab/patches']
    if VARIANTS[variant][0]:
        folders.append('patches')
    return [path for folder in folders for path in sorted(
        glob.glob(os.path.join(kmod(), folder, '*.patch')))]


def fragments(variant: str) -> List[str]:
    """The configuration of a variant, in the order of merging."""
    return [os.path.join(kmod(), 'lab', name)
            for name in VARIANTS[variant][1]]


def kernel(variant: str, say: Say, update: bool = False) -> Kernel:
    """The kernel of a variant, built if it is not there.

    :param update: from the newest source that the mirror has
    :raises BadConfig: an unknown variant, or packages are missing
    :raises cache.BuildFailed: a patch or the compiler refused
    """
    if variant not in VARIANTS:
        raise BadConfig('no kernel variant %r: there are %s'
                        % (variant, ', '.join(VARIANTS)))
    origin = source.find(say, update)
    made = Kernel(variant, place(variant, origin))
    with cache.making(made.folder, say) as ours:
        if ours:
            _build(made, origin, say)
    return made


def place(variant: str, origin: source.Source) -> str:
    """The folder of a kernel: named by all that it is made from."""
    return os.path.join(cache.root(), 'kernel-' + cache.digest(
        [origin.version.encode()]
        + list(cache.contents(patches(variant), kmod()))
        + list(cache.contents(fragments(variant), kmod()))))


def _build(made: Kernel, origin: source.Source, say: Say) -> None:
    cache.need(COMMANDS, 'building a kernel')
    say('building the %s kernel from %s, once'
        % (made.variant, os.path.basename(origin.path)))
    tree = source.unpack(origin, made.folder)
    for path in patches(made.variant):
        cache.call(['patch', '-p1', '--batch', '--forward'], tree,
                   'patch %s' % os.path.basename(path), stdin=path)
    _configure(tree, fragments(made.variant))
    cache.call_long(
        ['make', 'ARCH=um', '-j%d' % processors(), *_SAME_KERNEL], tree,
        'compiling the kernel', os.path.join(made.folder, 'log'), say)
    shutil.copy(os.path.join(tree, 'linux'), made.binary)
    _prune(tree)
    with open(os.path.join(made.folder, 'about'), 'w') as out:
        out.write('%s %s\n' % (made.variant, origin.version))
    say('the %s kernel is built' % made.variant)


def processors() -> int:
    """How many may be used at once."""
    return len(os.sched_getaffinity(0))


def _configure(tree: str, parts: Sequence[str]) -> None:
    """Merge the fragments over nothing; every line of theirs must hold.

    :raises cache.BuildFailed: names the options that did not take
    """
    cache.call(['make', 'ARCH=um', 'allnoconfig'], tree, 'allnoconfig')
    cache.call(['scripts/kconfig/merge_config.sh', '-m', '.config']
               + list(parts), tree, 'merging the configuration')
    cache.call(['make', 'ARCH=um', 'olddefconfig'], tree, 'olddefconfig')
    with open(os.path.join(tree, '.config')) as text:
        have = set(text.read().splitlines())
    wanted = []
    for part in parts:
        with open(part) as text:
            wanted += re.findall(r'^CONFIG_\w+=.*$', text.read(), re.M)
    # The last word counts, as in the merge.
    last = {line.split('=')[0]: line for line in wanted}
    lost = sorted(
        line for line in last.values() if line not in have
        and not (line.endswith('=n') and '# %s is not set'
                 % line[:-2] in have))
    if lost:
        raise cache.BuildFailed('this kernel has no way to be configured '
                                'with %s' % ', '.join(lost))


def _prune(tree: str) -> None:
    """Leave what modules are built against: a tenth of the tree."""
    for folder, _folders, names in os.walk(tree):
        if os.path.relpath(folder, tree).split(os.sep)[0] == 'scripts':
            continue
        for name in names:
            if name.endswith(('.c', '.o', '.a', '.S', '.cmd', '.rst')):
                os.unlink(os.path.join(folder, name))
    for name in ('linux', 'vmlinux', 'vmlinux.o'):
        path = os.path.join(tree, name)
        if os.path.lexists(path):
            os.unlink(path)


def module_sources(name: str) -> Tuple[str, List[str]]:
    """Where a module of ours is built, and all that it is built from.

    :returns: the folder with its Kbuild file; no files if it has none
    """
    folder = os.path.normpath(os.path.join(kmod(), dict(MODULES)[name]))
    sources = []
    for place, folders, names in os.walk(folder):
        if place == kmod():
            folders[:] = [name for name in folders if name not in _NOT_OF_DSS]
        sources += [os.path.join(place, name) for name in names
                    if name.endswith(('.c', '.h'))
                    and not name.endswith('.mod.c')
                    or name in ('Kbuild', 'dkms.conf')]
    if os.path.join(folder, 'Kbuild') not in sources:
        return folder, []
    return folder, sorted(sources)


def module_folder(kernel_folder: str, name: str) -> str:
    """Where a module is built for a kernel: named by its sources."""
    origin, files = module_sources(name)
    return os.path.join(kernel_folder, '%s-%s' % (
        name, cache.digest(cache.contents(files, origin))))


def module(made_for: Kernel, name: str, say: Say) -> Optional[str]:
    """A module of ours for that kernel, built if it must be.

    :returns: its file; None if this installation has no source of it
    :raises cache.BuildFailed: with the compiler's output; a warning of
        its counts
    """
    if not module_sources(name)[1]:
        return None
    folder = module_folder(made_for.folder, name)
    with cache.making(folder, say) as ours:
        if ours:
            cache.need(('gcc', 'make'), 'building %s' % name)
            say('building %s' % name)
            build_module(['ARCH=um'], made_for.tree, name, folder)
    return os.path.join(folder, name + '.ko')


def build_module(options: Sequence[str], tree: str, name: str,
                 folder: str) -> None:
    """Copy a module's sources and build them there."""
    copy_sources(name, folder)
    make_module(options, tree, name, folder)


def copy_sources(name: str, folder: str) -> None:
    """All that a module is built from."""
    origin, files = module_sources(name)
    for path in files:
        target = os.path.join(folder, os.path.relpath(path, origin))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(path, target)


def make_module(options: Sequence[str], tree: str, name: str,
                folder: str) -> None:
    """Build a module where its sources were copied to.

    :raises cache.BuildFailed: with the compiler's output; a warning of
        its counts
    """
    cache.call(['make', '-C', tree, 'M=' + folder,
                '-j%d' % processors(), 'KCFLAGS=-Werror']
               + list(options) + ['modules'], folder,
               'building %s' % name)


def module_paths(made_for: Kernel, names: Optional[Sequence[str]],
                 with_disk: bool, say: Say) -> List[str]:
    """Files to load, in order.

    :param names: of our modules, or paths; None is all of ours
    :param with_disk: a device is modelled, so the model must be there
    :raises BadConfig: a name that is none of ours and no file
    """
    wanted = [name for name, _folder in MODULES] if names is None \
        else list(names)
    if with_disk and DISK_MODULE not in wanted:
        wanted.insert(0, DISK_MODULE)
    paths = []
    for name in wanted:
        if name not in dict(MODULES):
            if not os.path.isfile(name):
                raise BadConfig('no module %s: ours are %s' % (
                    name, ', '.join(module for module, _folder in MODULES)))
            paths.append(os.path.abspath(name))
            continue
        path = module(made_for, name, say)
        if path:
            paths.append(path)
        elif names is not None:
            raise BadConfig('this installation has no source of %s' % name)
    return paths
