"""Which class an object gets: request, rules, container, class 0.

The first of these that says something wins:

1. what the request asks for: a ``.dss`` map, ``X-DSS-Object-Class``;
   ranges of ``X-DSS-Range-Class`` win for their bytes, and the bytes
   between them go on to the next line;
2. the first rule that matches (:class:`~swift_dss.core.rules.Rule`);
3. the container's default;
4. class 0, unclassified.
"""

from __future__ import annotations

from typing import AbstractSet, Iterable, Optional

from swift_dss.core.errors import ClassNotAllowed
from swift_dss.core.limits import UNCLASSIFIED
from swift_dss.core.rules import RequestFacts, Rule, Rules
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap


def classify(facts: RequestFacts, rules: Rules) -> ClassMap:
    """The class map of an object. Pure; never fails on checked facts.

    Rules carry class ids: names were looked up when they were parsed.
    """
    if facts.class_map is not None:
        return facts.class_map
    rest = _object_class(facts, rules)
    if not facts.ranges and rest == UNCLASSIFIED:
        return UNCLASSIFIED_MAP
    return ClassMap.from_spans(facts.ranges, rest)


def auto_class(facts: RequestFacts, rules: Rules) -> Optional[int]:
    """The class that a storage node is to give the bytes that open the
    file, after the upload; None if it is not to look.

    A request that names a class, of the object or of ranges, is left as its
    client wishes.
    """
    if not rules.has_auto or facts.class_map is not None or facts.ranges \
            or facts.object_class is not None:
        return None
    rule = first_match(facts, rules)
    return None if rule is None else rule.auto_class


def first_match(facts: RequestFacts, rules: Rules) -> Optional[Rule]:
    """The rule that decides for ``facts``, or None."""
    for rule in rules.index.candidates(facts):
        if matches(rule, facts):
            return rule
    return None


def matches(rule: Rule, facts: RequestFacts) -> bool:
    """True if every condition of ``rule`` holds."""
    if rule.by_size and (
            facts.size is None
            or not rule.min_bytes <= facts.size <= rule.max_bytes):
        return False
    for globs, value in ((rule.accounts, facts.account),
                         (rule.containers, facts.container),
                         (rule.users, facts.user),
                         (rule.content_types, facts.media_type),
                         (rule.names, facts.obj)):
        if globs and not any(glob.matches(value) for glob in globs):
            return False
    for condition in rule.headers:
        value_of = facts.headers.get(condition.name)
        if value_of is None or not any(
                glob.matches(value_of) for glob in condition.values):
            return False
    return rule.name_regex is None or \
        rule.name_regex.fullmatch(facts.obj) is not None


def check_allowed(class_ids: Iterable[int],
                  allowed_classes: Optional[AbstractSet[int]],
                  field: str = 'class') -> None:
    """Check classes asked for against the list of an account.

    :param allowed_classes: None allows all; class 0 is always allowed
    :param field: header that asked
    :raises ClassNotAllowed: names the first that is not allowed
    """
    if allowed_classes is None:
        return
    for class_id in sorted(class_ids):
        if class_id != UNCLASSIFIED and class_id not in allowed_classes:
            listed = ', '.join(str(number)
                               for number in sorted(allowed_classes))
            raise ClassNotAllowed(
                field, 'this account may not use class %d (it may use: %s)'
                % (class_id, listed or 'none'))


def _object_class(facts: RequestFacts, rules: Rules) -> int:
    if facts.object_class is not None:
        return facts.object_class
    rule = first_match(facts, rules)
    if rule is not None:
        return rule.class_id
    if facts.container_class is not None:
        return facts.container_class
    return UNCLASSIFIED
