"""Objects by the distribution of Client-aware Cloud Storage, case 1.

Chen, Mesnier, Hahn: "Client-aware Cloud Storage", slide "Case 1:
Persistent caching for cloud storage". Kinds and size bands have the
slide's shares; each kind has its class (USER1..USER5) and every object
over 10 MB is USER7. The slide gives no sizes inside a band and no upper
end of the last one: sizes here are log-uniform in their band, from 1 KiB,
and the last band ends at ``TOP_BYTES``.

Everything follows from the arguments: the same call gives the same
objects and the same bytes, on any machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Dict, Iterator, List, Sequence, Tuple

KIB = 1024
MIB = 1024 * KIB

#: (lower, upper) bytes of the slide's rows; the last one is "> 10 MB".
BANDS = ((1 * KIB, 64 * KIB), (64 * KIB, 512 * KIB),
         (512 * KIB, 1 * MIB), (1 * MIB, 5 * MIB), (5 * MIB, 10 * MIB),
         (10 * MIB, 0))
#: Objects over this size are USER7 whatever their kind.
LARGE_BYTES = 10 * MIB
LARGE_CLASS = 'user7'


@dataclass(frozen=True)
class Kind:
    """One column of the slide.

    :param share: percent of all objects
    :param bands: percent of this kind in each of ``BANDS``
    :param top_bytes: upper end of its last band (ours, see above)
    """

    name: str
    share: float
    bands: Tuple[float, ...]
    class_name: str
    content_type: str
    suffix: str
    top_bytes: int


KINDS = (
    Kind('files', 60.0, (79, 14, 3, 2, 1, 0), 'user1',
         'application/octet-stream', '.bin', 20 * MIB),
    Kind('pictures', 35.0, (17.1, 43.6, 14.5, 20, 3.5, 1.3), 'user2',
         'image/jpeg', '.jpg', 20 * MIB),
    Kind('music', 4.0, (0, 0, 0.8, 52.3, 39.6, 7.3), 'user3',
         'audio/mpeg', '.mp3', 20 * MIB),
    Kind('video', 0.9, (0.3, 2.8, 4.9, 32.4, 31.7, 27.9), 'user4',
         'video/mp4', '.mp4', 100 * MIB),
    Kind('vmdk', 0.1, (0, 0, 0, 0, 0, 100), 'user5',
         'application/x-vmdk', '.vmdk', 100 * MIB),
)

#: Class ids of the sample class table (``etc/dss-classes.conf-sample``).
CLASS_IDS: Dict[str, int] = {
    'user%d' % number: 10 + number for number in range(1, 8)}

_BLOCK_BYTES = 64 * KIB
_POOL_BYTES = 1 * MIB
_STAMP_BYTES = 32


@dataclass(frozen=True)
class CacsObject:
    """One object to store.

    :param name: begins with the kind, so that a rule can go by it
    :param size: bytes, already scaled
    :param class_id: by the sample class table
    """

    name: str
    kind: str
    size: int
    class_id: int
    class_name: str
    content_type: str


def sample(count: int, seed: int = 1, scale: float = 1.0,
           at_least: int = 1) -> List[CacsObject]:
    """``count`` objects whose kinds and bands have the slide's shares.

    Shares are met by largest remainder, not by chance, so that a small
    sample is not lopsided; the order and the sizes come from ``seed``.

    :param scale: multiplies every size; the class still goes by the size
        before scaling
    :param at_least: objects that even the rarest kind gets (as long as
        ``count`` allows it)
    """
    dice = random.Random('cacs %d' % seed)
    wanted: List[Tuple[Kind, int]] = []
    per_kind = apportion(count, [kind.share for kind in KINDS],
                         at_least if count >= at_least * len(KINDS) else 0)
    for kind, of_kind in zip(KINDS, per_kind):
        for band, number in enumerate(apportion(of_kind, kind.bands)):
            wanted += [(kind, band)] * number
    dice.shuffle(wanted)
    return [_object(number, kind, band, dice, scale)
            for number, (kind, band) in enumerate(wanted)]


def of_kind(name: str, count: int, seed: int = 1,
            scale: float = 1.0) -> List[CacsObject]:
    """``count`` objects of one column of the slide, in its bands' shares;
    here objects over 10 MB have their kind's class, too, as in case 2."""
    kind, = (kind for kind in KINDS if kind.name == name)
    dice = random.Random('cacs %s %d' % (name, seed))
    bands = [band for band, number in enumerate(
        apportion(count, kind.bands)) for _ in range(number)]
    dice.shuffle(bands)
    return [dataclasses.replace(
        _object(number, kind, band, dice, scale),
        class_name=kind.class_name, class_id=CLASS_IDS[kind.class_name])
        for number, band in enumerate(bands)]


def apportion(count: int, shares: Sequence[float],
              at_least: int = 0) -> List[int]:
    """Cut ``count`` by ``shares``, rounding by largest remainder.

    :returns: whole numbers whose sum is ``count``
    """
    total = sum(shares)
    exact = [count * share / total for share in shares]
    parts = [max(int(part), at_least) for part in exact]
    by_remainder = sorted(range(len(shares)),
                          key=lambda i: (int(exact[i]) - exact[i], i))
    at = 0
    while sum(parts) < count:
        parts[by_remainder[at % len(parts)]] += 1
        at += 1
    while sum(parts) > count:
        parts[parts.index(max(parts))] -= 1
    return parts


def large_bytes(scale: float = 1.0) -> int:
    """The size of a scaled sample above which objects are USER7."""
    return int(LARGE_BYTES * scale)


def _object(number: int, kind: Kind, band: int, dice: random.Random,
            scale: float) -> CacsObject:
    lower, upper = BANDS[band]
    upper = upper or kind.top_bytes
    size = int(lower * math.exp(
        dice.random() * math.log(upper / lower))) + 1
    large = size > LARGE_BYTES
    class_name = LARGE_CLASS if large else kind.class_name
    return CacsObject(
        name='%s-%05d%s' % (kind.name, number, kind.suffix),
        kind=kind.name, size=max(1, int(math.ceil(size * scale))),
        class_id=CLASS_IDS[class_name], class_name=class_name,
        content_type=kind.content_type)


def body(obj: CacsObject) -> Iterator[bytes]:
    """The object's bytes in blocks of 64 KiB.

    Every block begins with a digest of (name, size, block number), so
    that bytes of another object or place are never equal by chance; the
    rest is cut from a fixed pool of random bytes, which costs a copy and
    does not compress.
    """
    pool = _pool()
    for at in range(0, obj.size, _BLOCK_BYTES):
        stamp = hashlib.sha256(
            ('%s %d %d' % (obj.name, obj.size, at)).encode('utf-8')
        ).digest()
        start = int.from_bytes(stamp[:4], 'big') % _POOL_BYTES
        rest = pool[start:start + _BLOCK_BYTES - _STAMP_BYTES]
        yield (stamp + rest)[:min(_BLOCK_BYTES, obj.size - at)]


def digest(obj: CacsObject) -> str:
    """MD5 of the body in hex: the ETag that Swift must answer with."""
    md5 = hashlib.md5()  # nosec: Swift's ETag is an MD5
    for block in body(obj):
        md5.update(block)
    return md5.hexdigest()


@lru_cache(maxsize=1)
def _pool() -> bytes:
    # getrandbits, as Random.randbytes is not in Python 3.7. One block more
    # than its size, so that a cut never wraps around.
    length = _POOL_BYTES + _BLOCK_BYTES
    return random.Random('cacs pool').getrandbits(
        8 * length).to_bytes(length, 'big')
