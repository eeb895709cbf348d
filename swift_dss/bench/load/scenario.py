"""A scenario of ssbench, with classes.

The JSON files of ssbench are read as they are. Ours are ``class`` and
``ranges`` of a size: the class of its objects, and ``OFFSET-LENGTH-CLASS`` of
bytes that have another one (a range that passes the end of an object is cut
there).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from swift_dss.bench.load.places import Path, field_text, line_and_column
from swift_dss.core.errors import DssError
from swift_dss.core.limits import MAX_OBJECT_BYTES

#: Users, containers and objects that one run may have: each user is a thread,
#: each object a record in memory.
MAX_USERS = 10_000
MAX_CONTAINERS = 100_000
MAX_OBJECTS = 10_000_000
MAX_OPERATIONS = 10 ** 12
MAX_SECONDS = 31 * 86400
#: S3's parts of one object; Swift's default is a tenth of it.
_MAX_SEGMENTS = 10_000

_KEYS = frozenset((
    'name', 'sizes', 'initial_files', 'operation_count', 'run_seconds',
    'crud_profile', 'user_count', 'container_base', 'container_count',
    'container_concurrency', 'policy', 'delete_after'))
_SIZE_KEYS = frozenset((
    'name', 'size_min', 'size_max', 'crud_profile', 'class', 'ranges',
    'segment_size'))

#: Weights of create, read, update, delete and HEAD; ssbench has no HEAD.
Weights = Tuple[float, float, float, float, float]


class BadScenario(DssError):
    """A scenario cannot be used.

    :param field: ``sizes[1].size_min``; '' if it is no JSON
    :param line: of the file, from 1
    :param column: from 1
    :param reason: one sentence, without the field's name
    """

    exit_code = 2
    counter = 'bad_input'

    def __init__(self, file: str, field: str, line: int, column: int,
                 reason: str) -> None:
        super().__init__('%s, line %d, column %d: %s%s' % (
            file, line, column, field and field + ': ', reason))
        self.field = field
        self.line = line
        self.column = column
        self.reason = reason


class Size(NamedTuple):
    """Objects of one kind.

    :param weights: of its operations
    :param initial: objects before the measurement; also its weight
    :param class_name: None: the cluster decides
    :param ranges: ``OFFSET-LENGTH-CLASS``
    :param by_doubling: as many objects in each doubling of the size, as warp's
        random sizes; else all sizes are as likely
    :param segment_bytes: of objects that are larger; None: each is one PUT
    """

    name: str
    size_min: int
    size_max: int
    weights: Weights
    initial: int = 0
    class_name: Optional[str] = None
    ranges: Tuple[str, ...] = ()
    by_doubling: bool = False
    segment_bytes: Optional[int] = None


@dataclass(frozen=True)
class Scenario:
    """A load.

    :param operations: None: until ``seconds`` are over
    :param seconds: None: until all operations are done
    :param ignored: fields that mean nothing here
    """

    name: str
    sizes: Tuple[Size, ...]
    users: int
    operations: Optional[int]
    seconds: Optional[float]
    container_base: str = 'ssbench'
    container_count: int = 100
    container_concurrency: int = 10
    policy: Optional[str] = None
    delete_after: Optional[int] = None
    ignored: Tuple[str, ...] = ()

    @property
    def containers(self) -> List[str]:
        """Their names, as ssbench makes them."""
        return ['%s_%06d_%s' % (self.container_base, number,
                                self.policy or 'default_policy')
                for number in range(self.container_count)]


def parse(text: str, file: str) -> Scenario:
    """Read a scenario.

    :param file: its name, for errors
    :raises BadScenario: names the field, its place and the reason
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as err:
        raise BadScenario(file, '', err.lineno, err.colno,
                          'is no JSON: ' + err.msg) from None
    except (RecursionError, ValueError) as err:
        raise BadScenario(file, '', 1, 1, 'is no JSON: %s' % err) from None
    return _Reader(text, file, data).scenario()


class _Reader:
    """Takes fields out of one scenario."""

    def __init__(self, text: str, file: str, data: Any) -> None:
        self._text = text
        self._file = file
        self._data = data

    def scenario(self) -> Scenario:
        top = self._object((), self._data)
        sizes = self._sizes(top)
        seconds = self._number(('run_seconds',), top, 1, MAX_SECONDS, None)
        count = self._number(('operation_count',), top, 1, MAX_OPERATIONS,
                             None)
        after = self._number(('delete_after',), top, 1, MAX_SECONDS * 100,
                             None)
        if seconds is None and count is None:
            raise self.bad((), 'has neither operation_count nor run_seconds')
        return Scenario(
            self._words(('name',), top), sizes,
            self._number(('user_count',), top, 1, MAX_USERS),
            # ssbench: run_seconds counts where both are there.
            None if seconds is not None else count, seconds,
            self._name(('container_base',), top, 'ssbench'),
            self._number(('container_count',), top, 1, MAX_CONTAINERS, 100),
            self._number(('container_concurrency',), top, 1, MAX_USERS, 10),
            None if top.get('policy') is None else
            self._name(('policy',), top, ''), after, self._ignored(top))

    def _sizes(self, top: Dict[str, Any]) -> Tuple[Size, ...]:
        listed = top.get('sizes')
        if not isinstance(listed, list) or not listed:
            raise self.bad(('sizes',), 'is not a list of one size or more')
        initial = self._object(('initial_files',), top.get('initial_files'))
        sizes = [self._size(number, self._object(('sizes', number), size),
                            top, initial)
                 for number, size in enumerate(listed)]
        names = [size.name for size in sizes]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise self.bad(('sizes', number, 'name'),
                               '%r is there twice' % name)
        for name in initial:
            if name not in names:
                raise self.bad(('initial_files', name),
                               'no size has this name')
        return tuple(sizes)

    def _size(self, number: int, data: Dict[str, Any], top: Dict[str, Any],
              initial: Dict[str, Any]) -> Size:
        at = ('sizes', number)
        name = self._name((*at, 'name'), data)
        smallest = self._number((*at, 'size_min'), data, 0, MAX_OBJECT_BYTES)
        ranges = data.get('ranges', [])
        if not isinstance(ranges, list) or not all(
                isinstance(entry, str) for entry in ranges):
            raise self.bad((*at, 'ranges'),
                           'is not a list of "OFFSET-LENGTH-CLASS"')
        class_name = data.get('class')
        if class_name is not None and not isinstance(class_name, str) and \
                type(class_name) is not int:
            raise self.bad((*at, 'class'), 'is neither a name nor an id')
        own = 'crud_profile' in data
        largest = self._number((*at, 'size_max'), data, smallest,
                               MAX_OBJECT_BYTES)
        return Size(
            name, smallest, largest,
            self._crud((*at, 'crud_profile') if own else ('crud_profile',),
                       data if own else top),
            self._number(('initial_files', name), initial, 0, MAX_OBJECTS,
                         0),
            None if class_name is None else str(class_name), tuple(ranges),
            segment_bytes=self._number(
                (*at, 'segment_size'), data,
                max(1, -(-largest // _MAX_SEGMENTS)), MAX_OBJECT_BYTES,
                None))

    def _crud(self, path: Path, data: Dict[str, Any]) -> Weights:
        listed = data.get('crud_profile')
        if not isinstance(listed, list) or len(listed) != 4 or not all(
                type(weight) in (int, float) and 0 <= weight < 1e9
                for weight in listed) or not sum(listed):
            raise self.bad(path, 'is not four weights (create, read, update, '
                           'delete) of which one is above 0')
        return listed[0], listed[1], listed[2], listed[3], 0

    def _number(self, path: Path, data: Dict[str, Any], least: int,
                most: int, default: Any = False) -> Any:
        """A whole number; ``default`` False: it must be there."""
        value = data.get(str(path[-1]))
        if value is None and default is not False:
            return default
        if type(value) is not int:
            raise self.bad(path, 'is not a whole number' if value is not None
                           else 'is missing')
        if not least <= value <= most:
            raise self.bad(path, '%d is not in %d to %d'
                           % (value, least, most))
        return value

    def _words(self, path: Path, data: Dict[str, Any]) -> str:
        value = data.get(str(path[-1]))
        if not isinstance(value, str) or not 0 < len(value) <= 200:
            raise self.bad(path, 'is not a text of 1 to 200 characters')
        return value

    def _name(self, path: Path, data: Dict[str, Any],
              default: Optional[str] = None) -> str:
        """A part of a container's or an object's name."""
        if default is not None and data.get(str(path[-1])) is None:
            return default
        value = self._words(path, data)
        if '/' in value or not value.isprintable():
            raise self.bad(path, 'has / or a character that does not print')
        return value

    def _object(self, path: Path, value: Any) -> Dict[str, Any]:
        if not isinstance(value, dict):
            raise self.bad(path, 'is not an object of JSON, {...}')
        return value

    def _ignored(self, top: Dict[str, Any]) -> Tuple[str, ...]:
        return tuple(
            [key for key in top if key not in _KEYS]
            + [field_text(('sizes', number, key))
               for number, size in enumerate(top['sizes']) for key in size
               if key not in _SIZE_KEYS])

    def bad(self, path: Path, reason: str) -> BadScenario:
        line, column = line_and_column(self._text, path)
        return BadScenario(self._file, field_text(path), line, column,
                           reason)
