"""List and remove the builds of the laboratory."""

from __future__ import annotations

import glob
import os
import shutil
from typing import List, Set

from swift_dss.block.lab import build, cache, source
from swift_dss.block.lab.devices import PRESETS


def listing() -> List[str]:
    """Lines for an operator: kernels, modules, sources, presets."""
    lines = []
    for folder in _kernels():
        if not cache.is_complete(folder):
            lines.append('%s  (unfinished)' % folder)
            continue
        about = os.path.join(folder, 'about')
        said = 'stock'
        if os.path.exists(about):
            with open(about) as text:
                said = text.read().strip()
        lines.append('%s  %s' % (folder, said))
        for module in sorted(glob.glob(os.path.join(folder, '*', '*.ko'))):
            lines.append('  %s' % os.path.relpath(module, folder))
    lines += sorted(_sources())
    for name, (kind, values) in PRESETS.items():
        lines.append('preset %-10s %s' % (name, ' '.join(
            [kind] + ['%s=%d' % pair for pair in values.items()])))
    return lines


def clean(everything: bool) -> List[str]:
    """Remove outdated builds; with ``everything`` all of it.

    Out of date are kernels of another source, configuration or series of
    patches, modules of other sources, and all but the newest source. A kernel
    that is being built or used is not protected: the caller MUST make sure
    that none is.

    :returns: the paths that went
    """
    keep: Set[str] = set()
    gone = []
    if not everything:
        keep.update(path for path in _kernels()
                    if os.path.basename(path).startswith('stock-'))
        if _sources():
            origin = source.find(lambda line: None)
            keep.update(build.place(variant, origin)
                        for variant in build.VARIANTS)
    stale = [folder for folder in _kernels() if folder not in keep]
    stale += [folder for kept in keep for folder in _old_modules(kept)]
    for folder in stale:
        shutil.rmtree(folder)
        gone.append(folder)
    for lock in glob.glob(os.path.join(cache.root(), '*.lock')):
        if _is_ours(lock) and lock[:-len('.lock')] not in keep:
            os.unlink(lock)
    newest = max(_sources(), key=os.path.getmtime, default='')
    for path in _sources():
        if everything or path != newest:
            os.unlink(path)
            gone.append(path)
    return gone


def _old_modules(folder: str) -> List[str]:
    """Modules in the folder of a kernel, of sources that are no more."""
    current = [build.module_folder(folder, name)
               for name, _place in build.MODULES]
    return sorted(
        path for name, _place in build.MODULES
        for path in glob.glob(os.path.join(folder, name + '-*'))
        if os.path.isdir(path) and path not in current
        # dm-dss-disk begins as dm-dss does.
        and len(os.path.basename(path)) == len(os.path.basename(
            build.module_folder(folder, name))))


def _is_ours(path: str) -> bool:
    return os.path.basename(path).startswith(('kernel-', 'stock-'))


def _kernels() -> List[str]:
    return sorted(path for path in glob.glob(
        os.path.join(cache.root(), '*'))
        if os.path.isdir(path) and _is_ours(path))


def _sources() -> List[str]:
    return glob.glob(os.path.join(cache.root(), source.PACKAGE + '_*.deb'))
