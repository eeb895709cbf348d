#!/usr/bin/env python
"""R18: bits flip in whatever we keep; nobody gets a wrong byte.

Objects are uploaded to a real S3 server over a folder, alone, in parts and
in bundles, and dropped here. Then one bit at a time is flipped, in the
residency record, the queue, the book of bundles, and in the bucket: the
bytes, the bundles with their headers and indexes, and the sums.
Each flip is followed by a start of the gateway and a read of every object:
the bytes that were written, or a refusal. A flip is mended before the next.

    python test/fault/flip_bits.py [--flips 40] [--seed 1]

The wrong twin does not prove what it reads.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import logging
import os
import random
import shutil
import sys
import tempfile
from typing import Any, Dict, Iterator, List, NamedTuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from support import pattern, wait_until
from support.edges.s3_servers import BUCKET, VersityServer
from support.nodes.gateway_node import (
    Collector, CountingMetrics, FixedRanks, FolderVersions, conf_for)

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import DssError, RemoteCorrupt
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.gateway.down import source
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.wire.control import FetchRequest

TABLE = ClassTable.of([ClassSpec(0, 'plain', 0),
                       ClassSpec(1, 'small', 1, bundle=True)])
PREFIX = 'rot/'
PARTS = 5 * 1024 * 1024 + 70000
_LOG = logging.getLogger('r18')
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False


class Outcome(NamedTuple):
    """What a campaign did.

    :param noticed: flips after which something was refused or made anew
    """

    flips: int
    noticed: int
    wrong: List[str]


class Rot:
    """A node, its bucket, and what both should give."""

    def __init__(self, server: VersityServer, root: str) -> None:
        self._server = server
        self._root = root
        self._conf = conf_for(server, root, prefix=PREFIX,
                              bundle_age_seconds=0.2, deadline_seconds=2.0)
        self._local = FolderVersions(root)
        # What is read is not kept: each flip meets every read.
        self._local.room = False
        self._bodies: Dict[VersionId, bytes] = {}
        for name, size, class_id in (
                ('alone', 50000, 0), ('parts', PARTS, 0),
                ('s1', 3000, 1), ('s2', 4000, 1), ('s3', 5000, 1)):
            body = pattern(size, name)
            self._bodies[self._local.put(
                name, body, class_map=ClassMap.uniform(class_id))] = body
        with self._running() as gateway:
            for version in self._bodies:
                gateway.enqueue_upload(version, '7')
            wait_until(lambda: not gateway.status()['uploads'], 60)
        for version in self._bodies:
            self._local.drop_local(version)

    @contextlib.contextmanager
    def _running(self) -> Iterator[Gateway]:
        gateway = Gateway(self._conf, lambda: TABLE, self._local, _LOG,
                          CountingMetrics(),
                          outside=Outside(ranks=FixedRanks()))
        gateway.start()
        try:
            yield gateway
        finally:
            gateway.stop()

    def kept(self) -> Dict[str, List[str]]:
        """What we keep, by kind: files that have bytes."""
        def local(pattern_: str) -> List[str]:
            return glob.glob(os.path.join(self._root, pattern_),
                             recursive=True)
        bucket = os.path.join(self._server.root, 'data', BUCKET, PREFIX)
        paths: Dict[str, List[str]] = {
            'residency': local('local/**/*+residency'),
            'queue': local('gateway.db'), 'book': local('bundles.db'),
            'bundle': [], 'sums': [], 'data': []}
        for folder, _, names in os.walk(bucket):
            for name in names:
                kind = 'bundle' if os.sep + 'bundles' in folder else \
                    'sums' if name.endswith('.sums') else 'data'
                path = os.path.join(folder, name)
                if os.path.getsize(path):
                    paths[kind].append(path)
        return paths

    def read(self) -> List[str]:
        """Each object: 'right', 'refused' or what is wrong with it."""
        readings = []
        try:
            with self._running() as gateway:
                for version, body in self._bodies.items():
                    readings.append(self._read(gateway, version, body))
        except DssError:
            readings.append('refused')
        return readings

    def _read(self, gateway: Gateway, version: VersionId,
              body: bytes) -> str:
        sink = Collector()
        try:
            whole = gateway.fetch(FetchRequest(
                version, '7', 0, len(body), 0, 3.0, False), sink)
        except DssError:
            return 'refused'
        if not body.startswith(sink.data) or (whole and sink.data != body):
            return 'wrong bytes of %s' % version.key
        return 'right' if whole else 'refused'


def flips(rot: Rot, count: int, seed: int) -> Outcome:
    """So many flips in each kind of file."""
    dice = random.Random(seed)
    done = noticed = 0
    wrong: List[str] = []
    for kind, paths in rot.kept().items():
        for number in range(count):
            path = paths[number % len(paths)]
            with open(path, 'rb') as source:
                right = source.read()
            at, bit = dice.randrange(len(right)), dice.randrange(8)
            folder = os.path.dirname(path)
            before = _beside(folder) if kind in ('queue', 'book') else {}
            with open(path, 'r+b') as target:
                target.seek(at)
                target.write(bytes((right[at] ^ (1 << bit),)))
            try:
                readings = rot.read()
            except Exception as err:  # a campaign reports what went wrong
                readings = ['wrong: ended with %r' % err]
            finally:
                if before:
                    _put_back(folder, before)
                with open(path, 'r+b') as target:
                    target.write(right)
            done += 1
            noticed += set(readings) != {'right'}
            wrong += ['%s, bit %d of byte %d of %d: %s' % (
                kind, bit, at, len(right), reading) for reading in readings
                if reading.startswith('wrong')]
    return Outcome(done, noticed, wrong)


def _beside(folder: str) -> Dict[str, bytes]:
    """The databases of a node."""
    contents = {}
    for path in glob.glob(os.path.join(folder, '*.db*')):
        with open(path, 'rb') as source:
            contents[path] = source.read()
    return contents


def _put_back(folder: str, before: Dict[str, bytes]) -> None:
    for path in glob.glob(os.path.join(folder, '*.db*')):
        os.unlink(path)
    for path, data in before.items():
        with open(path, 'wb') as target:
            target.write(data)


@contextlib.contextmanager
def trusting() -> Iterator[None]:
    """The wrong twin: whatever comes has the right digest."""
    right = source.Source.blocks

    def unchecked(self: source.Source, local: Any, _plan: source.Plan,
                  offset: int, length: int) -> Iterator[bytes]:
        data = b''
        with contextlib.suppress(RemoteCorrupt):
            for block in self.unproven(local):
                data += block
        yield data[offset:offset + length]

    source.Source.blocks = unchecked  # type: ignore[method-assign]
    try:
        yield
    finally:
        source.Source.blocks = right  # type: ignore[method-assign]


def main() -> int:
    """Run everything and print the figures; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--flips', type=int, default=40)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix='r18-', dir='/dev/shm' if os.path.isdir(
        '/dev/shm') else None)
    server = VersityServer()
    try:
        rot = Rot(server, folder)
        assert set(rot.read()) == {'right'}
        outcome = flips(rot, args.flips, args.seed)
        with trusting():
            twin = flips(rot, 5, args.seed)
    finally:
        server.close()
        shutil.rmtree(folder)
    for text in outcome.wrong[:50]:
        print('WRONG: ' + text)
    print('R18: %d flips, %d noticed, %d wrong' % (
        outcome.flips, outcome.noticed, len(outcome.wrong)))
    print('R18 wrong twin: %d flips, %d wrong (must be more than 0)' % (
        twin.flips, len(twin.wrong)))
    return 1 if outcome.wrong or not outcome.noticed or not twin.wrong else 0


if __name__ == '__main__':
    sys.exit(main())
