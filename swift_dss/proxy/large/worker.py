"""Finish what POSTs to large objects began.

Each worker process of the proxy server looks for records now and then, and
does those that nobody does (``proxy.large.records``). Everything here may
happen twice or late: a segment that has its classes costs HEADs, and one that
got newer ones stays.
"""

from __future__ import annotations

import random
import time
from typing import Any, Mapping

from swift_dss.core.errors import DssError
from swift_dss.io import waiting
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.large.reading import Reader
from swift_dss.proxy.large.records import Record, Records
from swift_dss.proxy.large.segments import after, post_alone
from swift_dss.proxy.large.spreading import Spreader, Work, shown
from swift_dss.proxy.services import Services
from swift_dss.proxy.work.primaries import Primaries
from swift_dss.proxy.work.rows import Unreachable, own_env
from swift_dss.proxy.wsgi import App, Env
from swift_dss.wire import classmap, names

#: Seconds between two looks for records.
_LOOK_SECONDS = 20.0
#: Seconds between two signs of progress.
_SIGN_SECONDS = 5.0


class Worker:
    """One process's.

    :param app: what is below the filter
    """

    def __init__(self, app: App, services: Services, records: Records,
                 reader: Reader, spreader: Spreader) -> None:
        self._app = app
        self._services = services
        self._records = records
        self._primaries = Primaries(app)
        self._reader = reader
        self._spreader = spreader

    def start(self) -> None:
        """Look for records from now on."""
        waiting.spawn(self._look_for_ever)

    def begin(self, record: Record) -> None:
        """Do a record's work, and let the caller go on."""
        waiting.spawn(self.do, record)

    def do(self, record: Record) -> bool:
        """Do a record's work. Idempotent.

        :returns: False if it stays to be done
        """
        env = own_env()
        env['PATH_INFO'] = record.target.path
        try:
            if self._do(env, record):
                self._records.delete(env, record)
                return True
        except (Unreachable, DssError) as err:
            self._services.count('large.later')
            self._services.logger.warning('dss: %s: %s', record.target.path,
                                          err)
        except Exception:
            # Of this record alone: others have to go on.
            self._services.count('large.failed')
            self._services.logger.exception('dss: %s', record.target.path)
        self._records.leave(env, record)
        return False

    def _look_for_ever(self) -> None:
        # Without an event loop it would hold up its process.
        while waiting.is_green():
            waiting.sleep(_LOOK_SECONDS * random.uniform(0.5, 1.5))
            try:
                env = own_env()
                for name in self._records.names(env):
                    record = self._records.take(env, name)
                    if record is not None:
                        self._services.count('large.resumed')
                        self.do(record)
            except Exception:
                self._services.logger.exception('dss: records of work')

    def _do(self, env: Env, record: Record) -> bool:
        headers = self._primaries.look(env, record.target)
        if headers is None or not is_of(record, headers):
            # It is gone, or a newer POST has its own record: if that is so for
            # all of its servers.
            if any(is_of(record, said) for said in self._primaries.agree(
                    env, record.target) or ()):
                raise Unreachable('its servers are not at one')
            return True
        whole = self._reader.stored(env, record.target, headers)
        table = self._services.settings.current().table
        progress = _Progress(self, env, record, len(
            {use.path for use in whole.uses if use.path}))
        maps = self._spreader.spread(env, Work.of(
            record.target, whole, record.class_map, record.at,
            is_late=True, is_newest=lambda: self.waits_for(env, record)),
            table, progress.done)
        class_map = shown(whole, maps, record.class_map,
                          self._services.count)
        self.mark(env, record, classmap.to_headers(
            names.TRANSIENT_MAP, class_map))
        self._services.count('large.done')
        return True

    def waits_for(self, env: Env, record: Record) -> bool:
        """Whether the manifest waits for this record, and no newer POST
        came.

        :raises Unreachable: it cannot be looked at
        """
        return is_of(record, self._primaries.look(env, record.target) or {})

    def mark(self, env: Env, record: Record, headers: Any) -> bool:
        """Change the classes that the manifest shows, unless a newer POST
        did.

        :returns: False if a newer POST did
        :raises Unreachable: the manifest cannot be reached
        """
        headers_now = self._primaries.look(env, record.target)
        if headers_now is not None and not is_of(record, headers_now):
            return False
        # Each change of the mark is newer than the one before.
        said = post_alone(
            env, self._app, record.target, dict(headers, **record.beside),
            after('', (headers_now or {}).get(names.MAP_AT) or record.at))
        if said not in (202, 404):
            raise Unreachable('POST gives %d' % said)
        return True

    def sign(self, env: Env, record: Record, done: int, total: int) -> None:
        """Show how far the work is, and keep others from it."""
        self._records.renew(env, record)
        if not self.mark(env, record, dict(classmap.to_headers(
                names.TRANSIENT_MAP, record.class_map), **{
                    names.STATE: state_text(record, done, total)})):
            raise Unreachable('a newer POST came')


class _Progress:
    """Says now and then how far one record's work is."""

    def __init__(self, worker: Worker, env: Env, record: Record,
                 total: int) -> None:
        self._worker = worker
        self._about = (env, record)
        self._total = total
        self._next = time.monotonic() + _SIGN_SECONDS
        #: Others finish segments while a sign is on its way.
        self._is_saying = False

    def done(self, count: int) -> None:
        if self._is_saying or time.monotonic() < self._next:
            return
        self._is_saying = True
        try:
            self._worker.sign(*self._about, count, self._total)
        finally:
            self._is_saying = False
            self._next = time.monotonic() + _SIGN_SECONDS


def state_text(record: Record, done: int, total: int) -> str:
    """The mark of a manifest whose segments do not all have its classes."""
    return '%s %d/%d' % (record.name, done, total)


def is_of(record: Record, headers: Mapping[str, str]) -> bool:
    """True if a manifest, by its HEAD, still waits for this record."""
    return bool(stored.is_manifest(headers) and (headers.get(
        names.STATE) or '').split(' ')[0] == record.name)
