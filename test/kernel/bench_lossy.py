"""The guest of a block benchmark whose SSD drops every write."""

import os
import sys

from swift_dss.bench.block import guest, targets


class Lossy(targets.Target):
    """dm-flakey, always in its bad hour."""

    def start(self) -> str:
        with open(self.ssd, 'rb') as disk:
            sectors = disk.seek(0, os.SEEK_END) // 512
        targets.command(
            'dmsetup', 'create', 'lossy', '--table',
            '0 %d flakey %s 0 0 3600 1 drop_writes' % (sectors, self.ssd))
        return '/dev/mapper/lossy'


targets.TARGETS['ssd'] = Lossy
sys.exit(guest.main(sys.argv[1]))
