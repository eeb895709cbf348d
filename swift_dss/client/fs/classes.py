"""What the file system does with classes."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional, Tuple

from fsspec.asyn import (
    AsyncFileSystem, _run_coros_in_chunks, sync, sync_wrapper)

from swift_dss.client.fs import errors, paths
from swift_dss.client.fs.classing import AUTO, ClassName, Names, Patterns
from swift_dss.client.fs.manifest import post_section
from swift_dss.client.fs.reclassify import Classes, Spans
from swift_dss.client.fs.store import Store
from swift_dss.client.fs.writing.auto import Auto
from swift_dss.core.limits import DEFAULT_MAX_SPANS
from swift_dss.core.spans import Span


class ClassVerbs(AsyncFileSystem):  # type: ignore[misc]
    """A file system whose objects have classes; a base of it."""

    segment_bytes: int
    _uploads: int

    def _has_classes(self, classes: Optional[Mapping[str, ClassName]],
                     hot_class: ClassName, store: Store) -> None:
        self._store = store
        self._hot_class = hot_class
        self._patterns = Patterns(classes)
        self._names: Optional[Names] = None

    @property
    def max_spans(self) -> int:
        """Changes of class that one object may have."""
        return self._names.max_spans if self._names else DEFAULT_MAX_SPANS

    def class_for(self, path: str, class_name: Optional[ClassName]
                  ) -> Tuple[Optional[int], Optional[Auto]]:
        """(class of what is written to ``path``, where the cluster does not
        decide; how its format gives ranges of it another)."""
        if class_name is None:
            class_name = self._patterns.class_of(path)
        if class_name is None:
            return None, None
        if class_name == AUTO:
            return None, Auto(self.class_id(self._hot_class), self.max_spans)
        return self.class_id(class_name), None

    async def _class_names(self) -> Names:
        """The classes of this cluster.

        :raises OSError: it has none
        """
        if self._names is None:
            self._names = Names(await self._store.info())
        return self._names

    def class_id(self, class_name: ClassName) -> int:
        """The id of a class; blocks at the first call of a program.

        :raises ValueError: there is no such class
        """
        if self._names is None:
            sync(self.loop, self._class_names)
        assert self._names is not None
        return self._names.id_of(class_name)

    async def _load_names(self, path: str,
                          class_name: Optional[ClassName]) -> None:
        if class_name is not None or self.asynchronous or \
                self._patterns.class_of(self._strip_protocol(path)) \
                is not None:
            await self._class_names()

    async def _classes_of(self, path: str) -> Spans:
        """The class of every byte: (offset, length, class id) in order,
        without gaps. Of an object in segments each of them is asked."""
        classes = Classes(self._store, await self._class_names())
        return await classes.of(*paths.split(self._strip_protocol(path)))

    async def _reclassify(self, path: Any, class_name: ClassName) -> int:
        """Give objects another class, their segments with them.

        :param path: a path, a pattern, or a list of them
        :returns: how many objects
        :raises FileNotFoundError: no object fits
        """
        names = await self._class_names()
        class_id = names.id_of(class_name)
        classes = Classes(self._store, names)
        files = [name for name in await self._expand_path(path)
                 if await self._isfile(name)]
        if not files:
            raise errors.missing(str(path))
        await _run_coros_in_chunks(
            [classes.set(*paths.split(name), class_id) for name in files],
            batch_size=self.batch_size, nofiles=True)
        return len(files)

    async def _set_ranges(self, path: str, ranges: Iterable[Tuple[int, int]],
                          class_name: ClassName,
                          rest: Optional[ClassName] = None,
                          etag: Optional[str] = None) -> None:
        """Give ranges of an object a class.

        :param ranges: (offset, bytes), sorted, without overlaps
        :param rest: class of the other bytes; None: the object's own
        :param etag: of the version that is meant
        :raises OSError: it was replaced
        """
        names = await self._class_names()
        class_id = names.id_of(class_name)
        path = self._strip_protocol(path)
        info = await self._info(path)
        if etag is not None and info.get('etag') != etag:
            raise errors.changed(path)
        await post_section(
            self._store, *paths.split(path),
            [Span(offset, length, class_id) for offset, length in ranges],
            None if rest is None else names.id_of(rest), info['size'])

    async def _pin(self, path: Any,
                   class_name: Optional[ClassName] = None) -> int:
        """Keep objects on the SSD: give them a class that is pinned.

        :param class_name: which; None: the first that the cluster names
        :raises OSError: the cluster names none
        """
        if class_name is None:
            names = await self._class_names()
            if not names.pinning:
                raise OSError('this Swift has no class with "pin = true" in '
                              'its class table')
            class_name = names.pinning[0]
        return await self._reclassify(path, class_name)

    async def _prefetch(self, path: str, ranges: Optional[
            Iterable[Tuple[int, int]]] = None) -> int:
        """Bring bytes near: read them, and throw them away here.

        :param ranges: (first byte, byte after the last); None: all
        :returns: how many bytes
        """
        if ranges is None:
            ranges = [(0, (await self._info(path))['size'])]
        step = self.segment_bytes
        cuts = [(at, min(at + step, end)) for start, end in ranges
                for at in range(start, end, step)]
        done = await _run_coros_in_chunks(
            [self._read_away(path, start, end) for start, end in cuts],
            batch_size=self._uploads, nofiles=True)
        return sum(done)

    async def _read_away(self, path: str, start: int, end: int) -> int:
        return len(await self._cat_file(path, start, end))

    classes_of = sync_wrapper(_classes_of)
    reclassify = sync_wrapper(_reclassify)
    set_ranges = sync_wrapper(_set_ranges)
    pin = sync_wrapper(_pin)
    prefetch = sync_wrapper(_prefetch)
