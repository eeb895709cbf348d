"""RestoreObject: another class for some days, and the one of before again.

The new class and the way back are one register of the object: a client that
gives it another class, or another version, ends the restoration. A row in the
hidden account ``.dss_lifecycle`` leads to the object; a row that leads to one
without a restoration goes.

Bytes come to the SSD as they do for readers: one proxy reads them, of several
objects at once, and so many of their segments at a time as one bound for all
allows. Those that have no room there are read again after twice as
long each time.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import threading
from typing import Callable, Dict, NamedTuple

from swift.common.swob import (
    HTTPServiceUnavailable, Response, wsgi_quote)
from swift.common.utils import close_if_possible
from swift.common.wsgi import make_pre_authed_request

from swift_dss.core.errors import BadClassInput
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.proxy import reclassify
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.large.reading import Reader
from swift_dss.proxy.large.segments import target_of
from swift_dss.proxy.large.spreading import each
from swift_dss.proxy.lifecycle.asking import guarded
from swift_dss.proxy.lifecycle.buckets import ACCOUNT
from swift_dss.proxy.lifecycle.options import Options
from swift_dss.proxy.lifecycle.subjects import By, Subject, Subjects
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.services import Services
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.clock import Every
from swift_dss.proxy.work.rows import (
    Row, Rows, Unreachable, name_of)
from swift_dss.proxy.wsgi import App, Body, Env
from swift_dss.strategy.classify import check_allowed
from swift_dss.strategy.s3.lifecycle import DAY_SECONDS
from swift_dss.wire import classmap, names
from swift_dss.wire.s3 import restores
from swift_dss.wire.s3.restores import Restored

_CONTAINER = 'restores'
#: Seconds until bytes that were read are looked for again: at first, and at
#: most.
_AGAIN_SECONDS = 2.0
_LATEST_SECONDS = 3600.0
#: Objects, and segments of large ones, that are read at a time.
READS = 4
#: Rows that are begun before others are looked for.
_ROWS = 64
#: Others may change the object meanwhile.
_ATTEMPTS = 3
#: A row without a restoration may be of a request that is going on: it is
#: looked at ever later, but for so long.
_GRACE_SECONDS = 600
#: Segments may lie in containers that clients do not see.
_HIDDEN = {'X-Backend-Allow-Reserved-Names': 'true'}


class _Again(NamedTuple):
    """The next look at a row.

    :param at: seconds since the epoch; 0.0 if the row is gone
    :param tries: how often bytes were read in vain
    """

    at: float
    tries: str = ''


class _Led(Exception):
    """Another proxy leads by now."""


class _Lead:
    """Keeps the lead while much is read: a lease is shorter than that.

    :param leads: whether this process goes on
    """

    def __init__(self, leads: Callable[[], bool], lease_seconds: float
                 ) -> None:
        self._leads = leads
        self._turn = Every(lease_seconds / 4)

    def keep(self) -> None:
        """Ask now and then.

        :raises _Led: another leads
        """
        if self._turn.has_passed() and not self._leads():
            raise _Led


class Restores:
    """Begins restorations, and ends them.

    :param app: what is below the filter
    :param reads: the way of readers
    """

    def __init__(self, app: App, reads: App, services: Services,
                 subjects: Subjects, options: Options) -> None:
        self._app = app
        self._reads = reads
        self._services = services
        self._subjects = subjects
        self._options = options
        self._reader = Reader(app)
        self._reading = threading.Semaphore(READS)
        self._now = subjects.clock.now
        self._rows = Rows(app, ACCOUNT, _CONTAINER, self._now)

    def begin(self, request: ProxyRequest, days: int) -> Body:
        """Answer a POST that restores an object; auth has been asked.

        :raises BadClassInput: its class map is too long to be kept, or
            segments lie in containers of others
        :raises ClassNotAllowed: the account may not use the class
        :raises HTTPException: it cannot be restored now
        """
        env, target = request.env, request.target
        spec = request.state.table.restore_spec
        if spec is None:
            raise BadClassInput('restore', 'no class for restored objects is '
                                'set up')
        check_allowed({spec.class_id}, self._services.accounts.allowed(
            env, target.account, request.state.table), 'restore')
        try:
            self._rows.put(env, name_of(target.path), json.dumps(
                list(target)).encode(), 0.0)
            for _attempt in range(_ATTEMPTS):
                subject = self._subjects.look(env, target)
                if subject is None:
                    return self._answer(request, 404)
                if self._restore(env, subject, ClassMap.uniform(
                        spec.class_id), days):
                    self._services.count('restore.begun')
                    return self._answer(request, 202)
        except Unreachable as err:
            self._services.logger.warning('dss: restore: %s', err)
        raise HTTPServiceUnavailable(
            body=b'The object cannot be changed now.',
            headers={'Retry-After': '5'})

    def _restore(self, env: Env, subject: Subject, class_map: ClassMap,
                 days: int) -> bool:
        until = _until(self._now(), days, self._options.day_seconds)
        known = restores.of_headers(subject.headers)
        return self._subjects.give(env, subject, class_map, _beside(
            subject, known._replace(until=until) if known else
            Restored(until, False, subject.given_by)), By.CLIENT)

    def has_rows(self, env: Env) -> bool:
        """Whether any object is restored."""
        return self._rows.has_any(env)

    def work(self, env: Env, leads: Callable[[], bool]) -> None:
        """Do what is due.

        :param leads: whether this process goes on
        """
        rows = self._rows.due(env, leads)
        lead = _Lead(leads, self._options.lease_seconds)
        while True:
            batch = list(itertools.islice(rows, _ROWS))
            if not batch:
                return
            each(functools.partial(self._guarded, env, leads, lead), batch,
                 READS)

    def _guarded(self, env: Env, leads: Callable[[], bool], lead: _Lead,
                 row: Row) -> None:
        if not leads():
            return
        again = _Again(self._now() + 30, row.beside)
        with guarded(self._services, 'restore', row.name):
            try:
                again = self._do(env, row, Target(*json.loads(row.body)),
                                 lead)
            except _Led:
                return
        if again.at:
            self._rows.touch(env, row.name, again.at, again.tries)

    def _do(self, env: Env, row: Row, target: Target, lead: _Lead) -> _Again:
        now = self._now()
        subject = self._subjects.look(env, target)
        restored = subject and restores.of_headers(subject.headers)
        if subject is None or restored is None:
            if subject is not None and now - row.made_at < _GRACE_SECONDS:
                return _after(row.beside, row.made_at + _GRACE_SECONDS, now)
            if self._may_be_restored(env, target):
                return _Again(now + _GRACE_SECONDS)
            self._rows.delete(env, row.name, now)
            return _Again(0.0)
        if restored.until <= now:
            return _Again(self._give_back(env, subject, restored))
        if restored.is_done:
            return _Again(float(restored.until))
        if not self._bring(env, subject, lead):
            return _after(row.beside, restored.until, now)
        if self._subjects.give(env, subject, subject.class_map, _beside(
                subject, restored._replace(is_done=True)), By.RESTORATION):
            self._services.count('restore.done')
        return _Again(now + _AGAIN_SECONDS)

    def _may_be_restored(self, env: Env, target: Target) -> bool:
        """Whether a server has a restoration that the newest of those that
        answered had not.

        :raises Unreachable: one does not answer
        """
        return any(restores.of_headers(headers) for headers in
                   self._subjects.primaries.agree(env, target) or ())

    def _give_back(self, env: Env, subject: Subject,
                   restored: Restored) -> float:
        beside = {names.GIVEN_BY: restored.given_by} \
            if restored.given_by else {}
        if self._subjects.give(env, subject, _before(subject), beside,
                               By.RESTORATION):
            self._services.count('restore.ended')
        return self._now() + _AGAIN_SECONDS

    def _bring(self, env: Env, subject: Subject, lead: _Lead) -> bool:
        """Read what is not on the SSD.

        :returns: whether all is there
        """
        targets = [subject.target]
        if stored.is_manifest(subject.headers):
            if subject.headers.get(names.STATE):
                return False  # segments have yet to get the class
            inside = dict(env, PATH_INFO=subject.target.path)
            targets = list(dict.fromkeys(
                target_of(inside, use.path) for use in self._reader.stored(
                    inside, subject.target, subject.headers).leaves
                if use.path))
        missing = [target for target in targets
                   if not self._is_at_hand(env, target)]
        # The first that cannot be read ends the turn: not always the same.
        random.shuffle(missing)
        each(lambda target: self._read(env, target, lead), missing, READS)
        return not missing

    def _is_at_hand(self, env: Env, target: Target) -> bool:
        headers = reclassify.look(env, self._reads, target, also=_HIDDEN)
        return headers is None or \
            str(headers.get(names.BACKEND_AT_HAND)) != '0'

    def _read(self, env: Env, target: Target, lead: _Lead) -> None:
        with self._reading:
            self._read_now(env, target, lead)

    def _read_now(self, env: Env, target: Target, lead: _Lead) -> None:
        request = make_pre_authed_request(
            env, method='GET', path=wsgi_quote(target.path), headers=_HIDDEN,
            swift_source='DSS')
        request.environ['QUERY_STRING'] = ''
        response = request.get_response(self._reads)
        try:
            for _chunk in response.app_iter:
                lead.keep()
        finally:
            close_if_possible(response.app_iter)
        self._services.count('restore.read')
        if response.status_int not in (200, 404):
            raise Unreachable('%s: GET gives %d' % (
                target.path, response.status_int))

    def _answer(self, request: ProxyRequest, status: int) -> Body:
        answer: Body = Response(status=status)(request.env, request.start)
        return answer


def _after(tries: str, end: float, now: float) -> _Again:
    """The next look at what has yet to come.

    :param end: when it is no longer waited for
    """
    done = int(tries) if tries.isdigit() else 0
    seconds = min(_LATEST_SECONDS, _AGAIN_SECONDS * 2 ** min(done, 30))
    return _Again(min(now + seconds, end), str(done + 1))


def _before(subject: Subject) -> ClassMap:
    """The class map that an object has when it is not restored."""
    return classmap.from_headers(
        names.BEFORE, subject.headers) or UNCLASSIFIED_MAP


def _beside(subject: Subject, restored: Restored) -> Dict[str, str]:
    before = _before(subject) if restores.of_headers(subject.headers) \
        else subject.class_map
    return dict(classmap.to_headers(names.BEFORE, before),
                **{names.RESTORED: restores.encode(restored)})


def _until(now: float, days: int, day_seconds: int) -> int:
    at = min(int(now) + days * day_seconds, restores.LAST)
    return at if day_seconds != DAY_SECONDS else min(restores.LAST, -(
        -at // DAY_SECONDS) * DAY_SECONDS)
