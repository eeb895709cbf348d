"""Moves that the crash campaigns interrupt, each ready to be repeated.

A scenario prepares a node, says what it acknowledged, and has an operation
that may be run again and again until it completes. ``run`` is what a tier
daemon does to the versions; it goes through the daemon's own ``Local``.
"""

from __future__ import annotations

import logging
import os
from typing import Callable, Dict, List, NamedTuple

from support.nodes.sample_node import SampleNode, Vouching, sample_bytes

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import (
    TierFull, TierUnavailable, VersionGone)
from swift_dss.core.residency import RemoteCopy
from swift_dss.core.spans import ClassMap, Span
from swift_dss.core.version import VersionId
from swift_dss.io.switch import clean_tmp
from swift_dss.tier.devices import Devices
from swift_dss.tier.inforce import InForce
from swift_dss.tier.index.index import open_or_replace
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics

TABLE = ClassTable.of([ClassSpec(0, 'plain', 0), ClassSpec(5, 'silver', 5),
                       ClassSpec(9, 'gold', 9)])
_LOGGER = logging.getLogger('campaign')
_LOGGER.addHandler(logging.NullHandler())


class Scenario(NamedTuple):
    """One operation and what it needs.

    :param prepare: what was done before it, durably
    :param run: the operation; MUST be repeatable
    """

    name: str
    with_hdd: bool
    prepare: Callable[[Bench], None]
    run: Callable[[Bench], None]


class Bench:
    """A node, its ``Local``, and the objects of a campaign."""

    def __init__(self, root: str, with_hdd: bool) -> None:
        self.node = SampleNode(root, with_hdd)
        capacity = {'sda': self.node.capacity_path} if with_hdd else {}
        self.conf = NodeConf(
            devices=self.node.devices, swift_dir=root, mount_check=False,
            run_dir=os.path.join(root, 'run'), capacity=capacity)
        index, _ = open_or_replace(os.path.join(root, 'run', 'index.db'))
        self.local = Local(InForce(self.conf, TABLE), Devices(self.conf),
                           index, Metrics(self.conf, _LOGGER))
        self.local.witness = Vouching()

    def close(self) -> None:
        """Let the index go."""
        self.local.index.file.close()

    def recover(self) -> None:
        """What the daemon does before anything else at its start."""
        clean_tmp(self.node.device_path, self.node.capacity_path)

    def versions(self) -> List[VersionId]:
        """All versions, in one order for every run."""
        return sorted((place.version for place in self.node.places()),
                      key=lambda version: version.key)

    def each(self, move: Callable[[VersionId, str], object]) -> None:
        """Do a move to every version that is there."""
        for place in sorted(self.node.places(),
                            key=lambda place: place.version.key):
            try:
                move(place.version, place.partition)
            except VersionGone:
                continue


def contents(object_bytes: int) -> Dict[str, bytes]:
    """Bodies by object name."""
    return {name: sample_bytes(object_bytes + number, number)
            for number, name in enumerate(('whole', 'spans', 'half'), 1)}


def populate(bench: Bench, object_bytes: int) -> None:
    """Three acknowledged objects: one class, three classes, and one that
    has only half of itself on the HDD."""
    bodies = contents(object_bytes)
    third = object_bytes // 3
    maps = {
        'whole': ClassMap.uniform(5),
        'spans': ClassMap.from_spans(
            [Span(0, third, 9), Span(third, third, 5)], 0),
        'half': ClassMap.from_spans([Span(0, third, 9)], 0)}
    bench.node.acknowledge([
        (bench.node.put(name, body, class_map=maps[name],
                        frag_index=3 if name == 'whole' else None), body)
        for name, body in bodies.items()])
    if bench.node.capacity_path:
        for place in bench.node.places():
            if place.content_length == len(bodies['half']):
                bench.local.clean(place.version, place.partition, [9])


def remote_of(bench: Bench, object_bytes: int) -> Dict[str, bytes]:
    """What a correct S3 would hold."""
    lengths = {len(body): body for body in contents(object_bytes).values()}
    return {place.version.key: lengths[place.content_length]
            for place in bench.node.places()}


def _clean(bench: Bench) -> None:
    bench.each(bench.local.clean)


def _demote(bench: Bench) -> None:
    bench.each(bench.local.demote)


def _evict(bench: Bench) -> None:
    bench.each(lambda version, partition: bench.local.demote(
        version, partition, to_hdd=False))


def _evict_class(bench: Bench) -> None:
    for class_id in (0, 5):
        bench.each(lambda version, partition, class_id=class_id:
                   bench.local.demote(version, partition, [class_id]))


def _promote(bench: Bench) -> None:
    bench.each(bench.local.promote)


def _mark_remote(bench: Bench) -> None:
    bench.each(lambda version, partition: bench.local.record_remote(
        version, partition, RemoteCopy('s3', version.key, 'e', 1.0)))


def _drop(bench: Bench) -> None:
    bench.each(bench.local.drop_capacity)


def _fill(bench: Bench) -> None:
    """Bring everything back in two ranges, the way a read would."""
    for version in bench.versions():
        place = next((candidate for candidate in bench.node.places()
                      if candidate.version == version), None)
        if place is None:
            raise TierUnavailable('the device cannot be read')
        body = {len(body): body for body in contents(
            place.content_length // 100 * 100).values()}[
                place.content_length]
        half = place.content_length // 2
        for offset, end in ((0, half), (half, place.content_length)):
            fill = bench.local.begin_fill(version, place.partition, offset,
                                          end - offset, 0)
            if fill is None:
                raise TierFull('nothing can be filled')
            fill.write(offset, body[offset:end])
            fill.commit()


def _nothing(bench: Bench) -> None:
    return None


def _all_remote(bench: Bench) -> None:
    _mark_remote(bench)
    _evict(bench)
    if bench.node.capacity_path:
        _drop(bench)


def _two(first: Callable[[Bench], None],
         second: Callable[[Bench], None]) -> Callable[[Bench], None]:
    def both(bench: Bench) -> None:
        first(bench)
        second(bench)
    return both


SCENARIOS = [
    Scenario('clean', True, _nothing, _clean),
    Scenario('demote', True, _nothing, _demote),
    Scenario('demote by class', True, _nothing, _evict_class),
    Scenario('evict', True, _clean, _evict),
    Scenario('promote', True, _demote, _promote),
    Scenario('mark remote', True, _demote, _mark_remote),
    Scenario('evict to remote', False, _mark_remote, _evict),
    Scenario('drop capacity', True, _two(_demote, _mark_remote), _drop),
    Scenario('fill to hdd', True, _all_remote, _fill),
    Scenario('fill to ssd', False, _all_remote, _fill),
]
