"""The kernel module's floors: who calls whom, and with which lock."""

from __future__ import annotations

import collections
import pathlib
import re
from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

import pytest
from test_circles import circles

ROOT = pathlib.Path(__file__).resolve().parents[3]
KMOD = ROOT / 'swift_dss' / 'block' / 'kmod'
SOURCES = {path.name: path.read_text() for path in KMOD.glob('dss_*.[ch]')}
MOST_LINES = 400

#: What sleeps, or may.
SLEEPS = re.compile(
    r'\b(mutex_lock|wait_event\w*|wait_for_completion\w*|submit_bio_wait'
    r'|flush_work\w*|blkdev_issue_\w+|schedule_timeout\w*|cond_resched'
    r'|GFP_KERNEL|GFP_NOIO|vzalloc|vmalloc|kobject_del|dm_get_device'
    r'|cancel_\w+_sync|destroy_workqueue)\b')
DEFINITION = re.compile(
    r'^(\w[^\n;{}#]*(?:\n[^\n;{}#]+)*)\n\{\n(.*?)^\}', re.M | re.S)
LOCK = re.compile(r'\bspin_lock(?:_irq|_irqsave)?\(')
#: The core's lists are under the lock, too, but while the device has no other
#: user.
CORE = re.compile(r'\bdss_core_(?!bytes|init\b)\w+\(')
ALONE = {'dss_create_core', 'dss_unpack_classes', 'dss_number_recency'}
UNLOCK = re.compile(r'\bspin_unlock(?:_irq|_irqrestore)?\(')
LEAVES = re.compile(r'^\t+(return\b|break;|continue;|goto )')


class Function(NamedTuple):
    """A definition, without comments and strings."""

    file: str
    name: str
    static: bool
    needs_lock: bool
    body: Tuple[str, ...]


def _plain(text: str) -> str:
    text = re.sub(r'/\*.*?\*/|//[^\n]*',
                  lambda match: re.sub(r'[^\n]', ' ', match.group(0)), text,
                  flags=re.S)
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', text)


def functions(sources: Dict[str, str]) -> List[Function]:
    """All that the module's own files define."""
    listed = []
    for file, text in sorted(sources.items()):
        if not file.endswith('.c'):
            continue
        for head, body in DEFINITION.findall(_plain(text)):
            name = re.search(r'(\w+)\s*\(', head)
            assert name, head
            listed.append(Function(
                file, name.group(1), head.startswith('static '),
                re.search(r'__must_hold\(&[\w>.-]*->lock\)', head)
                is not None, tuple(body.split('\n'))))
    return listed


class Calls:
    """Which function names which: a static one is its file's own.

    A function that is only handed on, as one that a worker or the end of a
    bio is to call, counts as named: the floors are for readers, too.
    """

    def __init__(self, every: List[Function]) -> None:
        self.every = every
        self._own = {(function.file, function.name): function
                     for function in every if function.static}
        self._of_all = {function.name: function for function in every
                        if not function.static}

    def named(self, caller: Function, line: str) -> Iterator[Function]:
        for word in re.findall(r'\b[a-z]\w+\b', line):
            other = self._own.get((caller.file,
                                   word)) or self._of_all.get(word)
            if other and other is not caller:
                yield other

    def files(self) -> Dict[str, Set[str]]:
        graph: Dict[str, Set[str]] = {function.file: set()
                                      for function in self.every}
        for function in self.every:
            for line in function.body:
                graph[function.file].update(
                    other.file for other in self.named(function, line)
                    if other.file != function.file)
        return graph

    def closure(self, names: Set[Tuple[str, str]]) -> Set[Tuple[str, str]]:
        """With all that call one of them."""
        grown = True
        while grown:
            grown = False
            for function in self.every:
                key = (function.file, function.name)
                if key not in names and any(
                        (other.file, other.name) in names
                        for line in function.body
                        for other in self.named(function, line)
                        if _calls(other.name, line)):
                    names.add(key)
                    grown = True
        return names


def _calls(name: str, line: str) -> bool:
    """Whether the line calls it, and does not hand it on."""
    return re.search(r'\b%s\(' % name, line) is not None


def locked_lines(function: Function) -> Iterator[Tuple[str, bool]]:
    """Its lines, and whether d->lock is held there, read from top to bottom.

    After a block that gives the lock up and leaves, it is held as before.
    """
    held = function.needs_lock
    taken_in = 0
    left_in = None
    leaves = False
    for line in function.body:
        depth = len(line) - len(line.lstrip('\t'))
        if left_in is not None and line.strip() and depth < left_in:
            held, left_in, leaves = held or leaves, None, False
        if LOCK.search(line):
            held, taken_in = True, depth
        yield line, held
        if UNLOCK.search(line):
            if held and depth > taken_in:
                left_in = depth
            held = False
        elif left_in is not None and LEAVES.match(line):
            leaves = True


def wrong_locks(every: List[Function]) -> Set[str]:
    """Calls with the lock where it must not be held, or without it where it
    must."""
    calls = Calls(every)
    by_key = {(function.file, function.name): function for function in every}
    sleeping = calls.closure({
        key for key, function in by_key.items() if SLEEPS.search('\n'.join(
            function.body))})
    taking = calls.closure({
        key for key, function in by_key.items()
        if not function.needs_lock and LOCK.search('\n'.join(function.body))})
    wrong = set()
    for function in every:
        for line, held in locked_lines(function):
            if not held and function.name not in ALONE and CORE.search(line):
                wrong.add('%s asks the core without the lock' % function.name)
            if held and SLEEPS.search(line):
                wrong.add('%s sleeps with the lock' % function.name)
            for other in calls.named(function, line):
                key = (other.file, other.name)
                if not _calls(other.name, line):
                    continue
                if other.needs_lock and not held:
                    wrong.add('%s calls %s without the lock'
                              % (function.name, other.name))
                if held and key in sleeping:
                    wrong.add('%s calls %s, which may sleep, with the lock'
                              % (function.name, other.name))
                if held and key in taking:
                    wrong.add('%s calls %s, which takes the lock, with it'
                              % (function.name, other.name))
    return wrong


def changed(file: str, before: str, after: str) -> Dict[str, str]:
    assert SOURCES[file].count(before) == 1, (file, before)
    return dict(SOURCES, **{
        file: SOURCES[file].replace(before, after)})


def test_no_two_files_call_each_other_in_a_circle():
    graph = Calls(functions(SOURCES)).files()
    assert len(graph) > 30
    assert circles(graph) == set()


@pytest.mark.parametrize('file, before, after', [
    ('dss_queue.c', 'io->then = NULL;', 'io->then = dss_reprocess;'),
    ('dss_issue.c', 'dss_again(io);', 'dss_decide(io, false);'),
    ('dss_flight.c', 'dss_again(other);', 'dss_issue(other);')])
def test_a_call_upwards_is_seen(file, before, after):
    sources = changed(file, before, after)
    if 'dss_reprocess' in after:
        sources['dss_map.c'] = sources['dss_map.c'].replace(
            'static void dss_reprocess', 'void dss_reprocess')
    assert circles(Calls(functions(sources)).files())


def test_the_lock_is_held_where_it_must_be_and_nothing_sleeps_under_it():
    every = functions(SOURCES)
    assert sum(function.needs_lock for function in every) > 100
    assert wrong_locks(every) == set()


@pytest.mark.parametrize('file, before, after, said', [
    ('dss_keep.c', '\tspin_lock_irqsave(&d->lock, irq);\n\t\tdss_kept',
     '\tdss_kept', 'dss_keep_end calls dss_kept without the lock'),
    ('dss_super.c', '\tspin_lock_irq(&d->lock);\n\tdss_pack_super',
     '\tdss_pack_super', 'dss_meta_mark calls dss_pack_super without the '
     'lock'),
    ('dss_message.c', '\tline = dss_core_check(d->core);\n\t\tspin_unlock_irq'
     '(&d->lock);', '\tspin_unlock_irq(&d->lock);\n\t\tline = '
     'dss_core_check(d->core);',
     'dss_message_one asks the core without the lock'),
    ('dss_message.c', '\tdrained = ', '\tdss_commit_all(d);\n\tdrained = ',
     'dss_drained calls dss_commit_all, which may sleep, with the lock'),
    ('dss_write.c', 'dss_tell_cleaner(io);', 'dss_ready(io, dss_issue);',
     'dss_write_back calls dss_ready, which takes the lock, with it'),
    ('dss_map.c', '\tio->kind = DSS_READ_HDD;\n',
     '\tio->kind = DSS_READ_HDD;\n\tkfree(kzalloc(1, GFP_NOIO));\n',
     'dss_no_memory sleeps with the lock')])
def test_a_wrong_lock_is_seen(file, before, after, said):
    assert said in wrong_locks(functions(changed(file, before, after)))


@pytest.mark.parametrize('path', [
    path for path in sorted(KMOD.rglob('*.[ch]'))
    # The contract of the core: most of it is the prose of its verbs.
    if path.name != 'dss_core.h'], ids=lambda path: path.name)
def test_no_file_is_long(path):
    assert path.read_text().count('\n') <= MOST_LINES


def test_nothing_in_c_is_dead():
    """Functions, and names of numbers, that stand only where they are made."""
    text = _plain('\n'.join(path.read_text() for path in sorted(
        KMOD.rglob('*')) if path.suffix in ('.c', '.h')
        or path.name == 'Kbuild'))
    made = set(re.findall(r'^#define (\w+)[ \t]+\S', text, re.M)) | set(
        re.findall(r'^\w[\w \*]*?\b(\w+)\([^;{}]*\)\n(?:\t__must_hold'
                   r'[^\n]*\n)?\{', text, re.M))
    assert len(made) > 500
    times = collections.Counter(re.findall(r'\b\w+\b', text))
    assert {name for name in made if times[name] < 2} == set()


@pytest.mark.parametrize('file', sorted(
    name for name in SOURCES if name.endswith('.c')))
def test_each_file_includes_one_floor_and_says_its_context(file):
    text = SOURCES[file]
    assert len(re.findall(r'^#include "dss_\w+\.h"$', text, re.M)) == 1
    head = re.search(r'/\*.*?\*/', text, re.S).group(0)
    assert 'Context:' in head or 'd->lock' in head
