"""Find the rules that a request may match, without trying each.

Each rule is filed under the literal text that one of its conditions needs:
the whole value, its beginning or its end. A lookup splits the request's values
in the same way and returns the rules filed under them, in the order of the
file. It always includes rules without such a text (a regular expression, a
size, ``*a*``). The caller MUST still match each rule.

A rule with several conditions is filed under the text that it shares with the
fewest rules: a thousand rules of one account differ by their names.
"""

from __future__ import annotations

from collections import Counter
from typing import (
    TYPE_CHECKING, Dict, Iterator, List, NamedTuple, Optional, Sequence,
    Set, Tuple)

from swift_dss.core.globs import Glob

if TYPE_CHECKING:
    from swift_dss.core.rules import RequestFacts, Rule

#: Longest text of a beginning or end that is filed: a lookup tries each
#: length once.
_MAX_KEY_CHARS = 32
_WHOLE, _START, _END = 'whole', 'start', 'end'


class _Key(NamedTuple):
    field: str
    kind: str
    text: str


class RuleIndex:
    """Built once for rules that do not change."""

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
        found: Set[int] = set()
        values = _values(facts)
        for (field, kind), texts in self._filed.items():
            value = values[field]
            if kind == _WHOLE:
                found.update(texts.get(value, ()))
                continue
            for length in self._lengths[field, kind]:
                if length > len(value):
                    break
                numbers = texts.get(
                    value[:length] if kind == _START else value[-length:])
                if numbers:
                    found.update(numbers)
        numbers = sorted(found.union(self._always)) if found \
            else self._always
        return map(self._rules.__getitem__, numbers)


def _values(facts: RequestFacts) -> Dict[str, str]:
    return {'account': facts.account, 'container': facts.container,
            'user': facts.user, 'content_type': facts.media_type,
            'obj': facts.obj}


def _choices(rule: Rule) -> List[List[_Key]]:
    """The ways to file a rule: each a key for every pattern of a
    condition."""
    found = []
    for field, globs in (
            ('account', rule.accounts), ('container', rule.containers),
            ('user', rule.users), ('content_type', rule.content_types),
            ('obj', rule.names)):
        for prefers in (_START, _END):
            keys = [_key(field, glob, prefers) for glob in globs]
            if keys and None not in keys:
                found.append(sorted({key for key in keys if key}))
    return found


def _key(field: str, glob: Glob, prefers: str) -> Optional[_Key]:
    whole, start, end = glob.literals()
    if whole is not None:
        return _Key(field, _WHOLE, whole)
    if start and (prefers == _START or not end):
        return _Key(field, _START, start[:_MAX_KEY_CHARS])
    if end:
        return _Key(field, _END, end[-_MAX_KEY_CHARS:])
    return None
