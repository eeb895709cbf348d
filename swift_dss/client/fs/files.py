"""Files of ``dss://``: for programs, and for coroutines."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any, Iterator, Optional

from fsspec.asyn import AbstractAsyncStreamedFile, sync
from fsspec.core import OpenFile
from fsspec.spec import AbstractBufferedFile

from swift_dss.client.fs.ahead import ClassedReadAhead
from swift_dss.client.fs.classing import ClassName
from swift_dss.client.fs.writing.segments import Cutter

#: ``fsspec.open`` tells a file of an exception by nothing but its frame.
_OPEN_FILE_EXIT = OpenFile.__exit__.__code__
_DEFAULT = object()


class _Writing:
    """What both forms of a file know of what is written."""

    def __init__(self, fs: Any, path: str, mode: str, block_size: Any,
                 class_name: Optional[ClassName], headers: Any) -> None:
        self.class_id: Optional[int] = None
        self.upload = fs.upload_to(path, class_name, headers,
                                   exclusive='x' in mode)
        self._fs = fs
        self.cutter: Cutter = fs.cutter(
            None if block_size in ('default', None) else block_size)

    @contextlib.contextmanager
    def classed(self, class_name: ClassName) -> Iterator[None]:
        """The bytes written inside have this class."""
        before, self.class_id = self.class_id, self._fs.class_id(class_name)
        try:
            yield
        finally:
            self.class_id = before


class DssFile(AbstractBufferedFile):  # type: ignore[misc]
    """One object, open for reading (``rb``) or writing (``wb``, ``xb``).

    The object shows when the file is closed, whole; it does not if the
    ``with`` block failed, or if the file was never closed.

    :param block_size: bytes to read at once; of a segment to write
    :param dss_class: of what is written outside of :meth:`classed`
    """

    closed: bool

    def __init__(self, fs: Any, path: str, mode: str = 'rb',
                 block_size: Any = 'default', autocommit: bool = True,
                 cache_type: str = 'readahead', cache_options: Any = None,
                 size: Optional[int] = None,
                 dss_class: Optional[ClassName] = None, headers: Any = None,
                 **kwargs: Any) -> None:
        self._writing: Optional[_Writing] = None
        super().__init__(
            fs, path, mode=mode, block_size=block_size,
            autocommit=autocommit, cache_type=cache_type,
            cache_options=cache_options, size=size, **kwargs)
        if mode == 'ab':
            raise NotImplementedError(
                'dss://%s: objects are replaced, not appended to' % path)
        if mode == 'rb':
            if cache_type == 'readahead':
                self._keep_to_classes()
            return
        if mode == 'xb' and fs.exists(path):
            raise FileExistsError('dss://%s: is there already' % path)
        self._writing = _Writing(fs, path, mode, block_size, dss_class,
                                 headers)

    def _keep_to_classes(self) -> None:
        ranges = self.details.get('dss', {}).get('ranges')
        if ranges:
            self.cache = ClassedReadAhead(
                self.blocksize, self._fetch_range, self.size, ranges)

    def classed(self, class_name: ClassName) -> Any:
        """``with f.classed('gold'):`` what is written inside is gold."""
        return self._writer().classed(class_name)

    def write(self, data: Any) -> int:
        """See :meth:`io.RawIOBase.write`; all of ``data`` is taken."""
        writing = self._writer()
        if self.closed:
            raise ValueError('I/O operation on closed file.')
        view = memoryview(data).cast('B')
        for segment in writing.cutter.add(view, writing.class_id):
            sync(self.fs.loop, writing.upload.add, segment)
        self.loc += len(view)
        return len(view)

    def flush(self, force: bool = False) -> None:
        """Nothing: bytes go when a segment is full, or at the end."""
        if self.closed:
            raise ValueError('Flush on closed file')

    def close(self) -> None:
        """Publish what was written, unless a transaction does."""
        if self.closed:
            return
        if self._writing is None:
            super().close()
        elif _with_block_failed():
            self.discard()
        else:
            self.closed = True
            if self.autocommit:
                self.commit()

    def commit(self) -> None:
        """Publish what was written.

        :raises OSError: nothing was, and no segment is left over
        """
        writing = self._writer()
        try:
            sync(self.fs.loop, writing.upload.finish,
                 writing.cutter.take_last())
        except BaseException:
            sync(self.fs.loop, writing.upload.abort)
            raise
        self.fs.invalidate_cache(self.path)

    def discard(self) -> None:
        """Throw away what was written."""
        self.closed = True
        writing = self._writer()
        writing.cutter.take_last()
        sync(self.fs.loop, writing.upload.abort)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is not None and self._writing is not None \
                and not self.closed:
            self.discard()
        self.close()

    def __del__(self) -> None:
        # Not close(): what nobody closed, nobody finished.
        if self._writing is None or self.closed:
            return
        self.closed = True
        self.fs.abandon(self._writing.upload)

    def _writer(self) -> _Writing:
        if self._writing is None:
            raise io.UnsupportedOperation('File not in write mode')
        return self._writing

    def _fetch_range(self, start: int, end: int) -> bytes:
        data: bytes = self.fs.cat_version(self.path, start, end,
                                          self.details.get('etag'))
        return data


class AsyncDssFile(AbstractAsyncStreamedFile):  # type: ignore[misc]
    """The same for coroutines: ``async with await fs.open_async(...)``."""

    closed: bool

    def __init__(self, fs: Any, path: str, mode: str, details: Any,
                 block_size: Any = 'default',
                 dss_class: Optional[ClassName] = None, headers: Any = None,
                 **kwargs: Any) -> None:
        super().__init__(fs, path, mode=mode, block_size=block_size,
                         cache_type='none',
                         size=details['size'] if details else None)
        self._details = details
        self._writing: Optional[_Writing] = None if mode == 'rb' else \
            _Writing(fs, path, mode, block_size, dss_class, headers)

    def classed(self, class_name: ClassName) -> Any:
        """See :meth:`DssFile.classed`; a name needs ``await
        fs._class_names()`` before it."""
        assert self._writing is not None
        return self._writing.classed(class_name)

    async def write(self, data: Any) -> int:
        """See :meth:`DssFile.write`."""
        if self._writing is None:
            raise io.UnsupportedOperation('File not in write mode')
        if self.closed:
            raise ValueError('I/O operation on closed file.')
        view = memoryview(data).cast('B')
        for segment in self._writing.cutter.add(view,
                                                self._writing.class_id):
            await self._writing.upload.add(segment)
        self.loc += len(view)
        return len(view)

    async def flush(self, force: bool = False) -> None:
        """Nothing; see :meth:`DssFile.flush`."""

    async def close(self) -> None:
        """Publish what was written."""
        if self.closed:
            return
        self.closed = True
        if self._writing is None:
            return
        try:
            await self._writing.upload.finish(
                self._writing.cutter.take_last())
        except BaseException:
            await self._writing.upload.abort()
            raise
        self.fs.invalidate_cache(self.path)

    async def discard(self) -> None:
        """Throw away what was written."""
        self.closed = True
        if self._writing is not None:
            self._writing.cutter.take_last()
            await self._writing.upload.abort()

    async def __aexit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is not None and not self.closed:
            await self.discard()
        await self.close()

    def __del__(self) -> None:
        """Nothing is published; see :meth:`DssFile.__del__`."""

    async def _fetch_range(self, start: int, end: int) -> bytes:
        data: bytes = await self.fs.cat_version_async(
            self.path, start, end, self._details.get('etag'))
        return data


class Text(io.TextIOWrapper):
    """Text over a file; a failed ``with`` block stores nothing."""

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is not None and not self.closed:
            self.buffer.discard()  # type: ignore[attr-defined]
        self.close()


class Packed(io.BufferedIOBase):
    """What is written goes compressed into a file, which is closed with it.

    :param packer: fsspec's, around ``target``
    """

    def __init__(self, packer: Any, target: DssFile) -> None:
        self._packer = packer
        self._target = target

    def writable(self) -> bool:
        """See :meth:`io.IOBase.writable`."""
        return True

    def write(self, data: Any) -> int:
        """See :meth:`io.RawIOBase.write`."""
        written: int = self._packer.write(data)
        return written

    def close(self) -> None:
        """Pack the rest and publish."""
        if self.closed:
            return
        super().close()
        self._packer.close()
        self._target.close()

    def discard(self) -> None:
        """Throw away what was written."""
        self._target.discard()
        super().close()

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is not None and not self.closed:
            self.discard()
        self.close()


def _with_block_failed() -> bool:
    """Is an exception leaving the block of ``with fsspec.open(...)``?

    Its ``__exit__`` closes its files without telling them.
    """
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_code is _OPEN_FILE_EXIT:
            return bool(frame.f_locals['args'][0] is not None)
        frame = frame.f_back
    return False
