"""The bound beside the figures of CACS: the best that HDDs could do.

Only bytes of objects count. Journals, inodes and Swift's databases are
metadata, which the caches keep on the SSD.

Two bounds of each phase. *Streaming*: the HDDs pass the bytes that the SSDs
have no room for, at the rate of their outermost track, and their arms never
move. *One seek a copy*: before each of those copies the arm goes to anywhere
on the disk and waits half a turn. The SSDs have the classes in the order of
the caches, in an upload of all copies and in a download of one warm copy of
each object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Iterable, Sequence, Tuple

from swift_dss.bench import cacs, figures
from swift_dss.block import lab

#: Mean of the root of the distance of two random places, and of the distance.
_MEAN_ROOT, _MEAN_DISTANCE = 8 / 15, 1 / 3


@dataclass(frozen=True)
class Bound:
    """The most that one phase could have, MB/s of the clients' bytes.

    :param streaming: if the arms of the HDDs never move
    :param seeking: with one seek for each copy that passes the SSD
    :param hdd_bytes: that the HDDs have to pass
    :param copies: that they have to pass
    """

    streaming: float
    seeking: float
    hdd_bytes: int
    copies: int


def parameters(preset: str) -> Dict[str, int]:
    """Of a modelled disk, by its preset with changes."""
    words = lab.parse_device('disk=%s:1M' % preset).model
    return {name: int(value) for name, value in re.findall(
        r'(\w+)=(\d+)', words)}


def seek_seconds(disk: Dict[str, int], write: bool) -> float:
    """The way to anywhere and half a turn."""
    return (disk['seek_base_ns'] + disk['seek_sqrt_ns'] * _MEAN_ROOT
            + disk['seek_linear_ns'] * _MEAN_DISTANCE
            + (disk['write_settle_ns'] if write else 0)
            + disk['rotation_ns'] / 2) / 1e9


def _passing(objects: Iterable[cacs.CacsObject], copies: int,
             room: int) -> Dict[str, int]:
    """Copies of each object that have no place in ``room``: the highest class
    has the first."""
    passing = {}
    for obj in sorted(objects, key=lambda obj: obj.class_name):
        fit = min(copies, room // max(1, obj.size))
        room -= fit * obj.size
        passing[obj.name] = copies - fit
    return passing


def upload(objects: Sequence[cacs.CacsObject], replicas: int, room: int,
           disks: int, preset: str) -> Bound:
    """All copies of all objects are written.

    :param room: bytes of objects that all SSDs together have room for
    """
    passing = _passing(objects, replicas, room)
    return _bound(((obj, passing[obj.name]) for obj in objects),
                  sum(obj.size for obj in objects), disks, preset, True)


def download(objects: Sequence[cacs.CacsObject], reads: Sequence[int],
             room: int, disks: int, preset: str) -> Bound:
    """One copy is read for each of ``reads``; one copy of each is warm."""
    passing = _passing(objects, 1, room)
    return _bound(((objects[at], passing[objects[at].name]) for at in reads),
                  sum(objects[at].size for at in reads), disks, preset,
                  False)


def _bound(passing: Iterable[Tuple[cacs.CacsObject, int]], count: int,
           disks: int, preset: str, write: bool) -> Bound:
    disk = parameters(preset)
    rows = [(obj.size, copies) for obj, copies in passing]
    size = sum(of_one * copies for of_one, copies in rows)
    copies = sum(copies for _size, copies in rows)
    streaming = size / disk['outer_rate'] / disks
    seeking = streaming + copies * seek_seconds(disk, write) / disks
    return Bound(figures.ratio(count / 1e6, streaming),
                 figures.ratio(count / 1e6, seeking), size, copies)
