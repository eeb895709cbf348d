"""Many set-ups over one trace, one after the other or beside each other."""

from __future__ import annotations

import multiprocessing
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from swift_dss.core.errors import BadConfig
from swift_dss.replay import estimates, results
from swift_dss.replay.plan import Plan
from swift_dss.replay.setup import Progress, Setup
from swift_dss.replay.simulator import replay

#: Shared by fork with the processes of a pool: the plan is far too large to
#: send to each.
_shared: Dict[str, Plan] = {}


def each(plan: Plan, setups: List[Setup], jobs: int = 1,
         show: Optional[Callable[[int, Setup], Progress]] = None
         ) -> Iterator[Tuple[Setup, Dict[str, Any]]]:
    """(set-up, its summary), in order.

    :param show: (how many are done, set-up) to its progress
    """
    if jobs > 1 and len(setups) > 1:
        _shared['plan'] = plan
        try:
            with multiprocessing.get_context('fork').Pool(
                    min(jobs, len(setups))) as pool:
                for setup, row in zip(setups, pool.imap(_one, setups)):
                    yield setup, row
        finally:
            _shared.clear()
        return
    for done, setup in enumerate(setups):
        yield setup, _one_of(
            plan, setup, show(done, setup) if show else None)


def _one(setup: Setup) -> Dict[str, Any]:
    return _one_of(_shared['plan'], setup)


def _one_of(plan: Plan, setup: Setup,
            progress: Optional[Progress] = None) -> Dict[str, Any]:
    """The summary of one; of a sample, as if it were the whole."""
    sample = plan.sample
    if sample is None:
        return results.summary(plan, replay(plan, setup, progress))
    small = estimates.small(sample, setup, plan.largest_bytes)
    return results.summary(
        plan, estimates.whole(
            sample, replay(plan, small, progress), setup))


def cache_sizes(text: str, footprint_bytes: int,
                option: str = '--cache') -> List[int]:
    """``1%,5%,10g`` to bytes; shares are of the footprint.

    :raises BadConfig: names the option and the part
    """
    from swift_dss.replay.classing import size_of
    sizes = []
    for part in text.split(','):
        part = part.strip()
        if not part.endswith('%'):
            sizes.append(size_of(option, part))
            continue
        try:
            share = float(part[:-1]) / 100.0
        except ValueError:
            share = -1.0
        if not 0 < share <= 10:
            raise BadConfig('%s: %r is not a share above 0%%' % (
                option, part))
        sizes.append(max(1, int(footprint_bytes * share)))
    return sizes
