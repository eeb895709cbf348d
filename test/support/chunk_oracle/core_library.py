"""The kernel target's decision core, as a shared library.

``kmod/core`` knows no kernel header, so the C that decides inside dm-dss
can be built for this process too. :class:`ChunkLibrary` puts it behind the
verbs of :class:`~support.chunk_oracle.verbs.ChunkStrategy`; tests and
benchmarks hold it against the reference.

The library is compiled at first use, into the user's cache
(``$XDG_CACHE_HOME/swift-dss``), under a name made of the hash of sources,
compiler and flags: a changed source is never met by an old library.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
from array import array
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from support.chunk_oracle.verbs import (
    OBLOCKS_MAX, BrokenContract, ChunkStats, ChunkStrategy, Kind, Refused,
    SlotState, State, Verdict)
from swift_dss import block
from swift_dss.core.errors import DssError
from swift_dss.strategy.eviction.chunks import (
    ALLOCATE, CLASSES, Bypass, ChunkRow, Evict, Mode)

#: Where the sources are, and the shared library's part of them.
SOURCE_DIR = pathlib.Path(block.__file__).parent / 'kmod' / 'core'
SOURCES = ('dss_core.c', 'dss_dirty.c', 'dss_life.c', 'dss_verdict.c',
           'dss_run.c', 'dss_table.c', 'dss_check.c', 'dss_replay.c')
HEADERS = ('dss_core.h', 'dss_core_impl.h', 'dss_lists.h', 'dss_env.h',
           'dss_replay.h')
FLAGS = ('-std=gnu11', '-Wall', '-Wextra', '-Werror', '-O2', '-g', '-fPIC',
         '-shared')
COMPILE_SECONDS = 120

_NO_SLOT = 0xffffffff
_HASH_SEED = 0x5eed

_u8, _u32, _u64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64
_pointer, _bool, _uint = ctypes.c_void_p, ctypes.c_bool, ctypes.c_uint


class NoCompiler(DssError):
    """The library is not there and cannot be made here."""


class _Spec(ctypes.Structure):
    _fields_ = [('rank', _u32), ('floor_parts', _u32), ('cap_parts', _u32),
                ('weight', _u32), ('cutoff_sectors', _u32),
                ('dirty_cap_parts', _u32), ('allocate', _u8),
                ('write_mode', _u8), ('flags', _u8), ('inner', _u8)]


class _Verdict(ctypes.Structure):
    _fields_ = [('victim', _u64), ('slot', _u32), ('kind', _u8),
                ('reason', _u8), ('class_id', _u8), ('victim_class', _u8),
                ('want_clean', _u8), ('staged', _u8),
                ('unused', _u8 * 2)]


class _Stats(ctypes.Structure):
    _fields_ = [('read_hits', _u64), ('write_hits', _u64),
                ('misses', _u64), ('takes', _u64),
                ('bypass', _u64 * len(Bypass)),
                ('evicted', _u64 * len(Evict)), ('reclassed', _u64),
                ('cleaned', _u64), ('resident', _u32), ('dirty', _u32),
                ('busy', _u32), ('unused', _u32)]


class _Trace(ctypes.Structure):
    _fields_ = [('length', _u64), ('class_ids', _pointer),
                ('oblocks', _pointer), ('writes', _pointer),
                ('kinds', _pointer), ('victims', _pointer),
                ('nr_victims', _u64), ('flags', _u32),
                ('chunk_sectors', _u32)]


_REPLAY_BACK, _REPLAY_RUNS = 1, 2
_MISS_SEQUENTIAL, _MISS_DIRTY = 1, 2

#: Name behind ``dss_core_``: result, then arguments behind the core.
_PROTOTYPES: Dict[str, Tuple[Any, ...]] = {
    'resize': (ctypes.c_int, _pointer, _u64, _u64),
    'set_limit': (ctypes.c_int, _u32),
    'over_limit': (_u32, _u32),
    'set_table': (ctypes.c_int, ctypes.POINTER(_Spec), _u32),
    'set_class': (ctypes.c_int, _uint, ctypes.POINTER(_Spec)),
    'get_class': (None, _uint, ctypes.POINTER(_Spec)),
    'has_class': (_bool, _uint),
    'set_mode': (ctypes.c_int, _uint),
    'set_watermarks': (ctypes.c_int, _u32, _u32),
    'set_stage': (ctypes.c_int, _u32),
    'has_stage': (_bool,),
    'stage_room': (_u32,),
    'lookup': (_u32, _u64),
    'touch': (ctypes.c_int, _u32, _uint, _bool),
    'run': (_bool, _uint, _u64, _u32),
    'may_dirty': (_bool, _uint),
    'miss': (None, _uint, _uint, ctypes.POINTER(_Verdict)),
    'passes': (_bool, _uint, _uint),
    'must_wait': (_bool, _uint, _uint),
    'would_run': (_bool, _uint, _u64, _u32),
    'room': (_bool, _uint, ctypes.POINTER(_Verdict)),
    'take': (_u32, ctypes.POINTER(_Verdict), _u64),
    'decline': (None, ctypes.POINTER(_Verdict)),
    'commit': (None, _u32, _bool),
    'abort': (None, _u32),
    'slot_state': (_uint, _u32, ctypes.POINTER(_u64),
                   ctypes.POINTER(_uint)),
    'set_dirty': (None, _u32),
    'stage': (None, _u32),
    'set_clean': (None, _u32),
    'hold': (None, _u32),
    'let_go': (None, _u32),
    'evict': (None, _u32, ctypes.c_int),
    'reclass': (None, _u32, _uint),
    'age': (None, _u32),
    'cleaning_goal': (_u32,),
    'wants_clean': (_bool, _u32),
    'pull_dirty': (_u32, ctypes.POINTER(_u32), _u32),
    'pull_beside': (_u32, _u64),
    'cleaned': (_bool, _u32, _bool),
    'reclaim': (_u32,),
    'load': (ctypes.c_int, _u32, _u64, _uint, _bool),
    'oldest': (_u32, _uint, _bool),
    'younger': (_u32, _u32),
    'number': (_u32, _uint, _bool, ctypes.POINTER(_u32), _u32),
    'stats': (None, _uint, ctypes.POINTER(_Stats)),
    'nr_slots': (_u32,),
    'nr_free': (_u32,),
    'nr_dirty': (_u32,),
    'check': (ctypes.c_int,),
    'replay': (None, ctypes.POINTER(_Trace)),
}


def cache_dir() -> pathlib.Path:
    """Where built libraries are kept."""
    root = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser(
        os.path.join('~', '.cache'))
    return pathlib.Path(root) / 'swift-dss'


def build(flags: Sequence[str] = (),
          source_dir: pathlib.Path = SOURCE_DIR) -> pathlib.Path:
    """The library's file, compiled if it is not there yet.

    :param flags: besides the usual ones, such as ``-fsanitize=address``
    :param source_dir: where the sources are
    :raises NoCompiler: there is no C compiler, or it failed; says how
    """
    compiler = os.environ.get('CC') or 'cc'
    paths = [source_dir / name for name in SOURCES]
    digest = hashlib.sha256(repr((compiler, FLAGS, tuple(flags))).encode())
    try:
        for path in paths + [source_dir / name for name in HEADERS]:
            digest.update(path.read_bytes())
    except OSError as err:
        raise NoCompiler('the source of the decision core is missing: %s'
                         % err) from err
    target = cache_dir() / ('dss_core-%s.so' % digest.hexdigest()[:20])
    if not target.exists():
        _compile(compiler, [*FLAGS, *flags], paths, target)
    return target


def _compile(compiler: str, flags: List[str], paths: List[pathlib.Path],
             target: pathlib.Path) -> None:
    if not shutil.which(compiler):
        raise NoCompiler('no C compiler: %r is not in PATH; install gcc, '
                         'or name a compiler in CC' % compiler)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, then renamed: no process loads half a library.
    handle, half = tempfile.mkstemp('.so', 'dss_core-', str(target.parent))
    os.close(handle)
    try:
        done = subprocess.run(
            [compiler, *flags, '-o', half, *map(str, paths)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=COMPILE_SECONDS)
        if done.returncode:
            raise NoCompiler('%s failed on the decision core: %s' % (
                compiler, done.stdout.decode('utf-8', 'replace').strip()))
        os.chmod(half, 0o755)
        os.replace(half, str(target))
    finally:
        if os.path.exists(half):
            os.unlink(half)


def load(path: Optional[pathlib.Path] = None) -> Any:
    """The library with prototypes on its functions."""
    library = ctypes.CDLL(str(path or build()))
    library.dss_core_bytes.restype = _u64
    library.dss_core_bytes.argtypes = [_u64]
    library.dss_core_init.restype = _pointer
    library.dss_core_init.argtypes = [_pointer, _u64, _u64, _u64]
    for name, (result, *arguments) in _PROTOTYPES.items():
        function = getattr(library, 'dss_core_' + name)
        function.restype = result
        function.argtypes = [_pointer, *arguments]
    return library


def _optional(slot: int) -> Optional[int]:
    return None if slot == _NO_SLOT else slot


def _how(sequential: bool, dirty: bool) -> int:
    return (_MISS_SEQUENTIAL if sequential else 0) | (
        _MISS_DIRTY if dirty else 0)


def class_spec(row: ChunkRow) -> _Spec:
    return _Spec(row.rank, row.floor_parts, row.cap_parts, row.weight,
                 row.cutoff_sectors, row.dirty_cap_parts,
                 ALLOCATE[row.allocate],
                 row.write_mode, int(row.flags), int(row.inner))


def raw_verdict(verdict: Verdict) -> _Verdict:
    return _Verdict(
        verdict.victim or 0,
        _NO_SLOT if verdict.slot is None else verdict.slot,
        int(verdict.kind), verdict.reason, verdict.class_id,
        verdict.victim_class, int(verdict.want_clean), int(verdict.staged))


class ChunkLibrary(ChunkStrategy):
    """The C behind the verbs; one core in memory of its own.

    A broken contract is found here where that costs nothing, and aborts
    the process in the C otherwise.

    :param slots: how many chunks the SSD holds
    :param library: what :func:`load` gave
    :param seed: of the hash
    """

    def __init__(self, slots: int, library: Any = None,
                 seed: int = _HASH_SEED) -> None:
        self.library = library or load()
        self._memory = self._allocate(slots)
        self.core = self.library.dss_core_init(
            self._memory, len(self._memory), slots, seed)
        if not self.core:
            raise Refused(errno.EINVAL, '%d slots' % slots)
        # Reused for each call: allocating one costs more than the call.
        self._verdict = _Verdict()
        self._verdict_at = ctypes.byref(self._verdict)

    def _allocate(self, slots: int) -> Any:
        return ctypes.create_string_buffer(
            max(8, self.library.dss_core_bytes(max(0, slots))))

    def _call(self, name: str, *arguments: Any) -> Any:
        return getattr(self.library, 'dss_core_' + name)(
            self.core, *arguments)

    def _try(self, name: str, *arguments: Any) -> None:
        answer = self._call(name, *arguments)
        if answer:
            raise Refused(-answer, '%s%r: %s' % (
                name, arguments, os.strerror(-answer)))

    # Life

    def set_table(self, rows: Mapping[int, ChunkRow]) -> None:
        """See :meth:`ChunkStrategy.set_table`."""
        table = (_Spec * CLASSES)()
        has = 0
        for class_id, row in rows.items():
            if not 0 <= class_id < CLASSES:
                raise Refused(errno.EINVAL, 'class %d' % class_id)
            table[class_id] = class_spec(row)
            has |= 1 << class_id
        self._try('set_table', table, has)

    def set_row(self, class_id: int, row: Optional[ChunkRow]) -> None:
        """One row of the table; None takes it out."""
        self._try('set_class', class_id,
                  None if row is None else ctypes.byref(class_spec(row)))

    def set_mode(self, mode: Mode) -> None:
        """See :meth:`ChunkStrategy.set_mode`."""
        self._try('set_mode', int(mode))

    def set_watermarks(self, high_parts: int, low_parts: int) -> None:
        """See :meth:`ChunkStrategy.set_watermarks`."""
        if min(high_parts, low_parts) < 0:
            raise Refused(errno.EINVAL, 'a negative share')
        self._try('set_watermarks', high_parts, low_parts)

    def set_stage(self, parts: int) -> None:
        """See :meth:`ChunkStrategy.set_stage`."""
        if parts < 0:
            raise Refused(errno.EINVAL, 'a negative share')
        self._try('set_stage', parts)

    def has_stage(self) -> bool:
        """See :meth:`ChunkStrategy.has_stage`."""
        return bool(self._call('has_stage'))

    def stage_room(self) -> int:
        """See :meth:`ChunkStrategy.stage_room`."""
        return int(self._call('stage_room'))

    def set_limit(self, limit: int) -> None:
        """See :meth:`ChunkStrategy.set_limit`."""
        if limit < 0:
            raise Refused(errno.EINVAL, 'limit %d' % limit)
        self._try('set_limit', limit)

    def over_limit(self, start: int = 0) -> Optional[int]:
        """See :meth:`ChunkStrategy.over_limit`."""
        return _optional(self._call('over_limit', start))

    def resize(self, slots: int) -> None:
        """See :meth:`ChunkStrategy.resize`."""
        memory = self._allocate(slots)
        self._try('resize', memory, len(memory), max(0, slots))
        self.core = ctypes.addressof(memory)
        self._memory = memory

    # The way of a request

    def lookup(self, oblock: int) -> Optional[int]:
        """See :meth:`ChunkStrategy.lookup`."""
        return _optional(self.library.dss_core_lookup(self.core, oblock))

    def touch(self, slot: int, class_id: int, write: bool) -> bool:
        """See :meth:`ChunkStrategy.touch`."""
        self._used(slot)
        return bool(self.library.dss_core_touch(
            self.core, slot, class_id, write))

    def run(self, class_id: int, sector: int, sectors: int) -> bool:
        """See :meth:`ChunkStrategy.run`."""
        return bool(self._call('run', class_id, sector, sectors))

    def would_run(self, class_id: int, sector: int, sectors: int) -> bool:
        """What :meth:`run` would say; changes nothing."""
        return bool(self._call('would_run', class_id, sector, sectors))

    def may_dirty(self, class_id: int) -> bool:
        """See :meth:`ChunkStrategy.may_dirty`."""
        return bool(self._call('may_dirty', class_id))

    def passes(self, class_id: int, sequential: bool = False,
               dirty: bool = False) -> bool:
        """Whether :meth:`miss` would be a bypass; counts nothing."""
        return bool(self._call('passes', class_id,
                               _how(sequential, dirty)))

    def must_wait(self, class_id: int, sequential: bool = False,
                  dirty: bool = False) -> bool:
        """See :meth:`ChunkStrategy.must_wait`."""
        return bool(self._call('must_wait', class_id,
                               _how(sequential, dirty)))

    def miss(self, class_id: int, sequential: bool = False,
             dirty: bool = False) -> Verdict:
        """See :meth:`ChunkStrategy.miss`."""
        raw = self._verdict
        self.library.dss_core_miss(self.core, class_id,
                                   _how(sequential, dirty), self._verdict_at)
        kind = Kind(raw.kind)
        return Verdict(
            kind, raw.class_id, raw.reason, _optional(raw.slot),
            raw.victim if kind is Kind.VICTIM else None, raw.victim_class,
            bool(raw.want_clean), bool(raw.staged))

    def room(self, class_id: int) -> Optional[Verdict]:
        """A free slot for a prefetched chunk; counts nothing."""
        raw = self._verdict
        if not self.library.dss_core_room(self.core, class_id,
                                          self._verdict_at):
            return None
        return Verdict(Kind(raw.kind), raw.class_id, raw.reason,
                       _optional(raw.slot), None, raw.victim_class, False)

    def take(self, verdict: Verdict, oblock: int) -> int:
        """See :meth:`ChunkStrategy.take`."""
        if verdict.kind is Kind.BYPASS:
            raise BrokenContract('a bypass is not taken')
        if not 0 <= oblock < OBLOCKS_MAX or self.lookup(oblock) is not None:
            raise BrokenContract('chunk %d is there or cannot be' % oblock)
        return int(self._call('take', ctypes.byref(raw_verdict(verdict)),
                              oblock))

    def decline(self, verdict: Verdict) -> None:
        """See :meth:`ChunkStrategy.decline`."""
        if verdict.kind is Kind.BYPASS:
            raise BrokenContract('a bypass is not declined')
        self._call('decline', ctypes.byref(raw_verdict(verdict)))

    def commit(self, slot: int, dirty: bool = False) -> None:
        """See :meth:`ChunkStrategy.commit`."""
        self._used(slot)
        self._call('commit', slot, dirty)

    def abort(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.abort`."""
        self._used(slot)
        self._call('abort', slot)

    # States of a slot

    def slot_state(self, slot: int) -> Optional[SlotState]:
        """See :meth:`ChunkStrategy.slot_state`."""
        oblock, class_id = _u64(), _uint()
        if not 0 <= slot < self._call('nr_slots'):
            return None
        state = self._call('slot_state', slot, ctypes.byref(oblock),
                           ctypes.byref(class_id))
        if not state:
            return None
        return SlotState(State(state), oblock.value, class_id.value)

    def _used(self, slot: int) -> None:
        if self.slot_state(slot) is None:
            raise BrokenContract('slot %d is free' % slot)

    def set_dirty(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.set_dirty`."""
        self._used(slot)
        self._call('set_dirty', slot)

    def stage(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.stage`."""
        self._used(slot)
        self._call('stage', slot)

    def set_clean(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.set_clean`."""
        self._used(slot)
        self._call('set_clean', slot)

    def hold(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.hold`."""
        self._used(slot)
        self._call('hold', slot)

    def let_go(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.let_go`."""
        self._used(slot)
        self._call('let_go', slot)

    def evict(self, slot: int, reason: Evict) -> None:
        """See :meth:`ChunkStrategy.evict`."""
        self._used(slot)
        self._call('evict', slot, int(reason))

    def reclass(self, slot: int, class_id: int) -> None:
        """See :meth:`ChunkStrategy.reclass`."""
        self._used(slot)
        self._call('reclass', slot, class_id)

    def age(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.age`."""
        self._used(slot)
        self._call('age', slot)

    # Work that is pulled

    def cleaning_goal(self) -> int:
        """See :meth:`ChunkStrategy.cleaning_goal`."""
        return int(self._call('cleaning_goal'))

    def wants_clean(self, slot: int) -> bool:
        """See :meth:`ChunkStrategy.wants_clean`."""
        self._used(slot)
        return bool(self._call('wants_clean', slot))

    def pull_dirty(self, most: int) -> List[int]:
        """See :meth:`ChunkStrategy.pull_dirty`."""
        slots = (_u32 * max(1, most))()
        return list(slots[:self._call('pull_dirty', slots, most)])

    def pull_beside(self, oblock: int) -> Optional[int]:
        """See :meth:`ChunkStrategy.pull_beside`."""
        return _optional(self._call('pull_beside', oblock))

    def cleaned(self, slot: int, written: bool = True) -> bool:
        """See :meth:`ChunkStrategy.cleaned`."""
        self._used(slot)
        return bool(self._call('cleaned', slot, written))

    def reclaim(self) -> Optional[int]:
        """See :meth:`ChunkStrategy.reclaim`."""
        return _optional(self._call('reclaim'))

    # Restart, and looking inside

    def load(self, slot: int, oblock: int, class_id: int,
             dirty: bool) -> None:
        """See :meth:`ChunkStrategy.load`."""
        if min(slot, oblock, class_id) < 0:
            raise Refused(errno.ERANGE, 'a negative number')
        self._try('load', min(slot, _NO_SLOT), oblock,
                  min(class_id, _NO_SLOT), dirty)

    def in_order(self, class_id: int, dirty: bool) -> List[int]:
        """See :meth:`ChunkStrategy.in_order`."""
        slots = []
        slot = self._call('oldest', class_id, dirty)
        while slot != _NO_SLOT:
            slots.append(slot)
            slot = self._call('younger', slot)
        return slots

    def to_come(self, class_id: int, dirty: bool) -> List[int]:
        """See :meth:`ChunkStrategy.to_come`."""
        numbers = (_u32 * self._call('nr_slots'))()
        self._call('number', class_id, dirty, numbers, 1)
        return sorted((slot for slot, number in enumerate(numbers)
                       if number), key=numbers.__getitem__)

    def stats(self, class_id: int) -> ChunkStats:
        """See :meth:`ChunkStrategy.stats`."""
        raw = _Stats()
        self._call('stats', class_id, ctypes.byref(raw))
        return ChunkStats(
            raw.read_hits, raw.write_hits, raw.misses, raw.takes,
            list(raw.bypass), list(raw.evicted), raw.reclassed,
            raw.cleaned, raw.resident, raw.dirty, raw.busy)

    def free_slots(self) -> int:
        """See :meth:`ChunkStrategy.free_slots`."""
        return int(self._call('nr_free'))

    def dirty_slots(self) -> int:
        """See :meth:`ChunkStrategy.dirty_slots`."""
        return int(self._call('nr_dirty'))

    def replay(self, class_ids: array[int], oblocks: array[int],
               writes: array[int], write_back: bool,
               chunk_sectors: int) -> Tuple[bytes, array[int]]:
        """A whole trace at the speed of C; see ``dss_replay.h``.

        :param class_ids, writes: arrays of bytes
        :param oblocks: an array of 64-bit numbers, as long
        :param chunk_sectors: for runs; 0 does not look for them
        :returns: the decision on each request, and the victim
        """
        length = len(oblocks)
        if len(class_ids) != length or len(writes) != length:
            raise BrokenContract('arrays of different length')
        if length and (max(class_ids) >= CLASSES
                       or max(oblocks) >= OBLOCKS_MAX):
            raise BrokenContract('a class or chunk that cannot be')
        kinds, victims = array('B', bytes(length)), array(
            'Q', bytes(8 * length))
        raw = _Trace(length, *(
            numbers.buffer_info()[0] for numbers in (
                class_ids, oblocks, writes, kinds, victims)))
        raw.chunk_sectors = chunk_sectors
        raw.flags = (_REPLAY_BACK if write_back else 0) | (
            _REPLAY_RUNS if chunk_sectors else 0)
        self._call('replay', ctypes.byref(raw))
        return kinds.tobytes(), victims[:raw.nr_victims]

    def check(self) -> int:
        """0, or the line of ``dss_check.c`` that found damage."""
        return int(self._call('check'))
