"""Rules of automatic classification, and the facts they look at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import (
    Dict, Iterator, List, Mapping, NamedTuple, Optional, Pattern, Sequence,
    Set, Tuple)

from swift_dss.core.globs import Glob
from swift_dss.core.limits import MAX_OBJECT_BYTES
from swift_dss.core.spans import ClassMap, Span

#: Longest text of a beginning or end that is filed: a lookup tries each
#: length once.
_MAX_KEY_CHARS = 32
_WHOLE, _START, _END = 'whole', 'start', 'end'


@dataclass(frozen=True)
class HeaderCondition:
    """A request header that must be there and match.

    :param name: lower case
    :param values: the value must match one of them
    """

    name: str
    values: Tuple[Glob, ...]


@dataclass(frozen=True)
class Rule:
    """One rule: every condition that is set must hold.

    Of several patterns in one condition, one must match. An empty tuple or
    None is no condition.

    :param name: its name in the rules file
    :param class_id: class of the objects that match
    :param content_types: against the media type, lower case, without its
        parameters
    :param names: against the object's name
    :param name_regex: must match the whole of the object's name
    :param min_bytes: least size, if ``by_size``
    :param max_bytes: greatest size, if ``by_size``
    :param by_size: whether the size counts; an upload of unknown size
        (chunked) never matches then
    :param auto_class: class of the bytes that open the file, which a storage
        node finds after the upload; None: it does not look
    """

    name: str
    class_id: int
    content_types: Tuple[Glob, ...] = ()
    names: Tuple[Glob, ...] = ()
    name_regex: Optional[Pattern[str]] = None
    by_size: bool = False
    min_bytes: int = 0
    max_bytes: int = MAX_OBJECT_BYTES
    users: Tuple[Glob, ...] = ()
    accounts: Tuple[Glob, ...] = ()
    containers: Tuple[Glob, ...] = ()
    headers: Tuple[HeaderCondition, ...] = ()
    auto_class: Optional[int] = None


@dataclass(frozen=True)
class RequestFacts:
    """The facts of an object that decide its class.

    :param user: the client's user in the auth system; '' if unknown
    :param content_type: as given, parameters included; '' if unknown
    :param size: bytes of the object; None for a chunked upload
    :param headers: request headers, names in lower case
    :param object_class: class that the request names; None if it names none
    :param ranges: ranges that the request asks for, sorted, no overlaps
    :param class_map: a whole map that the request brings (``.dss``); it
        settles everything
    :param container_class: default of the container, if it has one
    """

    account: str = ''
    container: str = ''
    obj: str = ''
    user: str = ''
    content_type: str = ''
    size: Optional[int] = None
    headers: Mapping[str, str] = field(default_factory=dict)
    object_class: Optional[int] = None
    ranges: Tuple[Span, ...] = ()
    class_map: Optional[ClassMap] = None
    container_class: Optional[int] = None

    @property
    def media_type(self) -> str:
        """``content_type`` without parameters, lower case."""
        return self.content_type.split(';', 1)[0].strip().lower()


class _Key(NamedTuple):
    field: str
    kind: str
    text: str


class RuleIndex:
    """Finds the rules that a request may match, without trying each. Built
    once for rules that do not change.

    Each rule is filed under the literal text that one of its conditions
    needs: the whole value, its beginning or its end. A lookup splits the
    request's values in the same way and returns the rules filed under them,
    in the order of the file. It always includes rules without such a text (a
    regular expression, a size, ``*a*``). The caller MUST still match each
    rule.

    A rule with several conditions is filed under the text that it shares
    with the fewest rules: a thousand rules of one account differ by their
    names.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._always: List[int] = []
        self._filed: Dict[Tuple[str, str], Dict[str, List[int]]] = {}
        choices = [_choices(rule) for rule in rules]
        used = Counter(key for ways in choices for keys in ways
                       for key in keys)
        for number, ways in enumerate(choices):
            if not ways:
                self._always.append(number)
                continue
            for key in min(ways, key=lambda keys: sum(
                    used[key] for key in keys)):
                self._filed.setdefault((key.field, key.kind), {}).setdefault(
                    key.text, []).append(number)
        self._lengths = {
            where: sorted({len(text) for text in texts})
            for where, texts in self._filed.items()}

    @property
    def always_tried(self) -> int:
        """How many rules every request has to try."""
        return len(self._always)

    def candidates(self, facts: RequestFacts) -> Iterator[Rule]:
        """The rules that may match, in order; all others do not."""
        numbers_named: Set[int] = set()
        values = _values(facts)
        for (name, kind), texts in self._filed.items():
            value = values[name]
            if kind == _WHOLE:
                numbers_named.update(texts.get(value, ()))
                continue
            for length in self._lengths[name, kind]:
                if length > len(value):
                    break
                numbers = texts.get(
                    value[:length] if kind == _START else value[-length:])
                if numbers:
                    numbers_named.update(numbers)
        numbers = sorted(numbers_named.union(self._always)) if numbers_named \
            else self._always
        return map(self._rules.__getitem__, numbers)


@dataclass(frozen=True)
class Rules:
    """All rules in the order in which they are tried.

    :ivar index: finds the rules that a request may match
    :ivar look_at_headers: whether a rule has a condition on request headers
    :ivar has_auto: whether a rule has an ``auto_class``
    """

    rules: Tuple[Rule, ...] = ()
    index: RuleIndex = field(init=False, repr=False, compare=False)
    look_at_headers: bool = field(init=False, repr=False, compare=False)
    has_auto: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, 'index', RuleIndex(self.rules))
        object.__setattr__(self, 'look_at_headers', any(
            rule.headers for rule in self.rules))
        object.__setattr__(self, 'has_auto', any(
            rule.auto_class is not None for rule in self.rules))


def _values(facts: RequestFacts) -> Dict[str, str]:
    return {'account': facts.account, 'container': facts.container,
            'user': facts.user, 'content_type': facts.media_type,
            'obj': facts.obj}


def _choices(rule: Rule) -> List[List[_Key]]:
    """The ways to file a rule: each a key for every pattern of a
    condition."""
    choices = []
    for name, globs in (
            ('account', rule.accounts), ('container', rule.containers),
            ('user', rule.users), ('content_type', rule.content_types),
            ('obj', rule.names)):
        for prefers in (_START, _END):
            keys = [_key(name, glob, prefers) for glob in globs]
            if keys and None not in keys:
                choices.append(sorted({key for key in keys if key}))
    return choices


def _key(field: str, glob: Glob, prefers: str) -> Optional[_Key]:
    whole, start, end = glob.literals()
    if whole is not None:
        return _Key(field, _WHOLE, whole)
    if start and (prefers == _START or not end):
        return _Key(field, _START, start[:_MAX_KEY_CHARS])
    if end:
        return _Key(field, _END, end[-_MAX_KEY_CHARS:])
    return None
