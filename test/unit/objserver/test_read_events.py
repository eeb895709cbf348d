"""Reads told to the daemon: at once, or several in one datagram."""

from __future__ import annotations

import os
import random
import socket
import time
from typing import Any, Dict, Iterator, List

import eventlet
import pytest
from support.clocks import StillClock
from support.rigs.dss_disk import Disk
from swift.obj.diskfile import read_metadata, write_metadata

from swift_dss.core.limits import EVENT_BATCH_SECONDS, MAX_EVENT_BYTES
from swift_dss.core.spans import ClassMap, Span
from swift_dss.core.version import VersionId
from swift_dss.objserver.stock.attributes import VALUE_BYTES
from swift_dss.objserver import events
from swift_dss.tier.hear.ledger import bytes_by_class
from swift_dss.wire import classmap, control

BODY = b'x' * 1000


@pytest.fixture
def heard(disk: Disk) -> Iterator[Any]:
    run_dir = disk.node.conf.run_dir
    os.makedirs(run_dir)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.bind(os.path.join(run_dir, 'events.sock'))
    listening.setblocking(False)
    yield listening
    listening.close()


@pytest.fixture
def still(monkeypatch: Any) -> None:
    """Time stands still: after its first read, a sender gathers."""
    monkeypatch.setattr(events, 'time', StillClock())
    monkeypatch.setattr(events.waiting, 'later', lambda *_: True)


def datagrams(heard: Any) -> List[List[control.Event]]:
    groups = []
    while True:
        try:
            raw = heard.recv(2 * MAX_EVENT_BYTES)
        except BlockingIOError:
            return groups
        assert len(raw) <= MAX_EVENT_BYTES
        groups.append([control.decode_event(line)
                       for line in control.split_events(raw)])


def test_the_first_read_goes_at_once_and_the_next_together(
        disk: Disk, green: None, heard: Any) -> None:
    disk.put('o', BODY)
    datagrams(heard)
    for _ in range(4):
        disk.read('o')
    (first,), = datagrams(heard)
    assert (first.kind, first.length) == (control.EventKind.READ, 1000)
    deadline = time.monotonic() + 20 * EVENT_BATCH_SECONDS
    later: List[List[control.Event]] = []
    while not later and time.monotonic() < deadline:
        eventlet.sleep(EVENT_BATCH_SECONDS / 4)
        later = datagrams(heard)
    assert [len(batch) for batch in later] == [3]
    assert disk.logger.counts.get('dss.events.dropped') is None


def told(heard: Any) -> List[control.Event]:
    return [event for batch in datagrams(heard) for event in batch]


MIXED = ClassMap.from_spans([Span(0, 100, 1), Span(500, 100, 2)], 3)


@pytest.mark.parametrize('start, stop, wanted', [
    (0, 100, {1: 100}), (50, 150, {1: 50, 3: 50}), (700, 800, {3: 100}),
    (0, 1000, {1: 100, 2: 100, 3: 800})])
def test_a_read_says_which_classes_it_was_of(
        disk: Disk, heard: Any, start: int, stop: int,
        wanted: Dict[int, int]) -> None:
    disk.put('o', BODY, MIXED)
    told(heard)
    disk.read('o', start, stop)
    event, = told(heard)
    assert (event.offset, event.length) == (start, stop - start)
    assert bytes_by_class(event) == wanted


def test_a_read_of_one_class_needs_no_words(disk: Disk, heard: Any) -> None:
    disk.put('o', BODY, ClassMap.uniform(1))
    told(heard)
    disk.read('o')
    assert [event.map_text for event in told(heard)] == ['']


def test_a_read_of_many_spans_says_how_much_it_was_of_each_class(
        disk: Disk, heard: Any) -> None:
    class_map = ClassMap.from_spans([
        Span(10 * number, 2 + number % 2, 1 + number % 3)
        for number in range(90)], 0)
    disk.put('o', BODY, class_map)
    told(heard)
    disk.read('o', 5, 895)
    event, = told(heard)
    assert (event.offset, event.length) == (5, 890)
    assert bytes_by_class(event) == {
        class_id: sum(class_map.class_at(at) == class_id
                      for at in range(5, 895)) for class_id in range(4)}
    # Of a class that was not read it says nothing.
    mixed = ClassMap.from_spans([*class_map.spans, Span(899, 1, 9)], 0)
    disk.put('p', BODY, mixed)
    told(heard)
    disk.read('p', 0, 890)
    assert set(bytes_by_class(told(heard)[0])) == {0, 1, 2, 3}


def test_the_words_of_many_spans_are_short() -> None:
    """Each read waits for them, and has a datagram's room."""
    class_map = ClassMap.from_spans([
        Span(100 * number, 50, 1 + number % 3)
        for number in range(4000)], 0)
    assert len(classmap.encode_part(class_map, 0, 400000)) < 60
    assert classmap.encode_part(class_map, 0, 60) == classmap.encode(
        ClassMap.from_spans([Span(0, 50, 1)], 0))


def test_of_several_ranges_nothing_between_them_was_read(
        disk: Disk, heard: Any) -> None:
    disk.put('o', BODY, MIXED)
    told(heard)
    disk_file = disk.open_file('o')
    with disk_file.open():
        reader = disk_file.reader()
    b''.join(reader.app_iter_ranges(
        [(0, 10), (510, 520), (520, 530)], 'a/b', 'limit', 1000))
    events = told(heard)
    assert [(event.offset, event.length) for event in events] == [
        (0, 10), (510, 20)]
    assert [bytes_by_class(event) for event in events] == [{1: 10}, {2: 20}]
    # One read, whatever it is of.
    assert len({event.at for event in events}) == 1


def test_ranges_that_do_not_fit_into_a_datagram_are_left_out(
        disk: Disk, heard: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(control, 'MAX_EVENT_BYTES', 200)
    dice = random.Random(3)
    starts = sorted(dice.sample(range(0, 1000, 2), 15))
    disk.put('o', BODY, ClassMap.from_spans(
        [Span(start, 1, 1 + dice.randrange(3)) for start in starts], 0))
    told(heard)
    disk.read('o')
    assert [event.map_text for event in told(heard)] == ['']
    disk.read('o', starts[0], starts[0] + 1)
    event, = told(heard)
    assert sum(bytes_by_class(event).values()) == 1


def test_many_reads_fill_whole_datagrams(
        disk: Disk, green: None, still: None, heard: Any) -> None:
    disk.put('o', BODY)
    disk.read('o')
    datagrams(heard)
    for _ in range(100):
        disk.read('o')
    disk.node.events.send_what_waits('sda')
    groups = datagrams(heard)
    assert sum(map(len, groups)) == 100
    assert 2 <= len(groups) <= 10


def test_without_an_event_loop_a_read_waits_for_no_timer(
        disk: Disk, heard: Any) -> None:
    disk.put('o', BODY)
    datagrams(heard)
    for _ in range(3):
        disk.read('o')
    assert sum(map(len, datagrams(heard))) == 3


def test_a_fork_sends_nothing_of_its_parent(
        disk: Disk, green: None, still: None, heard: Any,
        monkeypatch: Any) -> None:
    disk.put('o', BODY)
    for _ in range(3):
        disk.read('o')
    datagrams(heard)
    monkeypatch.setattr(os, 'getpid', lambda: 1)  # as in a child
    disk.node.events.send_what_waits('sda')
    disk.read('o')
    assert datagrams(heard) == []
    disk.node.events.send_what_waits('sda')
    (_of_the_child,), = datagrams(heard)


def test_a_daemon_that_was_started_anew_hears_the_very_next_read(
        disk: Disk, heard: Any) -> None:
    disk.put('o', BODY)
    disk.read('o')
    assert len(datagrams(heard)) == 2
    path = heard.getsockname()
    heard.close()
    os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as again:
        again.bind(path)
        again.setblocking(False)
        disk.read('o')
        (event,), = datagrams(again)
    assert event.kind is control.EventKind.READ
    assert disk.logger.counts.get('dss.events.dropped') is None


def test_reads_that_nobody_hears_are_dropped_and_counted(
        disk: Disk, green: None, heard: Any) -> None:
    disk.put('o', BODY)
    heard.close()
    disk.read('o')
    disk.read('o')
    assert disk.logger.counts['dss.events.dropped'] == 2


def test_of_empty_objects_only_manifests_are_told(
        disk: Disk, heard: Any) -> None:
    disk.put('o', b'')
    disk.put('m', b'')
    path = disk.data_path('m')
    metadata = dict(read_metadata(path))
    metadata['X-Object-Manifest'] = 'c/segments'
    with open(path, 'r+b') as target:
        write_metadata(target, metadata, xattr_size=VALUE_BYTES)
    datagrams(heard)
    assert disk.read('o') == disk.read('m') == b''
    told = [event for batch in datagrams(heard) for event in batch]
    assert [(event.kind, event.length, event.version.object_hash)
            for event in told] == [
        (control.EventKind.READ, 0, os.path.basename(os.path.dirname(path)))]


@pytest.mark.parametrize('class_id,name', [
    (1, '/a/c/o'), (2, ''), (3, '')])
def test_a_put_has_a_name_where_all_of_it_is_on_the_ssd_alone(
        disk: Disk, heard: Any, class_id: int, name: str) -> None:
    disk.put('o', BODY, ClassMap.uniform(class_id))
    (event,), = datagrams(heard)
    assert (event.kind, event.size, event.name, event.map_text) == (
        control.EventKind.PUT, len(BODY), name, str(class_id))


def test_a_name_too_long_for_a_datagram_is_left_out() -> None:
    event = control.Event(
        control.EventKind.PUT, VersionId('sda', 0, 'h', '1.0'), '7',
        len(BODY), '1', name='/a/c/' + 'o' * MAX_EVENT_BYTES)
    raw = control.encode_event(event)
    assert len(raw) <= MAX_EVENT_BYTES
    read = control.decode_event(raw)
    assert (read.size, read.name, read.map_text) == (len(BODY), '', '')
