"""``swift-dss-tierd``: the cache-tier daemon of a node, and its life.

One process where ``[tier] shards`` comes to one, else a parent with a
process for each shard. ``SIGTERM`` stops it cleanly, ``SIGHUP`` reads
``dss.conf`` and the class table again: a file that does not parse changes
nothing.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import sys
from typing import List, Optional, Protocol

from swift_dss.core.errors import DssError
from swift_dss.io.start.versions import add_version
from swift_dss.tier import daemon
from swift_dss.tier.inforce import Source
from swift_dss.tier.shards import files
from swift_dss.tier.shards.child import Part, die_with_parent
from swift_dss.tier.shards.parent import Parent, divided

#: Garbage is looked for less often than Python does by itself.
GC_THRESHOLD = (20000, 20, 20)


class Running(Protocol):
    """A daemon or a parent of some, at work."""

    def reload(self) -> None:
        """Read the files again.

        :raises DssError: they do not parse; nothing has changed
        """

    def stop(self) -> None:
        """End every thread and child."""


def main(argv: Optional[List[str]] = None) -> int:
    """Run in the foreground until SIGTERM or SIGINT."""
    args = parser().parse_args(argv)
    logger = logging.getLogger('swift-dss-tierd')
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(
        '%(asctime)s %(levelname)s ' + (
            '' if args.shard is None else 'shard %d: ' % args.shard)
        + '%(message)s'))
    logger.addHandler(handler)
    logger.propagate = False
    try:
        logger.setLevel(Source(args.config).conf().log_level)
        # Blocked in every thread that starts from here on: only the loop
        # below ever sees them.
        wanted = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
        signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
        running = _started(args, logger)
        # Objects made so far stay for ever, and few later ones are cyclic:
        # collecting them takes 7 % of the time of bundling small objects.
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLD)
    except DssError as err:
        print('swift-dss-tierd: %s' % err, file=sys.stderr)
        return err.exit_code
    while signal.sigwait(wanted) == signal.SIGHUP:
        try:
            running.reload()
        except DssError as err:
            logger.error('reload refused, nothing changed: %s', err)
    logger.info('stopping')
    running.stop()
    return 0


def _started(args: argparse.Namespace, logger: logging.Logger) -> Running:
    if args.shard is not None:
        die_with_parent(args.parent)
        return daemon.started(Part(args.config, args.shard), logger)
    source = Source(args.config)
    conf = source.conf()
    files.await_quiet(conf, logger)
    if divided(conf) > 1:
        parent = Parent(args.config, logger)
        parent.start()
        return parent
    files.take_back(conf, logger)
    return daemon.started(source, logger)


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    made = argparse.ArgumentParser(
        prog='swift-dss-tierd',
        description='The cache-tier daemon of one node. It stays in the '
        'foreground until SIGTERM or SIGINT, and stops cleanly then; SIGHUP '
        'has it read its files again, and a wrong one changes nothing.')
    add_version(made)
    made.add_argument('--config', default='/etc/swift/dss.conf',
                      help='dss.conf of the node (%(default)s)')
    # Only a parent starts a shard so.
    made.add_argument('--shard', type=int, help=argparse.SUPPRESS)
    made.add_argument('--parent', type=int, default=os.getppid(),
                      help=argparse.SUPPRESS)
    return made


if __name__ == '__main__':
    sys.exit(main())
