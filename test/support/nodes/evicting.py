"""A cluster of one replica whose files leave the SSD but for what opens them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple
from unittest import mock

from support import replicas, tier, wait_until
from support.nodes import bench_cluster
from support.nodes.tuned_cluster import TunedCluster

from swift_dss.cli import main
from swift_dss.core.residency import Tier

HOT, HDD_ALONE, S3_ALONE = 'metadata', 'icy', 'polar'
BOX = 'openings'
_CLASSES = '''
[class:9]
name = icy
rank = 5
allocate = never
remote = never

[class:10]
name = polar
rank = 6
remote = only
'''


class Counts(NamedTuple):
    """Since the start.

    :param reads: of clients, by class, together
    :param slow_bytes: of reads that were not from the SSD alone
    :param s3_bytes: that came from S3
    """

    reads: int
    slow_bytes: int
    s3_bytes: int


class Evicting(TunedCluster):
    """Two classes more: one that is on HDDs alone, and one in S3 alone."""

    def _configure(self) -> None:
        super()._configure()
        with open(self.conf.path('etc', 'dss-classes.conf'), 'a',
                  encoding='ascii') as target:
            target.write(_CLASSES)

    def counts(self) -> Counts:
        """Of the node, once it has heard of all reads.

        A read counts in each class that it had bytes of.
        """
        tier(self, 'settle')
        status = tier(self, 'status')
        total = {field: sum(counts.get(field, 0) for counts
                            in status['classes'].values())
                 for field in ('reads', 'bytes', 'hit_bytes')}
        return Counts(total['reads'], total['bytes'] - total['hit_bytes'],
                      status['link']['down']['bytes'])

    def upload(self, path: pathlib.Path) -> Dict[str, Any]:
        """With the class section of ``swift-dss classify``, which says what
        is returned; all but the hot bytes are on the HDD then."""
        packed = path.with_suffix('.dss')
        said = self._classify(
            str(path), '--cold', HDD_ALONE, '--dss', str(packed),
            '--class-table', self.conf.path('etc', 'dss-classes.conf'))
        with contextlib.closing(self.connection()) as client:
            client.put_container(BOX, headers={'X-Storage-Policy': 'dss'})
            with packed.open('rb') as source:
                client.put_object(BOX, path.name, source,
                                  headers={'X-DSS-Object-File': 'True'})
        packed.unlink()
        self._await(path.name, said, Tier.HDD)
        return said

    def to_s3(self, name: str, said: Dict[str, Any],
              seconds: float = 60.0) -> None:
        """Have all but the hot bytes in S3 alone."""
        self._classify('dss://%s/%s' % (BOX, name), '--cold', S3_ALONE,
                       '--post')
        self._await(name, said, Tier.REMOTE, seconds)

    def _classify(self, *words: str) -> Dict[str, Any]:
        import fsspec
        # One of the same process may know another cluster by its environment.
        fsspec.get_filesystem_class('dss').clear_instance_cache()
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(
                os.environ, ST_AUTH=self.conf.auth_url, ST_USER='test:tester',
                ST_KEY='testing'), \
                contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(err):
            code = main.main(['classify', *words, '--hot', HOT, '--json'])
        assert code == 0, err.getvalue()
        said: Dict[str, Any] = json.loads(out.getvalue())
        return said

    def _await(self, name: str, said: Dict[str, Any], tiers: Tier,
               seconds: float = 60.0) -> None:
        ranges = hot_ranges(said)

        def there() -> bool:
            tier(self, 'settle')
            found, = replicas(self, '/AUTH_test/%s/%s' % (BOX, name))
            return all(
                extent.tiers & Tier.SSD
                for start, length in ranges
                for extent in found.residency.split(start, length)) and all(
                    extent.tiers == tiers
                    for start, length in _gaps(ranges, said['size'])
                    for extent in found.residency.split(start, length))
        wait_until(there, seconds, '%s on SSD and %r' % (name, tiers))


def hot_ranges(said: Dict[str, Any]) -> List[Tuple[int, int]]:
    """(offset, bytes) that ``swift-dss classify`` found hot."""
    return [(span['offset'], span['length']) for span in said['spans']]


def _gaps(ranges: List[Tuple[int, int]],
          size: int) -> Iterator[Tuple[int, int]]:
    at = 0
    for start, length in [*ranges, (size, 0)]:
        if start > at:
            yield at, start - at
        at = start + length


@contextlib.contextmanager
def started(on: str = '/dev/shm') -> Iterator[Any]:
    """The cluster, for as long as the block."""
    with bench_cluster.started(kind=Evicting, on=on, replicas=1, devices=3,
                               background=False, hdd_iops=0,
                               ssd_budget_bytes=1 << 30) as made:
        yield made
