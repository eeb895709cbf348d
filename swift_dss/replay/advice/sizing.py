"""How far the advised working set is above the least dollars there can be.

The rule sizes areas and knows no order of eviction. A recorded trace does: it
is replayed on the working set in the order of the daemon, beside the limit of
all orders at that size (:mod:`swift_dss.replay.bounds`).
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from swift_dss.bench import figures
from swift_dss.core.config import TierConf
from swift_dss.core.errors import BadConfig
from swift_dss.replay import classing, latency, plan, results, simulator
from swift_dss.replay.bounds import limits
from swift_dss.replay.prices import Prices
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import model, named
from swift_dss.strategy.tuning.choices import configured

#: Requests a second of traces without times.
_RATE = 1000.0


def bound(name: str, tier: TierConf, room_bytes: int,
          prices: Optional[Prices]) -> Dict[str, Any]:
    """The dollars of a trace, and the least ones.

    :param name: of the trace, as ``swift-dss replay`` takes it
    :param room_bytes: the advised working set
    :raises BadConfig: it is none
    :raises BadTrace: the trace cannot be read
    """
    if room_bytes <= 0:
        raise BadConfig('--trace: is replayed on the working set: say '
                        '--working-set')
    trace = model.spread(named.read(name), _RATE)
    ready = plan.plan(trace)
    cloud = latency.cloud('s3')
    setup = Setup(
        configured(tier.eviction).strategy, room_bytes,
        classing.table_for(trace, None),
        cloud if prices is None else prices.of(cloud), admit=tier.admit)
    run = results.summary(ready, simulator.replay(ready, setup))
    row, = limits.rows(ready, setup, [run])
    return {'trace': trace.name, 'working_set_bytes': room_bytes,
            'strategy': row['cheapest'], **{name: row[name] for name in (
                'dollars', 'dollars_at_least', 'dollars_offline')},
            'above_share': row['dollars'] / row['dollars_at_least'] - 1.0
            if row['dollars_at_least'] > 0 else None}


def text(row: Dict[str, Any]) -> str:
    """For people."""
    above = row['above_share']
    return '%s on a working set of %s: $%.4f of requests and bytes in the ' \
        'order %s; no order can have less than $%.4f%s' % (
            row['trace'], figures.size_text(row['working_set_bytes']),
            row['dollars'], row['strategy'], row['dollars_at_least'],
            '' if above is None else
            ', so this is at most %.1f %% above the least' % (100 * above))
