"""``/etc/dss-block.tab``: the dm-dss devices that a node attaches at boot.

A line has a name, an SSD, an origin and, if there are any, options with commas
between them::

    # NAME  SSD                               ORIGIN                OPTIONS
    fast    /dev/disk/by-id/nvme-X-part1      /dev/disk/by-id/ata-Y  nofail

Empty lines and lines that begin with ``#`` count for nothing. The SSD has
its chunks, classes and dirty bytes itself. The line has the rest: the settings
of the table.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Dict, List, Tuple

from swift_dss.block.table import MODES, STRATEGIES
from swift_dss.core.errors import BadConfig
from swift_dss.io.start.text import read_text

PATH = '/etc/dss-block.tab'
#: Names another file, for tests.
VARIABLE = 'SWIFT_DSS_BLOCK_TAB'
#: A name of a device.
NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._+-]{0,126}\Z')
#: A path that needs no quotes in a unit.
_PATH = re.compile(r'/[A-Za-z0-9/_.:@+=-]+\Z')
#: Options that are a word alone.
_WORDS = ('noauto', 'nofail')
#: Options that are a number: the least and the most.
_NUMBERS = {'meta-class': (0, 255), 'high': (0, 100), 'low': (0, 100),
            'idle-ms': (0, 3600000), 'stage': (0, 100)}
_CHOICES = {'mode': MODES, 'strategy': STRATEGIES}


@dataclass(frozen=True)
class Entry:
    """A device of the file.

    :param class_table: a dss-classes.conf to load; empty: that of the cache
    :param noauto: not at boot, only when a mount or an operator asks
    :param nofail: a boot goes on without it
    """

    name: str
    ssd: str
    origin: str
    class_table: str = ''
    mode: str = MODES[0]
    strategy: str = STRATEGIES[0]
    meta_class: int = 1
    high: int = 50
    low: int = 25
    idle_ms: int = 1000
    stage: int = 0
    noauto: bool = False
    nofail: bool = False


def parse(text: str, path: str = PATH) -> Tuple[Dict[str, Entry], List[str]]:
    """The devices of a file by name, in its order, and its errors.

    A wrong line costs its own device, and no other: a node's other drives are
    to be there after a boot.

    :param path: to name in errors
    """
    entries: Dict[str, Entry] = {}
    wrong: List[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith('#'):
            continue
        try:
            entry = _entry(words)
            if entry.name in entries:
                raise BadConfig('a second device %s' % entry.name)
        except BadConfig as err:
            wrong.append('%s, line %d: %s' % (path, number, err))
            continue
        entries[entry.name] = entry
    return entries, wrong


def read(path: str = PATH) -> Tuple[Dict[str, Entry], List[str]]:
    """The same of a file that is there.

    :raises BadConfig: it cannot be read
    """
    return parse(read_text(path), path)


def _entry(words: List[str]) -> Entry:
    if not 3 <= len(words) <= 4:
        raise BadConfig('%d words; wanted: NAME SSD ORIGIN [OPTIONS]'
                        % len(words))
    name, ssd, origin = words[:3]
    if not NAME.match(name):
        raise BadConfig('%r is no name for a device' % name)
    for device in (ssd, origin):
        if not (device.startswith('/dev/') and _PATH.match(device)):
            raise BadConfig('%r is no path below /dev of letters, digits and '
                            '_.:@+=-' % device)
    if ssd == origin:
        raise BadConfig('SSD and origin are one device')
    return _with_options(
        Entry(name, ssd, origin),
        words[3].split(',') if len(words) == 4 and words[3] != '-' else [])


def _with_options(entry: Entry, options: List[str]) -> Entry:
    values: Dict[str, object] = {}
    for option in options:
        key, equals, value = option.partition('=')
        field = key.replace('-', '_')
        if field in values:
            raise BadConfig('%s is given twice' % key)
        if key in _WORDS and not equals:
            values[field] = True
        elif key in _NUMBERS and equals:
            values[field] = _number(key, value)
        elif (value in _CHOICES.get(key, ())
              or (key == 'class-table' and _PATH.match(value))):
            values[field] = value
        else:
            raise BadConfig('no option %r; there are %s' % (option, ', '.join(
                _WORDS + tuple('%s=' % key for key in (
                    *_NUMBERS, *_CHOICES, 'class-table')))))
    made = dataclasses.replace(entry, **values)  # type: ignore[arg-type]
    if made.low > made.high:
        raise BadConfig('low=%d is over high=%d' % (made.low, made.high))
    return made


def _number(key: str, value: str) -> int:
    least, most = _NUMBERS[key]
    if not value.isdecimal() or not least <= int(value) <= most:
        raise BadConfig('%s=%s; wanted: %d to %d' % (key, value, least, most))
    return int(value)
