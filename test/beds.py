"""Beds of many nodes for tests: up on entry, gone on exit."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from typing import Any, Iterator, Sequence

from support import wait_until

from swift_dss.aio.bed import plan
from swift_dss.aio.bed.bed import Bed
from swift_dss.aio.cluster import printer


@contextlib.contextmanager
def bed(nodes: int = 3, proxies: int = 1, **options: Any) -> Iterator[Bed]:
    """A bed in a folder of its own.

    :param options: of ``plan.Plan``: ``drives``, ``zones``, ``hostnames``,
        ``options`` and ``node_options`` (of ``dss.conf``), ``workers``, ...
    """
    root = tempfile.mkdtemp(prefix='dss-bed-', dir='/var/tmp')
    try:
        with Bed(plan.new(root, nodes, proxies, **options),
                 printer()) as made:
            yield made
    finally:
        shutil.rmtree(root, ignore_errors=True)


def add_classes(made: Bed, classes: str, members: Sequence[str] = ()) -> None:
    """Add to the class tables of running members.

    :param classes: sections of ``dss-classes.conf``
    :param members: none are all nodes and proxies
    """
    for name in members or made.plan.nodes + made.plan.proxies:
        with open(made.plan.conf(name).path('etc', 'dss-classes.conf'),
                  'a') as target:
            target.write(classes)
        if name in made.plan.nodes:
            made.set_options({}, [name])
        else:
            made.member(name).restart('proxy-server')


def await_tiers(made: Bed, path: str, tiers: str, files: int = 3,
                seconds: float = 60.0) -> None:
    """Return once so many data files of an object are just there.

    :param path: ``/account/container/object``
    :param tiers: as ``swift-dss tier`` prints them, such as ``ssd,s3``
    """
    def there() -> bool:
        found = [one.tiers for one in made.files(path)
                 if one.kind == 'data']
        return found == [tiers] * files
    wait_until(there, seconds, '%d files of %s on %s' % (
        files, path, tiers))
