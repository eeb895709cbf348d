"""The parts of a load: contents, objects, turns and histograms."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import io

import pytest

from swift_dss.bench.load import warpcsv
from swift_dss.bench.load.content import STEP_BYTES, Contents
from swift_dss.bench.load.objects import (
    CREATE, DELETE, READ, UPDATE, Objects, Task)
from swift_dss.bench.load.scenario import Scenario, Size
from swift_dss.bench.load.turns import Pace, Share, Turns
from swift_dss.bench.load.workers.shares import Shares
from swift_dss.bench.load.workers.worker import Loss

SIZE = Size('tiny', 3, 9, (1, 2, 3, 4, 0), 10)
SCENARIO = Scenario('s', (SIZE, Size('big', 50, 60, (0, 1, 0, 0, 0), 30)), 4,
                    100, None, container_count=3)


def objects(process=0, processes=1, scenario=SCENARIO):
    return Objects(scenario, scenario.containers, process, processes, '7')


def filled(**changes):
    held = objects(scenario=dataclasses.replace(SCENARIO, **changes))
    for target in held.initial():
        held.done(Task(CREATE, target.kind, target), True,
                  held.begin(target)[0])
    return held


@pytest.mark.parametrize('size', [0, 1, 15, 16, 17, STEP_BYTES,
                                  STEP_BYTES + 1, 3 * (1 << 20) + 5])
def test_a_body_is_known_again_from_its_name(size):
    body = Contents('7').body('c/o', 0, size)
    data = b''.join(body.pieces())
    again = Contents('7').body('c/o', 0, size)
    assert len(data) == size
    for offset in range(0, size, 100_003):
        assert again.has(offset, data[offset:offset + 100_003])
    assert not again.has(0, data + b'x')


@pytest.mark.parametrize('other', [
    ('7', 'c/o', 1), ('7', 'c/p', 0), ('8', 'c/o', 0)])
def test_other_bodies_are_other_bytes(other):
    seed, name, generation = other
    data = b''.join(Contents('7').body('c/o', 0, 100_000).pieces())
    body = Contents(seed).body(name, generation, 100_000)
    assert not body.has(0, data[:16])
    assert not body.has(5000, data[5000:6000])


@pytest.mark.parametrize('block', [4096, 65536, 1 << 20])
def test_a_block_in_another_blocks_place_is_seen(block):
    body = Contents('7').body('c/o', 0, 4 << 20)
    assert not body.has(2 * block, body.piece(block, 4096))


def test_processes_share_the_first_objects():
    names = [[target.path for target in objects(process, 3).initial()]
             for process in range(3)]
    whole = [target.path for target in objects().initial()]
    assert sorted(sum(names, [])) == sorted(whole)
    assert len(set(whole)) == 40
    assert whole[0] == 'ssbench_000000_default_policy/tiny_000001'
    assert max(map(len, names)) - min(map(len, names)) <= 1


def test_new_names_are_nobody_elses():
    sizes = (SIZE._replace(weights=(1, 0, 0, 0, 0)),)
    scenario = dataclasses.replace(SCENARIO, sizes=sizes)
    names = []
    for process in range(2):
        held = objects(process, 2, scenario)
        names += [target.name for target in held.initial()]
        names += [held.next_task().target.name for _ in range(50)]
    assert len(set(names)) == len(names) == 110


def test_sizes_and_operations_have_their_weights():
    held = filled(sizes=(SIZE._replace(initial=1000),
                         Size('big', 1, 1, (0, 1, 0, 0), 3000)))
    counts = collections.Counter()
    for _ in range(8000):
        task = held.next_task()
        counts[task.kind.name, task.operation] += 1
        if task.operation in (UPDATE, DELETE) and task.target:
            # As an update: the object stays.
            held.done(task._replace(operation=UPDATE), True,
                      held.begin(task.target)[0])
    assert counts.pop(('big', READ)) == pytest.approx(6000, rel=0.05)
    expected = {CREATE: 200, READ: 400, UPDATE: 600, DELETE: 800}
    assert {operation: count for (_, operation), count in counts.items()} \
        == {name: pytest.approx(count, rel=0.3)
            for name, count in expected.items()}


def test_an_object_is_written_once_at_a_time_and_deleted_once():
    held = filled(sizes=(SIZE._replace(weights=(0, 0, 1, 1, 0)),))
    tasks = [held.next_task() for _ in range(200)]
    written = [task.target for task in tasks if task.target]
    assert len(written) == len(set(written)) == 10
    deleted = 0
    for task in tasks:
        if task.target is not None:
            deleted += task.operation == DELETE
            held.done(task, True, held.begin(task.target)[0]
                      if task.operation == UPDATE else -1)
    assert 0 < deleted < 10
    assert len(held.left()) == 10 - deleted


def test_a_failed_delete_is_cleaned_up_and_a_failed_create_is_not_read():
    held = filled(sizes=(SIZE._replace(weights=(0, 0, 0, 1, 0), initial=1),))
    task = held.next_task()
    held.done(task, False)
    assert held.left() == [task.target]
    assert held.next_task().target is None
    held = filled(sizes=(SIZE._replace(weights=(1, 1, 0, 0, 0), initial=0),))
    tasks = iter(held.next_task, None)
    create = next(task for task in tasks if task.operation == CREATE)
    held.begin(create.target)
    held.done(create, False, 0)
    assert next(task for task in tasks if task.operation == READ) \
        .target is None
    assert held.left() == [create.target]


def test_a_failed_update_may_be_either():
    held = filled(sizes=(SIZE._replace(weights=(0, 0, 1, 0, 0), initial=1),))
    task = held.next_task()
    generation, size = held.begin(task.target)
    held.done(task, False, generation)
    assert task.target.floor == 0
    assert held.generations(task.target)[1] == (1, size)


def test_closed_turns_begin_at_once_until_all_are_done():
    turns = Turns(Pace(None, 5, None), 1, 2, 100.0, lambda: 103.0)
    assert [turns.take() for _ in range(3)] == [103.0, 103.0, None]
    turns = Turns(Pace(None, None, 3.0), 0, 1, 100.0, lambda: 103.0)
    assert turns.take() is None


def test_open_turns_do_not_wait_for_the_server():
    now = [100.0]
    both = [Turns(Pace(4.0, None, 1.0), process, 2, 100.0, lambda: now[0])
            for process in range(2)]
    taken = [both[0].take(), both[1].take()]
    now[0] = 150.0
    taken += [both[0].take(), both[1].take(), both[0].take()]
    assert taken == [100.0, 100.25, 100.5, 100.75, None]


def test_stopped_turns_end():
    turns = Turns(Pace(4.0, None, 1.0), 0, 1, 100.0, lambda: 100.0)
    assert turns.take() == 100.0
    turns.stop()
    assert turns.take() is None


def listed(lines):
    out = io.StringIO()
    numbered = warpcsv.Numbered(out)
    for text in iter(lines.take, ''):
        numbered.add(text)
    return [line.split('\t') for line in out.getvalue().split('\n')[:-1]]


def test_lines_of_requests_are_those_of_warp():
    held = warpcsv.Lines('dss0', 'http://h:1', 1_700_000_000 * 10 ** 9)
    for _ in range(2):
        held.add(3, 'GET', 'c/a\tb\u2028', 7, 'broke\nhere', 5.0, 5.25, 6.5)
    header, *lines = listed(held)
    assert header == [
        'idx', 'thread', 'op', 'client_id', 'n_objects', 'bytes', 'endpoint',
        'file', 'error', 'start', 'first_byte', 'end', 'duration_ns']
    assert [line[0] for line in lines] == ['0', '1']
    assert lines[0][1:9] == ['3', 'GET', 'dss0', '1', '7', 'http://h:1',
                             'c/a b\u2028', 'broke here']
    assert lines[0][12] == '1500000000'
    start, first, end = (
        datetime.datetime.strptime(text[:26], '%Y-%m-%dT%H:%M:%S.%f')
        for text in lines[0][9:12])
    assert lines[0][9].startswith('2023-11-14T22:13:25')
    assert lines[0][9][26:].endswith('Z') and len(lines[0][9]) == 30
    assert (first - start).total_seconds() == pytest.approx(0.25, abs=1e-5)
    assert (end - start).total_seconds() == pytest.approx(1.5, abs=1e-5)


def test_lines_that_nobody_takes_are_counted(monkeypatch):
    monkeypatch.setattr(warpcsv, 'MAX_WAITING', 1000)
    held = warpcsv.Lines('dss0', 'http://h:1', 0)
    for _ in range(100):
        held.add(3, 'GET', 'c/a', 7, '', 5.0, 5.25, 6.5)
    kept = len(listed(held)) - 1
    assert 3 < kept < 10 and held.missing == 100 - kept
    # There is room again.
    held.add(3, 'GET', 'c/a', 7, '', 5.0, 5.25, 6.5)
    assert len(listed(held)) == 2 and held.missing == 100 - kept


@pytest.mark.parametrize('pace, turns', [
    (Pace(4.0, None, 1.0), [2, 2]), (Pace(None, 7, None), [4, 3]),
    (Pace(None, None, 3.0), [None, None]), (Pace(5.0, 1, 3.0), [1, 0])])
def test_the_turns_of_a_process_are_known_before(pace, turns):
    assert [pace.due(Share(process, 2)) for process in range(2)] == turns
    for process, count in enumerate(turns):
        if count is not None:
            taken = Turns(pace, process, 2, 0.0, lambda: 0.0)
            assert len(list(iter(taken.take, None))) == count


def test_turns_that_are_taken_over_come_at_their_times():
    pace = Pace(4.0, 24, None)
    turns = Turns(pace, 0, 3, 0.0, lambda: 0.0)
    taken = [turns.take() for _ in range(3)]
    rest = Share(1, 3).from_turn(8)
    assert rest == Share(10, 3)
    parts = [rest.part(rank, 2) for rank in range(2)]
    assert sum(map(pace.due, parts)) == pace.due(rest) == 5
    turns.take_over(parts[:1])
    taken += iter(turns.take, None)
    assert [4 * at for at in taken] == [0, 3, 6, 9, 10, 12, 15, 16, 18, 21, 22]


class Process:
    """As the parent knows it."""

    def __init__(self, number):
        self.number, self.loss, self.words, self.told = number, None, {}, []

    def lose(self, at):
        self.loss = Loss('died', None, at)

    def tell(self, message):
        self.told += message


def test_the_turns_of_two_that_are_lost_are_those_of_the_others():
    pace = Pace(4.0, 400, None)
    workers = [Process(number) for number in range(4)]
    shares = Shares(pace, 4, 8, 10.0)
    for number, at in (1, 20.0), (2, 40.0):
        workers[number].lose(at)
        shares.give_on(workers)
        shares.give_on(workers)
    # Two and a half seconds later: the others have to hear of it.
    had = {number: [*range(number, 400, 4)] for number in (0, 3)}
    for number in had:
        for first, step in workers[number].told:
            had[number] += range(first, 400, step)
        assert len(had[number]) == shares.turns(number)
    gone = set(range(1, 50, 4)) | set(range(2, 130, 4)) | {
        turn for first, step in workers[2].told
        for turn in range(first, 130, step)}
    assert sorted(had[0] + had[3]) == sorted(set(range(400)) - gone)
    assert shares.turns(1) + shares.turns(2) == len(gone)
    assert shares.is_given(1) and not shares.is_given(0)


@pytest.mark.parametrize('pace, at, done', [
    # Its users have taken all turns that there are.
    (Pace(4.0, 400, None), 106.0, ()), (Pace(4.0, None, 100.0), 106.0, ()),
    (Pace(None, 400, None), 20.0, ()), (Pace(4.0, 400, None), 20.0, (1,))])
def test_turns_that_nobody_can_take_are_missing(pace, at, done):
    workers = [Process(number) for number in range(2)]
    for number in done:
        workers[number].words['done'] = None
    shares = Shares(pace, 2, 8, 10.0)
    workers[0].lose(at)
    shares.give_on(workers)
    assert workers[1].told == [] and not shares.is_given(0)
