"""The class in the command block of a SCSI disk. Runs in a guest.

``patched_group.py DEVICE`` sends direct reads and writes of each class with
the switch off and on, and prints in one line of JSON what the disk counted
(writes by group number, scsi_debug) and what its command blocks were
(``scsi_dispatch_cmd_start``): operation code, service action, group number.
"""

from __future__ import annotations

import glob
import json
import mmap
import os
import re
import sys
from typing import Any, Dict, List, Tuple

from swift_dss.io.carriers.classified import RWF_CLASSIFIED

_TRACING = '/sys/kernel/tracing/'
_EVENT = _TRACING + 'events/scsi/scsi_dispatch_cmd_start/'
_COUNTS = '/sys/bus/pseudo/drivers/scsi_debug/group_number_stats'
_RAW = re.compile(r'raw=([0-9a-f ]+)\)')
_VARIABLE_LENGTH = 0x7f
CLASSES = 32


def put(path: str, text: str) -> None:
    with open(path, 'w') as target:
        target.write(text)


def counts() -> Dict[int, int]:
    """Writes by group number, of those that were written at all."""
    with open(_COUNTS) as source:
        rows = (line.split() for line in source)
        return {int(group): int(count) for group, count in rows
                if int(count)}


def group_of(raw: List[int]) -> Tuple[int, int, int]:
    """(operation, service action, the field with GROUP NUMBER)."""
    if raw[0] == _VARIABLE_LENGTH:
        return raw[0], raw[8] << 8 | raw[9], raw[6] & 0x3f
    place = {6: None, 10: 6, 16: 14}[len(raw)]
    return raw[0], 0, raw[place] & 0x3f if place else 0


def commands() -> List[Tuple[int, int, int]]:
    with open(_TRACING + 'trace') as source:
        return [group_of([int(byte, 16) for byte in words.split()])
                for words in _RAW.findall(source.read())]


def each_class(device: str, write: bool) -> Dict[str, Any]:
    """One direct request of each class."""
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    data = mmap.mmap(-1, 4096)
    put(_COUNTS, '0')
    put(_TRACING + 'trace', '')
    put(_EVENT + 'enable', '1')
    for class_id in range(CLASSES):
        vector = [bytearray((class_id,)), data]
        call: Any = os.pwritev if write else os.preadv
        assert call(fd, vector, class_id << 12, RWF_CLASSIFIED) == 4096
    put(_EVENT + 'enable', '0')
    os.close(fd)
    return {'counts': counts(), 'commands': commands()}


def main(device: str) -> int:
    switch, = glob.glob('/sys/block/%s/device/scsi_disk/*/'
                        'storage_class_group' % os.path.basename(device))
    report: Dict[str, Any] = {}
    with open(switch) as source:
        report['default'] = source.read().strip()
    for state in ('0', '1'):
        put(switch, state)
        report[state] = {'write': each_class(device, True),
                         'read': each_class(device, False)}
    try:
        put(switch, 'maybe')
        report['nonsense'] = 'taken'
    except OSError as err:
        report['nonsense'] = err.strerror
    print(json.dumps(report))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
