"""Programs of another Debian, made to run on this one where they lie.

Each is started by the loader of its own C library, with the libraries it was
linked against, so neither a root nor a mount is needed.
"""

from __future__ import annotations

import os
from typing import Iterator

TRIPLET = 'x86_64-linux-gnu'

_MAGIC = b'\x7fELF'
_LOADER = 'ld-linux-x86-64.so.2'
#: The place of the loader is named near the start of a program.
_HEAD_BYTES = 1 << 14
_SCRIPT = '''#!/bin/sh
exec {root}/usr/lib64/{loader} --library-path {root}/usr/lib/{triplet} \\
    --argv0 "$0" {program} "$@"
'''


def carry(root: str) -> None:
    """Put a script in the place of each program under a folder.

    :param root: unpacked packages, that of the C library among them; they
        stay at that place
    """
    for path in list(_programs(root)):
        os.rename(path, path + '.carried')
        with open(path, 'w') as out:
            out.write(_SCRIPT.format(
                root=root, loader=_LOADER, triplet=TRIPLET,
                program=path + '.carried'))
        os.chmod(path, 0o755)
    # The compiler looks there before it takes the machine's.
    folder = os.path.join(root, 'usr', TRIPLET, 'bin')
    os.makedirs(folder)
    os.symlink('../../bin/%s-as' % TRIPLET, os.path.join(folder, 'as'))


def _programs(root: str) -> Iterator[str]:
    """Those that are linked with libraries; no library is one."""
    for folder, _folders, names in os.walk(root):
        for path in (os.path.join(folder, name) for name in names
                     if '.so' not in name):
            if os.path.islink(path) or not os.access(path, os.X_OK):
                continue
            with open(path, 'rb') as source:
                head = source.read(_HEAD_BYTES)
            if head.startswith(_MAGIC) and _LOADER.encode() in head:
                yield path
