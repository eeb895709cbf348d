"""Answers of shards, added up to that of the node. Pure.

Numbers add up, lists follow one another, texts are those of the first; what
is not a sum is named here.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

#: Of waits, ages and most of all that was seen the largest counts.
_LARGEST = ('_seconds', 'mape', 'largest_bytes')
#: S3 is up if each shard reaches it; a pass of all began with the first.
_SMALLEST = frozenset(('gateway.up', 'pass_began'))
#: Each shard says it of the node or of a class, and all say the same.
_ALIKE = frozenset(('rank', 'warm_copies', 'admissions', 'owner', 'mape_of',
                    'tier.left_policies', 'days'))
#: Lines that several shards may say in the same words.
_ONCE = frozenset(('warnings', 'left_policies', 'gauges'))
#: Well only if it is so in each shard.
_IN_ALL = frozenset(('settled', 'reconciled'))
#: Names of states that need no operator.
_WELL = frozenset(('closed',))


def merged(answers: Sequence[Any], name: str = '') -> Any:
    """One answer of several of the same form.

    :param name: what the answers are called in what they are part of
    """
    said = [answer for answer in answers if answer is not None]
    if not said:
        return None
    first = said[0]
    if name in _ALIKE:
        return first
    if isinstance(first, dict):
        return _of_dicts(said)
    if isinstance(first, list):
        together = [item for items in said for item in items]
        return list(dict.fromkeys(together)) if name in _ONCE else together
    if isinstance(first, bool):
        return all(said) if name in _IN_ALL else any(said)
    if isinstance(first, (int, float)):
        return _of_numbers(said, name)
    if name == 'state':
        return next((value for value in said if value not in _WELL), first)
    return first


def _of_numbers(said: Sequence[float], name: str) -> float:
    if name in _SMALLEST:
        return min(said)
    return max(said) if name.endswith(_LARGEST) else sum(said)


def _of_dicts(said: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    names: Dict[str, None] = {}
    for fields in said:
        names.update(dict.fromkeys(fields))
    return {name: merged(
        [fields[name] for fields in said if name in fields], name)
            for name in names}


def status(statuses: Mapping[int, Dict[str, Any]],
           shards: Sequence[Dict[str, Any]], pid: int) -> Dict[str, Any]:
    """A node's part of ``swift-dss tier status``.

    :param statuses: of the shards that answer, by their numbers; at least
        one
    :param shards: number, pid, devices and restarts of each, up or not
    :param pid: of the parent
    """
    whole: Dict[str, Any] = merged([
        statuses[number] for number in sorted(statuses)])
    whole['devices'] = sorted(whole['devices'],
                              key=lambda device: str(device['name']))
    whole['pid'] = pid
    whole['shards'] = list(shards)
    return whole


class Progress:
    """The progress that shards report, added up."""

    def __init__(self) -> None:
        self._last: Dict[int, Dict[str, Any]] = {}

    def add(self, number: int, said: Dict[str, Any]) -> Dict[str, Any]:
        """The progress of the node, now that one shard has said this."""
        if 'rows' in said:
            return said
        self._last[number] = said
        total: Dict[str, Any] = merged([
            self._last[shard_name] for shard_name in sorted(self._last)])
        for name, value in said.items():
            if isinstance(value, str):
                total[name] = value
        return total
