"""Rounds over the buckets that have lifecycle rules.

The rules are in the container's own metadata, and go with it. A row in the
hidden account ``.dss_lifecycle`` says when each such container is due, so
that nobody looks at all accounts. While a round goes on, the row keeps the
name that it has come to; another proxy goes on there.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import (
    Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple)
from urllib.parse import parse_qsl

from swift.common.constraints import MAX_META_VALUE_LENGTH
from swift.common.swob import str_to_wsgi, wsgi_to_str
from swift.common.utils import Timestamp

from swift_dss.core.errors import DssError, OfLargeObject
from swift_dss.core.lifecycle import Lifecycle, Rule
from swift_dss.core.spans import ClassMap
from swift_dss.io import waiting
from swift_dss.proxy import reclassify
from swift_dss.proxy.lifecycle.asking import guarded, pages
from swift_dss.proxy.lifecycle.options import Options
from swift_dss.proxy.lifecycle.parts import Parts, is_versioned
from swift_dss.proxy.lifecycle.subjects import By, Subject, Subjects
from swift_dss.proxy.services import Services
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.clock import Every
from swift_dss.proxy.work.rows import (
    Row, Rows, Unreachable, name_of)
from swift_dss.proxy.wsgi import App, Env
from swift_dss.strategy.s3 import lifecycle as strategy
from swift_dss.wire import names
from swift_dss.wire.s3 import lifecycle as stored
from swift_dss.wire.s3 import restores

ACCOUNT = '.dss_lifecycle'
_CONTAINER = 'buckets'
#: Seconds in which a round notices that its rules have changed.
_RULES_SECONDS = 5.0
#: A row without rules may be of a PUT that is going on.
_GRACE_SECONDS = 3600
_BY_US = 'lifecycle'

Counts = Dict[str, int]


class _Turn(NamedTuple):
    """Where a round stands.

    :param marker: the name that it has come to
    :param looked_at: when all objects were last looked at
    :param is_thorough: it looks at all of them, however young their rows
    """

    marker: str
    counts: Counts
    looked_at: float
    is_thorough: bool

    def at(self, marker: str) -> str:
        """For the row, within a value of Swift's metadata. A beginning of a
        name comes before it: some objects are then looked at again."""
        while True:
            text = json.dumps({
                'marker': marker, 'counts': self.counts,
                'looked_at': self.looked_at, 'thorough': self.is_thorough})
            if len(text) <= MAX_META_VALUE_LENGTH or not marker:
                return text
            marker = marker[:-8]

    def ended(self, now: int) -> str:
        """For the row of a round that has come to its end. The next looks at
        objects that were put off."""
        is_done = self.is_thorough and not self.counts.get('later')
        return json.dumps({
            'at': now, 'counts': self.counts,
            'looked_at': now if is_done else self.looked_at})


class Buckets:
    """Knows which containers have rules, and acts on them.

    :param app: what is below the filter
    """

    def __init__(self, app: App, services: Services, subjects: Subjects,
                 options: Options) -> None:
        self._app = app
        self._services = services
        self._subjects = subjects
        self._options = options
        self._now = subjects.clock.now
        self._rows = Rows(app, ACCOUNT, _CONTAINER, self._now)
        self._parts = Parts(app, Rows(app, ACCOUNT, 'parts', self._now),
                            services, subjects, options.interval)
        #: By row under way: what was written to it, and the name meant, which
        #: may be too long for it.
        self._markers: Dict[str, Tuple[str, str]] = {}

    def note(self, env: Env, target: Target) -> None:
        """A container is about to get rules.

        :raises Unreachable: it could not be noted
        """
        target = target._replace(obj='')
        self._rows.put(env, name_of(target.path), json.dumps(
            [target.account, target.container]).encode(), 0.0)

    def has_rows(self, env: Env) -> bool:
        """Whether any container has rules, or parts wait for their end."""
        return self._rows.has_any(env) or self._parts.has_rows(env)

    def work(self, env: Env, leads: Callable[[], bool]) -> None:
        """Do the rounds that are due.

        :param leads: whether this process goes on
        """
        while self._turn(env, leads) and leads():
            pass

    def _turn(self, env: Env, leads: Callable[[], bool]) -> bool:
        """One page of each bucket that is due, so that a long one keeps no
        other waiting; True if a bucket has more."""
        more = False
        for row in self._rows.due(env, leads):
            more = self._guarded(env, row, leads) or more
        self._parts.work(env, leads)
        return more

    def _guarded(self, env: Env, row: Row,
                 leads: Callable[[], bool]) -> bool:
        with guarded(self._services, 'lifecycle', row.name):
            account, container = json.loads(row.body)
            return self._page(env, row, Target(account, container), leads)
        self._rows.touch(env, row.name, self._now() + min(
            60, self._options.interval), row.beside)
        return False

    def _page(self, env: Env, row: Row, bucket: Target,
              leads: Callable[[], bool]) -> bool:
        """The next page of a round.

        :returns: whether there may be more, and the row says where it begins
        """
        started = self._now()
        lifecycle = self._rules(env, bucket)
        if lifecycle is None:
            self._without_rules(env, row, bucket, started)
            return False
        turn = self._turn_of(row, started)
        counts, marker = turn.counts, turn.marker
        page = next(pages(env, self._app, bucket, marker), None)
        if page is None:
            self._count(counts, 'rounds')
            self._rows.touch(env, row.name, started + self._options.interval,
                             turn.ended(int(self._now())))
            return False
        turn_of_rules = Every(
            min(_RULES_SECONDS, self._options.lease_seconds / 4))
        for listed in page:
            if turn_of_rules.has_passed():
                # The next page begins here, by the rules of then.
                if not leads():
                    return False
                if self._rules(env, bucket) != lifecycle:
                    return True
            self._count(counts, 'seen')
            self._object(env, bucket, listed, lifecycle, turn)
        # Due, so that the next leader goes on here if this one dies.
        marker = str(page[-1]['name'])
        text = turn.at(marker)
        self._markers[row.name] = text, marker
        return self._rows.touch(env, row.name, started, text)

    def _turn_of(self, row: Row, now: float) -> _Turn:
        kept = json.loads(row.beside or '{}')
        known, marker = self._markers.pop(row.name, ('', ''))
        if known != row.beside:
            marker = str(kept.get('marker', ''))
        looked_at = float(kept.get('looked_at', 0))
        if kept.get('marker'):
            return _Turn(marker, kept.get('counts', {}), looked_at,
                         bool(kept.get('thorough')))
        return _Turn('', {}, looked_at,
                     now - looked_at >= self._options.day_seconds)

    def _without_rules(self, env: Env, row: Row, bucket: Target,
                       now: float) -> None:
        if now - row.made_at > _GRACE_SECONDS and \
                not self._may_have_rules(env, bucket):
            self._rows.delete(env, row.name, now)
        else:
            self._rows.touch(env, row.name, now + min(
                600, self._options.interval))

    def _may_have_rules(self, env: Env, bucket: Target) -> bool:
        """Whether a server has rules that the newest of those that answered
        had not.

        :raises Unreachable: one does not answer
        """
        return any(map(_rules_of, self._subjects.primaries.agree(
            env, bucket) or ()))

    def _rules(self, env: Env, bucket: Target) -> Optional[Lifecycle]:
        """The rules in force. They end no objects unless all servers of the
        bucket have the same: those that are away may know newer ones."""
        headers = reclassify.look(env, self._app, bucket, newest=True)
        if headers is None:
            return None
        lifecycle = _rules_of(headers)
        if lifecycle is None:
            return None
        if is_versioned(headers):
            return Lifecycle(())
        if not any(rule.expiration for rule in lifecycle.rules):
            return lifecycle
        try:
            told = self._subjects.primaries.agree(env, bucket)
        except Unreachable as err:
            told = [{}]
            self._services.logger.warning('dss: lifecycle: %s', err)
        if told is None or len(told) > 0 and all(
                _rules_of(headers) == lifecycle for headers in told):
            return lifecycle
        self._services.count('lifecycle.later')
        return Lifecycle(tuple(replace(rule, expiration=None)
                               for rule in lifecycle.rules))

    def _object(self, env: Env, bucket: Target, listed: Mapping[str, Any],
                lifecycle: Lifecycle, turn: _Turn) -> None:
        rules = strategy.fitting(lifecycle.rules, listed['name'],
                                 listed['bytes'])
        if not rules or not turn.is_thorough and not self._may_be_due(
                rules, listed):
            return
        waiting.sleep(1.0 / self._options.per_second)
        try:
            self._act(env, bucket._replace(obj=str_to_wsgi(
                listed['name'])), rules, turn.counts)
        except OfLargeObject:
            self._count(turn.counts, 'segments')
        except (Unreachable, DssError) as err:
            self._count(turn.counts, 'later')
            self._services.logger.warning('dss: lifecycle: %s', err)

    def _may_be_due(self, rules: List[Rule],
                    listed: Mapping[str, Any]) -> bool:
        """Whether a row of a listing is worth a look at its object.

        A change of an object's class or metadata makes its row look younger
        than its data. So rows with a class that rules give are always looked
        at, and all of them once a day.
        """
        since = float(Timestamp.from_isoformat(listed['last_modified']))
        now, day = self._now(), self._options.day_seconds
        whens = [transition.when for rule in rules
                 for transition in rule.transitions] + [
            rule.expiration for rule in rules if rule.expiration]
        if any(strategy.due_at(when, since, day) <= now for when in whens):
            return True
        _, _, text = listed['content_type'].rpartition(names.LISTED_CLASS)
        table = self._services.settings.current().table
        return text.isdigit() and int(text) in {
            table.storage_classes.get(transition.storage_class)
            for rule in rules for transition in rule.transitions}

    def _act(self, env: Env, target: Target, rules: List[Rule],
             counts: Counts) -> None:
        subject = self._subjects.look(env, target)
        if subject is None or restores.of_headers(subject.headers):
            return
        tags = dict(parse_qsl(subject.headers.get(names.S3_TAGGING) or '',
                              keep_blank_values=True))
        action = strategy.due(rules, _facts(subject), tags, self._now(),
                              self._options.day_seconds)
        if action is None:
            return
        if action == strategy.DELETE:
            # First: parts that nobody knows of would stay for ever.
            noted = self._parts.note(env, subject)
            is_done, did = self._subjects.expire(env, subject), 'expired'
            if not is_done:
                self._parts.forget(env, noted)
        else:
            table = self._services.settings.current().table
            class_id = table.storage_classes.get(action.storage_class)
            if class_id is None:
                self._count(counts, 'unknown_class')
                return
            wanted = ClassMap.uniform(class_id)
            if subject.class_map == wanted and (
                    subject.is_alike or subject.given_by != _BY_US):
                return
            is_done, did = self._subjects.give(env, subject, wanted, {
                names.GIVEN_BY: _BY_US}, By.RULE), 'transitions'
        self._count(counts, did if is_done else 'overtaken')

    def _count(self, counts: Counts, event: str) -> None:
        counts[event] = counts.get(event, 0) + 1
        self._services.count('lifecycle.' + event)


def _facts(subject: Subject) -> strategy.Facts:
    given = subject.class_at if subject.given_by != _BY_US else ''
    return strategy.Facts(
        wsgi_to_str(subject.target.obj), subject.size,
        float(Timestamp(subject.data_at)), float(Timestamp(given or 0)))


def _rules_of(headers: Mapping[str, str]) -> Optional[Lifecycle]:
    return stored.from_headers(names.CONTAINER_SYSMETA_LIFECYCLE, headers)
