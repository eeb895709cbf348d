"""Which action of a bucket's lifecycle rules is due for an object."""

from __future__ import annotations

from typing import Iterable, List, Mapping, NamedTuple, Optional

from swift_dss.core.lifecycle import Rule, When

DAY_SECONDS = 86400


class Facts(NamedTuple):
    """An object.

    :param size: bytes; None if nobody knows
    :param data_at: seconds since the epoch: it was stored then
    :param class_at: its class was given then, if a client did so later
    """

    name: str
    size: Optional[int]
    data_at: float
    class_at: float


class Action(NamedTuple):
    """To be done with an object.

    :param storage_class: that it gets; '' if it is to be deleted
    """

    storage_class: str


DELETE = Action('')


def fitting(rules: Iterable[Rule], name: str,
            size: Optional[int]) -> List[Rule]:
    """The rules in force for an object, whatever tags it has. None that asks
    for a size fits an object whose size nobody knows."""
    return [rule for rule in rules
            if rule.is_enabled and name.startswith(rule.prefix)
            and (rule.size_over is None
                 or size is not None and size > rule.size_over)
            and (rule.size_under is None
                 or size is not None and size < rule.size_under)]


def due_at(when: When, since: float, day_seconds: int) -> float:
    """When an action is due, in seconds since the epoch.

    S3 rounds up to the next midnight UTC.

    :param since: the age counts from then
    :param day_seconds: of a day; with other days than ours nothing is rounded
    """
    if when.days is None:
        return float(when.date or 0)
    at = since + when.days * day_seconds
    return at if day_seconds != DAY_SECONDS else -(
        -at // DAY_SECONDS) * DAY_SECONDS


def due(rules: Iterable[Rule], facts: Facts, tags: Mapping[str, str],
        now: float, day_seconds: int = DAY_SECONDS) -> Optional[Action]:
    """The action that is due; None if none is.

    A deletion goes before all transitions; of those the last to become due
    counts, and of two at a time the one that stands last.
    """
    chosen: Optional[Action] = None
    chosen_at = float('-inf')
    for rule in fitting(rules, facts.name, facts.size):
        if any(tags.get(key) != value for key, value in rule.tags):
            continue
        if rule.expiration is not None and due_at(
                rule.expiration, facts.data_at, day_seconds) <= now:
            return DELETE
        for transition in rule.transitions:
            at = due_at(transition.when, max(
                facts.data_at, facts.class_at), day_seconds)
            if chosen_at <= at <= now:
                chosen, chosen_at = Action(transition.storage_class), at
    return chosen
