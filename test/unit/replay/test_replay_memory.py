"""Memory of a replay, by the requests of its trace."""

import random
import subprocess
import sys

import pytest

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadConfig
from swift_dss.replay import plan, simulator, timed
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators, model, native, spool

#: Objects of the traces: their names are in memory, too.
OBJECTS = 500
#: Of a request, as long as the trace is read and played.
MOST_BYTES = 16
#: Requests of two traces: what the allocator keeps differs by 1 to 2 MB
#: from run to run, so that the longer one has many more.
SIZES = (150000, 950000)
# Few rows are in memory at a time, so that a short trace shows what a long
# one takes.
CHILD = """
import re, sys
from swift_dss.cli.main import main
from swift_dss.replay.traces import spool
spool.MEMORY_ROWS = 1 << 14
main(sys.argv[1:])
print(re.search('VmHWM:\\s*([0-9]+)', open('/proc/self/status').read())[1])
"""


def write(path, requests, ranges=False):
    dice = random.Random(requests)
    with open(path, 'w') as out:
        out.write('# swift-dss trace 2\n')
        for at in range(requests):
            number = min(dice.randrange(OBJECTS), dice.randrange(OBJECTS))
            start = number * 1000 + at % 100
            out.write('%d %s a/o%d %d %d %d %d\n' % (
                at, 'GET' if at % 20 else 'PUT', number, 9000000,
                start if ranges and at % 20 else 0,
                start + 99999 if ranges and at % 20 else 8999999,
                11 + number % 3))


def peak_bytes(*options):
    """Of a replay in a process of its own. Its ``ru_maxrss`` would be
    that of this process, too."""
    child = subprocess.run(
        [sys.executable, '-c', CHILD, 'replay', *map(str, options)],
        stdout=subprocess.PIPE, check=True)
    return int(child.stdout.split()[-1]) * 1024


@pytest.mark.parametrize('ranges, write_mode', [
    (False, 'through'), (True, 'back')], ids=['objects', 'parts-in-time'])
def test_a_request_takes_few_bytes(ranges, write_mode, tmp_path):
    peaks = []
    for requests in SIZES:
        path = tmp_path / str(requests)
        write(path, requests, ranges)
        peaks.append(peak_bytes(path, '--strategy', 'class-lru', '--cache',
                                '10%', '--write', write_mode))
    each = (peaks[1] - peaks[0]) / (SIZES[1] - SIZES[0])
    print('figure: a request of a replay takes %.1f bytes' % each)
    assert 0 < each <= MOST_BYTES


@pytest.mark.parametrize('head, ending', [
    ('', ''), ('# unit 4096\n', ''), ('# untimed\n', ''),
    ('# clients\n', ' 3')], ids=['objects', 'volumes', 'untimed', 'clients'])
def test_columns_in_files_are_those_in_memory(head, ending, monkeypatch):
    lines = [b'# swift-dss trace 2\n'] + [head.encode()] + [
        b'%d GET v%d 81920 %d %d 2%s' % (
            at + 7 * (at == 11), at % 5, at, at + 5000, ending.encode())
        for at in range(103)]
    wanted = played(lines)
    monkeypatch.setattr(spool, 'MEMORY_ROWS', 10)
    assert played(lines) == wanted


def played(lines):
    """(columns, hits and waits by either way) of a replay."""
    trace = model.spread(native.read(lines, 'x'), 100.0)
    ready = plan.plan(trace)
    outcomes = [way(ready, Setup('lru', 100000, ClassTable()))
                for way in (simulator.replay, timed.play)]
    return [getattr(trace, name).tolist() for name in model.COLUMNS] + [
        column.tolist() for outcome in outcomes for column in (
            outcome.hits, outcome.hit_bytes, outcome.asked_bytes,
            outcome.latency_ms)] + [
        ready.footprint_bytes, ready.renewed.tolist(), trace.classes(),
        ready.largest_bytes, outcomes[0].counts]


@pytest.mark.parametrize('text, unit', [
    ('gen:zipf,requests=3000,objects=200,sigma=1,writes=0.1', 0),
    ('gen:chains,requests=1500', 65536)])
def test_slices_have_the_accesses_of_the_whole(text, unit):
    ready = plan.plan(generators.generate(text), unit)
    parts = list(ready.slices(100))
    for name in ('keys', 'sizes', 'class_ids'):
        assert [value for part in parts
                for value in getattr(part, name).tolist()] == \
            getattr(ready, name).tolist()
    assert [part.before + at for part in parts
            for at in part.first.tolist()[:-1]] == ready.first.tolist()[:-1]
    assert ready.accesses == len(ready.keys)


def test_no_room_for_the_columns_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(spool, 'MEMORY_ROWS', 10)
    monkeypatch.setattr(spool.tempfile, 'tempdir', str(tmp_path / 'gone'))
    with pytest.raises(BadConfig, match='set TMPDIR to a directory'):
        native.read([b'%d GET a 1\n' % at for at in range(20)], 'x')
