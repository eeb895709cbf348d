"""The class table: how each class is treated by this server."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Dict, Iterable, List, Optional, Tuple

from swift_dss.core.limits import CLASS_ID_MAX, UNCLASSIFIED


class Allocate(Enum):
    """Whether bytes of a class go to the SSD when they are written.

    ``ALWAYS`` makes room by evicting lower ranks; ``ROOM`` takes the SSD
    only while it is below its high watermark; ``NEVER`` goes to the HDD.
    """

    ALWAYS = 'always'
    ROOM = 'room'
    NEVER = 'never'


class WriteMode(Enum):
    """When the HDD copy is made: later, or before the acknowledgement."""

    BACK = 'back'
    THROUGH = 'through'


class RemoteMode(Enum):
    """Whether and when S3 gets a copy.

    ``BACK``: after the acknowledgement; local bytes may then be dropped.
    ``THROUGH``: at once, and the local bytes stay until pressure.
    ``NEVER``: stays on this cluster. ``ONLY``: local bytes are dropped as
    soon as the remote copy is verified.
    """

    BACK = 'back'
    THROUGH = 'through'
    NEVER = 'never'
    ONLY = 'only'


class Direct(Enum):
    """Which disk the kernel's cache takes a class's misses to.

    ``NONE``: what rank and allocation say. ``HDD``: always past the SSD,
    and what is there leaves. ``SSD``: whatever the cutoff says, and in the
    place of higher ranks if it must be.
    """

    NONE = 'none'
    HDD = 'hdd'
    SSD = 'ssd'


class PrefetchHint(Enum):
    """Which bytes are fetched before a reader asks for them.

    ``AUTO``: as the node's strategy decides. ``NEVER``: nothing. ``WHOLE``:
    all of an object with the first read of it.
    """

    AUTO = 'auto'
    NEVER = 'never'
    WHOLE = 'whole'


#: A class with as many warm copies has no cold one, however many there are.
EVERY_COPY = 3


@dataclass(frozen=True)
class ClassSpec:
    """One row of the class table.

    :param class_id: 0..31
    :param name: its name for operators and clients; lower case
    :param rank: eviction order; the lowest rank leaves first
    :param floor: share of the SSD (0..1) that eviction leaves to it
    :param cap: share of the SSD (0..1) that it may take at most
    :param pin: its bytes MUST NOT leave the SSD
    :param bundle: small objects may share one S3 object
    :param wan_share: weight on the link to S3
    :param deadline_ms: the latency promised to it; 0 is none
    :param inner: order inside the class (``lru``, ...)
    :param prefetch: which bytes are fetched before a reader asks for them
    :param weight: share of the SSD where classes share by weight, and the cost
        of a miss

    Of the engine ``block`` alone:

    :param cutoff_kib: sequential runs this long stay on the HDD; 0: none
    :param evict_on_hit: bytes leave the SSD after one read
    :param dirty_cap: share of the SSD (0..1) that dirty bytes of it and
        of all that rank below it may take before its writes go to the HDD
    :param no_allocate: misses stay on the HDD, hits change no order
    :param direct: always to this disk; the order does not matter

    Of both engines:

    :param warm_copies: copies of an object that have a share of the SSD; 3
        is all there are

    Of the proxies alone:

    :param s3_storage_class: S3's names of it; the first one is shown
    :param s3_restore: S3's RestoreObject gives it to objects for some days
    """

    class_id: int
    name: str
    rank: int
    allocate: Allocate = Allocate.ALWAYS
    floor: float = 0.0
    cap: float = 1.0
    write: WriteMode = WriteMode.BACK
    remote: RemoteMode = RemoteMode.BACK
    pin: bool = False
    bundle: bool = False
    wan_share: int = 1
    deadline_ms: int = 0
    inner: str = 'lru'
    prefetch: PrefetchHint = PrefetchHint.AUTO
    weight: int = 1
    cutoff_kib: int = 0
    evict_on_hit: bool = False
    no_allocate: bool = False
    dirty_cap: float = 1.0
    direct: Direct = Direct.NONE
    warm_copies: int = 1
    s3_storage_class: Tuple[str, ...] = ()
    s3_restore: bool = False


@dataclass(frozen=True)
class ClassTable:
    """All classes of one server, by id and by name. Rows do not change.

    An id without a row is treated like class 0, under its own number.

    What each upload asks for is worked out once:

    :ivar cold_class: the class under which the kernel reads cold copies that
        no client asks for, and writes those without a class in ``passing``:
        of those that may come to the SSD and leave it again, the
        lowest-ranked one. Not class 0, which the kernel takes for a request
        without a class. None if no class will do.
    :ivar has_cold_copies: whether a class has fewer warm copies than there
        may be
    :ivar passing: class to the id under which the kernel writes its cold
        copies: they come with the rank of the class, and leave first. Ids
        that have no row, the highest for the highest rank; classes for which
        none is left have ``cold_class``.
    """

    specs: Dict[int, ClassSpec] = field(default_factory=dict)
    cold_class: Optional[ClassSpec] = field(
        init=False, repr=False, compare=False)
    passing: Dict[int, int] = field(init=False, repr=False, compare=False)
    has_cold_copies: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        cold = min((spec for spec in self.specs.values() if _passes(spec)),
                   key=lambda spec: (spec.rank, spec.class_id), default=None)
        wanted = [spec.class_id for spec in reversed(self.in_eviction_order())
                  if cold and spec.rank > cold.rank and _passes(spec)
                  and spec.warm_copies < EVERY_COPY]
        free = (class_id for class_id in range(CLASS_ID_MAX, UNCLASSIFIED, -1)
                if class_id not in self.specs)
        object.__setattr__(self, 'cold_class', cold)
        object.__setattr__(self, 'passing', dict(zip(wanted, free)))
        object.__setattr__(self, 'has_cold_copies', any(
            spec.warm_copies < EVERY_COPY for spec in (
                *self.specs.values(), self.spec(UNCLASSIFIED))))

    @classmethod
    def of(cls, specs: Iterable[ClassSpec]) -> ClassTable:
        """A table of these rows; the last of two with one id wins."""
        return cls({spec.class_id: spec for spec in specs})

    def spec(self, class_id: int) -> ClassSpec:
        """The treatment of ``class_id``; class 0's where it has no row."""
        spec = self.specs.get(class_id)
        return spec or self.specs.get(UNCLASSIFIED) or _FALLBACK

    def may_leave(self, class_ids: Iterable[int]) -> bool:
        """False if a class of a version's stays on this cluster.

        A copy in S3 is one of the whole version, so that class keeps all of
        it here.
        """
        return all(self.spec(class_id).remote is not RemoteMode.NEVER
                   for class_id in class_ids)

    def kernel_name_of(self, class_id: int) -> str:
        """The name of a class of the kernel's, for a table."""
        for own, passing in self.passing.items():
            if passing == class_id:
                return self.name_of(own) + ' (cold copies)'
        return self.name_of(class_id)

    def by_name(self, name: str) -> Optional[ClassSpec]:
        """The row called ``name`` (case does not matter), or None."""
        wanted = name.lower()
        for spec in self.specs.values():
            if spec.name == wanted:
                return spec
        return None

    @property
    def storage_classes(self) -> Dict[str, int]:
        """S3's names of storage classes, and the class that each one means."""
        return {name: spec.class_id for spec in self.specs.values()
                for name in spec.s3_storage_class}

    def storage_class_of(self, class_id: int) -> str:
        """The storage class that S3 clients see; '' is S3's own STANDARD."""
        spec = self.specs.get(class_id)
        return spec.s3_storage_class[0] \
            if spec and spec.s3_storage_class else ''

    @property
    def restore_spec(self) -> Optional[ClassSpec]:
        """The class that S3's RestoreObject gives, if there is one."""
        return next((spec for spec in self.specs.values()
                     if spec.s3_restore), None)

    def name_of(self, class_id: int) -> str:
        """The name of ``class_id`` for a table or a header."""
        spec = self.specs.get(class_id)
        return spec.name if spec else str(class_id)

    def in_eviction_order(self) -> List[ClassSpec]:
        """Rows, the one whose bytes leave first in front."""
        return sorted(self.specs.values(),
                      key=lambda spec: (spec.rank, spec.class_id))


def _passes(spec: ClassSpec) -> bool:
    """Whether its bytes come to the SSD and leave it again by its rank."""
    return spec.class_id != UNCLASSIFIED and not spec.pin \
        and not spec.no_allocate and spec.allocate is not Allocate.NEVER \
        and spec.direct is Direct.NONE


_FALLBACK = ClassSpec(UNCLASSIFIED, 'unclassified', 0)
