"""Lifecycle rules of a bucket, as S3 has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class When:
    """When an action of a rule is due: one of both is set.

    :param days: of an object's age
    :param date: seconds since the epoch, the same for all objects
    """

    days: Optional[int] = None
    date: Optional[int] = None


@dataclass(frozen=True)
class Transition:
    """Objects get another storage class."""

    when: When
    storage_class: str


@dataclass(frozen=True)
class Rule:
    """One rule.

    :param prefix: of names of objects; '' is all
    :param tags: that an object must have, all of them
    :param size_over: bytes; an object must have more
    :param size_under: bytes; an object must have fewer
    :param is_old: the prefix stands in the rule itself, as before S3 had
        filters
    """

    rule_id: str
    is_enabled: bool
    prefix: str = ''
    tags: Tuple[Tuple[str, str], ...] = ()
    size_over: Optional[int] = None
    size_under: Optional[int] = None
    transitions: Tuple[Transition, ...] = ()
    expiration: Optional[When] = None
    is_old: bool = False


@dataclass(frozen=True)
class Lifecycle:
    """The configuration of a bucket."""

    rules: Tuple[Rule, ...]
