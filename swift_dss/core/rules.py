"""Rules of automatic classification, and the facts they look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Pattern, Tuple

from swift_dss.core.globs import Glob
from swift_dss.core.limits import MAX_OBJECT_BYTES
from swift_dss.core.ruleindex import RuleIndex
from swift_dss.core.spans import ClassMap, Span


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


@dataclass(frozen=True)
class Rules:
    """All rules in the order in which they are tried.

    :ivar index: finds the rules that a request may match
    :ivar look_at_headers: whether a rule has a condition on request headers
    """

    rules: Tuple[Rule, ...] = ()
    index: RuleIndex = field(init=False, repr=False, compare=False)
    look_at_headers: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, 'index', RuleIndex(self.rules))
        object.__setattr__(self, 'look_at_headers', any(
            rule.headers for rule in self.rules))


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
