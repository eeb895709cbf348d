"""POSTs: metadata and class map merge, whatever order they come in.

Swift's controller decides by one timestamp whether a POST is news, and
writes a ``.meta`` file that replaces the one before. Here the controller sees
the timestamp of the register that this POST sets, and its file is merged with
the existing one (``wire.registers``) under a lock of the object, so that no
worker overwrites the change of another.

A POST that only classifies comes with ``META_AT`` set to ``NEVER``, the
time in ``MAP_AT`` and an X-Timestamp so old that stock Swift, which would
take it for a POST without metadata, refuses it (409).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import (
    Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional)

from swift.common.constraints import valid_timestamp
from swift.common.exceptions import DiskFileNotExist, DiskFileStateChanged
from swift.common.swob import HTTPConflict, HTTPServiceUnavailable
from swift.common.utils import Timestamp, config_true_value

from swift_dss.io import waiting
from swift_dss.wire import names, registers
from swift_dss.wire.registers import NEVER, Registers

#: A POST waits this long for another one of the same object.
_LOCK_SECONDS = 10.0
_LOCK_POLL_SECONDS = 0.002
#: Times that a ``.meta`` file may go away between a listing and a look.
_RELISTS = 10


class Post(NamedTuple):
    """The registers that a POST sets, and their times.

    :param at: the request's X-Timestamp
    :param merges: True if another replica sent it, as it is stored there
    :param delete_at: if ``merges``: its X-Delete-At, if that is not later than
        the time in its name. Swift's controller would refuse the POST for it,
        but a class may be set at any time after the metadata.
    :param seen_at: the time of the newest classes that it may replace; '' for
        all that are older than it
    :param class_map: the headers that spell its classes
    """

    at: str
    meta_at: str
    class_at: str
    merges: bool
    delete_at: str = ''
    seen_at: str = ''
    class_map: Mapping[str, str] = {}

    @classmethod
    def of(cls, request: Any) -> Post:
        """Read a request to the object server. A request that only classifies
        gets its real X-Timestamp.

        :raises HTTPBadRequest: it has no X-Timestamp
        """
        headers = request.headers
        merges = config_true_value(headers.get('X-Backend-Replication', 'f'))
        if headers.get(names.META_AT) == NEVER and not merges:
            headers['X-Timestamp'] = headers.get(names.MAP_AT, '')
        at = valid_timestamp(request).internal
        registers_sent = registers.of_post(dict(headers.items(), **{
            'X-Timestamp': at}))
        delete_at = headers.get('X-Delete-At', '')
        held = merges and delete_at.isdigit() and \
            int(delete_at) <= float(Timestamp(at))
        if held:
            del headers['X-Delete-At']
        return cls(at, registers_sent.meta_at, registers_sent.class_at, merges,
                   delete_at if held else '',
                   headers.get(names.SEEN_MAP_AT, ''),
                   registers_sent.class_map)

    def completed(self, metadata: Mapping[str, str]) -> Mapping[str, str]:
        """The controller's metadata, with the parts that the controller did
        not see.
        """
        if not self.delete_at or metadata.get('X-Timestamp') != self.at:
            return metadata
        return dict(metadata, **{'X-Delete-At': self.delete_at})

    def presented(self, disk_file: Any, stored: Mapping[str, str]
                  ) -> Dict[str, str]:
        """The object's metadata as the controller shall see it.

        Its X-Timestamp is older than this POST if, and only if, the POST
        is news; of metadata that the POST does not replace it must not see
        the time at which the object is to be deleted, or it would cancel
        the deletion.
        """
        there = _there(disk_file)
        floor = '' if self.merges else str(
            disk_file.get_datafile_metadata()['X-Timestamp'])
        sets_meta = self.meta_at > max(there.meta_at, floor)
        sets_class = bool(self.class_at) and self.class_at > floor and \
            registers.has_newer_class(Registers(
                '', {}, self.class_at, self.class_map), there) and \
            not self._is_overtaken(there)
        shown = dict(stored)
        if not sets_meta or self.delete_at:
            shown.pop('X-Delete-At', None)
        shown['X-Timestamp'] = NEVER if sets_meta or sets_class or \
            self._renames(there, stored['X-Timestamp']) else \
            max(self.at, stored['X-Timestamp'])
        return shown

    def check(self, there: Registers) -> None:
        """Look again at what it follows from, with the lock held.

        :raises HTTPConflict: another POST came meanwhile
        """
        if self._is_overtaken(there):
            raise HTTPConflict(headers={names.MAP_AT: self.class_at})

    def _is_overtaken(self, there: Registers) -> bool:
        return bool(self.class_at) and \
            '' < self.seen_at < there.class_at

    def _renames(self, there: Registers, stored_at: str) -> bool:
        """Whether another replica has the same under a name that an older
        version of this software did not give."""
        return self.merges and \
            stored_at < registers.file_timestamp(there) <= self.at


def persistently(read: Callable[..., Any], *args: Any,
                 **kwargs: Any) -> Any:
    """Read again where another POST took the place of a ``.meta`` file
    after it was listed: Swift would answer 503.

    :raises DiskFileStateChanged: it happens again and again
    """
    for _attempt in range(_RELISTS):
        try:
            return read(*args, **kwargs)
        except DiskFileStateChanged:
            waiting.sleep(0)
    return read(*args, **kwargs)


def _there(disk_file: Any) -> Registers:
    """The registers that were read when the diskfile was opened."""
    posted = disk_file.get_metafile_metadata()
    return registers.of_post(posted) if posted else \
        registers.of_data(disk_file.get_datafile_metadata())


@contextlib.contextmanager
def lock(folder: str) -> Iterator[None]:
    """Hold the lock of an object's folder, if it has one.

    Blocks the green thread only.

    :raises HTTPServiceUnavailable: others hold it for too long
    """
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        # Deleted by now: Swift writes a file without effect.
        yield
        return
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise HTTPServiceUnavailable() from None
                waiting.sleep(_LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(fd)


class Merged(NamedTuple):
    """The metadata after a POST.

    :param is_news: False if the POST changes nothing
    """

    metadata: Dict[str, str]
    is_news: bool


def merged(disk_file: Any, metadata: Mapping[str, str],
           post: Optional[Post] = None) -> Merged:
    """Merge a POST with the stored metadata. Call with the object's lock held.

    :param disk_file: an open diskfile, or one that was open
    :param metadata: of the POST alone
    :param post: the request, if it was one
    :raises HTTPConflict: it follows from classes that have changed
    """
    posted = _newest_post(disk_file)
    data = disk_file.get_datafile_metadata()
    if posted is not None and posted['X-Timestamp'] <= data['X-Timestamp']:
        # The PUT removed it, and a power cut has brought it back.
        posted = None
    there = registers.of_data(data)
    if posted is not None:
        there = registers.join(registers.of_post(posted), there)
    if post is not None:
        metadata = post.completed(metadata)
        post.check(there)
    after = registers.to_metadata(registers.join(
        there, registers.of_post(metadata)))
    return Merged(after, posted is None or any(
        after.get(name) != posted.get(name)
        for name in ('X-Timestamp', 'Content-Type-Timestamp')))


def _newest_post(disk_file: Any) -> Optional[Mapping[str, str]]:
    """The metadata of the newest ``.meta`` file that is there now."""
    manager, folder = disk_file.manager, disk_file._datadir
    known = disk_file._ondisk_info.get('meta_file')
    for _attempt in range(_RELISTS):
        try:
            posts = [
                (manager.parse_on_disk_filename(
                    name, disk_file.policy)['timestamp'], name)
                for name in os.listdir(folder) if name.endswith('.meta')]
        except FileNotFoundError:
            return None
        if not posts:
            return None
        path = os.path.join(folder, max(posts)[1])
        if path == known:
            metadata: Mapping[str, str] = disk_file.get_metafile_metadata()
            return metadata
        try:
            metadata = disk_file._read_and_validate_metadata(path, path)
            return metadata
        except (DiskFileNotExist, DiskFileStateChanged, FileNotFoundError):
            continue  # a newer one has just taken its place
    raise HTTPServiceUnavailable()
