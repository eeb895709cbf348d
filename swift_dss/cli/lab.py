"""``swift-dss lab``: a kernel for each experiment, in virtual time."""

from __future__ import annotations

import argparse
import sys
from typing import List

from swift_dss.aio.cluster import printer
from swift_dss.bench.lab import lab_swift
from swift_dss.block import lab
from swift_dss.block.lab import build, machine, shelf, stock
from swift_dss.cli import table
from swift_dss.core.errors import BadConfig

HELP = 'run programs on modelled disks, in a kernel of their own'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', required=True)
    made = verbs.add_parser('build', help='build a kernel and our modules')
    made.add_argument('--variant', action='append',
                      choices=list(build.VARIANTS),
                      help='which; again for several (plain)')
    made.add_argument('--update', action='store_true',
                      help='from the newest source that the mirror has')
    _add_run(verbs.add_parser('run', help='run a program in a guest'))
    _add_swift(verbs.add_parser('swift', help='a whole Swift in a guest'))
    shipped = verbs.add_parser('stock', help='try our modules on a kernel '
                               'that Debian ships, emulated')
    shipped.add_argument('--kernel', default='6.12',
                         choices=list(stock.KERNELS))
    shipped.add_argument('--timeout', type=float, default=900.0,
                         metavar='SECONDS', help='of the machine (900)')
    verbs.add_parser('list', help='built kernels and modules, and the presets')
    clean = verbs.add_parser('clean', help='remove all that was built')
    clean.add_argument('--all', action='store_true',
                       help='also what is up to date, and the sources')


def _add_run(run_it: argparse.ArgumentParser) -> None:
    run_it.add_argument('--device', action='append', default=[],
                        metavar='NAME=PRESET:SIZE',
                        help='a disk, /dev/mapper/NAME in the guest; '
                        'presets: %s' % ', '.join(lab.devices.PRESETS))
    clock = run_it.add_mutually_exclusive_group()
    clock.add_argument('--virtual-time', dest='virtual',
                       action='store_true', default=True,
                       help='computing costs no time (default)')
    clock.add_argument('--real-time', dest='virtual', action='store_false',
                       help='the machine\'s own clock')
    run_it.add_argument('--memory', default='1G', metavar='SIZE',
                        help='of the guest, its disks included (1G)')
    run_it.add_argument('--timeout', type=float, default=600.0,
                        metavar='SECONDS', help='of real time (600)')
    run_it.add_argument('--module', action='append', metavar='NAME|FILE',
                        help='modules to load (default: all of ours)')
    run_it.add_argument('--variant', default='plain',
                        choices=list(build.VARIANTS))
    run_it.add_argument('--share', action='append', default=[],
                        metavar='FOLDER',
                        help='where the guest writes to this machine')
    run_it.add_argument('--env', action='append', default=[],
                        metavar='NAME=VALUE')
    run_it.add_argument('--kernel-option', action='append', default=[],
                        metavar='WORD', help='more of the command line')
    run_it.add_argument('--dmesg', action='store_true',
                        help='print the messages of the kernel at the end')
    run_it.add_argument('script', metavar='SCRIPT',
                        help='a program, or a .py for this Python')
    run_it.add_argument('args', nargs=argparse.REMAINDER, metavar='ARGS')


def _add_swift(swift: argparse.ArgumentParser) -> None:
    for kind, spec in (('ssd', 'sata-ssd:512M'), ('hdd', 'hdd:512M')):
        swift.add_argument('--' + kind, default=spec, metavar='PRESET:SIZE',
                           help='each of the three (%s)' % spec)
    swift.add_argument('--policy', default='stock',
                       choices=lab_swift.POLICIES,
                       help='stock Swift on one kind of disk at a time, or '
                       'ours on both (stock)')
    swift.add_argument('--requests', type=int, default=30, metavar='N',
                       help='of each size and method (30)')
    swift.add_argument('--timeout', type=float, default=1800.0,
                       metavar='SECONDS', help='of each guest (1800)')


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    return {'build': _build, 'run': _run, 'swift': _swift,
            'stock': _stock, 'list': _list, 'clean': _clean}[args.verb](args)


def _build(args: argparse.Namespace) -> int:
    say = printer(sys.stderr)
    for variant in dict.fromkeys(args.variant or ['plain']):
        made = build.kernel(variant, say, args.update)
        print('%-8s %s' % (variant, made.binary))
        for name, _folder in build.MODULES:
            path = build.module(made, name, say)
            print('%-8s %s' % ('', path or '(no source of %s)' % name))
    return 0


def _run(args: argparse.Namespace) -> int:
    environment = {}
    for pair in args.env:
        name, equals, value = pair.partition('=')
        if not equals:
            raise BadConfig('--env %s: not NAME=VALUE' % pair)
        environment[name] = value
    result = lab.run(
        args.script, args.args, devices=args.device, modules=args.module,
        variant=args.variant, virtual_time=args.virtual,
        memory=args.memory, timeout=args.timeout, shares=args.share,
        env=environment, kernel_options=args.kernel_option, sink=_pass_on,
        say=printer(sys.stderr))
    notes: List[str] = []
    if args.dmesg:
        notes.append(result.kernel_log)
    status = result.status
    if status == machine.TIMED_OUT and result.killed:
        notes.append('killed after %g s' % args.timeout)
    if result.complaints:
        notes.append('the kernel complained:\n' + '\n'.join(
            result.complaints))
        status = status or machine.COMPLAINED
    for note in notes:
        print('swift-dss lab: %s' % note, file=sys.stderr)
    return status


def _pass_on(name: str, data: bytes) -> None:
    stream = sys.stdout if name == 'stdout' else sys.stderr
    stream.flush()
    stream.buffer.write(data)
    stream.buffer.flush()


def _swift(args: argparse.Namespace) -> int:
    rows = lab_swift.run(args.policy, args.ssd, args.hdd, args.requests,
                         args.timeout, printer(sys.stderr))
    print(table.table(lab_swift.HEADS, [row.cells() for row in rows]))
    return 0


def _stock(args: argparse.Namespace) -> int:
    stock.run(args.kernel, args.timeout, printer(sys.stderr),
              lambda line: print(line, flush=True))
    return 0


def _list(args: argparse.Namespace) -> int:
    for line in shelf.listing():
        print(line)
    return 0


def _clean(args: argparse.Namespace) -> int:
    for path in shelf.clean(args.all):
        print('removed %s' % path)
    return 0
