"""Beds of many nodes for tests: up on entry, gone on exit."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from typing import Any, Dict, Iterator, Sequence

from support import wait_until

from swift_dss.aio.bed import plan
from swift_dss.aio.bed.bed import Bed
from swift_dss.aio.cluster import printer
from swift_dss.bench.cluster.bed import change
from swift_dss.cli.ask import result
from swift_dss.core.errors import TierUnavailable
from swift_dss.tier.doors import asking
from swift_dss.tier.doors.asking import DaemonSaid

#: The index of a node hears of a copy in S3 a moment after the disk.
_UNHEARD = 'has no verified copy in S3 yet'


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


def ask(made: Bed, node: str, verb: str, **fields: Any) -> Any:
    """What a node's tier daemon answers an operator. ``made.tool`` is the
    command, and costs a process; this is for waiting, and for all of many.
    """
    return result(asking.ask(
        made.node(node).conf.path('run', 'admin.sock'),
        dict(fields, verb=verb)))


def demote(made: Bed, node: str, to: str = 'remote', **which: str) -> None:
    """Have bytes leave a node; all that ``which`` names MUST be able to,
    once the node's index has heard of their copies in S3.

    :param which: ``object`` or ``container``
    """
    def left() -> bool:
        failed = ask(made, node, 'demote', to=to, **which)['failed']
        assert all(_UNHEARD in line for line in failed), failed
        return not failed
    wait_until(left, 60, 'copies in S3 that %s knows of' % node)


def gc(made: Bed, node: str, **wish: bool) -> Dict[str, Any]:
    """A pass over the bucket; waits for those that the daemon makes by
    itself.

    :param wish: ``dry_run``, ``everything``, ``absent``
    """
    def one_pass() -> Any:
        try:
            return ask(made, node, 'gc', **wish)
        except DaemonSaid as err:
            if err.exit_code != TierUnavailable.exit_code:
                raise
            return None
    counts: Dict[str, Any] = wait_until(one_pass, 120, 'a pass of gc')
    assert not counts['failed'], counts
    return counts


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
            ask(made, name, 'reload')
        else:
            made.member(name).restart('proxy-server')


def set_in_proxies(made: Bed, section: str, **options: str) -> None:
    """Change the configuration of all proxies, and start them anew."""
    for name in made.plan.proxies:
        change(made.plan.conf(name).path('etc', 'proxy-server.conf'),
               {section: options})
        made.member(name).restart('proxy-server')


def await_tiers(made: Bed, path: str, tiers: str, files: int = 3,
                seconds: float = 60.0) -> None:
    """Return once so many data files of an object are just there.

    :param path: ``/account/container/object``
    :param tiers: as ``swift-dss tier`` prints them, such as ``ssd,s3``
    """
    def there() -> bool:
        shown = [file.tiers for file in made.files(path)
                 if file.kind == 'data']
        return shown == [tiers] * files
    wait_until(there, seconds, '%d files of %s on %s' % (
        files, path, tiers))
