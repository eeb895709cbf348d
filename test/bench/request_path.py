"""CPU time of requests inside the object server, ours against stock.

Both controllers in one process, called as WSGI applications, on a folder of
the caller's (an XFS, for figures that mean something): no HTTP, no proxy
and no other server to blur what our code costs. A daemon's socket is
there, and a process that empties it. Batches of each side run right after
one another, the order turns round, and a ratio is taken inside a round.

    python test/bench/request_path.py --devices /mnt/xfs --sizes 4096
    python test/bench/request_path.py --devices /mnt/xfs --profile GET
"""

from __future__ import annotations

import eventlet

eventlet.monkey_patch()

import argparse  # noqa: E402
import contextlib  # noqa: E402
import cProfile  # noqa: E402
import io  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import pstats  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from typing import Any, Dict, Iterator, List, Tuple  # noqa: E402

from swift.common import storage_policy, utils  # noqa: E402

_SWIFT_CONF = """\
[swift-hash]
swift_hash_path_suffix = bench
[storage-policy:0]
name = dss
default = yes
diskfile_module = egg:swift_dss#dss.fs
[storage-policy:1]
name = vanilla
"""
_DSS_CONF = """\
[dss]
devices = %(devices)s
run_dir = %(root)s
class_table = %(root)s/none
mount_check = false
"""
_LISTENER = """\
import socket, sys
heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
heard.bind(sys.argv[1])
print('ready', flush=True)
while True:
    heard.recv(8192)
"""
#: Side to policy and class. The second vanilla is the noise.
SIDES: Dict[str, Tuple[int, str]] = {
    'vanilla': (1, ''), 'vanilla 2': (1, ''), 'unclassified': (0, ''),
    'classified': (0, '1')}
#: ``GET`` leaves the bytes in the page cache; ``GET disk`` has a token,
#: as through a proxy, and so reads from the disk each time.
OPERATIONS = ('HEAD', 'GET', 'GET disk', 'PUT')
_OBJECTS = 8


def prepare(devices: str, root: str) -> Dict[str, str]:
    """Write what an object server of one device needs, and have Swift read
    it.

    :param devices: where the device ``d1`` is made
    :param root: an empty folder for the configuration
    :returns: the configuration of a controller
    """
    for name, text in (
            ('swift.conf', _SWIFT_CONF),
            ('dss.conf', _DSS_CONF % {'devices': devices, 'root': root})):
        with open(os.path.join(root, name), 'w') as target:
            target.write(text)
    os.makedirs(os.path.join(devices, 'd1'), exist_ok=True)
    utils.set_swift_dir(root)
    storage_policy.reload_storage_policies()
    utils.validate_hash_conf()
    return {'devices': devices, 'mount_check': 'false',
            'swift_dir': root, 'fallocate_reserve': '0',
            'dss_conf': os.path.join(root, 'dss.conf')}


@contextlib.contextmanager
def daemon(root: str) -> Iterator[None]:
    """The socket of a daemon, and a process that empties it.

    :param root: of :func:`prepare`
    """
    listener = subprocess.Popen(
        [sys.executable, '-c', _LISTENER, os.path.join(root, 'events.sock')],
        stdout=subprocess.PIPE)
    assert listener.stdout is not None
    try:
        listener.stdout.readline()
        yield
    finally:
        listener.kill()
        listener.communicate()


class Bench:
    """Two controllers on one device."""

    def __init__(self, devices: str, root: str) -> None:
        conf = prepare(devices, root)
        # Swift's controllers look at the policies when they are imported.
        from swift.obj.server import ObjectController

        from swift_dss.objserver.server import DssObjectController
        self._apps = (DssObjectController(dict(conf)),
                      ObjectController(dict(conf)))

    def call(self, side: str, operation: str, number: int,
             body: bytes) -> None:
        """One request, answered to its last byte."""
        policy, class_text = SIDES[side]
        method = operation.split()[0]
        environ = {
            'REQUEST_METHOD': method, 'SCRIPT_NAME': '',
            # As long for every side: Swift looks at each letter of it.
            'PATH_INFO': '/d1/0/a/c/%d-%d-%d' % (
                list(SIDES).index(side), len(body), number),
            'SERVER_NAME': 'x', 'SERVER_PORT': '80', 'HTTP_HOST': 'x',
            'SERVER_PROTOCOL': 'HTTP/1.1', 'REMOTE_ADDR': '127.0.0.1',
            'HTTP_X_BACKEND_STORAGE_POLICY_INDEX': str(policy),
            'HTTP_X_TIMESTAMP': utils.Timestamp.now().internal,
            'wsgi.errors': sys.stderr, 'wsgi.url_scheme': 'http',
            'wsgi.input': io.BytesIO(body if method == 'PUT' else b'')}
        if method == 'PUT':
            environ['CONTENT_LENGTH'] = str(len(body))
            environ['CONTENT_TYPE'] = 'application/octet-stream'
            if class_text:
                environ['HTTP_X_OBJECT_SYSMETA_DSS_MAP'] = class_text
        if operation == 'GET disk':
            environ['HTTP_X_AUTH_TOKEN'] = 'token'
        said: List[str] = []
        answer: Any = self._apps[policy](
            environ, lambda status, *_rest: said.append(status))
        length = sum(map(len, answer))
        if hasattr(answer, 'close'):
            answer.close()
        if said[0][0] != '2' or (method == 'GET' and length != len(body)):
            raise SystemExit('%s %s: %s, %d bytes'
                             % (side, operation, said[0], length))

    def batch(self, side: str, operation: str, count: int,
              body: bytes) -> float:
        """CPU microseconds a request, all threads of the process."""
        started = time.process_time()
        for number in range(count):
            self.call(side, operation, number % _OBJECTS, body)
            eventlet.sleep(0)
        return (time.process_time() - started) / count * 1e6


def compare(bench: Bench, operation: str, size: int, rounds: int) -> None:
    """Print one line: median microseconds and ratio of each side."""
    body = os.urandom(size)
    count = max(8, min(200, (8 << 20) // size)
                // (4 if operation == 'PUT' else 1))
    times: Dict[str, List[float]] = {side: [] for side in SIDES}
    for side in SIDES:
        bench.batch(side, 'PUT', _OBJECTS, body)
    for turn in range(rounds):
        for side in list(SIDES)[::-1 if turn % 2 else 1]:
            times[side].append(bench.batch(side, operation, count, body))
    print('%-8s %9d' % (operation, size) + ''.join(
        '  %s %.0f us x%.2f' % (side, statistics.median(values),
                                statistics.median(
            mine / stock for mine, stock in zip(values, times['vanilla'])))
        for side, values in times.items()), flush=True)


def profile(bench: Bench, operation: str, size: int) -> None:
    """Print where our time goes."""
    body = os.urandom(size)
    bench.batch('unclassified', 'PUT', _OBJECTS, body)
    bench.batch('unclassified', operation, 100, body)
    watch = cProfile.Profile()
    watch.enable()
    bench.batch('unclassified', operation,
                max(20, min(1000, (1 << 30) // size)), body)
    watch.disable()
    pstats.Stats(watch).sort_stats('tottime').print_stats(40)


def main() -> None:
    """See the module's text."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument('--devices', required=True, metavar='FOLDER')
    options.add_argument('--sizes', default='4096,65536,1048576,16777216')
    options.add_argument('--rounds', type=int, default=15)
    options.add_argument('--profile', metavar='OPERATION',
                         choices=OPERATIONS)
    args = options.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory() as root:
        with daemon(root):
            bench = Bench(args.devices, root)
            sizes = [int(size) for size in args.sizes.split(',')]
            if args.profile:
                profile(bench, args.profile, sizes[0])
                return
            for operation in OPERATIONS:
                for size in sizes[:1] if operation == 'HEAD' else sizes:
                    compare(bench, operation, size, args.rounds)


if __name__ == '__main__':
    main()
