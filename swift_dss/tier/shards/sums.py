"""Answers of shards, added up to that of the node. Pure.

Numbers add up, lists follow one another, texts are those of the first; what
is not a sum is named here.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

#: Of waits and ages the largest counts.
_LARGEST = ('_seconds', 'mape')
#: Each shard says it of the node or of a class, and all say the same.
_ALIKE = frozenset(('rank', 'admissions', 'owner', 'mape_of'))
#: Lines that several shards may say in the same words.
_ONCE = frozenset(('warnings', 'left_policies', 'gauges'))
#: Well only if it is so in each shard.
_IN_ALL = frozenset(('settled', 'reconciled'))
#: What a state is called that needs nobody's eye.
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
        together = [item for some in said for item in some]
        return list(dict.fromkeys(together)) if name in _ONCE else together
    if isinstance(first, bool):
        return all(said) if name in _IN_ALL else any(said)
    if isinstance(first, (int, float)):
        return max(said) if name.endswith(_LARGEST) else sum(said)
    if name == 'state':
        return next((one for one in said if one not in _WELL), first)
    return first


def _of_dicts(said: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    names: Dict[str, None] = {}
    for one in said:
        names.update(dict.fromkeys(one))
    return {name: merged([one[name] for one in said if name in one], name)
            for name in names}


def status(statuses: Mapping[int, Dict[str, Any]],
           shards: Sequence[Dict[str, Any]], pid: int) -> Dict[str, Any]:
    """What ``swift-dss tier status`` shows of a node.

    :param statuses: of the shards that answer, by their numbers; at least
        one
    :param shards: number, pid, devices and restarts of each, up or not
    :param pid: of the parent
    """
    found: Dict[str, Any] = merged([
        statuses[number] for number in sorted(statuses)])
    found['devices'] = sorted(found['devices'],
                              key=lambda device: str(device['name']))
    found['pid'] = pid
    found['shards'] = list(shards)
    return found


class Progress:
    """What shards say on their way, added up."""

    def __init__(self) -> None:
        self._last: Dict[int, Dict[str, Any]] = {}

    def add(self, number: int, said: Dict[str, Any]) -> Dict[str, Any]:
        """The progress of the node, now that one shard has said this."""
        if 'rows' in said:
            return said
        self._last[number] = said
        total: Dict[str, Any] = merged([
            self._last[one] for one in sorted(self._last)])
        for name, value in said.items():
            if isinstance(value, str):
                total[name] = value
        return total
