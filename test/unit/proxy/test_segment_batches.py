"""Which segments few requests to object servers settle."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Tuple, cast

import pytest
from swift.common.storage_policy import POLICIES
from swift.common.swob import Request
from swift.proxy.controllers.obj import ReplicatedObjectController

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.limits import LARGE_CONCURRENCY
from swift_dss.core.spans import ClassMap
from swift_dss.io import waiting
from swift_dss.proxy.large import batches, segments
from swift_dss.proxy.large.batches import Batches
from swift_dss.proxy.large.reading import Piece, Whole
from swift_dss.proxy.large.segments import (
    Change, Segment, Segments)
from swift_dss.proxy.large.spreading import Spreader, Work
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.primaries import enough_of
from swift_dss.strategy.large.shares import Use
from swift_dss.wire import names, registers
from swift_dss.wire.large import claims, many

ONE, TWO = Target('a', 'c', 'one'), Target('a', 'c', 'tw\xc3\xb6')
AT = '1000000100.00000'


class Ring:
    """Three devices, each of a server of its own."""

    replica_count = 3.0
    next_part_power = None

    def __init__(self, port: int) -> None:
        self.nodes = [{'ip': '10.0.0.%d' % number, 'port': port,
                       'device': 'sd%d' % number, 'index': number}
                      for number in range(3)]

    def get_nodes(self, account: str, container: str,
                  obj: str = '') -> Tuple[int, List[Dict[str, Any]]]:
        assert obj in ('', 'one', 'tw\xf6')
        return 7, [dict(node) for node in self.nodes]


class Proxy:
    """The application at the end of the pipeline."""

    container_ring = Ring(6201)
    conn_timeout = 0.5

    def get_object_ring(self, _index: Any) -> Ring:
        return Ring(6200)

    def sort_nodes(self, nodes: Any, policy: Any = None) -> Any:
        return nodes

    def __call__(self, env: Any, start: Any) -> Any:
        raise AssertionError('asked for %s' % env['PATH_INFO'])


class Servers:
    """Object servers; ``says`` is what each answers to each request."""

    def __init__(self) -> None:
        self.says: Dict[str, Any] = {}
        self.head = {'content-length': '9'}
        #: Of some servers, by address.
        self.heads: Dict[str, Dict[str, str]] = {}
        self.asked: List[Tuple[str, List[many.Ask]]] = []

    def fetch(self, host: str, port: int, path: str, _headers: Any,
              _most: int, _seconds: float, method: str, body: bytes,
              connect_seconds: float) -> Any:
        assert (port, path, method) == (6200, names.MANY_PATH, 'POST')
        # A dead server must not hold a client's POST up.
        assert connect_seconds == Proxy.conn_timeout
        asked = many.decode_question(body)
        self.asked.append((host, asked))
        said = self.says.get(host, 202)
        if isinstance(said, Exception):
            raise said
        if said == 'old':
            return 400, {}, b'Invalid path'
        if said == 'long':
            return 413, {}, b''
        return 200, {}, many.encode_answer([
            many.Said(200, dict(self.heads.get(host, self.head),
                                etag=each.path))
            if each.method == 'HEAD' and said == 202 else many.Said(said, {})
            for each in asked])


@pytest.fixture
def info(monkeypatch: Any) -> Dict[str, Any]:
    kept = {'status': 204, 'storage_policy': '0',
            'sharding_state': 'unsharded'}
    monkeypatch.setattr(batches, 'get_container_info',
                        lambda *_args, **_words: kept)
    monkeypatch.setattr(batches, 'POLICIES', SimpleNamespace(
        get_by_index=lambda _index: SimpleNamespace(quorum=2)))
    return kept


@pytest.fixture
def servers(monkeypatch: Any, info: Any) -> Servers:
    made = Servers()
    monkeypatch.setattr(waiting, 'fetch', made.fetch)
    return made


def post(made: Batches) -> Any:
    return made.post(Request.blank('/').environ, {
        target: {names.TRANSIENT_MAP: '25'} for target in (ONE, TWO)},
        {ONE: AT, TWO: AT})


def test_each_server_gets_one_request(servers: Servers) -> None:
    assert post(Batches(Proxy())) == {ONE, TWO}
    assert sorted(host for host, _ in servers.asked) == [
        '10.0.0.0', '10.0.0.1', '10.0.0.2']
    for host, asked in servers.asked:
        assert [each.path for each in asked] == [
            '/sd%s/7/a/c/%s' % (host[-1], name)
            for name in ('one', 'tw\xc3\xb6')]
        for each in asked:
            assert each.headers[names.MAP_AT] == AT
            assert each.headers[names.META_AT] == registers.NEVER
            assert each.headers[names.TRANSIENT_MAP] == '25'


@pytest.mark.parametrize('says, is_done', [
    ({'10.0.0.0': OSError('dead')}, True),
    ({'10.0.0.0': 503}, True), ({'10.0.0.0': 404}, True),
    ({'10.0.0.0': OSError('dead'), '10.0.0.1': 404}, False),
    # It may have newer classes, which others are about to get.
    ({'10.0.0.0': 409}, False), ({'10.0.0.0': 409, '10.0.0.1': 409}, False),
    # It lives, and only Swift's own POST reaches it.
    ({'10.0.0.0': 'old'}, False)])
def test_a_quorum_of_replicas_decides(
        servers: Servers, says: Dict[str, Any], is_done: bool) -> None:
    servers.says = says
    assert post(Batches(Proxy())) == ({ONE, TWO} if is_done else set())


def test_a_server_without_the_verb_is_left_alone_for_a_while(
        servers: Servers) -> None:
    now = [0.0]
    made = Batches(Proxy(), lambda: now[0])
    servers.says = {'10.0.0.0': 'old'}
    for _ in range(3):
        assert post(made) == set()
    assert [host for host, _ in servers.asked].count('10.0.0.0') == 1
    now[0], servers.says = 61.0, {}
    assert post(made) == {ONE, TWO}


def test_one_long_question_keeps_no_server_from_others(
        servers: Servers) -> None:
    made = Batches(Proxy())
    servers.says = dict.fromkeys(('10.0.0.0', '10.0.0.1', '10.0.0.2'), 'long')
    assert post(made) == set()
    servers.says = {}
    assert post(made) == {ONE, TWO}


def test_no_header_of_the_client_is_in_a_batch(servers: Servers) -> None:
    env = Request.blank('/', headers={
        names.MAP_AT: 'forged', names.TRANSIENT_MAP: '29',
        names.BACKEND_MAP: '29', 'X-Delete-At': '1', 'X-Timestamp': '9',
        'X-Object-Meta-Color': 'red', 'X-Backend-Replication': 'true'}
        ).environ
    made = Batches(Proxy())
    made.look(env, [ONE])
    made.post(env, {ONE: {names.TRANSIENT_MAP: '25'}}, {ONE: AT})
    looks, posts = ([each for _, asked in servers.asked for each in asked
                     if each.method == method] for method in ('HEAD', 'POST'))
    assert (len(looks), len(posts)) == (2, 3)
    for each in looks:
        assert set(each.headers) == {
            'X-Backend-Storage-Policy-Index', 'X-Trans-Id'}
    for each in posts:
        assert {name: value for name, value in each.headers.items()
                if not name.startswith('X-Container-')} == dict({
                    'X-Backend-Storage-Policy-Index': '0', 'X-Trans-Id': '-',
                    names.TRANSIENT_MAP: '25'}, **registers.class_alone(AT))


class Slow:
    """Segments of servers that know no batches."""

    def __init__(self) -> None:
        self.events: List[str] = []

    def look_many(self, _env: Any, _paths: Any) -> Dict[str, Segment]:
        return {}

    def look(self, _env: Any, path: str) -> Segment:
        self.events.append('look')
        return Segment(Target('a', *path[1:].split('/')), 9, None, {},
                       '1000000000.00000', '')

    def give_many(self, _env: Any, changes: Any) -> Any:
        return list(changes)

    def give(self, _env: Any, _change: Any) -> bool:
        self.events.append('give')
        return True


def test_work_on_single_segments_keeps_its_lease() -> None:
    slow = Slow()
    whole = Whole([Piece(Use('/c/%d' % number, 0, 9, 9 * number),
                         cast(Any, None)) for number in range(40)])
    Spreader(cast(Any, None), cast(Any, slow), lambda _name: None).spread(
        {}, Work('m', whole, ClassMap.uniform(25), AT), ClassTable(),
        lambda _count: slow.events.append('lives'))
    assert slow.events.count('look') == slow.events.count('give') == 40
    # No more than those of one turn are done without a word.
    text = ''.join({'look': 'x', 'give': 'x', 'lives': ' '}[each]
                   for each in slow.events)
    assert max(map(len, text.split())) <= 2 * LARGE_CONCURRENCY


class Contested(Slow):
    """A segment that another manifest is given after the look at many."""

    def look_many(self, env: Any, paths: Any) -> Dict[str, Segment]:
        return {path: super(Contested, self).look(env, path)
                for path in paths}

    def look(self, env: Any, path: str) -> Segment:
        return super().look(env, path)._replace(
            claimed={'other': claims.everywhere(31)},
            class_map=ClassMap.uniform(31), class_at='1000000050.00000')

    def give(self, _env: Any, change: Any) -> bool:
        self.events.append('give')
        assert set(change.claimed) == {'other', 'm'}
        return True


def test_what_another_manifest_said_meanwhile_counts() -> None:
    table = ClassTable.of((ClassSpec(25, 'gold', 9), ClassSpec(31, 'top', 10)))
    whole = Whole([Piece(Use('/c/one', 0, 9, 0), cast(Any, None))])
    contested = Contested()
    maps = Spreader(
        cast(Any, None), cast(Any, contested), lambda _name: None).spread(
        {}, Work('m', whole, ClassMap.uniform(25), AT), table)
    assert contested.events == ['look', 'look', 'give']
    assert maps == {'/c/one': ClassMap.uniform(31)}


class Refused(Contested):
    """Its servers refuse what follows from the first look."""

    def look_many(self, env: Any, paths: Any) -> Dict[str, Segment]:
        return {}

    def look(self, env: Any, path: str) -> Segment:
        if 'give' in self.events:
            return super().look(env, path)
        return Slow.look(self, env, path)

    def give(self, _env: Any, change: Any) -> bool:
        self.events.append('give')
        return 'other' in change.claimed


def test_a_segment_that_refuses_a_class_is_looked_at_again() -> None:
    table = ClassTable.of((ClassSpec(25, 'gold', 9), ClassSpec(31, 'top', 10)))
    whole = Whole([Piece(Use('/c/one', 0, 9, 0), cast(Any, None))])
    refused = Refused()
    maps = Spreader(
        cast(Any, None), cast(Any, refused), lambda _name: None).spread(
        {}, Work('m', whole, ClassMap.uniform(25), AT), table)
    assert refused.events == ['look', 'give', 'look', 'give']
    assert maps == {'/c/one': ClassMap.uniform(31)}


def test_a_class_that_one_replica_has_is_sent_once_more(
        monkeypatch: Any) -> None:
    sent: List[str] = []
    monkeypatch.setattr(segments, 'post_alone', lambda _env, _app, target,
                        *_rest: sent.append(target.obj) or 202)
    seen, settled = (Change(
        Segment(ONE, 9, ClassMap.uniform(25), {}, AT, AT,
                is_settled=is_settled), ClassMap.uniform(25), {}, AT)
        for is_settled in (False, True))
    env = Request.blank('/').environ
    Segments(Proxy()).give(env, settled)
    assert sent == []
    Segments(Proxy()).give(env, seen)
    assert sent == ['one']


DONE = dict(Change(
    Segment(ONE, 9, None, {}, AT, ''), ClassMap.uniform(25),
    {'m': claims.everywhere(25)}, AT).headers, **{
        names.MAP_AT: AT, 'X-Backend-Data-Timestamp': '1000000000.00000',
        'content-length': '9'})
NOT_DONE = {'X-Backend-Data-Timestamp': '1000000000.00000',
            'content-length': '9'}


@pytest.mark.parametrize('is_late', [True, False])
@pytest.mark.parametrize('done', ['', '0', '1', '01', '012'])
def test_work_is_done_where_a_quorum_has_it(
        servers: Servers, done: str, is_late: bool) -> None:
    """What a proxy did before its end may have reached one server alone."""
    servers.heads = {'10.0.0.%d' % number: DONE if str(number) in done
                     else NOT_DONE for number in range(3)}
    env = Request.blank('/v1/a/c/m').environ
    Spreader(cast(Any, None), Segments(Proxy()), lambda _name: None).spread(
        env, Work('m', Whole([Piece(Use('/c/one', 0, 9, 0),
                                    cast(Any, None))]),
                  ClassMap.uniform(25), AT, is_late), ClassTable())
    posts = [host for host, asked in servers.asked
             for each in asked if each.method == 'POST']
    assert len(posts) == (0 if len(done) > 1 else 3)


@pytest.mark.parametrize('class_at', ['', '1000000050.00000'])
def test_a_batch_says_what_it_follows_from(
        servers: Servers, class_at: str) -> None:
    segment = Segment(ONE, 9, None, {}, '1000000000.00000', class_at)
    change = Change(segment, ClassMap.uniform(25), {}, AT)
    assert Segments(Proxy()).give_many(
        Request.blank('/').environ, [change]) == []
    assert {each.headers[names.SEEN_MAP_AT]
            for _, asked in servers.asked for each in asked} == {
        class_at or registers.NEVER}


@pytest.mark.parametrize('change', [
    {'sharding_state': 'sharding'}, {'sharding_state': 'sharded'},
    {'status': 404}])
def test_containers_of_which_little_is_known_are_left_out(
        servers: Servers, info: Dict[str, Any], change: Any) -> None:
    info.update(change)
    made = Batches(Proxy())
    assert post(made) == set()
    assert made.look(Request.blank('/').environ, [ONE]) == {}
    assert servers.asked == []


@pytest.mark.parametrize('says, is_known', [
    ({}, True), ({'10.0.0.0': OSError('dead')}, True),
    ({'10.0.0.0': OSError('dead'), '10.0.0.1': 503}, False),
    ({'10.0.0.0': OSError('dead'), '10.0.0.2': OSError('dead')}, False),
    # It has not got it, which is an answer.
    ({'10.0.0.0': OSError('dead'), '10.0.0.1': 404}, True),
    ({'10.0.0.0': OSError('dead'), '10.0.0.1': 'old'}, False)])
def test_a_look_hears_one_server_of_each_write(
        servers: Servers, says: Dict[str, Any], is_known: bool) -> None:
    servers.says = says
    found = Batches(Proxy()).look(Request.blank('/').environ, [ONE, TWO])
    assert set(found) == ({ONE, TWO} if is_known else set())
    # Those of one round at the same time.
    assert sorted(host for host, _ in servers.asked) == [
        '10.0.0.0', '10.0.0.1', '10.0.0.2'][:3 if says else 2]


def test_a_server_that_is_away_is_asked_last(servers: Servers) -> None:
    servers.says = {'10.0.0.0': OSError('dead')}
    made = Batches(Proxy())
    for _ in range(2):
        servers.asked.clear()
        assert set(made.look(Request.blank('/').environ, [ONE])) == {ONE}
    assert sorted(host for host, _ in servers.asked) == [
        '10.0.0.1', '10.0.0.2']


@pytest.mark.parametrize('servers_of, quorum, enough', [
    (3, 2, 2), (2, 1, 2), (1, 1, 1), (4, 2, 3), (5, 3, 3),
    # Erasure-coded: a PUT needs eleven, a POST seven.
    (14, 11, 8)])
def test_enough_servers_are_one_of_each_write_and_each_post(
        servers_of: int, quorum: int, enough: int) -> None:
    policy = SimpleNamespace(quorum=quorum)
    assert enough_of(servers_of, policy) == enough


def test_a_claim_that_the_first_server_missed_is_kept(
        servers: Servers) -> None:
    """It would take a class that forgets the claim, and others, which know
    it, may be away just then."""
    other = {'other': claims.everywhere(31)}
    servers.heads = {
        '10.0.0.0': NOT_DONE, '10.0.0.1': dict(Change(
            Segment(ONE, 9, None, {}, AT, ''), ClassMap.uniform(31),
            {'0000000f': other['other']}, AT).headers, **{
                names.MAP_AT: '1000000050.00000',
                'X-Backend-Data-Timestamp': '1000000000.00000',
                'content-length': '9'})}
    servers.says = {'10.0.0.2': OSError('dead')}
    maps = Spreader(
        cast(Any, None), Segments(Proxy()), lambda _name: None).spread(
        Request.blank('/v1/a/c/m').environ,
        Work('m', Whole([Piece(Use('/c/one', 0, 9, 0), cast(Any, None))]),
             ClassMap.uniform(25), AT), ClassTable.of((
                 ClassSpec(25, 'gold', 9), ClassSpec(31, 'top', 10))))
    assert maps == {'/c/one': ClassMap.uniform(31)}
    posts = [each for _, asked in servers.asked for each in asked
             if each.method == 'POST']
    assert posts and all('0000000f=31' in each.headers[names.CLAIMS]
                         for each in posts)


def test_a_fragment_has_the_size_of_its_object(servers: Servers) -> None:
    servers.head['x-object-sysmeta-ec-content-length'] = '99'
    found = Batches(Proxy()).look(Request.blank('/').environ, [ONE])
    assert found[ONE].headers['Content-Length'] == '99'


class Controller(ReplicatedObjectController):
    """Swift's, of a container with these databases."""

    databases: List[Dict[str, Any]]

    def headers(self, request: Request, replicas: int) -> Any:
        return self._backend_requests(request, replicas, {})

    def generate_request_headers(self, *_args: Any, **_words: Any) -> Any:
        return {}

    def _get_update_target(self, *_args: Any) -> Any:
        return 9, self.databases, None, 'unsharded'


@pytest.mark.parametrize('databases', [1, 2, 3, 4, 5])
@pytest.mark.parametrize('replicas', [1, 2, 3, 4])
def test_databases_are_dealt_as_swifts_proxy_deals_them(
        databases: int, replicas: int) -> None:
    nodes = [{'ip': '10.1.0.%d' % number, 'port': 6201,
              'device': 'sd%d' % number} for number in range(databases)]
    controller = object.__new__(Controller)
    controller.databases = nodes
    policy = SimpleNamespace(quorum=replicas // 2 + 1)
    request = Request.blank('/v1/a/c/o', headers={
        'X-Backend-Storage-Policy-Index': '0'})
    wanted = _with_policy(policy, lambda: controller.headers(
        request, replicas))
    assert batches.dealt(9, nodes, replicas, policy) == [
        {name: str(value) for name, value in headers.items()
         if name.startswith('X-Container-')}
        for headers in wanted]


def _with_policy(policy: Any, call: Any) -> Any:
    import swift.proxy.controllers.obj as module
    kept = module.POLICIES
    module.POLICIES = SimpleNamespace(get_by_index=lambda _index: policy)
    try:
        return call()
    finally:
        module.POLICIES = kept
        assert module.POLICIES is POLICIES


def test_two_classes_of_one_time_settle_nothing(servers: Servers) -> None:
    """Two proxies decided after one look at the segment."""
    other = dict(DONE, **{names.TRANSIENT_MAP: '26'})
    servers.heads = {'10.0.0.0': DONE, '10.0.0.1': other,
                     '10.0.0.2': NOT_DONE}
    env = Request.blank('/v1/a/c/m').environ
    found = Batches(Proxy()).look(env, [ONE])
    assert not found[ONE].is_settled
    servers.heads['10.0.0.2'] = DONE
    found = Batches(Proxy()).look(env, [ONE])
    assert found[ONE].is_settled == (
        found[ONE].headers[names.TRANSIENT_MAP] == '25')
