"""What it costs that proxies ask object servers how full they are.

One process is all object servers (a node a port, with the real application),
some are the workers of one proxy, which write to all of them all the time.
They talk HTTP over the loopback. Sides take turns in one run: ``alone`` is
every worker for itself, each second (with ``--against``, the workers and
servers of another checkout), ``shared`` is what proxies do near a limit,
``far`` the same with room left. ``none`` asks once: it shows what a write
costs without. Of the workers, the CPU time inside ``Pressures.backlog``
counts.

    python test/bench/pressure_questions.py
    python test/bench/pressure_questions.py --nodes 100 --rounds 3
    python test/bench/pressure_questions.py --against ../other-checkout
"""

from __future__ import annotations

import eventlet

eventlet.monkey_patch()

import argparse  # noqa: E402
import json  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from typing import Any, Dict, List  # noqa: E402

import eventlet.wsgi  # noqa: E402

HERE = os.path.abspath(os.path.join(
    os.path.dirname(__file__), os.pardir, os.pardir))
SIDES = ('none', 'alone', 'shared', 'far')
_GIB = 1 << 30
#: A worker writes to each node so often.
_WRITE_SECONDS = 0.2


class _Logger(logging.Logger):
    def increment(self, name: str) -> None:
        """Nobody counts."""


def _devices(args: argparse.Namespace) -> List[str]:
    return ['sd%02d' % number for number in range(args.devices)]


def serve(args: argparse.Namespace) -> None:
    """Be all object servers; print figures for each line of stdin."""
    from swift_dss.core.config import NodeConf
    from swift_dss.core.pressure import Backlog, Pressure
    from swift_dss.objserver.figures import pressures as module
    from swift_dss.objserver.settings import Node
    from swift_dss.wire.node import pressure as wire
    logger = _Logger('bench')
    logger.setLevel(logging.ERROR)
    room = 2000 * _GIB if args.side == 'far' else 4 * _GIB
    heard = {'questions': 0, 'bytes': 0}
    # An application looks its node up by its configuration.
    nodes: Dict[str, Any] = {}
    module.node_for = lambda conf, _logger: nodes[conf['devices']]
    ports = []
    log = logging.getLogger('bench.wsgi')
    log.addHandler(logging.NullHandler())
    for number in range(args.nodes):
        root = os.path.join(args.root, args.side, str(number))
        os.makedirs(os.path.join(root, 'state'), exist_ok=True)
        for device in _devices(args):
            os.makedirs(os.path.join(root, device), exist_ok=True)
            with open(os.path.join(root, 'state', device + '.json'),
                      'wb') as out:
                out.write(wire.encode(Pressure(
                    4000 * _GIB, 3000 * _GIB, 3500 * _GIB, 10, True,
                    # Nothing writes it anew, and it must not get stale.
                    time.time() + 3600, Backlog(
                        123456789, room, room // 10, room * 2, 123456789.12,
                        True, 0.0, 0.75, 2.0, 12345678, room, 0.1),
                    {5: 1000 * _GIB, 9: 500 * _GIB})))
        nodes[root] = Node(NodeConf(run_dir=root, devices=root), logger)
        app = module.Pressures(
            {'devices': root, 'mount_check': 'false'}, logger)

        def counted(env: Any, start: Any, app: Any = app) -> Any:
            body = list(app(env, start))
            heard['questions'] += 1
            heard['bytes'] += sum(map(len, body))
            return body

        listener = eventlet.listen(('127.0.0.1', 0), backlog=512)
        ports.append(listener.getsockname()[1])
        eventlet.spawn_n(eventlet.wsgi.server, listener, counted,
                         log=log, log_output=False)
    print(json.dumps(ports), flush=True)
    while eventlet.tpool.execute(sys.stdin.readline):
        print(json.dumps(dict(heard, cpu=time.process_time())), flush=True)


def work(args: argparse.Namespace) -> None:
    """Be one worker of the proxy; print its CPU seconds."""
    from swift_dss.proxy.admit import pressures as module
    logger = _Logger('bench')
    options: Dict[str, Any] = {}
    if args.side in ('shared', 'far'):
        options['shared'] = module.Shared(args.root, logger)
    elif hasattr(module, 'rest_seconds'):
        module.rest_seconds = lambda backlog, coming_bytes: 0.0
    # Without a green thread of its own, whose CPU time nobody could tell
    # from that of the loop.
    pressures = module.Pressures(
        1e6 if args.side == 'none' else 1.0, logger,
        spawn=lambda work, *arguments: work(*arguments), **options)
    names, dice = _devices(args), random.Random(os.getpid())
    servers = [('127.0.0.1', int(port)) for port in args.ports.split(',')]
    unknown, cpu = 0, 0.0

    def write(seconds: float) -> None:
        nonlocal unknown, cpu
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            dice.shuffle(servers)
            for server in servers:
                began, device = time.process_time(), dice.choice(names)
                backlog, _ = pressures.backlog(server, device)
                cpu += time.process_time() - began
                unknown += backlog is None
                eventlet.sleep(_WRITE_SECONDS / len(servers))

    # The first questions are those of a proxy that was just started.
    write(args.warm)
    unknown, cpu = 0, 0.0
    print('ready', flush=True)
    sys.stdin.readline()
    write(args.seconds)
    print(json.dumps({'cpu': cpu, 'unknown': unknown}), flush=True)


def measure(args: argparse.Namespace, side: str, root: str
            ) -> Dict[str, float]:
    """Figures a second of one side."""
    tree = args.against if args.against and side == 'alone' else HERE
    # Otherwise the build of this checkout would be imported.
    environ = dict(os.environ, PYTHONPATH=tree)

    def start(role: str, *more: str) -> Any:
        return subprocess.Popen(
            [sys.executable, '-W', 'ignore', os.path.abspath(__file__),
             '--role', role, '--side', side, '--root', root,
             '--nodes', str(args.nodes), '--devices', str(args.devices),
             '--seconds', str(args.seconds), '--warm', str(args.warm)]
            + list(more), cwd=tree, env=environ, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(process: Any) -> Any:
        process.stdin.write('\n')
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    started = [start('server')]
    try:
        ports = json.loads(started[0].stdout.readline())
        started += [start('worker', '--ports', ','.join(map(str, ports)))
                    for _ in range(args.workers)]
        for worker in started[1:]:
            worker.stdout.readline()
        before = ask(started[0])
        for worker in started[1:]:
            worker.stdin.write('\n')
            worker.stdin.flush()
        said = [json.loads(worker.stdout.readline())
                for worker in started[1:]]
        after = ask(started[0])
    finally:
        for process in started:
            process.kill()
            process.communicate()
    if side != 'none' and any(worker['unknown'] for worker in said):
        raise SystemExit('%s: a backlog was not known' % side)
    return {
        'questions': (after['questions'] - before['questions'])
        / args.seconds,
        'bytes': (after['bytes'] - before['bytes']) / args.seconds,
        'servers': (after['cpu'] - before['cpu']) / args.seconds,
        'workers': sum(worker['cpu'] for worker in said) / args.seconds}


def show(name: str, figures: Dict[str, float]) -> None:
    """One line."""
    print('%-14s %7.1f questions/s %9.1f kB/s   object servers %8.2f ms/s   '
          'workers %8.2f ms/s' % (
              name, figures['questions'], figures['bytes'] / 1e3,
              figures['servers'] * 1e3, figures['workers'] * 1e3),
          flush=True)


def main() -> None:
    """See the module's text."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument('--nodes', type=int, default=20)
    options.add_argument('--devices', type=int, default=36)
    options.add_argument('--workers', type=int, default=4)
    options.add_argument('--seconds', type=float, default=20.0)
    options.add_argument('--warm', type=float, default=5.0,
                         help='seconds before the figures')
    options.add_argument('--rounds', type=int, default=2)
    options.add_argument('--against', metavar='FOLDER',
                         help='a checkout whose workers are "alone"')
    for hidden in ('--role', '--side', '--root', '--ports'):
        options.add_argument(hidden, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.role:
        {'server': serve, 'worker': work}[args.role](args)
        return
    if args.against:
        args.against = os.path.abspath(args.against)
    by_side: Dict[str, List[Dict[str, float]]] = {side: [] for side in SIDES}
    for _ in range(args.rounds):
        for side in SIDES:
            with tempfile.TemporaryDirectory(dir='/dev/shm') as root:
                by_side[side].append(measure(args, side, root))
            show(side, by_side[side][-1])
    for side in SIDES:
        show('median ' + side, {key: statistics.median(
            figures[key] for figures in by_side[side])
            for key in by_side[side][0]})


if __name__ == '__main__':
    main()
