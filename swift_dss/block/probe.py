"""Tell udev the role of a block device in dm-dss, and the rule that asks.

blkid and wipefs have no signature that a cache can carry: each of theirs names
a format that a cache is not, and makes others take the device for their own.
So this program, ``swift-dss-block-probe``, tells udev what blkid cannot:

- an SSD with a cache is ``dm_dss``, with its UUID, for ``lsblk`` and all
  that asks udev; its link is ``/dev/disk/by-id/dss-UUID``;
- an origin in ``/etc/dss-block.tab`` loses the links that name its file system
  by UUID and label. They are those of the device that has the SSD, too, and
  a mount that came before the cache would see old bytes.

udev runs it for each disk and partition. It opens none of them exclusively, or
an attach at the same moment would fail.
"""

from __future__ import annotations

import os
import sys
import uuid
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from swift_dss.block import tab
from swift_dss.block.ondisk.blocks import BLOCK_BYTES
from swift_dss.block.ondisk.superblock import super_version
from swift_dss.core.errors import DssError
from swift_dss.io.start.versions import versions

#: As blkid calls the kinds that it knows.
TYPE = 'dm_dss'
#: Links by the names in a file system itself.
_BY_CONTENTS = ('disk/by-uuid/', 'disk/by-label/')
RULE = '''\
# Made by "swift-dss-block-probe --rule".
SUBSYSTEM!="block", GOTO="dss_block_end"
ACTION=="remove", GOTO="dss_block_end"
KERNEL=="ram*|zram*|sr*|fd*", GOTO="dss_block_end"
ENV{{DM_UDEV_DISABLE_OTHER_RULES_FLAG}}=="1", GOTO="dss_block_end"
IMPORT{{program}}="{python} -m swift_dss.block.probe $devnode $links"
ENV{{DSS_BLOCK}}=="cache", SYMLINK+="disk/by-id/dss-$env{{ID_FS_UUID}}"
ENV{{DSS_BLOCK}}=="origin", OPTIONS+="string_escape=none", \\
  SYMLINK="$env{{DSS_BLOCK_LINKS}}"
LABEL="dss_block_end"
'''


def cache_of(blocks: bytes) -> Optional[Tuple[int, uuid.UUID]]:
    """Format and UUID of the cache that begins with these blocks.

    :param blocks: both copies of the superblock
    """
    told = [super_version(blocks[at:at + BLOCK_BYTES])
            for at in (0, BLOCK_BYTES)]
    # A new cache has one copy; those of an old one have one UUID.
    for version in told:
        if version is not None:
            return version[0], uuid.UUID(bytes=version[1])
    return None


def origin_of(node: str, links: Sequence[str],
              entries: Iterable[tab.Entry]) -> Optional[tab.Entry]:
    """The device of the tab that has this one for its origin.

    :param node: its path
    :param links: further names, below /dev
    """
    names = [node] + ['/dev/' + link for link in links]
    return next((entry for entry in entries if entry.origin in names), None)


def properties(node: str, links: Sequence[str], blocks: bytes,
               entries: Iterable[tab.Entry], known: str) -> Dict[str, str]:
    """The properties for udev.

    :param known: what blkid takes the device for; empty: nothing
    """
    cache = cache_of(blocks)
    if cache and not known:
        return {'DSS_BLOCK': 'cache', 'ID_FS_TYPE': TYPE,
                'ID_FS_USAGE': 'other', 'ID_FS_VERSION': '%d' % cache[0],
                'ID_FS_UUID': str(cache[1]), 'ID_FS_UUID_ENC': str(cache[1])}
    entry = origin_of(node, links, entries)
    if entry:
        return {'DSS_BLOCK': 'origin', 'DSS_BLOCK_NAME': entry.name,
                'DSS_BLOCK_LINKS': ' '.join(
                    link for link in links
                    if not link.startswith(_BY_CONTENTS))}
    return {}


def look(node: str, links: Sequence[str], environment: Mapping[str, str]
         ) -> Dict[str, str]:
    """The same of a device that is there.

    :param environment: what udev knows already
    :raises DssError: the tab cannot be read
    :raises OSError: nor can the device
    """
    path = environment.get(tab.VARIABLE, tab.PATH)
    entries = tab.read(path)[0].values() if os.path.exists(path) else ()
    with open(node, 'rb', buffering=0) as device:
        blocks = device.read(2 * BLOCK_BYTES)
    # udev gives a partition its disk's properties, the table among them.
    table = '' if environment.get('DEVTYPE') == 'partition' \
        else environment.get('ID_PART_TABLE_TYPE', '')
    return properties(node, links, blocks, entries,
                      environment.get('ID_FS_TYPE') or table)


def main() -> int:
    """``swift-dss-block-probe DEVICE [LINK...]``, ``--rule`` or
    ``--version``."""
    words: List[str] = sys.argv[1:]
    if words == ['--rule']:
        print(RULE.format(python=sys.executable), end='')
        return 0
    if words == ['--version']:
        print(versions())
        return 0
    if not words:
        print('wanted: a device, or --rule', file=sys.stderr)
        return 2
    try:
        told = look(words[0], words[1:], os.environ)
    except (DssError, OSError) as err:
        print('swift-dss-block-probe: %s' % err, file=sys.stderr)
        return 1
    for key, value in told.items():
        print('%s=%s' % (key, value))
    return 0


if __name__ == '__main__':
    sys.exit(main())
