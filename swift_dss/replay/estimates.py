"""What a sample tells of the whole trace, and how far it may be off.

A cache of a share of the room holds the same share of a sample, so that its
misses, divided by the share, are those of the whole.

How many requests the whole has is known, and a sample may have too many or
too few of them: by objects that are asked for all the time, which are hits
either way, or by some that are always missed. Which it is shows in the sample:
the misses of a group of its objects go with the group's requests, or do not
(a regression estimator, where "SHARDS-adj", FAST 2015, takes it that they
never do). What the groups still differ by is the stated error: three standard
errors, as few hot objects weigh more than a normal distribution knows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Tuple

from swift_dss.core.errors import BadConfig
from swift_dss.replay.setup import Outcome, Setup
from swift_dss.replay.traces.model import numpy
from swift_dss.replay.traces.sampling import GROUPS, Sample

STANDARD_ERRORS = 3.0
#: Standard errors that a number of requests is off by chance.
_CHANCE = 2.0
#: Counts that a request has once, also where a sample has parts of it.
_BY_REQUEST = ('gets', 'puts', 'delayed', 'stalls')


def small(sample: Sample, setup: Setup, largest_bytes: int) -> Setup:
    """The set-up for the sample.

    :param largest_bytes: of what a cache keeps as one
    :raises BadConfig: the small cache could not hold that
    """
    room = int(setup.cache_bytes * sample.share)
    if room < largest_bytes:
        raise BadConfig(
            '--sample: a share of %.3g %% makes a cache of %d bytes one '
            'of %d, which cannot hold the largest object, of %d: say a '
            'larger share' % (100 * sample.share, setup.cache_bytes, room,
                              largest_bytes))
    return replace(
        setup, cache_bytes=room,
        hdd_bytes=int(setup.hdd_bytes * sample.share),
        metadata_entries=setup.metadata_entries and max(
            1, int(setup.metadata_entries * sample.share)))


def whole(sample: Sample, outcome: Outcome, setup: Setup) -> Outcome:
    """The sample's sums, for the whole trace on its own set-up."""
    requests = float(sample.parts.mean())
    return replace(outcome, setup=setup, counts={
        name: count / sample.share * (
            requests if name in _BY_REQUEST else 1.0)
        for name, count in outcome.counts.items()})


def ratios(sample: Sample, outcome: Outcome, which: Any,
           class_ids: Tuple[int, ...]) -> Dict[str, Any]:
    """Hits of all reads of these classes, and how far they may be off.

    :param which: the reads of these classes in the sample, as a mask
    """
    reads = sum(sample.reads[class_id] for class_id in class_ids)
    asked = sum(sample.asked_bytes[class_id] for class_id in class_ids)
    hits = outcome.hits[which]
    asked_bytes = outcome.asked_bytes[which]
    groups, parts = sample.groups[which], sample.parts[which]
    ratio, error = _hits(
        sample, reads, _by_group(groups, ~hits * parts),
        _by_group(groups, parts))
    byte_ratio, byte_error = _hits(
        sample, asked,
        _by_group(groups, asked_bytes - outcome.hit_bytes[which]),
        _by_group(groups, asked_bytes))
    return {'reads': reads, 'hit_ratio': ratio, 'hit_ratio_error': error,
            'byte_hit_ratio': byte_ratio,
            'byte_hit_ratio_error': byte_error}


def _hits(sample: Sample, total: int, missed: Any,
          asked: Any) -> Tuple[float, float]:
    """(share that is hit, half an interval) of ``total``.

    :param missed: by group, of ``asked``
    """
    if not total:
        return float('nan'), float('nan')
    # The whole, had all groups been as this one.
    scale = GROUPS / sample.share / total
    missed, surplus = missed * scale, asked * scale - 1.0
    around = surplus - surplus.mean()
    spread = float((around ** 2).sum())
    # A request more is a miss more, or none, or something between.
    slope = min(1.0, max(0.0, float((around * missed).sum()) / spread)) \
        if spread else 0.0
    # Further off than chance explains is the sample by an object that is
    # asked for all the time and was left out: those are hits.
    chance = _CHANCE * (spread / (GROUPS - 1) / GROUPS) ** 0.5
    off = min(chance, max(-chance, float(surplus.mean())))
    as_expected = missed - slope * (around + off)
    rest = float(((as_expected - as_expected.mean()) ** 2).sum())
    error = STANDARD_ERRORS * (
        rest / (GROUPS - 2) / GROUPS * (1.0 - sample.share)) ** 0.5
    return min(1.0, max(0.0, 1.0 - float(as_expected.mean()))), error


def _by_group(groups: Any, weights: Any) -> Any:
    return numpy().bincount(groups, weights=weights, minlength=GROUPS)
