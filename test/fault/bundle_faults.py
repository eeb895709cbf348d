#!/usr/bin/env python
"""R24-R28, bundles: S3 fails at every call of a bundle's life.

A life: small versions go up in a bundle, lose their local bytes, come back,
most are deleted, the bundle is told, written anew and dropped, and at the
end nothing is left in the bucket. The n-th request fails, n = 1, 2, ...,
until a life passes untouched. What comes back is compared with what went
up; every fault must have fired.

    python test/fault/bundle_faults.py [--faults NAME,...] [--short]
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import shutil
import sys
import tempfile
from typing import Callable, Dict, List, NamedTuple, Sequence

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from support import pattern, wait_until
from support.edges.faulty_s3 import FAULTS, FaultyS3
from support.edges.s3_servers import S3Server, VersityServer
from support.nodes.gateway_node import (
    Collector, CountingMetrics, FixedRanks, FolderVersions, OnlyHere,
    conf_for)

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.gateway import parts
from swift_dss.wire.control import FetchRequest

COUNT = 3
TABLE = ClassTable.of([ClassSpec(0, 'plain', 0),
                       ClassSpec(1, 'small', 1, bundle=True)])
LIVES_SECONDS = 150.0
FETCH_SECONDS = 150.0
#: Faults that only a time-out ends: the others never wait for one, however
#: busy the machine is.
_SLOW = frozenset(('hang', 'timeout_after_commit', 'drip'))
_LOG = logging.getLogger('bundle-faults')
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False


class Outcome(NamedTuple):
    """What a campaign did."""

    lives: int
    fired: int
    wrong: List[str]


def life(faulty: FaultyS3, prefix: str, folder: str, short: bool,
         slow: bool = False) -> None:
    """One life of a bundle.

    :param short: only up and back
    :param slow: the fault is one that only a time-out ends
    :raises AssertionError: something was lost, wrong or left behind
    """
    root = tempfile.mkdtemp(dir=folder)
    conf = conf_for(faulty, root, prefix=prefix, bundle_age_seconds=0.1,
                    read_timeout_seconds=1.0 if slow else 20.0)
    local = FolderVersions(root)
    gateway = Gateway(
        conf, lambda: TABLE, local, _LOG, CountingMetrics(),
        outside=Outside(
            ranks=FixedRanks(), primaries=OnlyHere(local),
            breaker=Breaker(base_seconds=0.1, cap_seconds=0.5),
            retry=Backoff(0.05, 0.3)))
    gateway.parts.bundles.sending.backoff = Backoff(0.05, 0.3)
    gateway.start()
    try:
        bodies = {n: pattern(2500 + n, prefix + str(n))
                  for n in range(COUNT)}
        versions = {n: local.put('%s%d' % (prefix, n), body,
                                 class_map=ClassMap.uniform(1))
                    for n, body in bodies.items()}
        for version in versions.values():
            gateway.enqueue_upload(version, '7')
        _await(gateway, lambda status: not status['uploads'])
        for n, version in versions.items():
            local.drop_local(version)
            assert _fetched(gateway, version, len(bodies[n])) == bodies[n], \
                '%d came back wrong' % n
        if short:
            return
        _delete(gateway, local, [versions[n] for n in (0, 2)])
        local.drop_local(versions[1])
        assert _fetched(gateway, versions[1], len(bodies[1])) == bodies[1]
        _delete(gateway, local, [versions[1]])
    finally:
        gateway.stop()
        shutil.rmtree(root)


def _delete(gateway: Gateway, local: FolderVersions,
            versions: Sequence[object]) -> None:
    for version in versions:
        local.tombstone(version, '1800000000.00000')  # type: ignore
        gateway.enqueue_deletes([(version, '7')])  # type: ignore[arg-type]
    _await(gateway, lambda status: not (
        status['deletes'] or status['uploads']
        or status['bundles']['dead_bytes'] or status['bundles']['leaving']))


def _await(gateway: Gateway,
           done: Callable[[Dict[str, object]], object]) -> None:
    wait_until(lambda: done(gateway.status()), LIVES_SECONDS, 'settled')


def _fetched(gateway: Gateway, version: object, length: int) -> bytes:
    """All bytes, asked for again while S3 fails: never wrong ones."""
    bodies: List[bytes] = []

    def got() -> bool:
        sink = Collector()
        whole = gateway.fetch(FetchRequest(
            version, '7', 0, length, 0, 5.0, True), sink)  # type: ignore
        if whole:
            bodies.append(sink.data)
        return bool(whole)
    wait_until(got, FETCH_SECONDS, 'fetched')
    wait_until(lambda: not gateway.status()['reading'])
    return bodies[0]


def campaign(server: S3Server, folder: str, faults: Sequence[str],
             short: bool,
             say: Callable[[str], None] = lambda text: None) -> Outcome:
    """Every fault at every call."""
    lives = fired = 0
    wrong: List[str] = []
    for fault in faults:
        before = lives
        for nth in itertools.count(1):
            faulty = FaultyS3(server)
            prefix = 'bf-%s-%d/' % (fault, nth)
            try:
                armed = faulty.arm(fault, nth=nth)
                lives += 1
                try:
                    life(faulty, prefix, folder, short, fault in _SLOW)
                except AssertionError as err:
                    wrong.append('%s at call %d: %s' % (fault, nth, err))
                fired += armed.fired
                met = armed.met
            finally:
                faulty.stop()
            left = [key for key in server.list_keys()
                    if key.startswith(prefix)]
            if left and not short:
                wrong.append('%s at call %d left %s' % (fault, nth, left))
            if not met:
                break
        say('%-22s %3d lives' % (fault, lives - before))
    return Outcome(lives, fired, wrong)


class Trusting(parts.Packer):
    """The wrong twin: what was answered with 200 is there."""

    def _prove(self, key: str, raw: bytes, etag: str) -> None:
        return


def twin(server: S3Server, folder: str) -> Outcome:
    """The campaign on the wrong twin: it must find something."""
    right = parts.Packer
    parts.Packer = Trusting  # type: ignore[misc]
    faulty = FaultyS3(server)
    # What was never there is not worth a long wait.
    global FETCH_SECONDS
    patience, FETCH_SECONDS = FETCH_SECONDS, 3.0
    try:
        armed = faulty.arm('swallow', lambda request: 'bundles/'
                           in request.target and request.method == 'PUT')
        wrong: List[str] = []
        try:
            life(faulty, 'bf-twin/', folder, True)
        except AssertionError as err:
            wrong.append(str(err))
        return Outcome(1, armed.fired, wrong)
    finally:
        FETCH_SECONDS = patience
        parts.Packer = right  # type: ignore[misc]
        faulty.stop()


def main() -> int:
    """Run everything and print the figures; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--faults', default=','.join(FAULTS))
    parser.add_argument('--short', action='store_true')
    args = parser.parse_args()
    server = VersityServer()
    folder = tempfile.mkdtemp(prefix='bundle-faults-')
    try:
        outcome = campaign(server, folder, args.faults.split(','),
                           args.short, print)
        wrong = twin(server, folder)
    finally:
        server.close()
        shutil.rmtree(folder)
    for text in outcome.wrong:
        print('WRONG: ' + text)
    print('R24-R28 bundles: %d lives, %d faults fired, %d wrong' % (
        outcome.lives, outcome.fired, len(outcome.wrong)))
    print('R24-R28 bundles wrong twin: %d faults fired, %d wrong (must be '
          'more than 0)' % (wrong.fired, len(wrong.wrong)))
    return 1 if outcome.wrong or not outcome.fired or \
        not (wrong.fired and wrong.wrong) else 0


if __name__ == '__main__':
    sys.exit(main())
