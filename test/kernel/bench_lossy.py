"""The guest of a block benchmark whose SSD drops every write."""

import os
import sys

from swift_dss.bench import block_guest, block_targets


class Lossy(block_targets.Target):
    """dm-flakey, always in its bad hour."""

    def start(self) -> str:
        with open(self.ssd, 'rb') as disk:
            sectors = disk.seek(0, os.SEEK_END) // 512
        block_targets.command(
            'dmsetup', 'create', 'lossy', '--table',
            '0 %d flakey %s 0 0 3600 1 drop_writes' % (sectors, self.ssd))
        return '/dev/mapper/lossy'


block_targets.TARGETS['ssd'] = Lossy
sys.exit(block_guest.main(sys.argv[1]))
