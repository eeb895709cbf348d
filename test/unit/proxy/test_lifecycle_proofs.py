"""What rounds and restorations prove before they do what cannot be undone:
every primary is asked, and the clock is compared with those of the servers.
"""

from __future__ import annotations

import email.utils
import json
import threading
import time
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from swift.common.utils import Timestamp
from test_lifecycle_rounds import (
    CLOCK, DAY, NOW_AND_HERE, Logger, Swift, buckets_of, call, class_of,
    make_due, proxy_of, restore, restores_of, rows_of, rule, set_rules, to,
    work)

from swift_dss.core.lifecycle import Lifecycle, When
from swift_dss.io import waiting
from swift_dss.proxy.lifecycle.buckets import ACCOUNT
from swift_dss.proxy.work.clock import Clock
from swift_dss.proxy.lifecycle.restores import READS
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.leader import Leader
from swift_dss.proxy.work.primaries import Primaries
from swift_dss.proxy.work.rows import Rows, own_env
from swift_dss.wire import names
from swift_dss.wire.s3 import lifecycle as stored

DATA_AT, AT = 'X-Backend-Data-Timestamp', 'X-Backend-Timestamp'
NEWER = {DATA_AT: Timestamp(time.time() - 10 * DAY).internal}


class Policy(int):
    """Of three replicas."""

    quorum = 2


class Ring:
    """Three devices, each of a server of its own."""

    def __init__(self) -> None:
        self.names: List[Tuple[str, ...]] = []

    def get_nodes(self, *names: str) -> Tuple[int, List[Dict[str, Any]]]:
        self.names.append(names)
        return 7, [{'ip': '10.0.0.%d' % number, 'port': 6200,
                    'device': 'sd%d' % number} for number in range(3)]

    def get_more_nodes(self, _partition: int) -> Iterator[Any]:
        return iter(())


class RingedSwift(Swift):
    """With servers of its own to be asked: each has what the proxy shows, but
    for what ``said`` says."""

    conn_timeout = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.container_ring = self.ring = Ring()
        #: By the end of a server's address, and of the path if it is of that
        #: alone: headers, a status, None for 404, or what the question raises;
        #: or a list of these.
        self.said: Dict[str, Any] = {}
        #: Seconds by which its clock is ahead.
        self.ahead: Dict[str, float] = {}
        self.asked: List[Tuple[str, str]] = []

    def get_object_ring(self, _index: Any) -> Ring:
        return self.ring

    def fetch(self, host: str, _port: int, path: str, *_rest: Any) -> Any:
        self.asked.append((host, path))
        _, device, partition, where = path.split('/', 3)
        assert (device, partition) == ('sd' + host[-1], '7')
        date = {'Date': email.utils.formatdate(
            time.time() + self.ahead.get(host[-1], 0.0), usegmt=True)}
        known = self.objects.get('/v1/' + where)
        said = self.said.get(host[-1], known[1] if known else
                             self.containers.get('/v1/' + where))
        said = self.said.get(host[-1] + path[-2:], said)
        if isinstance(said, list):
            said = said.pop(0)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, int):
            said = said, {}
        if isinstance(said, tuple):
            return said[0], dict(date, **said[1]), b''
        return (404, date, b'') if said is None else (
            200, dict(date, **said), b'')


def ask_directly(monkeypatch: Any, fetch: Any) -> None:
    """Servers of a policy of three replicas are asked by ``fetch``."""
    monkeypatch.setattr(waiting, 'fetch', fetch)
    monkeypatch.setattr('swift_dss.proxy.replicas.POLICIES', SimpleNamespace(
        get_by_index=lambda _index: Policy()))
    monkeypatch.setattr('swift_dss.proxy.replicas.get_container_info',
                        lambda *_words, **_more: {'storage_policy': 0})


@pytest.fixture
def swift(monkeypatch: Any) -> RingedSwift:
    made = RingedSwift()
    ask_directly(monkeypatch, made.fetch)
    return made


@pytest.fixture
def dss(swift: RingedSwift, tmp_path: Any) -> Any:
    return proxy_of(swift, tmp_path)


def put_due(dss: Any, swift: Any) -> None:
    """An object that a rule ends at once."""
    call(dss, 'PUT', '/v1/a/c/o')
    swift.age('/v1/a/c/o', 40)
    set_rules(dss, rule(expiration=When(days=30)))


def test_an_object_that_all_know_ends(dss: Any, swift: Any) -> None:
    put_due(dss, swift)
    work(buckets_of(dss))
    assert '/v1/a/c/o' not in swift.objects
    assert ('10.0.0.2', '/sd2/7/a/c/o') in swift.asked


@pytest.mark.parametrize('said, counter', [
    ([404, NEWER], 'overtaken'), (NEWER, 'later'),
    (OSError('away'), 'later'), (507, 'later'),
    ({DATA_AT: Timestamp(time.time() - 50 * DAY).internal}, 'expired'),
    (None, 'expired')])
def test_an_object_ends_only_if_no_primary_may_know_a_newer_one(
        dss: Any, swift: Any, said: Any, counter: str) -> None:
    """Those that do may be the only ones, and have been away at the look."""
    put_due(dss, swift)
    swift.said['1/o'] = said
    work(buckets_of(dss))
    assert ('/v1/a/c/o' in swift.objects) == (counter != 'expired')
    assert 'dss.lifecycle.' + counter in _counts(swift)


def _counts(swift: Any) -> List[str]:
    """Of the round, as its row has them."""
    row, = rows_of(swift, 'buckets')
    text = str(swift.objects[row][1]['X-Object-Meta-Beside'])
    return ['dss.lifecycle.' + name for name in (
        'overtaken', 'later', 'expired') if '"%s"' % name in text]


@pytest.mark.parametrize('said', [OSError('away'), {}, 'others'])
def test_rules_end_objects_only_where_all_servers_have_the_same(
        dss: Any, swift: Any, said: Any) -> None:
    """The rule may be gone, and all who heard of it away."""
    call(dss, 'PUT', '/v1/a/c/o')
    call(dss, 'PUT', '/v1/a/c/moved')
    set_rules(dss, rule(expiration=NOW_AND_HERE, prefix='o'),
              rule(to('GLACIER'), prefix='m'))
    if said == 'others':
        said = stored.to_headers(
            names.CONTAINER_SYSMETA_LIFECYCLE, Lifecycle(()))
    swift.said['1'] = said
    work(buckets_of(dss))
    assert '/v1/a/c/o' in swift.objects
    assert class_of(swift, '/v1/a/c/moved') == 27
    assert 'dss.lifecycle.later' in dss.logger.counted
    swift.said.clear()
    make_due(swift, 'buckets')
    work(buckets_of(dss))
    assert '/v1/a/c/o' not in swift.objects


@pytest.mark.parametrize('is_away', [True, False])
def test_a_bucket_is_forgotten_only_if_no_server_has_its_rules(
        dss: Any, swift: Any, is_away: bool) -> None:
    set_rules(dss, rule(to('GLACIER')))
    kept = dict(swift.containers['/v1/a/c'])
    swift.said['2'] = OSError('away') if is_away else kept
    set_rules(dss)
    swift.age(rows_of(swift, 'buckets')[0], 1)
    work(buckets_of(dss))
    assert rows_of(swift, 'buckets')
    swift.said.clear()
    make_due(swift, 'buckets')
    work(buckets_of(dss))
    assert not rows_of(swift, 'buckets')


@pytest.mark.parametrize('is_away', [True, False])
@pytest.mark.parametrize('is_gone', [True, False])
def test_a_restoration_is_forgotten_only_if_no_server_has_it(
        dss: Any, swift: Any, is_away: bool, is_gone: bool) -> None:
    """Else the object would keep the class of restored ones for ever."""
    call(dss, 'PUT', '/v1/a/c/o')
    restore(dss)
    path = '/v1/a/c/o'
    body, headers = swift.objects.pop(path)
    swift.said['2'] = OSError('away') if is_away else dict(headers)
    if not is_gone:
        # A server answers that missed it.
        call(dss, 'PUT', path)
    swift.age(rows_of(swift, 'restores')[0], 1)
    make_due(swift, 'restores')
    work(restores_of(dss))
    assert rows_of(swift, 'restores')
    swift.said.clear()
    make_due(swift, 'restores')
    work(restores_of(dss))
    assert not rows_of(swift, 'restores')


def test_parts_stay_while_a_server_may_have_their_manifest(
        dss: Any, swift: Any) -> None:
    upload = 'X-Object-Sysmeta-S3api-Upload-Id'
    swift.objects['/v1/a/c+segments/o/id/1'] = (b'x', {
        'X-Timestamp': '1', 'X-Backend-Data-Timestamp': '1'})
    call(dss, 'PUT', '/v1/a/c/o')
    swift.age('/v1/a/c/o', 40)
    headers = swift.objects['/v1/a/c/o'][1]
    headers.update({upload: 'id', 'X-Static-Large-Object': 'True'})
    set_rules(dss, rule(expiration=When(days=30)))
    kept = dict(headers)
    work(buckets_of(dss))
    assert '/v1/a/c/o' not in swift.objects and rows_of(swift, 'parts')
    swift.said['2'] = OSError('away')
    for _look in range(4):
        make_due(swift, 'parts')
        work(buckets_of(dss))
    assert '/v1/a/c+segments/o/id/1' in swift.objects
    swift.said['2'] = kept
    make_due(swift, 'parts')
    work(buckets_of(dss))
    assert '/v1/a/c+segments/o/id/1' in swift.objects
    assert not rows_of(swift, 'parts')


def test_posts_are_seen_that_the_first_server_missed(
        dss: Any, swift: Any) -> None:
    """Swift's X-Newest compares data alone."""
    put_due(dss, swift)
    headers = swift.objects['/v1/a/c/o'][1]
    headers[names.S3_TAGGING] = 'temporary=yes'
    set_rules(dss, rule(expiration=When(days=30),
                        tags=(('temporary', 'yes'),)))
    swift.said['2/o'] = {DATA_AT: headers[DATA_AT],
                         AT: Timestamp.now().internal}
    work(buckets_of(dss))
    assert '/v1/a/c/o' in swift.objects
    swift.said['2/o'][names.S3_TAGGING] = 'temporary=yes'
    make_due(swift, 'buckets')
    work(buckets_of(dss))
    assert '/v1/a/c/o' not in swift.objects


def test_metadata_puts_off_no_end_by_more_than_a_day(
        dss: Any, swift: Any) -> None:
    """The row of an object with new metadata looks young."""
    put_due(dss, swift)
    swift.age('/v1/a/c/o', 20)
    work(buckets_of(dss))
    row, = rows_of(swift, 'buckets')
    swift.age('/v1/a/c/o', 40)
    swift.objects['/v1/a/c/o'][1]['X-Timestamp'] = Timestamp.now().internal
    make_due(swift, 'buckets')
    work(buckets_of(dss))
    assert '/v1/a/c/o' in swift.objects
    kept = json.loads(swift.objects[row][1]['X-Object-Meta-Beside'])
    assert kept['looked_at'] > time.time() - 60
    kept['looked_at'] -= DAY
    swift.objects[row][1]['X-Object-Meta-Beside'] = json.dumps(kept)
    make_due(swift, 'buckets')
    work(buckets_of(dss))
    assert '/v1/a/c/o' not in swift.objects


@pytest.mark.parametrize('away, class_id', [('1', 27), ('12', None)])
def test_classes_change_where_enough_servers_answer(
        dss: Any, swift: Any, away: str, class_id: Any) -> None:
    """So many that a POST has reached one of them."""
    call(dss, 'PUT', '/v1/a/c/o')
    set_rules(dss, rule(to('GLACIER')))
    for number in away:
        swift.said[number + '/o'] = OSError('away')
    work(buckets_of(dss))
    assert class_of(swift) == class_id


def test_a_bucket_whose_servers_know_a_newer_deletion_waits(
        dss: Any, swift: Any) -> None:
    put_due(dss, swift)
    swift.said['0/o'] = (404, {AT: Timestamp.now().internal})
    work(buckets_of(dss))
    assert '/v1/a/c/o' in swift.objects


class Reads:
    """Those of restored objects; each waits for others, if they come."""

    def __init__(self, parties: int) -> None:
        self.most = 0
        self._now = 0
        self._barrier = threading.Barrier(parties)
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self._barrier.wait(20)
        with self._lock:
            self._now -= 1


@pytest.mark.parametrize('count', [2, 2 * READS])
def test_restored_objects_come_at_once_within_a_bound(
        dss: Any, swift: Any, count: int) -> None:
    """One after another, the first would wait for the second for ever."""
    swift.residency = '0'
    reads = Reads(min(count, READS))
    for number in range(count):
        path = '/v1/a/c/o%d' % number
        call(dss, 'PUT', path)
        assert call(dss, 'POST', path, env={
            names.ENV_RESTORE_DAYS: 1}).status_int == 202
        swift.before['GET', path] = reads
    work(restores_of(dss))
    assert reads.most == min(count, READS) and not swift.before
    assert dss.logger.counted.count('dss.restore.read') == count


# -- the clock ---------------------------------------------------------------

class Times:
    """Both clocks of a process."""

    def __init__(self) -> None:
        self.wall = 1e9
        self.passed = 50.0

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.passed += seconds


def clock_of(times: Times, others: Any) -> Clock:
    return Clock(lambda _env: others, Logger(), lambda: times.wall,
                 lambda: times.passed)


@pytest.mark.parametrize('others, is_right', [
    ([1e9, 1e9 + 5, 1e9 - 5], True), ([1e9, 5.0, 1e9], True),
    ([1e9 + 31] * 3, False), ([1e9 - 31] * 3, False), ([], False),
    (None, True)])
def test_most_servers_say_what_time_it_is(
        others: Any, is_right: bool) -> None:
    clock = clock_of(Times(), others)
    assert clock.is_right(own_env()) == is_right
    assert clock.now() == 1e9


@pytest.mark.parametrize('seconds', [15.0 * DAY, -15.0 * DAY])
def test_a_clock_that_is_moved_moves_no_work(seconds: float) -> None:
    times, others = Times(), [1e9] * 3
    clock = clock_of(times, others)
    assert clock.is_right(own_env())
    times.wall += seconds
    times.pass_by(3.0)
    assert clock.now() == 1e9 + 3
    assert not clock.is_right(own_env())
    # Who was right is told by the servers, also when they were put right.
    others[:] = [times.wall] * 3
    assert clock.is_right(own_env()) and clock.now() == times.wall


def test_servers_are_asked_seldom() -> None:
    times, asked = Times(), []

    def others(env: Any) -> List[float]:
        asked.append(env)
        return [times.wall]
    clock = Clock(others, Logger(), lambda: times.wall,
                  lambda: times.passed)
    for _second in range(60):
        assert clock.is_right(own_env())
        times.pass_by(1.0)
    assert len(asked) == 1
    assert clock.is_right(own_env()) and len(asked) == 2


def test_nobody_leads_whose_clock_is_wrong(dss: Any, swift: Any) -> None:
    call(dss, 'PUT', '/v1/a/c/o')
    times = Times()
    times.wall = time.time()
    right = True
    leader = Leader(
        Rows(swift, ACCOUNT, 'leaders'), 'work', 60.0,
        Clock(lambda _env: [times.wall if right else 5.0], Logger(),
              lambda: times.wall, lambda: times.passed))
    assert leader.leads(own_env())
    row, = rows_of(swift, 'leaders')
    right = False
    times.wall += 15 * DAY
    before = dict(swift.objects[row][1])
    assert not leader.leads(own_env())
    # No row of days to come, which would keep all others from the work.
    assert dict(swift.objects[row][1]) == before
    times.wall -= 15 * DAY
    assert not Leader(Rows(swift, ACCOUNT, 'leaders'), 'work', 60.0,
                      CLOCK).leads(own_env())


def test_rings_know_names_as_plain_text(swift: Any) -> None:
    """Others would be asked for an object whose name is not ASCII."""
    Primaries(swift).agree(own_env(), Target('a', 'c', '\xc3\xa9'))
    assert swift.ring.names == [('a', 'c', '\xe9')]
    assert swift.asked[0][1] == '/sd0/7/a/c/%C3%A9'


def test_clocks_are_told_by_most_of_the_servers(swift: Any) -> None:
    primaries, env = Primaries(swift), own_env()
    leaders = Target(ACCOUNT, 'leaders')
    assert primaries.clocks(env, leaders) == pytest.approx(
        [time.time()] * 3, abs=3.0)
    assert swift.asked[0] == ('10.0.0.0', '/sd0/7/%s/leaders' % ACCOUNT)
    swift.said = {'0': OSError('away'), '1': 404}
    assert len(primaries.clocks(env, leaders)) == 2
    swift.said['1'] = OSError('away')
    assert primaries.clocks(env, leaders) == []


@pytest.mark.parametrize('missed', ['', '1', '12'])
def test_a_class_that_few_servers_have_is_given_again(
        dss: Any, swift: Any, missed: str) -> None:
    """A leader that was killed in the middle of its POST leaves such."""
    call(dss, 'PUT', '/v1/a/c/o')
    swift.age('/v1/a/c/o', 40)
    before = dict(swift.objects['/v1/a/c/o'][1])
    set_rules(dss, rule(to('STANDARD_IA')))
    work(buckets_of(dss))
    assert class_of(swift) == 26
    headers = swift.objects['/v1/a/c/o'][1]
    headers[AT] = headers[names.MAP_AT]
    before[AT] = before[DATA_AT]
    for number in missed:
        swift.said[number + '/o'] = before
    swift.requests.clear()
    make_due(swift, 'buckets')
    work(buckets_of(dss))
    posts = [path for method, path, _ in swift.requests
             if (method, path) == ('POST', '/v1/a/c/o')]
    assert len(posts) == bool(missed)
