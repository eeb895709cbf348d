"""A workload of COSBench, from its XML.

The stage with reads, writes and deletes is the measurement; ``init`` and
``prepare`` say which objects are there before. Objects that a write names and
no preparation made are new ones here, others are written over. Ours are
``class`` and ``ranges`` (separated by spaces) in the configuration of a
preparation or a write. Where the requests go is the business of the command
line.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, NoReturn, Optional, Tuple
from xml.parsers import expat

from swift_dss.bench.load.scenario import (
    MAX_CONTAINERS, MAX_OBJECTS, MAX_OPERATIONS, MAX_SECONDS, MAX_USERS,
    BadScenario, Scenario, Size, Weights)
from swift_dss.core.limits import MAX_OBJECT_BYTES

#: Stages and works that only make or remove what the measurement uses.
_AROUND = frozenset(('init', 'prepare', 'cleanup', 'dispose', 'delay'))
_KINDS = ('write', 'read', 'delete')
_CONTAINERS = 'mycontainers'
_UNITS = {'B': 1, 'KB': 10 ** 3, 'MB': 10 ** 6, 'GB': 10 ** 9}
_NUMBERS = re.compile(r'([crus])\((\d{1,15})(?:,(\d{1,15}))?\)')
_SIZE = re.compile(r'([curh])\(([\d,|]+)\)(B|KB|MB|GB)')
#: A bucket of a histogram. One that is open, without an upper end, has no
#: size that could be drawn.
_BUCKET = re.compile(r'(\d{1,15})\|(\d{1,15})\|(\d{1,15})')
_MAX_DEPTH = 10
_MAX_BUCKETS = 100

Range = Tuple[int, int]


class _Element(NamedTuple):
    """An element of the XML, and its place."""

    name: str
    attributes: Dict[str, str]
    line: int
    column: int
    inner: List[_Element]

    def all(self, name: str) -> List[_Element]:
        """Those inside, at any depth, in order."""
        return [entry for inner in self.inner for entry in (
            ([inner] if inner.name == name else []) + inner.all(name))]

    @property
    def config(self) -> Dict[str, str]:
        """``a=1;b=2`` of its ``config``."""
        pairs = (entry.partition('=') for entry in self.attributes.get(
            'config', '').split(';'))
        return {key.strip(): value.strip() for key, _, value in pairs}


class _Sizes(NamedTuple):
    """Bytes from and to, and the weight of this bucket."""

    smallest: int
    largest: int
    weight: int


def parse(text: str, file: str, stage: Optional[str] = None) -> Scenario:
    """Read a workload.

    :param file: its name, for errors
    :param stage: the name of the stage to run; None: there is but one
    :raises BadScenario: names the field, its place and the reason
    """
    return _Reader(file, _elements(text, file), stage).scenario()


class _Reader:
    """Takes one stage out of a workload."""

    def __init__(self, file: str, root: _Element,
                 stage: Optional[str]) -> None:
        self._file = file
        self._root = root
        if root.name != 'workload':
            self._bad(root, root.name, 'is no <workload> of COSBench')
        self._work = self._main(stage)
        self._operations = self._work.all('operation')
        self._prepared = [
            work for work in root.all('work')
            if work.attributes.get('type') == 'prepare']

    def scenario(self) -> Scenario:
        """:raises BadScenario: a field is wrong"""
        work = self._work
        shares = self._shares()
        count = self._count()
        operations = self._attribute(work, 'totalOps', MAX_OPERATIONS)
        seconds = self._attribute(work, 'runtime', MAX_SECONDS)
        if not operations and not seconds:
            self._bad(work, 'work', 'has neither runtime nor totalOps')
        users = self._attribute(work, 'workers', MAX_USERS)
        if not users:
            self._bad(work, 'work.workers', 'is missing')
        return Scenario(
            self._root.attributes.get('name') or 'cosbench',
            tuple(self._sizes(shares, count)), users,
            None if seconds else operations, seconds or None,
            container_base=self._prefix(), container_count=count,
            policy=self._policy(), ignored=tuple(self._ignored()))

    def _main(self, wanted: Optional[str]) -> _Element:
        """The one work of the stage that is measured."""
        stages = [stage for stage in self._root.all('workstage')
                  if any(work.attributes.get('type', 'normal') not in _AROUND
                         for work in stage.all('work'))]
        names = [stage.attributes.get('name', '') for stage in stages]
        if wanted is not None:
            stages = [stage for stage, name in zip(stages, names)
                      if name == wanted]
        if len(stages) != 1:
            self._bad(self._root, 'workflow', '%s; its stages with reads or '
                      'writes: %s' % (
                          'no stage is called %s' % ascii(wanted)
                          if wanted is not None else
                          'say one stage with --stage',
                          ascii(', '.join(names))[:200] or '-'))
        works = stages[0].all('work')
        if len(works) != 1 or not works[0].all('operation'):
            self._bad(stages[0], 'workstage', 'is not one work with '
                      'operations')
        return works[0]

    def _shares(self) -> Weights:
        shares = dict.fromkeys(('create', 'read', 'update', 'delete'), 0)
        for operation in self._operations:
            kind = operation.attributes.get('type', '')
            if kind not in _KINDS:
                self._bad(operation, 'operation.type', '%s is none of %s' % (
                    ascii(kind)[:48], ', '.join(_KINDS)))
            if kind == 'write':
                kind = 'update' if self._was_prepared(operation) else 'create'
            ratio = self._attribute(operation, 'ratio', 100)
            shares[kind] += 100 if ratio is None else ratio
        if not sum(shares.values()):
            self._bad(self._work, 'operation.ratio', 'is above 0 nowhere')
        return (shares['create'], shares['read'], shares['update'],
                shares['delete'], 0)

    def _was_prepared(self, operation: _Element) -> bool:
        first, last = self._range(operation, 'objects')
        return any(begin <= last and first <= end for begin, end in (
            self._range(work, 'objects') for work in self._prepared))

    def _sizes(self, weights: Weights, containers: int) -> List[Size]:
        makers = self._prepared + [
            operation for operation in self._operations
            if operation.attributes.get('type') == 'write']
        if not makers:
            self._bad(self._work, 'work', 'reads objects that nothing '
                      'prepares')
        maker = makers[0]
        for other in makers[1:]:
            for name in ('sizes', 'class', 'ranges'):
                if other.config.get(name) != maker.config.get(name):
                    self._bad(other, 'config.' + name, 'is another than that '
                              'of line %d: one run has one' % maker.line)
        buckets = self._buckets(maker)
        total = containers * sum(
            last - first + 1 for first, last in (
                self._range(work, 'objects') for work in self._prepared))
        if total > MAX_OBJECTS:
            self._bad(maker, 'config.objects', 'makes %d objects; %d at most'
                      % (total, MAX_OBJECTS))
        given = maker.config
        everything = sum(bucket.weight for bucket in buckets)
        return [Size(
            'object' if len(buckets) == 1 else 'object%d' % number,
            bucket.smallest, bucket.largest, weights,
            max(1, total * bucket.weight // everything) if total or
            len(buckets) > 1 else 0,
            given.get('class'), tuple(given.get('ranges', '').split()))
            for number, bucket in enumerate(buckets, 1)]

    def _buckets(self, maker: _Element) -> List[_Sizes]:
        text = maker.config.get('sizes', '')
        match = _SIZE.fullmatch(text.replace(' ', ''))
        buckets: List[_Sizes] = []
        if match is not None:
            form, inside, unit = match.groups()
            buckets = [_Sizes(low * _UNITS[unit], high * _UNITS[unit], weight)
                       for low, high, weight in _parts(form, inside)]
        if not buckets or any(
                not 0 <= bucket.smallest <= bucket.largest <= MAX_OBJECT_BYTES
                or not bucket.weight for bucket in buckets):
            self._bad(maker, 'config.sizes', '%s is no size as c(64)KB, '
                      'u(1,100)KB or h(1|64|10,64|512|90)KB, of %d bytes at '
                      'most' % (ascii(text)[:60], MAX_OBJECT_BYTES))
        return buckets

    def _count(self) -> int:
        """Containers that all of them use."""
        ranges = [self._range(entry, 'containers')
                  for entry in self._operations + self._prepared]
        count = max(last for _, last in ranges) - min(
            first for first, _ in ranges) + 1
        if count > MAX_CONTAINERS:
            self._bad(self._work, 'config.containers', '%d are more than %d'
                      % (count, MAX_CONTAINERS))
        return count

    def _range(self, element: _Element, name: str) -> Range:
        text = element.config.get(name, '')
        match = _NUMBERS.fullmatch(text.replace(' ', ''))
        if match is not None:
            first = int(match.group(2))
            last = first if match.group(3) is None else int(match.group(3))
            if 1 <= first <= last <= 10 ** 9:
                return first, last
        return self._bad(element, 'config.' + name,
                         '%s is no selection as u(1,50)' % ascii(text)[:60])

    def _attribute(self, element: _Element, name: str,
                   most: int) -> Optional[int]:
        text = element.attributes.get(name)
        if text is None:
            return None
        value = int(text) if text.isascii() and text.isdigit() and \
            len(text) < 16 else -1
        if not 0 <= value <= most:
            self._bad(element, '%s.%s' % (element.name, name),
                      '%s is not in 0 to %d' % (ascii(text)[:48], most))
        return value

    def _prefix(self) -> str:
        first = self._operations[0]
        prefix = first.config.get('cprefix') or _CONTAINERS
        if '/' in prefix or not prefix.isprintable() or len(prefix) > 200:
            self._bad(first, 'config.cprefix', '%s is no beginning of a '
                      "container's name" % ascii(prefix)[:48])
        return prefix

    def _policy(self) -> Optional[str]:
        for storage in self._root.all('storage'):
            if storage.config.get('policy') and \
                    storage.attributes.get('type') == 'swift':
                return storage.config['policy']
        return None

    def _ignored(self) -> List[str]:
        work = self._work.attributes
        return ['work.' + name for name in ('rampup', 'rampdown', 'totalBytes',
                                            'interval', 'division', 'driver')
                if name in work]

    def _bad(self, element: _Element, field: str, reason: str) -> NoReturn:
        raise BadScenario(self._file, field, element.line, element.column,
                          reason)


def _parts(form: str, inside: str) -> List[Tuple[int, int, int]]:
    """From, to and weight of each bucket; none if it is wrong."""
    if form == 'h':
        parts = inside.split(',')
        buckets = [(int(match[1]), int(match[2]), int(match[3]))
                   for match in map(_BUCKET.fullmatch, parts) if match]
        return buckets if len(buckets) == len(parts) <= _MAX_BUCKETS else []
    numbers = inside.split(',')
    if len(numbers) != (1 if form == 'c' else 2) or not all(
            number.isdigit() and len(number) < 16 for number in numbers):
        return []
    return [(int(numbers[0]), int(numbers[-1]), 1)]


def _elements(text: str, file: str) -> _Element:
    """:raises BadScenario: it is no XML, or defines entities"""
    parser = expat.ParserCreate()
    open_ones: List[_Element] = [_Element('', {}, 1, 1, [])]

    def wrong(reason: str) -> NoReturn:
        raise BadScenario(file, '', parser.CurrentLineNumber,
                          parser.CurrentColumnNumber + 1, reason)

    def begin(name: str, attributes: Dict[str, str]) -> None:
        if len(open_ones) > _MAX_DEPTH:
            wrong('has elements in more than %d others' % _MAX_DEPTH)
        made = _Element(name, attributes, parser.CurrentLineNumber,
                        parser.CurrentColumnNumber + 1, [])
        open_ones[-1].inner.append(made)
        open_ones.append(made)

    def end(_name: str) -> None:
        open_ones.pop()

    def defines(*_words: object) -> None:
        wrong('defines an entity')

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.EntityDeclHandler = defines
    try:
        parser.Parse(text.encode('utf-8', 'surrogateescape'), True)
    except expat.ExpatError as err:
        raise BadScenario(file, '', err.lineno, err.offset + 1,
                          'is no XML: %s' % expat.ErrorString(err.code)
                          ) from None
    return open_ones[0].inner[0]
