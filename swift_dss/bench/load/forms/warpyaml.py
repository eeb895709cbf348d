"""A benchmark of warp, from its YAML: get, put, stat and mixed.

Ours are ``class`` and ``ranges`` under ``obj``, as in a size of a scenario.
A field that would make other requests than ours are (ranges, parts, lists)
is refused; where the requests go is the business of the command line.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import yaml

from swift_dss.bench.load.places import Path, field_text
from swift_dss.bench.load.scenario import (
    MAX_OBJECTS, MAX_SECONDS, MAX_USERS, BadScenario, Scenario, Size, Weights)
from swift_dss.core.limits import MAX_OBJECT_BYTES

#: Weights of the benchmarks that have one operation.
_WEIGHTS: Dict[str, Weights] = {
    'get': (0, 1, 0, 0, 0), 'put': (1, 0, 0, 0, 0), 'stat': (0, 0, 0, 0, 1)}
#: Of ``mixed``, as warp has them.
_DISTRIBUTION = {'put': 15.0, 'get': 45.0, 'delete': 10.0, 'stat': 30.0}
_OBJECTS, _USERS, _SECONDS = 2500, 20, 300.0
_SIZE_BYTES = 10 * 1024 * 1024
#: Random sizes of warp go down to so many doublings below the largest, and no
#: lower than this.
_DOUBLINGS, _LEAST_BYTES = 8, 128
_UNITS = {'': 1, 'b': 1, 'k': 10 ** 3, 'kb': 10 ** 3, 'kib': 2 ** 10,
          'm': 10 ** 6, 'mb': 10 ** 6, 'mib': 2 ** 20, 'g': 10 ** 9,
          'gb': 10 ** 9, 'gib': 2 ** 30}
_SIZE = re.compile(r'(\d+(?:\.\d+)?) *([a-z]*)', re.I)
_TIME = re.compile(r'(\d+(?:\.\d+)?)(ms|s|m|h)')
_TIMES = {'ms': 0.001, 's': 1.0, 'm': 60.0, 'h': 3600.0}

_READ = frozenset((
    'api', 'benchmark', 'params.duration', 'params.concurrent',
    'params.objects', 'params.distribution', 'params.obj.size',
    'params.obj.rand-size', 'params.obj.class', 'params.obj.ranges',
    # Ours are so.
    'io.disable-sha256-payload'))
_REFUSED = frozenset((
    'params.range', 'params.range-size', 'params.list-existing',
    'params.post', 'params.obj.part-size', 'io.sse-c-encrypt',
    'io.sse-s3-encrypt'))
#: Of warp's own output, or said by the command line here.
_SILENT = ('quiet', 'no-color', 'json', 'remote', 'params.autoterm',
           'bench-data', 'advanced.full')


class _Field(NamedTuple):
    """A value, and its node, which knows the place."""

    value: Any
    node: yaml.Node


def parse(text: str, file: str) -> Scenario:
    """Read a benchmark of warp.

    :param file: its name, for errors
    :raises BadScenario: names the field, its place and the reason
    """
    return _Reader(file, text).scenario()


class _Reader:
    """Takes fields out of one file."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._fields: Dict[str, _Field] = {}
        root = self._load(text)
        if isinstance(root, yaml.MappingNode):
            for key, node in root.value:
                if key.value == 'warp':
                    self._root = node
                    self._fields.update(self._leaves((), node))
                    return
        raise BadScenario(file, '', 1, 1,
                          'has no "warp:", and is no JSON or XML')

    def scenario(self) -> Scenario:
        """:raises BadScenario: a field is wrong"""
        benchmark = self._get('benchmark', None)
        if benchmark != 'mixed' and str(benchmark) not in _WEIGHTS:
            raise self.bad('benchmark', '%s is none of get, put, stat and '
                           'mixed' % ascii(benchmark)[:48])
        for name in sorted(_REFUSED):
            if self._get(name, None):
                raise self.bad(name, 'makes requests that are not made here')
        weights = self._mixed() if benchmark == 'mixed' else \
            _WEIGHTS[benchmark]
        initial = 0 if benchmark == 'put' else self._number(
            'params.objects', _OBJECTS, MAX_OBJECTS)
        return Scenario(
            'warp %s' % benchmark, (self._size(weights, initial),),
            self._number('params.concurrent', _USERS, MAX_USERS), None,
            self._seconds(), container_base='warp', container_count=1,
            ignored=tuple(self._ignored()))

    def _size(self, weights: Weights, initial: int) -> Size:
        largest = self._bytes('params.obj.size')
        is_random = bool(self._get('params.obj.rand-size', False))
        smallest = min(largest, max(
            _LEAST_BYTES, largest >> _DOUBLINGS)) if is_random else largest
        class_name = self._get('params.obj.class', None)
        ranges = self._get('params.obj.ranges', None) or []
        if not isinstance(ranges, list) or not all(
                isinstance(entry, str) for entry in ranges):
            raise self.bad('params.obj.ranges',
                           'is not a list of "OFFSET-LENGTH-CLASS"')
        if class_name is not None and type(class_name) not in (str, int):
            raise self.bad('params.obj.class', 'is neither a name nor an id')
        return Size('object', smallest, largest, weights, initial,
                    None if class_name is None else str(class_name),
                    tuple(ranges), is_random and largest > 0)

    def _mixed(self) -> Weights:
        shares = dict(_DISTRIBUTION)
        for name, default in _DISTRIBUTION.items():
            field = 'params.distribution.' + name
            share = self._get(field, default)
            if type(share) not in (int, float) or not 0 <= share < 1e9:
                raise self.bad(field, 'is no share of 0 or more')
            shares[name] = float(share)
        if not sum(shares.values()):
            raise self.bad('params.distribution', 'has no share above 0')
        if shares['delete'] > shares['put']:
            raise self.bad('params.distribution.delete', 'is more than put: '
                           'nothing would be left')
        return (shares['put'], shares['get'], 0, shares['delete'],
                shares['stat'])

    def _seconds(self) -> float:
        value = self._get('params.duration', None)
        if value is None:
            return _SECONDS
        # Go's form: 1m30s.
        parts = _TIME.findall(value) if isinstance(value, str) else []
        seconds = sum(float(number) * _TIMES[unit] for number, unit in parts)
        if ''.join(number + unit for number, unit in parts) != value or \
                not 0 < seconds <= MAX_SECONDS:
            raise self.bad('params.duration', '%s is no time as 30s or 5m'
                           % ascii(value)[:48])
        return seconds

    def _bytes(self, name: str) -> int:
        value = self._get(name, None)
        if value is None:
            return _SIZE_BYTES
        match = _SIZE.fullmatch(str(value))
        unit = _UNITS.get(match.group(2).lower()) if match else None
        if match is None or unit is None or \
                float(match.group(1)) * unit > MAX_OBJECT_BYTES:
            raise self.bad(name, '%s is no single size as 100KiB or 10MB'
                           % ascii(value)[:48])
        return int(float(match.group(1)) * unit)

    def _number(self, name: str, default: int, most: int) -> int:
        value = self._get(name, default)
        if type(value) is not int or not 1 <= value <= most:
            raise self.bad(name, '%s is not in 1 to %d' % (
                ascii(value)[:48], most))
        return value

    def _get(self, name: str, default: Any) -> Any:
        """A field that is there without a value has the default."""
        field = self._fields.get(name)
        return default if field is None or field.value is None else \
            field.value

    def _ignored(self) -> Iterator[str]:
        for name, field in self._fields.items():
            is_known = name in _READ or name in _REFUSED or any(
                name == known or name.startswith(known + '.')
                for known in (*_SILENT, 'params.distribution'))
            if not is_known and field.value:
                yield name

    def _load(self, text: str) -> Optional[yaml.Node]:
        try:
            for event in yaml.parse(text, Loader=yaml.SafeLoader):
                if isinstance(event, yaml.AliasEvent):
                    # A few nested ones stand for any number of fields.
                    raise yaml.MarkedYAMLError(
                        problem='it has an alias',
                        problem_mark=event.start_mark)
            return yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as err:
            mark = err.problem_mark or err.context_mark
            raise BadScenario(
                self._file, '', mark.line + 1 if mark else 1,
                mark.column + 1 if mark else 1,
                'is no YAML: %s' % err.problem) from None
        except (yaml.YAMLError, RecursionError) as err:
            raise BadScenario(self._file, '', 1, 1,
                              'is no YAML: %s' % err) from None

    def _leaves(self, path: Tuple[str, ...],
                node: yaml.Node) -> Iterator[Tuple[str, _Field]]:
        """All that is no mapping, by its path below ``warp``."""
        if not isinstance(node, yaml.MappingNode):
            yield '.'.join(path), _Field(_value(node), node)
            return
        for key, inner in node.value:
            if len(path) < 8:
                yield from self._leaves((*path, str(key.value)), inner)

    def bad(self, name: str, reason: str) -> BadScenario:
        """:param name: of a field that may not be there"""
        node, path = self._root, name
        while path and path not in self._fields:
            path = path.rpartition('.')[0]
        if path:
            node = self._fields[path].node
        mark = node.start_mark
        steps: Path = ['warp', *name.split('.')]
        return BadScenario(self._file, field_text(steps), mark.line + 1,
                           mark.column + 1, reason)


def _value(node: yaml.Node) -> Any:
    """The plain value of a scalar or a list of them."""
    if isinstance(node, yaml.SequenceNode):
        listed: List[Any] = [_value(entry) for entry in node.value]
        return listed
    if not isinstance(node, yaml.ScalarNode):
        return None
    try:
        return yaml.SafeLoader('').construct_object(node)
    except (yaml.YAMLError, ValueError):
        # Of a tag that means nothing here.
        return node.value
