"""Goals of an operator, as figures of a replay."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict

from swift_dss.bench import figures
from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadConfig
from swift_dss.replay.plan import Plan

Row = Dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """The goal.

    :param kind: ``hits``, ``bytes``, ``p99`` or ``dollars``
    :param class_id: of ``p99``; -1 is all
    """

    kind: str
    class_id: int = -1
    weights: Dict[int, float] = field(default_factory=dict)

    def score(self, row: Row) -> float:
        """The figure; more is better for hits and bytes, less else."""
        if self.kind == 'dollars':
            return float(row['dollars'])
        if self.kind == 'p99':
            part = row if self.class_id < 0 else \
                row['classes'][str(self.class_id)]
            return float(part['p99_ms'])
        if self.kind == 'bytes':
            return float(row['byte_hit_ratio'])
        hits = total = 0.0
        for class_id, part in row['classes'].items():
            weight = self.weights.get(int(class_id), 1.0) * part['reads']
            if part['reads']:
                hits += weight * part['hit_ratio']
                total += weight
        return figures.ratio(hits, total)

    def rank(self, row: Row) -> float:
        """Least is best; an unknown value comes last."""
        return self.order(self.score(row))

    @property
    def is_share(self) -> bool:
        """Of hits, where more is better."""
        return self.kind in ('hits', 'bytes')

    def order(self, score: float) -> float:
        """A score as a number of which the least is best."""
        if math.isnan(score):
            return math.inf
        return -score if self.is_share else score

    def shown(self, score: float) -> str:
        """With its unit."""
        return {'hits': '%.4f of reads hit', 'bytes': '%.4f of bytes hit',
                'p99': 'p99 %.2f ms', 'dollars': '%.4f dollars'}[
                    self.kind] % score


def parse_goal(text: str, table: ClassTable, plan: Plan,
               weights: Dict[int, float]) -> Goal:
    """``hits``, ``bytes``, ``p99``, ``p99:CLASS`` or ``dollars``.

    :raises BadConfig: it is none of them
    """
    kind, _, name = text.partition(':')
    if kind not in ('hits', 'bytes', 'p99', 'dollars') or \
            name and kind != 'p99':
        raise BadConfig('--goal: %r is not one of hits, bytes, p99, '
                        'p99:CLASS and dollars' % text)
    if not name:
        return Goal(kind, weights=weights)
    spec = table.by_name(name)
    class_id = spec.class_id if spec else (
        int(name) if name.isdigit() else -1)
    if class_id not in plan.trace.classes():
        raise BadConfig('--goal: no request of the trace has class %r'
                        % name)
    return Goal(kind, class_id, weights)
