#!/usr/bin/env python
"""CPU time that the tier daemon takes for each thing it is told.

An object server (Swift's controller with our diskfile, called as a WSGI
application) stores, replaces, reads and deletes objects on an XFS of its
own, at a steady pace, and tells a real daemon as it would on a node. The
daemon's CPU time until it is done with all of it, less what it takes for
doing nothing as long, is divided by the number of events. The class lets
its bytes go to S3 with ``--gateway``, which never answers here: what is
measured is how a version gets into the queue.

    python test/bench/daemon_events.py
    python test/bench/daemon_events.py --against ../other-checkout
    python test/bench/daemon_events.py --profile
"""

from __future__ import annotations

import eventlet

eventlet.monkey_patch()

import argparse  # noqa: E402
import contextlib  # noqa: E402
import functools  # noqa: E402
import io  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from typing import Any, Dict, Iterator, List, Tuple  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support.nodes.daemon_node import (  # noqa: E402
    PROFILED, DaemonProcess, write, write_node)
from swift.common import storage_policy, utils  # noqa: E402

from swift_dss.aio import storage  # noqa: E402

#: Nothing is old enough to be moved, as in ``swift-dss bench overhead``.
_OPTIONS: Dict[str, Dict[str, object]] = {
    'capacity': {}, 'tier': {
        'clean_after_seconds': 86400, 'interval_seconds': 1}}
_CLASSES = '[class:0]\nname = plain\nrank = 0\nremote = back\n'
_IMAGE_BYTES = 4 << 30
_BODY = b'x' * 8192
#: What is told, in this order, and the counter that tells it arrived.
KINDS = (('put', 'PUT', 'put'), ('overwrite', 'PUT', 'put'),
         ('read', 'GET', 'read'), ('read again', 'GET', 'read'),
         ('delete', 'DELETE', 'delete'))


class Server:
    """An object server on the node in ``root``."""

    def __init__(self, root: str, device_names: List[str]) -> None:
        utils.set_swift_dir(root)
        storage_policy.reload_storage_policies()
        utils.validate_hash_conf()
        # Swift's controllers look at the policies when they are imported.
        from swift_dss.objserver.server import DssObjectController
        self._device_names = device_names
        self._app = DssObjectController({
            'devices': os.path.join(root, 'devices'),
            'mount_check': 'false', 'swift_dir': root,
            'fallocate_reserve': '0',
            'dss_conf': os.path.join(root, 'dss.conf')})

    def load(self, method: str, count: int, pace: float) -> float:
        """``count`` requests to each device, ``pace`` a second in all;
        the seconds they took."""
        started = time.monotonic()
        for number in range(count):
            for place, device in enumerate(self._device_names):
                due = started + (
                    number * len(self._device_names) + place) / pace
                eventlet.sleep(max(0.0, due - time.monotonic()))
                self._call(method, device, number)
        return time.monotonic() - started

    def _call(self, method: str, device: str, number: int) -> None:
        environ = {
            'REQUEST_METHOD': method, 'SCRIPT_NAME': '',
            'PATH_INFO': '/%s/%d/a/c/o%d' % (device, number % 64, number),
            'SERVER_NAME': 'x', 'SERVER_PORT': '80', 'HTTP_HOST': 'x',
            'SERVER_PROTOCOL': 'HTTP/1.1', 'REMOTE_ADDR': '127.0.0.1',
            'HTTP_X_BACKEND_STORAGE_POLICY_INDEX': '0',
            'HTTP_X_TIMESTAMP': utils.Timestamp.now().internal,
            'wsgi.errors': sys.stderr, 'wsgi.url_scheme': 'http',
            'wsgi.input': io.BytesIO(_BODY if method == 'PUT' else b'')}
        if method == 'PUT':
            environ['CONTENT_LENGTH'] = str(len(_BODY))
            environ['CONTENT_TYPE'] = 'application/octet-stream'
        said: List[str] = []
        answer: Any = self._app(
            environ, lambda status, *_rest: said.append(status))
        for _ in answer:
            pass
        if hasattr(answer, 'close'):
            answer.close()
        if said[0][0] != '2':
            raise SystemExit('%s of %d: %s' % (method, number, said[0]))


class Bench:
    """A node on a file system of its own."""

    def __init__(self, root: str, args: argparse.Namespace) -> None:
        self._root = root
        self._args = args
        self._device_names = ['d%d' % number for number
                              in range(args.devices)]
        options = dict(_OPTIONS, capacity={
            name: os.path.join(root, 'hdd', name)
            for name in self._device_names})
        if args.gateway:
            write(os.path.join(root, 's3-secret'),
                  'access_key = a\nsecret_key = s\n')
            os.chmod(os.path.join(root, 's3-secret'), 0o600)
            options['gateway'] = {
                'enabled': 'true', 'bucket': 'b',
                'url': 'http://127.0.0.1:9',
                'secret_file': os.path.join(root, 's3-secret')}
        write_node(root, options, _CLASSES)
        self._format()
        self._server = Server(root, self._device_names)

    def _format(self) -> None:
        from swift_dss.io.capacity import Capacity
        for name in self._device_names:
            os.makedirs(os.path.join(self._root, 'devices', name))
            Capacity(os.path.join(self._root, 'hdd', name),
                     name).initialise()

    def measure(self, tree: str) -> Dict[str, float]:
        """CPU microseconds an event of a fresh daemon from ``tree``."""
        shutil.rmtree(os.path.join(self._root, 'run'), ignore_errors=True)
        daemon = DaemonProcess(self._root)
        if self._args.profile:
            write(os.path.join(self._root, 'profiled.py'), PROFILED)
            daemon.start(tree=tree, command=[
                os.path.join(self._root, 'profiled.py')])
        else:
            daemon.start(tree=tree)
        try:
            return self._figures(daemon)
        finally:
            daemon.stop()

    def _figures(self, daemon: DaemonProcess) -> Dict[str, float]:
        daemon.settle()
        eventlet.sleep(3.0)
        _, idle = self._spent(daemon, lambda: eventlet.sleep(5.0))
        idle /= 5.0
        figures = {'idle ms/s': idle * 1e3}
        total = 0.0
        counted = 0
        for kind, method, counter in KINDS:
            before = _counters(daemon)
            seconds, spent = self._spent(daemon, functools.partial(
                self._server.load, method, self._args.count,
                self._args.pace))
            after = _counters(daemon)
            name = 'tier.events.' + counter
            events = after.get(name, 0) - before.get(name, 0)
            wanted = self._args.count * len(self._device_names)
            if events != wanted:
                raise SystemExit('%s: %d events of %d' % (
                    kind, events, wanted))
            spent -= idle * seconds
            figures[kind] = spent / events * 1e6
            total += spent
            counted += events
        figures['all'] = total / counted * 1e6
        return figures

    @staticmethod
    def _spent(daemon: DaemonProcess, work: Any) -> Tuple[float, float]:
        """(seconds, the daemon's CPU seconds) until it is done."""
        started, before = time.monotonic(), daemon.cpu_seconds()
        work()
        daemon.settle()
        return (time.monotonic() - started,
                daemon.cpu_seconds() - before)


def _counters(daemon: DaemonProcess) -> Dict[str, float]:
    counters: Dict[str, float] = daemon.ask({'verb': 'status'})['metrics']
    return counters


@contextlib.contextmanager
def file_system(folder: str) -> Iterator[str]:
    """An XFS on a loop device, mounted below ``folder``."""
    why_not = storage.why_no_loops()
    if why_not:
        raise SystemExit('an XFS on a loop device is needed: ' + why_not)
    root = tempfile.mkdtemp(prefix='events-', dir=folder)
    try:
        image = os.path.join(root, 'image')
        with open(image, 'wb') as out:
            out.truncate(_IMAGE_BYTES)
        mounted = os.path.join(root, 'node')
        os.mkdir(mounted)
        device = storage.attach(image)
        storage.run('mkfs.xfs', '-q', '-f', device)
        storage.run('mount', '-t', 'xfs', device, mounted)
        yield mounted
    finally:
        storage.unmake(root)
        shutil.rmtree(root)


def main() -> int:
    """Print the figures, a line for each run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument('--count', type=int, default=500,
                         help='requests of a kind to each device')
    options.add_argument('--pace', type=float, default=200.0,
                         help='requests a second, all devices together')
    options.add_argument('--devices', type=int, default=4)
    options.add_argument('--rounds', type=int, default=1)
    options.add_argument('--gateway', action='store_true')
    options.add_argument('--against', metavar='FOLDER',
                         help='a checkout to compare with, in turn')
    options.add_argument('--profile', action='store_true')
    options.add_argument('--on', metavar='FOLDER',
                         help='where the file system goes')
    args = options.parse_args()
    here = os.path.abspath(os.path.join(
        os.path.dirname(__file__), os.pardir, os.pardir))
    trees = {'this': here}
    if args.against:
        trees = {'other': os.path.abspath(args.against), 'this': here}
    by_tree: Dict[str, List[Dict[str, float]]] = {name: [] for name in trees}
    for _ in range(args.rounds):
        for name, tree in trees.items():
            with file_system(args.on or '/dev/shm') as root:
                by_tree[name].append(Bench(root, args).measure(tree))
            show(name, by_tree[name][-1])
    if args.rounds > 1:
        for name, figures in by_tree.items():
            show('median ' + name, {key: statistics.median(
                run[key] for run in figures) for key in figures[0]})
    return 0


def show(name: str, figures: Dict[str, float]) -> None:
    """One line."""
    print('%-12s' % name + '  '.join(
        '%s %.1f' % (key, value) if key.startswith('idle')
        else '%s %.0f us' % (key, value)
        for key, value in figures.items()), flush=True)


if __name__ == '__main__':
    sys.exit(main())
