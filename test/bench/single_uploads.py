#!/usr/bin/env python
"""CPU time that the tier daemon takes to send one version to S3 by itself.

A node with real files on some devices, a ring over them, a real daemon and a
real S3 (versitygw). The versions become old enough to go up at a steady
pace. The daemon's CPU time until S3 has all of them, less what it takes for
doing nothing as long, is divided by the number of versions on devices: each
replica finds the copy in S3, proves it and records it.

    python test/bench/single_uploads.py
    python test/bench/single_uploads.py --against ../other-checkout --rounds 3
    python test/bench/single_uploads.py --profile
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from typing import Any, Dict, List

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support.edges.s3_servers import BUCKET, VersityServer
from support.nodes.daemon_node import (
    PROFILED, DaemonProcess, write, write_node)
from support.nodes.sample_node import SampleNode
from swift.common.utils import (
    get_partition_for_hash, hash_path, set_swift_dir, validate_hash_conf)

from swift_dss.aio import rings

_CLASSES = '[class:0]\nname = plain\nrank = 0\nremote = back\n'
#: The daemon does nothing for so long, to be subtracted.
_IDLE_SECONDS = 3.0


class Bench:
    """A node, its daemon, and S3."""

    def __init__(self, root: str, server: VersityServer,
                 args: argparse.Namespace) -> None:
        self._root = root
        self._server = server
        self._args = args
        self._devices = ['d%d' % number for number in range(args.devices)]

    def measure(self, tree: str, name: str) -> Dict[str, float]:
        """Figures of a fresh node and daemon from ``tree``."""
        root = os.path.join(self._root, name)
        os.makedirs(root)
        try:
            self._configure(root, name)
            nodes = [SampleNode(root, False, device)
                     for device in self._devices]
            begin = time.time() + self._args.count * 0.008 * len(
                nodes) + self._args.lead
            self._fill(root, nodes, begin)
            return self._run(root, tree, begin)
        finally:
            shutil.rmtree(root)

    def _configure(self, root: str, prefix: str) -> None:
        write(os.path.join(root, 's3-secret'),
              'access_key = %s\nsecret_key = %s\n' % (
                  self._server.access_key, self._server.secret_key))
        os.chmod(os.path.join(root, 's3-secret'), 0o600)
        rings.write(root, 'object', self._args.devices, 6010, self._devices)
        write_node(root, {
            'io': {'carrier': 'null'},
            'tier': {'clean_after_seconds': 86400, 'interval_seconds': 60},
            'gateway': {
                'enabled': 'true', 'bucket': BUCKET,
                'url': self._server.url, 'prefix': prefix + '/',
                'addressing_style': 'path',
                'secret_file': os.path.join(root, 's3-secret'),
                'remote_after_seconds': _REMOTE_AFTER}}, _CLASSES)

    def _fill(self, root: str, nodes: List[SampleNode],
              begin: float) -> None:
        set_swift_dir(root)
        validate_hash_conf()
        body = os.urandom(self._args.bytes)
        for number in range(self._args.count):
            stamp = '%016.05f' % (begin - _REMOTE_AFTER
                                  + number / self._args.pace)
            object_hash = hash_path('a', 'c', 'o%d' % number)
            for node in nodes:
                node.put('o%d' % number, body, stamp,
                         object_hash=object_hash,
                         partition=str(get_partition_for_hash(
                             object_hash, rings.PART_POWER)))

    def _run(self, root: str, tree: str, begin: float) -> Dict[str, float]:
        daemon = DaemonProcess(root)
        if self._args.profile:
            write(os.path.join(root, 'profiled.py'), PROFILED)
            daemon.start(tree=tree, command=[
                os.path.join(root, 'profiled.py')])
        else:
            daemon.start(tree=tree, command=['-m', _module(tree)])
        try:
            while daemon.ask({'verb': 'status'})['rebuild_needed']:
                time.sleep(0.1)
            time.sleep(0.5)
            before = daemon.cpu_seconds()
            time.sleep(_IDLE_SECONDS)
            idle = (daemon.cpu_seconds() - before) / _IDLE_SECONDS
            if time.time() > begin:
                raise SystemExit('the node was not ready in time')
            time.sleep(max(0.0, begin - 0.5 - time.time()))
            return self._figures(daemon, idle)
        finally:
            daemon.stop()

    def _figures(self, daemon: DaemonProcess,
                 idle: float) -> Dict[str, float]:
        versions = self._args.count * self._args.devices
        began, before = time.monotonic(), daemon.cpu_seconds()
        asked = _gateway(daemon)['operations']
        time.sleep(self._args.count / self._args.pace)
        while _gateway(daemon)['uploads']:
            time.sleep(0.2)
        seconds = time.monotonic() - began
        spent = daemon.cpu_seconds() - before - idle * seconds
        done = _gateway(daemon)['operations']
        counted = {name: (done[name] - asked.get(name, 0))
                   / self._args.count for name in done}
        return {'us a version': spent / versions * 1e6,
                'us an object': spent / self._args.count * 1e6,
                'PUT': counted.get('put_object', 0.0),
                'HEAD': counted.get('head_object', 0.0),
                'versions/s': versions / seconds}


#: Versions are so old when they go up; the stamps are made to fit.
_REMOTE_AFTER = 600


def _module(tree: str) -> str:
    """The daemon's, which an older checkout has elsewhere."""
    return 'swift_dss.tier.main' if os.path.exists(os.path.join(
        tree, 'swift_dss', 'tier', 'main.py')) else 'swift_dss.tier.daemon'


def _gateway(daemon: DaemonProcess) -> Dict[str, Any]:
    status: Dict[str, Any] = daemon.ask({'verb': 'status'})
    return dict(status['gateway'],
                operations=status['link']['operations'])


def main() -> int:
    """Print the figures, a line for each run."""
    options = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('--count', type=int, default=1000,
                         help='objects (1000)')
    options.add_argument('--pace', type=float, default=50.0,
                         help='objects a second (50)')
    options.add_argument('--devices', type=int, default=3,
                         help='each has a replica of each object (3)')
    options.add_argument('--bytes', type=int, default=8192,
                         help='of an object (8192)')
    options.add_argument('--lead', type=float, default=15.0,
                         metavar='SECONDS', help='until the first version '
                         'is old enough; more on a busy machine (15)')
    options.add_argument('--rounds', type=int, default=1)
    options.add_argument('--against', metavar='FOLDER',
                         help='a checkout to compare with, in turn')
    options.add_argument('--profile', action='store_true')
    options.add_argument('--on', metavar='FOLDER', default='/var/tmp',
                         help='where the node lies (/var/tmp)')
    args = options.parse_args()
    here = os.path.abspath(os.path.join(
        os.path.dirname(__file__), os.pardir, os.pardir))
    trees = {'this': here}
    if args.against:
        trees = {'other': os.path.abspath(args.against), 'this': here}
    by_tree: Dict[str, List[Dict[str, float]]] = {name: [] for name in trees}
    root = tempfile.mkdtemp(prefix='dss-single-', dir=args.on)
    server = VersityServer()
    try:
        bench = Bench(root, server, args)
        for number in range(args.rounds):
            for name, tree in trees.items():
                by_tree[name].append(bench.measure(
                    tree, '%s%d' % (name, number)))
                show(name, by_tree[name][-1])
    finally:
        server.close()
        shutil.rmtree(root, ignore_errors=True)
    for name, figures in by_tree.items():
        show('median ' + name, {key: statistics.median(
            run[key] for run in figures) for key in figures[0]})
    return 0


def show(name: str, figures: Dict[str, float]) -> None:
    """One line."""
    print('%-14s' % name + '  '.join('%s %.2f' % (
        key, value) if value < 100 else '%s %.0f' % (key, value)
        for key, value in figures.items()), flush=True)


if __name__ == '__main__':
    sys.exit(main())
