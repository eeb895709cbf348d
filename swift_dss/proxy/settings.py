"""The options of the filter; and the class table and the rules, reloaded when
their files change.

A file is looked at no more often than ``reload_interval`` seconds, by its
modification time, size and inode. It is read and parsed whole, both files
together, before anything takes effect; one assignment then replaces the
old state. A bad file leaves the old state in force, is logged once with
the reason and counted (``dss.reload.failed``).
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, Callable, Mapping, NamedTuple, Tuple

from swift.common.utils import config_true_value

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, DssError
from swift_dss.core.limits import (
    DEFAULT_MAX_DSS_SECTION_BYTES, DEFAULT_MAX_SPANS,
    DEFAULT_SEGMENTS_AT_ONCE, MAX_LARGE_SEGMENTS)
from swift_dss.core.rules import Rules
from swift_dss.io.start.text import read_text
from swift_dss.proxy.accounts import ALL
from swift_dss.proxy.lifecycle.options import Options
from swift_dss.strategy.s3.lifecycle import DAY_SECONDS
from swift_dss.wire.settings import classtable
from swift_dss.wire.settings import rules as rules_wire

Stamp = Tuple[Tuple[int, int, int], ...]
#: Of [filter:dss]: number to its default and the most that it may be.
_NUMBERS = {
    'reload_interval': (5, 86400),
    'account_recheck': (60, 86400),
    'max_spans': (DEFAULT_MAX_SPANS, DEFAULT_MAX_SPANS),
    'max_section_bytes': (DEFAULT_MAX_DSS_SECTION_BYTES,
                          DEFAULT_MAX_DSS_SECTION_BYTES),
    'client_timeout': (60, 86400),
    'pressure_interval': (1, 86400),
    'segments_at_once': (DEFAULT_SEGMENTS_AT_ONCE, MAX_LARGE_SEGMENTS),
    'lifecycle_interval': (Options().interval, 31 * DAY_SECONDS),
    'lifecycle_per_second': (Options().per_second, 100000),
    'lifecycle_day_seconds': (Options().day_seconds, DAY_SECONDS)}
#: The names of all options of [filter:dss].
OPTIONS = frozenset(_NUMBERS) | frozenset((
    'class_table', 'rules_file', 'account_classes', 'admission', 'run_dir',
    'least_loaded'))


class FilterOptions(NamedTuple):
    """The options of the filter.

    :param class_table: path; '' is none
    :param rules_file: path; '' is none
    """

    class_table: str
    rules_file: str
    account_classes: str
    admission: bool
    run_dir: str
    least_loaded: bool
    lifecycle: Options
    reload_interval: int
    account_recheck: int
    max_spans: int
    max_section_bytes: int
    client_timeout: int
    pressure_interval: int
    segments_at_once: int

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> FilterOptions:
        """:raises BadConfig: names the option and its range"""
        numbers = {option: _number(conf, option, default, most)
                   for option, (default, most) in _NUMBERS.items()}
        lifecycle = Options(numbers.pop('lifecycle_interval'),
                            numbers.pop('lifecycle_per_second') or 1,
                            numbers.pop('lifecycle_day_seconds') or 1)
        return cls(
            conf.get('class_table', '').strip(),
            conf.get('rules_file', '').strip(),
            conf.get('account_classes', ALL),
            config_true_value(conf.get('admission', 'true')),
            conf.get('run_dir', NodeConf.run_dir).strip(),
            config_true_value(conf.get('least_loaded', 'false')),
            lifecycle, **numbers)


def _number(conf: Mapping[str, str], option: str, default: int,
            most: int) -> int:
    text = conf.get(option, default)
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= most:
        raise BadConfig('[filter:dss] %s: %s is not a number from 0 to %d'
                        % (option, text, most))
    return number


@dataclass(frozen=True)
class State:
    """The table in force, and the rules that fit it."""

    table: ClassTable
    rules: Rules


class Settings:
    """Holds the :class:`State` in force.

    :param class_table: path of the class table; '' is none: classes have
        ids only
    :param rules_file: path of the rules; '' is none
    :param on_change: called with every new state, the first included
    :raises BadConfig: at construction, if a file cannot be used
    """

    def __init__(self, class_table: str, rules_file: str,
                 reload_interval: float, logger: Any,
                 on_change: Callable[[State], None] = lambda state: None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._class_table = class_table
        self._rules_file = rules_file
        self._interval = reload_interval
        self._logger = logger
        self._on_change = on_change
        self._clock = clock
        self._checked = clock()
        self._stamp = self._look()
        self._state = self._load()
        on_change(self._state)

    def current(self) -> State:
        """The state in force; looks at the files first if it is time."""
        now = self._clock()
        if now - self._checked >= self._interval:
            self._checked = now
            self._reload_if_changed()
        return self._state

    def _reload_if_changed(self) -> None:
        stamp = self._look()
        if stamp == self._stamp:
            return
        # Remembered before the parse, so that a bad file is reported once
        # and looked at again only when it changes.
        self._stamp = stamp
        try:
            state = self._load()
        except DssError as err:
            self._logger.error(
                'dss: kept the classes and rules in force: %s', err)
            self._logger.increment('dss.reload.failed')
            return
        self._state = state
        self._on_change(state)
        self._logger.info('dss: new classes and rules are in force')
        self._logger.increment('dss.reload.done')

    def _load(self) -> State:
        if self._class_table:
            table = classtable.parse(read_text(self._class_table),
                                     self._class_table)
        else:
            table = ClassTable()
        rules = Rules()
        if self._rules_file:
            rules = rules_wire.parse(read_text(self._rules_file), table,
                                     self._rules_file)
        return State(table, rules)

    def _look(self) -> Stamp:
        return tuple(_stamp(path) for path in
                     (self._class_table, self._rules_file))


def _stamp(path: str) -> Tuple[int, int, int]:
    try:
        stat = os.stat(path) if path else None
    except OSError:
        stat = None
    if stat is None:
        return (0, 0, 0)
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
