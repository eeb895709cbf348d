"""Uploads whose rule says auto: who reads them, and what is said of them."""

from __future__ import annotations

import http.server
import os
import stat
import threading
import time
import zipfile

import pytest
from support import wait_until
from support.clocks import WallOf
from support.nodes.tier_node import Rig
from swift.obj.diskfile import write_metadata

from swift_dss.core.errors import TooManySpans
from swift_dss.core.spans import ClassMap, Span
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.ranks import NoRing
from swift_dss.tier.classify import child, worker
from swift_dss.tier.classify.child import Bounds, Verdict
from swift_dss.tier.classify.telling import Teller, Told, time_of
from swift_dss.tier.classify.worker import Classifier
from swift_dss.tier.index.file import IndexDamaged, IndexUnavailable
from swift_dss.tier.index.waiting.book import Book, Waiting
from swift_dss.wire import classmap, names
from swift_dss.wire.control import Event, EventKind

GOLD, SILVER = 9, 5


class Says:
    """Object servers that answer as they are told."""

    def __init__(self):
        self.place = 0
        self.told = Told(3, 0, 3)
        self.posts = []
        self.most_spans = 1000

    def rank(self, version):
        if self.place is None:
            raise NoRing('none')
        return self.place

    def post(self, version, name, class_map):
        if len(class_map.spans) > self.most_spans:
            raise TooManySpans('map', 'too long')
        self.posts.append((version, name, class_map))
        return self.told


class Bench(Rig):
    """A node with a classifier whose turns a test takes."""

    def __init__(self, root, **tier):
        super().__init__(root, classify=True, **tier)
        self.teller = Says()
        self.restart(root)

    def restart(self, root):
        self.classifier = Classifier(
            os.path.join(str(root), 'run', worker.FILE), self.local,
            self.teller, self.metrics, WallOf(self))
        self.classifier.open()
        self.ledger.on_put = self.classifier.heard

    def upload(self, data, rest=SILVER, auto=GOLD, name='o'):
        place = self.node.put(name, data, '1700000000.00000',
                              ClassMap.uniform(rest))
        self.ledger.hear([Event(
            EventKind.PUT, place.version, place.partition, len(data),
            classmap.encode(ClassMap.uniform(rest)), at=self.now,
            auto=auto)])
        return place

    def wait(self, seconds):
        self.now += seconds

    @property
    def outcomes(self):
        return self.classifier.status()['outcomes']

    @property
    def waiting(self):
        return self.classifier.status()['waiting']


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.classifier.stop()
    made.close()


@pytest.fixture
def verdicts(monkeypatch):
    """What the child says, without one; and how it was asked."""
    given = [Verdict('classified', 'zip', ((0, 10), (50, 20)))]
    asked = []

    def read(size, pieces, bounds, stopping):
        asked.append((size, bounds))
        return given[min(len(asked), len(given)) - 1]
    monkeypatch.setattr(child, 'read', read)
    return given, asked


def archive(tmp_path):
    path = tmp_path / 'a.zip'
    with zipfile.ZipFile(path, 'w') as out:
        for number in range(50):
            out.writestr('m%d' % number, os.urandom(4000))
    return path.read_bytes()


def test_the_bytes_that_open_a_file_get_their_class(bench, tmp_path):
    """A real child, from the event to the POST."""
    data = archive(tmp_path)
    place = bench.upload(data)
    assert 0 < bench.classifier.turn() <= 5
    assert not bench.teller.posts
    bench.wait(6)
    assert bench.classifier.turn() == 0
    (version, name, class_map), = bench.teller.posts
    assert (version, name) == (place.version, '/a/c/o')
    assert class_map.rest == SILVER
    assert class_map.class_at(0) == GOLD
    assert class_map.class_at(100000) == SILVER
    assert class_map.class_at(len(data) - 1) == GOLD
    assert bench.outcomes == {'classified': 1}
    assert bench.waiting == 0


def test_bytes_on_the_hdd_are_read_there(bench, tmp_path):
    place = bench.upload(archive(tmp_path))
    bench.local.clean(place.version, place.partition)
    bench.local.demote(place.version, place.partition)
    bench.wait(6)
    bench.classifier.turn()
    assert bench.outcomes == {'classified': 1}


def test_an_upload_without_auto_is_none_of_ours(bench):
    bench.upload(b'x' * 100, auto=None)
    assert bench.waiting == 0
    assert bench.outcomes == {}


def test_nothing_is_read_unless_the_node_is_told_to(tmp_path):
    bench = Bench(tmp_path)
    bench.in_force.take(bench.conf.__class__(
        devices=bench.conf.devices, run_dir=bench.conf.run_dir),
        bench.in_force.table)
    bench.upload(b'x' * 100)
    assert (bench.waiting, bench.outcomes) == (0, {'off': 1})
    bench.classifier.stop()
    bench.close()


def test_a_fragment_is_not_the_object(bench):
    version = VersionId('sda', 0, 'a' * 32, '1700000000.00000', 2)
    bench.classifier.heard(Event(EventKind.PUT, version, '1', 10, auto=GOLD))
    assert (bench.waiting, bench.outcomes) == (0, {'fragment': 1})


def test_the_first_primary_is_first_and_the_others_wait(bench, verdicts):
    bench.teller.place = 2
    bench.upload(b'x' * 100)
    bench.wait(2 * 900)
    assert bench.classifier.turn() > 0
    bench.wait(6)
    assert bench.classifier.turn() == 0
    assert bench.outcomes == {'classified': 1}


def test_without_a_ring_the_node_does_it_itself(bench, verdicts):
    bench.teller.place = None
    bench.upload(b'x' * 100)
    bench.wait(6)
    bench.classifier.turn()
    assert bench.outcomes == {'classified': 1}


def posted(place, class_at='1700000003.00000'):
    """Classes of a client, or of another node."""
    with open(os.path.join(place.hash_dir, '1700000003.00000.meta'),
              'wb') as target:
        write_metadata(target, {
            'name': '/a/c/o', 'X-Timestamp': '1700000003.00000',
            names.MAP_AT: class_at, names.META_AT: '1700000000.00000',
            names.TRANSIENT_MAP: classmap.encode(ClassMap.uniform(0))})


def test_classes_that_were_given_since_are_left(bench, verdicts):
    place = bench.upload(b'x' * 100)
    posted(place)
    bench.wait(6)
    bench.classifier.turn()
    assert not bench.teller.posts
    assert not verdicts[1]
    assert (bench.waiting, bench.outcomes) == (0, {'given': 1})


def test_an_object_that_went_meanwhile_is_forgotten(bench, verdicts):
    place = bench.upload(b'x' * 100)
    for name in os.listdir(place.hash_dir):
        os.unlink(os.path.join(place.hash_dir, name))
    bench.wait(6)
    bench.classifier.turn()
    assert (bench.waiting, bench.outcomes) == (0, {'gone': 1})


def test_an_object_that_is_encrypted_is_not_read(bench, verdicts):
    place = bench.upload(b'x' * 100)
    described = bench.local.describe

    def sealed(version, partition):
        local = described(version, partition)
        local.metadata['X-Object-Sysmeta-Crypto-Body-Meta'] = '{}'
        return local
    bench.local.describe = sealed
    bench.wait(6)
    bench.classifier.turn()
    assert not verdicts[1]
    assert bench.outcomes == {'sealed': 1}
    assert place.version


@pytest.mark.parametrize('kind', ['unknown', 'bad', 'failed', 'timeout',
                                  'crashed'])
def test_a_file_that_cannot_be_read_is_settled_for_all_nodes(
        bench, verdicts, kind):
    verdicts[0][0] = Verdict(kind)
    bench.upload(b'x' * 100)
    bench.wait(6)
    bench.classifier.turn()
    (_, _, class_map), = bench.teller.posts
    assert class_map == ClassMap.uniform(SILVER)
    assert (bench.waiting, bench.outcomes) == (0, {kind: 1})


@pytest.mark.parametrize('kind', ['no_walls', 'missing'])
def test_what_this_node_lacks_is_left_to_the_others(bench, verdicts, kind):
    verdicts[0][0] = Verdict(kind)
    bench.upload(b'x' * 100)
    bench.wait(6)
    bench.classifier.turn()
    assert not bench.teller.posts
    assert (bench.waiting, bench.outcomes) == (0, {kind: 1})


def test_too_few_servers_are_asked_again_and_not_for_ever(bench, verdicts):
    bench.teller.told = Told(1, 0, 3)
    bench.upload(b'x' * 100)
    for _attempt in range(8):
        bench.wait(20000)
        assert bench.classifier.turn() == 0
    assert bench.waiting == 0
    assert bench.outcomes == {'again': 7, 'given_up': 1}


def test_a_later_upload_at_the_servers_is_no_failure(bench, verdicts):
    bench.teller.told = Told(0, 2, 3)
    bench.upload(b'x' * 100)
    bench.wait(6)
    bench.classifier.turn()
    assert (bench.waiting, bench.outcomes) == (0, {'overtaken': 1})


def test_a_map_that_is_too_long_is_made_coarser(bench, verdicts):
    given, asked = verdicts
    bench.teller.most_spans = 1
    given.append(Verdict('classified', 'zip', ((0, 10),)))
    bench.upload(b'x' * 100)
    bench.wait(6)
    bench.classifier.turn()
    assert [bounds.spans for _, bounds in asked][1] * 4 == asked[0][1].spans
    assert bench.teller.posts[0][2] == ClassMap.from_spans(
        [Span(0, 10, GOLD)], SILVER)


def test_a_restart_loses_no_work(bench, verdicts, tmp_path):
    bench.upload(b'x' * 100)
    bench.classifier.stop()
    bench.restart(tmp_path)
    bench.wait(6)
    bench.classifier.turn()
    assert bench.outcomes == {'classified': 1}


def test_a_stop_kills_the_child_and_keeps_the_work(bench, verdicts):
    verdicts[0][0] = Verdict('stopped')
    bench.upload(b'x' * 100)
    bench.wait(6)
    bench.classifier.turn()
    assert (bench.waiting, bench.outcomes) == (1, {})


# -- the list ------------------------------------------------------------


def row(number, due=0.0):
    return Waiting(VersionId('sda', 0, '%032x' % number,
                             '1700000000.00000'), '1', GOLD, due)


def test_a_list_gives_the_first_that_is_due(tmp_path):
    book = Book(str(tmp_path / 'list'))
    for number, due in ((1, 30.0), (2, 10.0), (3, 20.0), (2, 0.0)):
        assert book.add(row(number, due))
    assert len(book) == 3
    assert book.first() == row(2, 10.0)
    book.later(row(2), 40.0)
    assert book.first() == row(3, 20.0)
    book.remove(row(3))
    book.remove(row(3))
    assert len(book) == 2
    book.remove(row(1))
    assert book.first() == row(2, 40.0)._replace(attempts=1)


def test_a_list_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr('swift_dss.tier.index.waiting.book.MOST', 2)
    book = Book(str(tmp_path / 'list'))
    assert [book.add(row(number)) for number in range(3)] == [
        True, True, False]


def test_a_damaged_list_is_put_aside(tmp_path):
    (tmp_path / 'list').write_bytes(b'no database at all' * 100)
    (tmp_path / 'list-wal').write_bytes(b'nor its log' * 100)
    book = Book(str(tmp_path / 'list'))
    assert len(book) == 0
    aside, = tmp_path.glob('list.damaged-*[0-9]')
    assert aside.read_bytes().startswith(b'no database at all')
    assert book.add(row(1)) and book.first() == row(1)


def test_a_list_is_its_owners_alone(tmp_path):
    book = Book(str(tmp_path / 'list'))
    assert book.add(row(1))
    for path in tmp_path.glob('list*'):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_errors_of_a_list_are_those_of_the_index(tmp_path):
    book = Book(str(tmp_path / 'list'))
    book.close()
    with pytest.raises(IndexDamaged):
        book.first()
    with pytest.raises(IndexUnavailable):
        Book(str(tmp_path / 'nowhere' / 'list'))


def test_an_upload_does_not_fail_for_the_list(bench, monkeypatch):
    def full(self, row):
        raise IndexUnavailable('database or disk is full')
    monkeypatch.setattr(Book, 'add', full)
    bench.classifier.heard(Event(EventKind.PUT, row(1).version, '1', 10,
                                 auto=GOLD))
    assert bench.outcomes == {'dropped': 1}


# -- a child's answer ----------------------------------------------------


@pytest.fixture
def program(tmp_path, monkeypatch):
    """``program(code)``: a child that runs this in the place of ours."""
    def read(code, seconds=30.0, stopping=None):
        (tmp_path / 'stand_in_child.py').write_text(code)
        monkeypatch.setattr(child, 'PROGRAM', 'stand_in_child')
        monkeypatch.syspath_prepend(str(tmp_path))
        return child.read(100, [], Bounds(seconds, 1 << 28, 9),
                          stopping or threading.Event())
    return read


@pytest.mark.parametrize('said', [
    '', 'x', '[]', '{}', '{"format": 1}', '{"format": "a", "ranges": 5}',
    '{"format": "a", "ranges": [[0]]}',
    '{"format": "a", "ranges": [[0, 101]]}',
    '{"format": "a", "ranges": [[-1, 5]]}',
    '{"format": "a", "ranges": [[5, 0]]}',
    '{"format": "a", "ranges": [[5, 5], [1, 2]]}',
    '{"format": "a", "ranges": [[0.5, 5]]}',
    '{"format": "a", "ranges": [["0", "5"]]}',
    '{"format": "a", "ranges": [[true, 5]]}',
    '{"format": "a", "ranges": [[0,1],[2,1],[4,1],[6,1],[8,1]]}',
    '{"error": "own words"}', '{"error": []}', '[' * 100000])
def test_what_is_no_answer_is_none(program, said):
    import io
    verdict = child.judged(0, io.BytesIO(said.encode()), 100,
                            Bounds(1.0, 1, 9))
    assert verdict.kind == 'crashed'
    assert verdict.ranges == ()


def test_an_answer_is_taken(program):
    verdict = program('import os; os.write(1, b\'{"format": "mine", '
                      '"ranges": [[0, 10], [50, 50]]}\')')
    assert verdict == Verdict('classified', 'mine', ((0, 10), (50, 50)))


def test_a_child_that_is_killed_has_crashed(program):
    assert program('import os, signal; os.kill(os.getpid(), 9)'
                   ).kind == 'crashed'


def test_a_child_that_does_not_end_is_killed(program, tmp_path):
    verdict = program(
        'import os, time\nopen(%r, "w").write(str(os.getpid()))\n'
        'time.sleep(600)' % str(tmp_path / 'pid'), seconds=1.5)
    assert verdict.kind == 'timeout'
    if (tmp_path / 'pid').exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / 'pid').read_text()), 0)


def test_a_daemon_that_ends_waits_for_no_child(program):
    stopping = threading.Event()
    stopping.set()
    begun = time.monotonic()
    assert program('import time; time.sleep(600)',
                   stopping=stopping).kind == 'stopped'
    assert time.monotonic() - begun < 60


def test_a_child_gets_no_secret_of_the_daemon(program, monkeypatch):
    monkeypatch.setenv('AWS_SECRET_ACCESS_KEY', 'not for you')
    verdict = program(
        'import os, json\nprint(json.dumps({"error": "failed", "reason": '
        'os.environ.get("AWS_SECRET_ACCESS_KEY", "none")}))')
    assert verdict == Verdict('failed', "'none'")


# -- the servers ---------------------------------------------------------


class Server(http.server.BaseHTTPRequestHandler):
    """Answers with the statuses of its class, in turn."""

    def do_POST(self):
        self.server.seen.append((self.path, dict(self.headers)))
        self.send_response(self.server.statuses.pop(0))
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_words):
        pass


@pytest.fixture
def servers():
    made = http.server.HTTPServer(('127.0.0.1', 0), Server)
    made.seen, made.statuses = [], []
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


class Ring:
    """All primaries at one address; the last one is down."""

    def __init__(self, port, down=False):
        self.nodes = [{'ip': '127.0.0.1', 'port': port, 'device': 'sd%d'
                       % number} for number in range(3)]
        if down:
            self.nodes[2]['port'] = 1

    def place(self, version):
        return 1, 3

    def primaries(self, policy, object_hash):
        return '77', self.nodes


def test_every_primary_hears_of_the_map_alone(servers):
    servers.statuses = [202, 202, 404]
    class_map = ClassMap.from_spans([Span(0, 10, GOLD)], SILVER)
    told = Teller(Ring(servers.server_port)).post(
        row(1).version, '/a/c/o \u00e9', class_map)
    assert told == Told(2, 1, 3)
    assert told.is_done
    paths = [path for path, _ in servers.seen]
    assert paths == ['/sd%d/77/a/c/o%%20%%C3%%A9' % n for n in range(3)]
    headers = servers.seen[0][1]
    assert headers[names.META_AT] == '0000000000.00000'
    assert headers[names.MAP_AT] == '1700000000.00002'
    assert headers['X-Timestamp'] < '0000000002'
    assert classmap.from_headers(names.TRANSIENT_MAP, headers) == class_map


def test_most_servers_have_to_answer(servers):
    servers.statuses = [202, 503]
    told = Teller(Ring(servers.server_port, down=True)).post(
        row(1).version, '/a/c/o', ClassMap.uniform(1))
    assert told == Told(1, 0, 3)
    assert not told.is_done


def test_a_client_that_gives_classes_later_wins():
    """The time is that of the upload, and differs between the nodes."""
    version = row(1).version
    times = [time_of(version, rank) for rank in range(3)]
    assert times == sorted(set(times))
    assert times[0] > version.timestamp
    assert times[2] < '1700000000.00100'
    offset = VersionId('sda', 0, 'a' * 32, '1700000000.00000_00000000000000ff')
    assert time_of(offset, 0) > offset.timestamp


def test_the_worker_works_by_itself(bench, verdicts, tmp_path):
    bench.upload(b'x' * 100)
    bench.classifier.stop()
    bench.wait(6)
    bench.restart(tmp_path)
    bench.classifier.start()
    wait_until(lambda: bench.outcomes.get('classified') == 1)
