#!/usr/bin/env python
"""Guards that protect data, taken out one at a time: does a test notice?

    python test/fault/mutants.py [--only NAME,...] [--jobs N] [--listed]
                                 [--json FILE] [--page]

Each mutant of ``mutants.toml`` is one change of a text that stands in its
file exactly once. It is made in a copy of the tree, where the tests that the
list names are run, the fastest first; if none of them fails, the unit tests
of its room and the fault tests (``--listed`` leaves these out). All tests
that the list names are run without any mutant before: one that fails anyway
would notice nothing. The table says which test failed, or SURVIVED.

Ends with 1 if a mutant survived or could not be judged. ``--page`` prints the
manual's page of the list. As root, for what makes file systems.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))
_TEST = os.path.dirname(_HERE)
_ROOT = os.path.dirname(_TEST)
LIST = os.path.join(_HERE, 'mutants.toml')
_PACKAGE = 'swift_dss'
#: What a test may look at, beside the package.
_COPIED = (_PACKAGE, 'test', 'etc', 'doc', 'devstack', 'pyproject.toml',
           'setup.cfg', 'setup.py', 'README.md')
_ROW = '%-38s %-28s %6s  %s'
_FAILED = re.compile(r'^(?:FAILED|ERROR) (\S+)', re.M)
#: Of one pytest. A mutant that hangs is not taken for one that was noticed:
#: a busy machine would notice all of them.
_LISTED_SECONDS, _ROOM_SECONDS = 240.0, 1800.0
SURVIVED = 'SURVIVED'


class Stale(Exception):
    """A mutant, or a test that it names, does not fit the tree."""


class Mutant(NamedTuple):
    """One change; see ``mutants.toml``."""

    name: str
    file: str
    guard: str
    loss: str
    old: str
    new: str
    tests: Tuple[str, ...]


class Outcome(NamedTuple):
    """What became of a mutant.

    :param killed_by: the test that failed, or SURVIVED
    :param problem: why nobody can say; '' if one can
    """

    mutant: Mutant
    killed_by: str
    seconds: float
    problem: str = ''


class Ran(NamedTuple):
    """One pytest: its exit status, the tests that failed, what it said."""

    status: int
    failed: List[str]
    text: str


def mutants() -> List[Mutant]:
    """The list, in its order."""
    with open(LIST, 'rb') as source:
        rows = tomllib.load(source)['mutant']
    return [Mutant(**dict(row, tests=tuple(row['tests']))) for row in rows]


def changed(mutant: Mutant, text: str) -> str:
    """The text of its file with the guard taken out.

    :raises Stale: the guard is not there exactly once, or what is left is
        no Python
    """
    times = text.count(mutant.old)
    if times != 1 or mutant.old == mutant.new:
        raise Stale('%s: its text is %d times in %s/%s, not once: say in '
                    '%s how the guard reads now' % (
                        mutant.name, times, _PACKAGE, mutant.file,
                        os.path.basename(LIST)))
    made = text.replace(mutant.old, mutant.new)
    try:
        compile(made, mutant.file, 'exec')
    except SyntaxError as err:
        raise Stale('%s: %s' % (mutant.name, err)) from err
    return made


def source_of(mutant: Mutant, root: str = _ROOT) -> str:
    """Path of the file that it changes."""
    return os.path.join(root, _PACKAGE, mutant.file)


def judge(mutant: Mutant, tree: str, listed: bool) -> Outcome:
    """Make the mutant in a copy of the tree, run its tests, take it back.

    :param listed: only the tests that it names
    """
    began = time.monotonic()
    killed_by, problem = SURVIVED, ''
    try:
        with _made(mutant, tree):
            for tests, seconds in _stages(mutant, tree, listed):
                ran = run_tests(tree, tests, seconds)
                if ran.status == 1 and ran.failed:
                    killed_by = ran.failed[0]
                    break
                if ran.status:
                    problem = 'pytest ended with %d: %s' % (
                        ran.status, _last_line(ran.text))
                    break
    except Stale as err:
        problem = str(err)
    except subprocess.TimeoutExpired as err:
        problem = 'not over within %.0f seconds' % err.timeout
    return Outcome(mutant, killed_by, time.monotonic() - began, problem)


def run_tests(tree: str, tests: Sequence[str], seconds: float) -> Ran:
    """pytest in a copy of the tree, up to the first failure.

    :raises TimeoutExpired: it was ended
    """
    test = os.path.join(tree, 'test')
    # The copy comes before what the virtual environment has installed.
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join((tree, test)))
    with tempfile.TemporaryFile('w+') as said, tempfile.TemporaryDirectory(
            prefix='dss-mutant-') as temporary:
        child = subprocess.Popen(
            [sys.executable, '-m', 'pytest', '-x', '-q', '-rfE', '-p',
             'no:cacheprovider', '--basetemp',
             os.path.join(temporary, 'pytest'), *tests],
            cwd=test, env=environment, stdin=subprocess.DEVNULL, stdout=said,
            stderr=subprocess.STDOUT, start_new_session=True)
        _running.add(child.pid)
        try:
            status = child.wait(seconds)
        finally:
            _end(child.pid)
            _running.discard(child.pid)
            child.wait()
        said.seek(0)
        text = said.read()
    return Ran(status, _FAILED.findall(text), text)


def copy_of_tree(target: str) -> None:
    """What tests need, without what belongs to one place."""
    for name in _COPIED:
        source = os.path.join(_ROOT, name)
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(target, name),
                            ignore=shutil.ignore_patterns('build'))
        elif os.path.exists(source):
            shutil.copy2(source, target)


def page(listed: Sequence[Mutant]) -> str:
    """The manual's page of the list."""
    lines = [
        'Mutants: guards that are taken out',
        '==================================',
        '',
        'A guard without a test that fails when it is taken out is no guard. '
        'Each line',
        'is a change that takes one guard of data out. ``python '
        'test/fault/mutants.py`` makes',
        'each in a copy of the tree and says which test noticed '
        '(:doc:`/evidence/campaigns`). The list',
        'is ``test/fault/mutants.toml``; this page is made from it:',
        '``python test/fault/mutants.py --page > '
        'doc/source/evidence/mutants.rst``.',
        '',
        '.. list-table::',
        '   :header-rows: 1',
        '   :widths: 20 18 31 31',
        '',
        '   * - mutant',
        '     - file',
        '     - the guard that it takes out',
        '     - the harm without it']
    for mutant in listed:
        lines += ['   * - %s' % mutant.name, '     - ``%s``' % mutant.file,
                  '     - %s' % mutant.guard, '     - %s' % mutant.loss]
    return '\n'.join(lines) + '\n'


def summary(outcomes: Sequence[Outcome]) -> str:
    """The last line: ``58 of 60 killed (96.7 %)``."""
    killed = sum(_is_killed(outcome) for outcome in outcomes)
    return '%d of %d killed (%.1f %%)' % (
        killed, len(outcomes), 100.0 * killed / max(1, len(outcomes)))


def main() -> int:
    """Run the campaign; 1 unless every mutant was noticed."""
    args = _arguments()
    # The copies go, and what runs in them, also if somebody ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    listed = mutants()
    if args.page:
        print(page(listed), end='')
        return 0
    wanted = set(filter(None, args.only.split(',')))
    unknown = wanted - {mutant.name for mutant in listed}
    if unknown:
        print('no such mutant: ' + ', '.join(sorted(unknown)))
        return 2
    chosen = [mutant for mutant in listed
              if not wanted or mutant.name in wanted]
    outcomes = campaign(chosen, args.jobs, args.listed)
    if args.json:
        text = json.dumps({
            'killed': sum(map(_is_killed, outcomes)), 'of': len(outcomes),
            'outcomes': [_plain(outcome) for outcome in outcomes]})
        if args.json == '-':
            print(text)
        else:
            with open(args.json, 'w', encoding='utf-8') as target:
                target.write(text + '\n')
    print(summary(outcomes))
    return 0 if outcomes and all(map(_is_killed, outcomes)) else 1


def campaign(chosen: Sequence[Mutant], jobs: int,
             listed: bool) -> List[Outcome]:
    """Judge all of them and print a line for each as it comes; none if the
    tests fail without a mutant."""
    with tempfile.TemporaryDirectory(prefix='dss-mutants-') as folder:
        trees: SimpleQueue[str] = SimpleQueue()
        for number in range(jobs):
            tree = os.path.join(folder, str(number))
            os.mkdir(tree)
            copy_of_tree(tree)
            trees.put(tree)
        if not _is_sound(os.path.join(folder, '0'), chosen):
            return []

        def judged(mutant: Mutant) -> Outcome:
            tree = trees.get()
            try:
                return judge(mutant, tree, listed)
            finally:
                trees.put(tree)

        print(_ROW % ('mutant', 'file', 's', 'killed by'), flush=True)
        outcomes = []
        with ThreadPoolExecutor(jobs) as pool, _ended_with(pool):
            for done in as_completed([
                    pool.submit(judged, mutant) for mutant in chosen]):
                outcome = done.result()
                outcomes.append(outcome)
                print(_ROW % (
                    outcome.mutant.name, outcome.mutant.file,
                    '%.0f' % outcome.seconds,
                    outcome.problem or outcome.killed_by), flush=True)
    return sorted(outcomes, key=lambda outcome: chosen.index(outcome.mutant))


# -- inside --------------------------------------------------------------

#: Each pytest that runs now.
_running: Set[int] = set()


@contextlib.contextmanager
def _ended_with(pool: ThreadPoolExecutor) -> Iterator[None]:
    """Nothing goes on in a pool when somebody has ended the campaign."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in list(_running):
            _end(child)
        raise


def _end(child: int) -> None:
    """Also the servers that a test did not come to stop."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--only', default='', metavar='NAME,...')
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--listed', action='store_true',
                        help='only the tests that the list names')
    parser.add_argument('--json', default='', metavar='FILE',
                        help='a line of JSON ("-": to stdout)')
    parser.add_argument('--page', action='store_true',
                        help="print the manual's page of the list")
    return parser.parse_args()


@contextlib.contextmanager
def _made(mutant: Mutant, tree: str) -> Iterator[None]:
    path = source_of(mutant, tree)
    with open(path, encoding='utf-8') as source:
        before = source.read()
    _write(path, changed(mutant, before))
    try:
        yield
    finally:
        _write(path, before)


def _write(path: str, text: str) -> None:
    with open(path, 'w', encoding='utf-8') as target:
        target.write(text)
    # Python takes a compiled file for the right one by size and second.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(importlib.util.cache_from_source(path))


def _stages(mutant: Mutant, tree: str, listed: bool
            ) -> Iterator[Tuple[Sequence[str], float]]:
    for test in mutant.tests:
        yield [test], _LISTED_SECONDS
    if not listed:
        room = 'unit/' + mutant.file.partition('/')[0]
        yield [room], _ROOM_SECONDS
        yield ['fault'], _ROOM_SECONDS


def _is_sound(tree: str, chosen: Sequence[Mutant]) -> bool:
    """Do all named tests pass in the copy, and are they of the copy?"""
    where = subprocess.run(
        [sys.executable, '-c', 'import %s; print(%s.__file__)' % (
            _PACKAGE, _PACKAGE)], cwd=tree, text=True, capture_output=True,
        env=dict(os.environ, PYTHONPATH=tree), check=True).stdout
    if not where.startswith(tree + os.sep):
        print('tests would look at %s, not at the copy' % where.strip())
        return False
    names: Dict[str, None] = {}
    for mutant in chosen:
        names.update(dict.fromkeys(mutant.tests))
    ran = run_tests(tree, list(names), _ROOM_SECONDS)
    if ran.status:
        print('without any mutant the tests fail already:\n'
              + ran.text[-3000:])
    return not ran.status


def _is_killed(outcome: Outcome) -> bool:
    return not outcome.problem and outcome.killed_by != SURVIVED


def _plain(outcome: Outcome) -> Dict[str, object]:
    return {'name': outcome.mutant.name, 'file': outcome.mutant.file,
            'guard': outcome.mutant.guard, 'killed': _is_killed(outcome),
            'killed_by': outcome.killed_by if _is_killed(outcome) else '',
            'problem': outcome.problem,
            'seconds': round(outcome.seconds, 1)}


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [''])[-1]


if __name__ == '__main__':
    sys.exit(main())
