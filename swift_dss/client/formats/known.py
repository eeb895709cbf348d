"""The formats that are known, and which of them a file has."""

from __future__ import annotations

import functools
import importlib
import itertools
from typing import Any, Iterator, List, NamedTuple, Optional

from swift_dss.client.formats.contract import (
    Format, Hot, NoSuchFormat, Reader, Wish)
from swift_dss.client.formats.plan import Limits, Plan, plan
from swift_dss.client.formats.readers import Bounded

#: The group of entry points by which packages add formats.
GROUP = 'swift_dss.classifiers'
#: Modules of the formats here, in the order in which they are tried.
_MODULES = ('tables.parquet', 'tables.orc', 'tables.arrow',
            'archives.zipped', 'archives.tar', 'media.mp4', 'media.tiff',
            'media.hdf5', 'media.video', 'images.qcow2', 'images.disk')
#: Programs look at so much to see which format a file has.
_SNIFFED_BYTES = 16 << 10


class Classified(NamedTuple):
    """What became of one file.

    :param format_name: of the format that it has
    """

    format_name: str
    size: int
    plan: Plan


def formats() -> Iterator[Format]:
    """Those of others first, then those here."""
    for entry in _entry_points():
        yield entry.load()
    for name in _MODULES:
        module = importlib.import_module('swift_dss.client.formats.' + name)
        yield module.FORMAT


def classify(reader: Reader, name: str = 'auto', wish: Optional[Wish] = None,
             limits: Optional[Limits] = None) -> Classified:
    """The hot ranges of a file.

    :param name: of its format, or ``auto``: the first that fits
    :raises NoSuchFormat: no format has this name, or the file's
    :raises BadFile: the file is damaged, or hostile
    :raises MissingLibrary: its library is not installed
    """
    bounded = Bounded(reader)
    chosen = _chosen(bounded, name)
    hots = itertools.chain((Hot(0, _SNIFFED_BYTES),),
                           chosen.hot(bounded, wish or Wish()))
    return Classified(chosen.name, reader.size,
                      plan(hots, reader.size, limits or Limits()))


def _chosen(reader: Reader, name: str) -> Format:
    names: List[str] = []
    for known in formats():
        if known.name == name or (name == 'auto' and known.fits(reader)):
            return known
        names.append(known.name)
    if name == 'auto':
        raise NoSuchFormat('format', 'the file is none of %s'
                           % ', '.join(names))
    raise NoSuchFormat('--format', '%s is none of auto, %s'
                       % (ascii(name[:48]), ', '.join(names)))


@functools.lru_cache(maxsize=None)
def _entry_points() -> List[Any]:
    # Looking for them reads every package's metadata.
    from importlib import metadata
    known: Any = metadata.entry_points()
    if hasattr(known, 'select'):
        return list(known.select(group=GROUP))
    return list(known.get(GROUP, ()))
