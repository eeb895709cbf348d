"""A link lets bytes pass at its rate, each way and each device alone."""

import io
import subprocess
import sys

from swift_dss.bench.lab import cacs_link
from swift_dss.bench.lab.cacs_link import Link


class Clock:
    def __init__(self):
        self.now = 100.0
        self.waits = []

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.waits.append(seconds)
        self.now += seconds


def test_bytes_take_their_time(tmp_path):
    clock = Clock()
    link = Link(tmp_path / 'link', 1024.0, clock, clock.wait)
    link.take(512)
    assert clock.waits == [0.5]
    clock.now += 10
    link.take(128)
    assert clock.waits == [0.5, 0.125]


def test_who_comes_while_it_is_taken_waits_for_his_turn(tmp_path):
    clock = Clock()
    waits = []
    link = Link(tmp_path / 'link', 1000.0, clock, waits.append)
    link.take(500)
    link.take(500)
    assert waits == [0.5, 1.0]


def test_workers_share_the_link_of_a_device(tmp_path):
    """Four processes are one node, and not four."""
    clock = Clock()
    waits = []
    first, second, other = (
        Link(tmp_path / name, 1000.0, clock, waits.append)
        for name in ('d1-in', 'd1-in', 'd2-in'))
    first.take(500)
    second.take(500)
    other.take(250)
    assert waits == [0.5, 1.0, 0.25]


def test_little_waits_with_what_comes_after_it(tmp_path):
    clock = Clock()
    waits = []
    link = Link(tmp_path / 'link', 2.0 ** 20, clock, waits.append)
    link.take(512)
    assert waits == []
    link.take(1024)
    assert waits == [1536 / 2.0 ** 20]


def test_nothing_waits_for_nothing(tmp_path):
    clock = Clock()
    link = Link(tmp_path / 'link', 1.0, clock, clock.wait)
    link.take(0)
    assert clock.waits == []


class Recorder(list):
    """An application that reads all and answers in two pieces."""

    closed = False

    def __call__(self, env, start_response):
        self.append((env['wsgi.input'].read(3), env['wsgi.input'].readline(),
                     env['wsgi.input'].getvalue()))
        return self

    def __iter__(self):
        return iter([b'ab', b'cde'])

    def close(self):
        self.closed = True


def requested(monkeypatch, folder, path):
    taken = {}
    monkeypatch.setattr(
        Link, 'take', lambda self, count: taken.setdefault(
            self, []).append(count))
    app = Recorder()
    served = cacs_link.filter_factory(
        {}, bytes_per_second='1e6', folder=str(folder))(app)
    for asked in path:
        answer = served({'PATH_INFO': asked,
                         'wsgi.input': io.BytesIO(b'12345\n')}, None)
        assert b''.join(answer) == b'abcde'
        answer.close()
    assert app.closed
    assert app == [(b'123', b'45\n', b'12345\n')] * len(path)
    return list(taken.values())


def test_both_ways_are_apart(monkeypatch, tmp_path):
    assert requested(monkeypatch, tmp_path, ['/d1/0/a/c/o']) == [
        [3, 3], [2, 3]]


def test_a_device_has_links_of_its_own(monkeypatch, tmp_path):
    assert requested(monkeypatch, tmp_path, [
        '/d1/0/a', '/d2/0/a', '/d1/1/b']) == [
            [3, 3, 3, 3], [2, 3, 2, 3], [3, 3], [2, 3]]


#: Twenty waits beside a socket that is silent; how often the hub looked.
_WAITS = """
import eventlet
from eventlet import hubs
hubs.use_hub('poll')
from swift_dss.bench.lab import cacs_link
if 'linked' in sys.argv[2:]:
    cacs_link.filter_factory({}, bytes_per_second='1',
                             folder=sys.argv[1])
looks = []
hub = hubs.get_hub()
look = type(hub).do_poll
type(hub).do_poll = lambda self, seconds: (
    looks.append(seconds) or look(self, seconds))
silent = eventlet.listen(('127.0.0.1', 0))
eventlet.spawn(silent.accept)
for _ in range(20):
    eventlet.sleep(0.0015)
print(len(looks))
"""


def looks(folder, *words):
    return int(subprocess.run(
        [sys.executable, '-c', 'import sys' + _WAITS, str(folder), *words],
        check=True, stdout=subprocess.PIPE, timeout=60).stdout)


def test_a_server_behind_a_link_does_not_spin_for_parts_of_a_millisecond(
        tmp_path):
    """In a guest in virtual time a spin is nearly all that a run costs."""
    assert looks(tmp_path, 'linked') <= 80
    assert looks(tmp_path) > 200
