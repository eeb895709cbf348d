"""What the laboratory has built, and taking it away again."""

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
        with open(os.path.join(folder, 'about')) as about:
            lines.append('%s  %s' % (folder, about.read().strip()))
        for module in sorted(glob.glob(os.path.join(folder, '*', '*.ko'))):
            lines.append('  %s' % os.path.relpath(module, folder))
    lines += sorted(_sources())
    for name, (kind, values) in PRESETS.items():
        lines.append('preset %-10s %s' % (name, ' '.join(
            [kind] + ['%s=%d' % pair for pair in values.items()])))
    return lines


def clean(everything: bool) -> List[str]:
    """Remove what is out of date; with ``everything`` all of it.

    A kernel that somebody builds or uses at this moment is not protected:
    the caller knows.

    :returns: the paths that went
    """
    keep: Set[str] = set()
    gone = []
    if not everything and _sources():
        for variant in build.VARIANTS:
            keep.add(build.place(variant, source.find(lambda line: None)))
    for folder in _kernels():
        if folder not in keep:
            shutil.rmtree(folder)
            gone.append(folder)
    for lock in glob.glob(os.path.join(cache.root(), 'kernel-*.lock')):
        if lock[:-len('.lock')] not in keep:
            os.unlink(lock)
    newest = max(_sources(), key=os.path.getmtime, default='')
    for path in _sources():
        if everything or path != newest:
            os.unlink(path)
            gone.append(path)
    return gone


def _kernels() -> List[str]:
    return sorted(path for path in glob.glob(
        os.path.join(cache.root(), 'kernel-*')) if os.path.isdir(path))


def _sources() -> List[str]:
    return glob.glob(os.path.join(cache.root(), source.PACKAGE + '_*.deb'))
