"""The life of an upload: each step of the table, allowed and refused."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import tempfile
from types import SimpleNamespace

import pytest
from support.clocks import StillClock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine, invariant, precondition, rule)

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import RemoteCorrupt, RemoteUnavailable
from swift_dss.core.version import VersionId
from swift_dss.gateway.link.breaker import Breaker, Trust
from swift_dss.gateway.link.client import S3Down
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.peers.succession import Succession
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.queue import DeleteJob, Queue
from swift_dss.gateway.up import jobs as life
from swift_dss.gateway.up.jobs import (
    TRANSITIONS, Cancelled, Jobs, OutOfTurn, State, Step)
from swift_dss.gateway.up.standing import Standing

from support.nodes.gateway_node import FixedRanks

NOW = 1700000100.0
ERROR = RemoteUnavailable('S3 is away', 1)
#: Steps that end a claim, and whether the row stays.
ENDS = {Step.PARK: True, Step.WAIT: True, Step.LEAVE_ALONE: True,
        Step.RETRY: True, Step.FINISH: False, Step.DROP: False}
#: How to bring a claimed key into each state.
PATHS = {State.FREE: (), State.CLAIMED: (Step.CLAIM,),
         State.SENDING: (Step.CLAIM, Step.SEND),
         State.VERIFYING: (Step.CLAIM, Step.SEND, Step.VERIFY),
         State.CANCELLED: (Step.CLAIM, Step.CANCEL),
         State.DELETING: (Step.DELETE,)}


def version_of(number, device='sda'):
    return VersionId(device, 0, '%032x' % number, '1700000000.00000')


class Bench:
    """Jobs over a real queue, and one version."""

    def __init__(self, root, ranks=None):
        self.path = os.path.join(root, 'gateway.db')
        self.clock = StillClock(NOW)
        self.ranks = FixedRanks(ranks or {})
        self.open()

    def open(self):
        """As a process that begins."""
        conf = GatewayConf(remote_after_seconds=50.0)
        retry = Backoff(10.0, 10.0, random.Random(1))
        self.queue = Queue(self.path)
        self.jobs = Jobs(conf, self.queue, Succession(
            conf, self.ranks, retry, self.clock), Standing(
                Breaker(), Trust(), self.clock), retry, self.clock)

    def rows(self, key):
        return self.queue.uploads_of(key)

    def take(self, step, job, delete):
        """Do a step by the method that has its name."""
        jobs, key = self.jobs, job.version.key
        verbs = {
            Step.CLAIM: lambda: jobs.claim([job]) == [job],
            Step.SEND: lambda: jobs.send(key),
            Step.VERIFY: lambda: jobs.verify(key),
            Step.PARK: lambda: jobs.park([job], self.clock.now + 999.0),
            Step.WAIT: lambda: jobs.wait([job]),
            Step.LEAVE_ALONE: lambda: jobs.leave_alone([job]),
            Step.RETRY: lambda: jobs.retry(
                job, ERROR, jobs.again_at(job, ERROR)),
            Step.FINISH: lambda: jobs.finish([job]),
            Step.DROP: lambda: jobs.drop([job]),
            Step.RELEASE: lambda: jobs.release([job, delete]),
            Step.CANCEL: lambda: jobs.cancel(
                [(job.version, '7', self.clock.now)]),
            Step.DELETE: lambda: jobs.claim_delete(delete)}
        return verbs[step]()

    def close(self):
        self.queue.close()


@pytest.fixture
def bench(tmp_path):
    made = Bench(str(tmp_path))
    yield made
    made.close()


def queued(bench, number=0, device='sda'):
    """A version's job, from its row."""
    version = version_of(number, device)
    bench.jobs.enqueue([Upload(version, '7', True)])
    job, = (job for job in bench.rows(version.key)
            if job.version == version)
    return job, DeleteJob('p/' + version.key, version, '7', NOW, NOW)


def test_the_docstrings_table_is_the_one_in_force():
    lines = [line.split() for line in life.__doc__.splitlines()]
    begin = next(at for at, line in enumerate(lines)
                 if line[:2] == ['step', 'free'])
    states = [State(name) for name in lines[begin][1:]]
    assert states == list(State)
    said, busy, stop = {}, [], []
    rows = list(itertools.takewhile(
        lambda line: not line[0].startswith('='), lines[begin + 2:]))
    assert [line[0] for line in rows] == [step.value for step in Step]
    for name, *cells in rows:
        for state, cell in zip(states, cells):
            {'--': [], 'busy': busy, 'stop': stop}.get(cell, [0]).append(
                (state, Step(name)))
            if cell not in ('--', 'busy', 'stop'):
                said[state, Step(name)] = State(cell)
    assert said == TRANSITIONS
    assert {step for _, step in busy} == {Step.CLAIM}
    assert stop == [(State.CANCELLED, Step.SEND)]


@pytest.mark.parametrize('step', list(Step), ids=lambda row: row.value)
@pytest.mark.parametrize('state', list(State), ids=lambda row: row.value)
def test_each_step_does_as_the_table_says(bench, state, step):
    job, delete = queued(bench)
    key = job.version.key
    for before in PATHS[state]:
        bench.take(before, job, delete)
    assert bench.jobs.state(key) is state
    had = bench.rows(key)
    after = TRANSITIONS.get((state, step))
    if step is Step.CLAIM:
        assert bench.take(step, job, delete) == (after is not None)
        assert bench.jobs.state(key) is (after or state)
    elif after is None:
        refusal = Cancelled if (state, step) == (
            State.CANCELLED, Step.SEND) else OutOfTurn
        with pytest.raises(refusal):
            bench.take(step, job, delete)
        assert bench.jobs.state(key) is state
        # A row that waits may be put off in vain; none is lost.
        assert len(bench.rows(key)) == len(had)
    else:
        said = bench.take(step, job, delete)
        assert bench.jobs.state(key) is after
        if step is Step.DELETE:
            assert said == (state is State.FREE)
        goes = step is Step.CANCEL or ENDS.get(step) is False
        assert len(bench.rows(key)) == (0 if goes else len(had))


def test_a_parked_row_stays_and_is_not_due_until_its_bundle_is_late(bench):
    job, _ = queued(bench)
    bench.jobs.claim([job])
    bench.jobs.park([job], NOW + 999.0)
    assert bench.queue.due_uploads(NOW + 998.0, 9) == []
    parked, = bench.queue.due_uploads(NOW + 999.0, 9)
    assert (parked.attempts, parked.failures) == (1, 0)
    bench.jobs.settle([job.version])
    assert bench.rows(job.version.key) == []


def test_a_failure_counts_and_a_closed_door_does_not(bench):
    job, _ = queued(bench)
    for err, failures in ((ERROR, 1), (S3Down('open', 1), 1),
                          (RemoteCorrupt('lost'), 2)):
        job, = bench.rows(job.version.key)
        bench.jobs.claim([job])
        at = bench.jobs.again_at(job, err)
        assert NOW < at <= NOW + 10.0
        bench.jobs.retry(job, err, at)
        row, = bench.rows(job.version.key)
        assert (row.failures, row.not_before) == (failures, at)
        assert type(err).__name__ in row.error


def test_replicas_of_the_node_share_the_claim(bench):
    here, _ = queued(bench)
    there, delete = queued(bench, device='sdb')
    assert bench.jobs.claim([here, there]) == [here]
    with pytest.raises(OutOfTurn, match='another thread'):
        bench.jobs.finish([there])
    assert len(bench.rows(here.version.key)) == 2
    assert not bench.jobs.claim_delete(delete)
    with pytest.raises(Cancelled):
        bench.jobs.send(here.version.key)


def test_a_claim_that_ended_is_not_given_back_for_its_successor(bench):
    first, _ = queued(bench)
    bench.jobs.claim([first])
    bench.jobs.park([first], NOW)
    second, = bench.rows(first.version.key)
    bench.jobs.claim([second])
    bench.jobs.release([first])
    assert bench.jobs.state(first.version.key) is State.CLAIMED


def test_a_delete_hears_when_the_upload_in_its_way_has_ended(bench):
    job, delete = queued(bench)
    bench.jobs.claim([job])
    bench.jobs.due.begin()
    assert not bench.jobs.claim_delete(delete)
    rung = []
    bench.jobs.due.ring = lambda *due: rung.append(due)
    bench.jobs.release([job])
    assert rung
    assert bench.jobs.claim_delete(delete)


def test_the_first_upload_that_proves_right_ends_a_loss_of_trust(bench):
    standing = bench.jobs.standing
    for _ in range(5):
        standing.failed(RemoteCorrupt('lost'))
    assert standing.state == 'distrusted'
    assert standing.proven() == (True, True)
    assert standing.state == 'closed'
    # Three in a row without an answer are an outage, but not one at once
    # after another.
    for _ in range(3):
        standing.failed(ERROR)
    assert standing.proven() == (False, False)
    bench.clock.now += 20.0
    for _ in range(3):
        standing.failed(ERROR)
    assert standing.proven() == (False, True)
    standing.failed(ERROR)
    bench.clock.now += 20.0
    assert standing.proven() == (False, False)


class Lives(RuleBasedStateMachine):
    """Any order of steps by any thread, with crashes, against a model: the
    rows that must be there, and who has which key."""

    NUMBERS = st.integers(0, 2)
    DEVICES = st.sampled_from(('sda', 'sdb'))

    def __init__(self):
        super().__init__()
        self.root = tempfile.mkdtemp()
        self.bench = Bench(self.root)
        #: Versions that S3 lacks as far as this node knows.
        self.rows = set()
        #: (job, state) of each key that a thread has.
        self.held = {}

    def teardown(self):
        self.bench.close()
        shutil.rmtree(self.root)

    @rule(number=NUMBERS, device=DEVICES)
    def enqueue(self, number, device):
        version = version_of(number, device)
        self.bench.jobs.enqueue([Upload(version, '7', True)])
        self.rows.add(version)

    @rule(number=NUMBERS)
    def claim(self, number):
        rows = self.bench.rows(version_of(number).key)
        taken = self.bench.jobs.claim(rows)
        key = version_of(number).key
        assert len(taken) == int(bool(rows) and key not in self.held)
        for job in taken:
            self.held[key] = job, State.CLAIMED

    @precondition(lambda self: self.held)
    @rule(step=st.sampled_from([Step.SEND, Step.VERIFY, *ENDS]),
          pick=st.integers(0, 5))
    def step(self, step, pick):
        key = sorted(self.held)[pick % len(self.held)]
        job, state = self.held[key]
        if state is State.DELETING:
            return
        after = TRANSITIONS.get((state, step))
        try:
            self.bench.take(step, job, SimpleNamespace(version=job.version))
        except (Cancelled, OutOfTurn):
            assert after is None
            return
        assert after is not None
        if step is Step.FINISH:
            assert state is not State.SENDING
        if after is State.FREE:
            del self.held[key]
            if not ENDS[step]:
                self.rows.discard(job.version)
        else:
            self.held[key] = job, after

    @rule(number=NUMBERS, device=DEVICES)
    def cancel(self, number, device):
        version = version_of(number, device)
        self.bench.jobs.cancel([(version, '7', NOW)])
        self.rows.discard(version)
        if version.key in self.held:
            job, state = self.held[version.key]
            self.held[version.key] = job, TRANSITIONS[state, Step.CANCEL]

    @rule(number=NUMBERS)
    def delete(self, number):
        version = version_of(number)
        job = DeleteJob('p/' + version.key, version, '7', NOW, NOW)
        if self.bench.jobs.claim_delete(job):
            assert version.key not in self.held
            self.held[version.key] = job, State.DELETING
        else:
            held, state = self.held[version.key]
            self.held[version.key] = held, TRANSITIONS[state, Step.DELETE]

    @precondition(lambda self: self.held)
    @rule(pick=st.integers(0, 5))
    def release(self, pick):
        key = sorted(self.held)[pick % len(self.held)]
        self.bench.jobs.release([self.held.pop(key)[0]])

    @rule(number=NUMBERS, device=DEVICES)
    def settle(self, number, device):
        version = version_of(number, device)
        self.bench.jobs.settle([version])
        self.rows.discard(version)

    @rule(number=NUMBERS, device=DEVICES)
    def put_off(self, number, device):
        self.bench.jobs.put_off(version_of(number, device), 60.0, ERROR)

    @rule(number=NUMBERS, device=DEVICES)
    def single_out(self, number, device):
        self.bench.jobs.single_out([version_of(number, device)])

    @rule()
    def crash(self):
        """Rows are durable, claims are not."""
        self.bench.close()
        self.bench.open()
        self.held.clear()

    @invariant()
    def rows_are_those_of_the_model(self):
        assert {row.version for number in range(3) for row in
                self.bench.rows(version_of(number).key)} == self.rows

    @invariant()
    def each_key_is_where_the_model_says(self):
        jobs = self.bench.jobs
        assert {version_of(number).key: jobs.state(version_of(number).key)
                for number in range(3)} == {
            version_of(number).key: self.held.get(
                version_of(number).key, (None, State.FREE))[1]
            for number in range(3)}
        assert jobs.claimed() == len(self.held)


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=60, stateful_step_count=40,
                              deadline=None)
