"""The file system ``dss://container/object`` of fsspec.

Options: those of :mod:`swift_dss.client.fs.login` say which account;
``classes`` gives classes by name patterns; the others are those of
:class:`DssFileSystem`. Each coroutine ``_name`` has a blocking form
``name``.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from typing import Any, Dict, List, Mapping, Optional

from fsspec.asyn import _run_coros_in_chunks, sync, sync_wrapper
from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.compression import compr
from fsspec.utils import infer_compression, tokenize

from swift_dss.client.fs import copying, errors, login, paths
from swift_dss.client.fs.classes import ClassVerbs
from swift_dss.client.fs.classing import ClassName
from swift_dss.client.fs.files import AsyncDssFile, DssFile, Packed, Text
from swift_dss.client.fs.large import Large
from swift_dss.client.fs.listing import Listing
from swift_dss.client.fs.store import Request, Store
from swift_dss.client.fs.writing import whole
from swift_dss.client.fs.writing.segments import Cutter
from swift_dss.client.fs.writing.upload import Target, Upload
from swift_dss.wire.names import CONTAINER_CLASS

_SEGMENT_BYTES = 16 * 1024 * 1024
#: As of ``swift-dss classify``: "metadata" in the sample table.
_HOT_CLASS = 1


class DssFileSystem(ClassVerbs):
    """Swift with classes.

    :param classes: pattern to class, for what is written; the first that
        fits ``container/object`` counts, ``dss_class`` of a call goes first.
        Of the class ``auto`` the file's format says which bytes are hot
    :param hot_class: of these bytes
    :param segment_bytes: larger objects are sent in segments of this size
    :param uploads: segments of one file sent at a time; memory of a file
        that is written: ``(uploads + 1) * segment_bytes``
    :param tries: of each request, with growing pauses
    :param connections: to Swift, at a time
    :param leave_segments: do not look for segments of a replaced object
    """

    protocol = 'dss'
    root_marker = ''

    def __init__(self, classes: Optional[Mapping[str, ClassName]] = None,
                 segment_bytes: int = _SEGMENT_BYTES, uploads: int = 2,
                 tries: int = 5, connections: int = 32,
                 leave_segments: bool = False,
                 hot_class: ClassName = _HOT_CLASS,
                 asynchronous: bool = False, loop: Any = None,
                 batch_size: Optional[int] = None,
                 use_listings_cache: bool = False, **options: Any) -> None:
        super().__init__(asynchronous=asynchronous, loop=loop,
                         batch_size=batch_size,
                         use_listings_cache=use_listings_cache, **options)
        self.segment_bytes = segment_bytes
        self._uploads = uploads
        self._leave_segments = leave_segments
        self._has_classes(classes, hot_class, Store(
            login.Login({name: value for name, value in options.items()
                         if name in login.OPTIONS}),
            tries=tries, connections=connections))
        self._large = Large(self._store)
        self._listing = Listing(self._store)
        if not asynchronous:
            weakref.finalize(self, _close, self.loop, self._store)

    async def close(self) -> None:
        """Give up the connections; the next call opens others."""
        await self._store.close()

    # -- looking ------------------------------------------------------------

    async def _info(self, path: str, **_: Any) -> Dict[str, Any]:
        path = self._strip_protocol(path)
        container, name = paths.split(path)
        if not container:
            return paths.directory('')
        head = await self._store.send(Request('HEAD', container, name,
                                              allow=(404,)))
        if head.status != 404:
            return paths.of_head(path, head.headers) if name \
                else paths.directory(path)
        if name and await self._listing.has(container, name + '/'):
            return paths.directory(path)
        raise errors.missing(path)

    async def _ls(self, path: str, detail: bool = True, prefix: str = '',
                  refresh: bool = False, **_: Any) -> List[Any]:
        path = self._strip_protocol(path)
        entries = None if refresh or prefix else self._ls_from_cache(path)
        if entries is None:
            entries = await self._listing.directory(path, prefix)
            if not entries and not prefix:
                info = await self._info(path)
                entries = [info] if info['type'] == 'file' else []
            if not prefix:
                self.dircache[path] = entries
        return entries if detail else sorted(info['name'] for info in entries)

    async def _find(self, path: str, maxdepth: Optional[int] = None,
                    withdirs: bool = False, detail: bool = False,
                    prefix: str = '', **kwargs: Any) -> Any:
        path = self._strip_protocol(path)
        if maxdepth is not None or not path:
            if prefix and maxdepth == 1:
                # Deeper directories would be asked for it too.
                kwargs['prefix'] = prefix
            return await super()._find(path, maxdepth=maxdepth,
                                       withdirs=withdirs, detail=detail,
                                       **kwargs)
        tree = await self._listing.tree(path, prefix, withdirs)
        if withdirs and not prefix and (
                tree or await self._isdir(path)):
            tree[path] = paths.directory(path)
        if not tree and not prefix and await self._isfile(path):
            tree[path] = await self._info(path)
        return dict(sorted(tree.items())) if detail else sorted(tree)

    def invalidate_cache(self, path: Optional[str] = None) -> None:
        """Forget listings: all, or those that show ``path``."""
        if path is None:
            self.dircache.clear()
            return
        path = self._strip_protocol(path)
        while path:
            self.dircache.pop(path, None)
            path = self._parent(path)
        self.dircache.pop('', None)

    def modified(self, path: str) -> Any:
        """When the object was written (a datetime of UTC)."""
        return self.info(path)['last_modified']

    def checksum(self, path: str) -> int:
        """A number that changes with the object's bytes."""
        return int(tokenize(self.info(path).get('etag')), 16)

    # -- reading ------------------------------------------------------------

    async def _cat_file(self, path: str, start: Optional[int] = None,
                        end: Optional[int] = None, etag: Optional[str] = None,
                        **_: Any) -> bytes:
        path = self._strip_protocol(path)
        container, name = paths.split(path)
        headers = {'If-Match': etag} if etag else {}
        if start is not None or end is not None:
            if start == end or (start or 0) >= 0 and end is not None \
                    and 0 <= end <= (start or 0):
                return b''
            headers['Range'] = await self._process_limits(path, start, end)
        answer = await self._store.send(Request(
            'GET', container, name, headers=headers,
            allow=(416, 412) if etag else (416,)))
        if answer.status == 412:
            raise errors.changed(path)
        return b'' if answer.status == 416 else answer.body

    async def cat_version_async(self, path: str, start: int, end: int,
                                etag: Optional[str]) -> bytes:
        """Bytes of the version that ``etag`` names.

        :raises OSError: it was replaced
        """
        return await self._cat_file(path, start, end, etag=etag)

    def cat_version(self, path: str, start: int, end: int,
                    etag: Optional[str]) -> bytes:
        """See :meth:`cat_version_async`."""
        data: bytes = sync(self.loop, self._cat_file, path, start, end,
                           etag=etag)
        return data

    async def _get_file(self, rpath: str, lpath: str,
                        callback: Any = DEFAULT_CALLBACK, **_: Any) -> None:
        info = await self._info(rpath)
        if info['type'] == 'directory':
            os.makedirs(lpath, exist_ok=True)
            return
        callback.set_size(info['size'])
        container, name = paths.split(info['name'])
        with open(lpath, 'wb') as target:
            async for chunk in self._store.stream(
                    Request('GET', container, name), info['size'],
                    info['etag']):
                target.write(chunk)
                callback.relative_update(len(chunk))

    # -- writing ------------------------------------------------------------

    async def _pipe_file(self, path: str, value: Any,
                         mode: str = 'overwrite',
                         dss_class: Optional[ClassName] = None,
                         headers: Optional[Mapping[str, str]] = None,
                         **_: Any) -> None:
        await self._write(path, whole.of_bytes(value), mode, dss_class,
                          headers)

    async def _put_file(self, lpath: str, rpath: str,
                        callback: Any = DEFAULT_CALLBACK,
                        mode: str = 'overwrite',
                        dss_class: Optional[ClassName] = None,
                        headers: Optional[Mapping[str, str]] = None,
                        **_: Any) -> None:
        if os.path.isdir(lpath):
            return
        callback.set_size(os.path.getsize(lpath))
        with open(lpath, 'rb') as source:
            await self._write(rpath, whole.of_file(source), mode, dss_class,
                              headers, callback)

    async def _write(self, path: str, source: whole.Whole, mode: str,
                     dss_class: Optional[ClassName],
                     headers: Optional[Mapping[str, str]],
                     callback: Any = DEFAULT_CALLBACK) -> None:
        await self._load_names(path, dss_class)
        upload = self.upload_to(path, dss_class, headers,
                                exclusive=mode == 'create')
        await whole.send(upload, self.cutter(), source,
                         callback.relative_update)
        self.invalidate_cache(path)

    def _open(self, path: str, mode: str = 'rb', block_size: Any = None,
              autocommit: bool = True, cache_options: Any = None,
              **kwargs: Any) -> DssFile:
        return DssFile(self, path, mode, block_size or 'default',
                       autocommit=autocommit, cache_options=cache_options,
                       **kwargs)

    def open(self, path: str, mode: str = 'rb', block_size: Any = None,
             cache_options: Any = None, compression: Optional[str] = None,
             **kwargs: Any) -> Any:
        """See :meth:`fsspec.AbstractFileSystem.open`; of an object that is
        written, the ``with`` block decides whether it is stored."""
        if 'r' in mode:
            return super().open(path, mode, block_size, cache_options,
                                compression, **kwargs)
        words = {name: kwargs.pop(name) for name in (
            'encoding', 'errors', 'newline') if name in kwargs}
        made = super().open(path, mode.replace('t', '').replace('b', '')
                            + 'b', block_size, cache_options, **kwargs)
        if compression == 'infer':
            compression = infer_compression(path)
        if compression is not None:
            made = Packed(compr[compression](made, mode='w'), made)
        return made if 'b' in mode else Text(made, **words)

    async def open_async(self, path: str, mode: str = 'rb',
                         **kwargs: Any) -> AsyncDssFile:
        """A file whose methods are coroutines; see :class:`AsyncDssFile`."""
        path = self._strip_protocol(path)
        if 'b' not in mode or kwargs.get('compression'):
            raise ValueError('a file of coroutines has bytes only')
        if mode == 'rb':
            return AsyncDssFile(self, path, mode, await self._info(path),
                                **kwargs)
        if mode == 'xb' and await self._exists(path):
            raise FileExistsError('dss://%s: is there already' % path)
        await self._load_names(path, kwargs.get('dss_class'))
        return AsyncDssFile(self, path, mode, None, **kwargs)

    def upload_to(self, path: str, class_name: Optional[ClassName],
                  headers: Optional[Mapping[str, str]],
                  exclusive: bool) -> Upload:
        """Begin an object; nothing is sent yet."""
        path = self._strip_protocol(path)
        container, name = paths.split(path)
        if not name:
            raise IsADirectoryError('dss://%s: is a container; an object '
                                    'needs a name in it' % path)
        class_id, auto = self.class_for(path, class_name)
        return Upload(self._store, self._large, Target(
            container, name, class_id, headers or {}, exclusive, auto),
            self._uploads, self._leave_segments)

    def cutter(self, segment_bytes: Optional[int] = None) -> Cutter:
        """What cuts a file into segments."""
        return Cutter(segment_bytes or self.segment_bytes,
                      (self.max_spans - 1) // 2)

    def abandon(self, upload: Upload) -> None:
        """Take back an upload that nobody will finish; does not wait."""
        if self._loop is not None and not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(upload.abort(), self._loop)

    # -- names --------------------------------------------------------------

    async def _mkdir(self, path: str, create_parents: bool = True,
                     policy: Optional[str] = None,
                     dss_class: Optional[ClassName] = None,
                     **_: Any) -> None:
        """Make the container of ``path``; directories need no making.

        :param policy: the storage policy of a new container
        :param dss_class: of the objects to come into it
        :raises FileExistsError: ``path`` is a container that is there
        """
        container, name = paths.split(self._strip_protocol(path))
        head = await self._store.send(Request('HEAD', container,
                                              allow=(404,)))
        if head.status != 404:
            if not name:
                raise FileExistsError('dss://%s: is there already'
                                      % container)
            return
        if name and not create_parents:
            raise errors.missing(container)
        headers = {} if policy is None else {'X-Storage-Policy': policy}
        if dss_class is not None:
            headers[CONTAINER_CLASS] = str(dss_class)
        await self._store.send(Request('PUT', container, headers=headers))
        self.invalidate_cache(container)

    async def _makedirs(self, path: str, exist_ok: bool = False) -> None:
        try:
            await self._mkdir(path)
        except FileExistsError:
            if not exist_ok:
                raise

    async def _rmdir(self, path: str) -> None:
        """Remove an empty container.

        :raises OSError: it has objects
        """
        container, name = paths.split(self._strip_protocol(path))
        if not name:
            await self._store.send(Request('DELETE', container))
            self.invalidate_cache(container)

    rmdir = sync_wrapper(_rmdir)

    async def _rm_file(self, path: str, **_: Any) -> None:
        container, name = paths.split(self._strip_protocol(path))
        if not name:
            await self._rmdir(container)
            return
        await self._large.remove(container, name)
        self.invalidate_cache(path)

    async def _rm(self, path: Any, recursive: bool = False,
                  batch_size: Optional[int] = None,
                  maxdepth: Optional[int] = None, **_: Any) -> None:
        whole = recursive and maxdepth is None
        names = await self._expand_path(
            path, recursive=recursive and not whole, maxdepth=maxdepth)
        objects: Dict[str, Optional[bool]] = {}
        for name in names:
            if whole:
                # Those that stand for directories too, which listings for
                # fsspec do not show.
                objects.update(await self._listing.objects(name))
            elif '/' in name and not (recursive and await self._isdir(name)):
                objects[name] = None
        if not objects and any('/' in name for name in names):
            raise errors.missing(str(path))
        await _run_coros_in_chunks(
            [self._large.remove(*paths.split(name), large)
             for name, large in objects.items()],
            batch_size=batch_size or self.batch_size, nofiles=True)
        for name in names:
            self.invalidate_cache(name)
            if '/' not in name:
                await self._rmdir(name)

    async def _cp_file(self, path1: str, path2: str, **_: Any) -> None:
        await copying.copy(
            self._store, self._large,
            paths.split(self._strip_protocol(path1)),
            paths.split(self._strip_protocol(path2)))
        self.invalidate_cache(path2)


def _close(loop: Any, store: Store) -> None:
    if loop is not None and loop.is_running() and not loop.is_closed():
        asyncio.run_coroutine_threadsafe(store.close(), loop)
