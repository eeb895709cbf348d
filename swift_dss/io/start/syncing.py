"""How Swift's replicator moves files: rsync must not, where stubs are.

rsync is Swift's default. It copies a stub as it is, with a record of an HDD
that is another node's, so that the copy has no bytes; ssync asks our
diskfile. Every process of ours that can see the replicator's options looks
at them when it starts: the object server and the tier daemon in the object
server's file, and the replicator itself, whose diskfile is ours.
"""

from __future__ import annotations

import os
from typing import Mapping, Optional

from swift.common.utils.config import readconf

from swift_dss.core.errors import BadConfig

SECTION = 'object-replicator'
_OPTION = 'sync_method'
#: Swift's default.
_RSYNC = 'rsync'


def check_options(options: Mapping[str, str], source: str) -> None:
    """:raises BadConfig: these options have the replicator use rsync."""
    method = options.get(_OPTION) or ''
    if (method or _RSYNC) != _RSYNC:
        return
    raise BadConfig(
        '%s: [%s] %s is %s: rsync copies stubs, whose bytes are on another '
        'node, and such copies are quarantined at the first read. Write '
        '"%s = ssync" in that section' % (
            source, SECTION, _OPTION,
            repr(method) if method else "not set, which means 'rsync'",
            _OPTION))


def check_file(path: str) -> bool:
    """Look at the object server's configuration.

    :param path: its file, or the folder of its files
    :returns: False if there is no configuration to look at
    :raises BadConfig: it has the replicator use rsync, or cannot be read
    """
    file_path = there(path)
    if file_path is None:
        return False
    try:
        options = readconf(file_path).get(SECTION)
    except Exception as err:  # whatever a parser of such files raises
        raise BadConfig('%s: %s' % (file_path, err)) from err
    if options is not None:
        # Without the section no replicator runs from this file.
        check_options(options, file_path)
    return True


def refuse_rsync(options: Mapping[str, str]) -> None:
    """End the process if it is a replicator that uses rsync.

    :param options: of any of Swift's processes; its daemons give the name
        of their section as ``log_name``, unless that is an option
    """
    if options.get('log_name') != SECTION:
        return
    try:
        check_options(options, 'object replicator')
    except BadConfig as err:
        # Swift's daemons print that and no traceback.
        raise SystemExit('swift-dss: %s' % err) from err


def there(path: str) -> Optional[str]:
    """The file, or its folder of files (``PATH.d``); None without either."""
    for path_or_folder in (path, path + '.d'):
        if os.path.exists(path_or_folder):
            return path_or_folder
    return None
