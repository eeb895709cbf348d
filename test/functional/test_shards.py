"""The tier daemon as several processes, each with a part of the devices.

Real processes: what dies is killed with SIGKILL, at every step of a device's
way from one shard to another.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from support import pattern, wait_until
from support.nodes.daemon_node import DaemonProcess, Died, write_node
from support.nodes.sample_node import SampleNode, read_version

from swift_dss.cli.main import main as cli
from swift_dss.io.switch import Place
from swift_dss.wire.node import shards
from swift_dss.wire.control import Event, EventKind, encode_event

DEVICES = ('sda', 'sdb', 'sdc', 'sdd')
OBJECTS = 12
SIZE = 9000
#: Steps of a parent that gives devices other shards.
STEPS = ('shards.planned', 'shards.handed_over', 'shards.settled',
         'shards.published')
_KILLED_AT = '''
import os, signal, sys
from swift_dss.io import steps
from swift_dss.tier.main import main
def die(name):
    if name == %r:
        os.kill(os.getpid(), signal.SIGKILL)
steps.listen(die)
sys.exit(main())
'''


class Node:
    """Four devices with objects, and a daemon."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.nodes = {name: SampleNode(root, device=name)
                      for name in DEVICES}
        self.bodies: Dict[Tuple[str, str], bytes] = {}
        self.places: Dict[Tuple[str, str], Place] = {}
        for name in DEVICES:
            for number in range(OBJECTS):
                self.put(name, 'o%d' % number)
        self.configure('2')
        self.daemon = DaemonProcess(root)

    def put(self, device: str, name: str) -> Place:
        body = pattern(SIZE, device + name)
        place = self.nodes[device].put('%s-%s' % (device, name), body)
        self.bodies[device, name] = body
        self.places[device, name] = place
        return place

    def configure(self, wish: str, **tier: object) -> None:
        self.conf_path = write_node(self.root, {
            'io': {'carrier': 'null'},
            'tier': dict({'interval_seconds': 1, 'shards': wish,
                          'index_dir': os.path.join(self.root, 'state'),
                          'clean_after_seconds': 1}, **tier),
            'capacity': {name: node.capacity_path
                         for name, node in self.nodes.items()}})

    def layout(self) -> Dict[str, int]:
        with open(os.path.join(self.root, 'run', shards.FILE),
                  'rb') as source:
            return dict(shards.decode(source.read()).devices)

    def sockets(self, device: str) -> str:
        return os.path.join(self.root, 'run',
                            'shard-%d' % self.layout()[device])

    def tell(self, place: Place) -> None:
        """As an object server does."""
        raw = encode_event(Event(
            EventKind.PUT, place.version, place.partition, SIZE, '0',
            at=time.time()))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(os.path.join(
                self.sockets(place.version.device), 'events.sock'))
            sender.send(raw)

    def rows(self) -> List[Dict[str, Any]]:
        """Every version that the index of any shard has."""
        done = subprocess.run(
            [sys.executable, '-m', 'swift_dss.cli.main', 'tier', 'ls',
             '--json', '--config', self.conf_path],
            capture_output=True, text=True, check=True)
        rows: List[Dict[str, Any]] = json.loads(done.stdout)
        return rows

    def is_whole(self) -> bool:
        """Each version is in one index, once."""
        counts = Counter((row['device'], row['hash']) for row in self.rows())
        return counts == Counter(
            (place.version.device, place.version.object_hash)
            for place in self.places.values())

    def settle(self) -> None:
        wait_until(lambda: not self.daemon.ask(
            {'verb': 'status'})['rebuild_needed'], 60, 'devices are read')
        self.daemon.settle()

    def judge(self) -> None:
        """No byte is lost, and no row."""
        self.settle()
        wait_until(self.is_whole, 30, 'each version in one index')
        for where, place in self.places.items():
            assert read_version(place, {}) == self.bodies[where]


@pytest.fixture
def node(tmp_path: Any) -> Iterator[Node]:
    made = Node(str(tmp_path))
    yield made
    made.daemon.stop()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open('/proc/%d/stat' % pid, encoding='ascii') as source:
        return source.read().rsplit(')', 1)[1].split()[0] != 'Z'


def test_one_status_and_every_verb_for_all_shards(
        node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.daemon.start()
    node.judge()
    status = node.daemon.ask({'verb': 'status'})
    assert [device['name'] for device in status['devices']] == list(DEVICES)
    assert sorted(sum((shard['devices'] for shard in status['shards']), [])) \
        == list(DEVICES)
    assert status['classes']['0']['objects'] == len(node.places)
    assert len({shard['pid'] for shard in status['shards']}) == 2

    def said(*words: str) -> Tuple[int, Any]:
        code = cli(['tier', words[0], '--json', '--config', node.conf_path,
                    *words[1:]])
        text = capsys.readouterr()
        return code, json.loads(text.out) if text.out else text.err

    code, moved = said('demote', node.places[
        'sdb', 'o3'].version.object_hash)
    assert (code, moved['moved']) == (0, 1) and moved['rows'][0]['hdd']
    code, moved = said('demote', '--container', 'a/c')
    assert (code, moved['moved']) == (0, len(node.places))
    assert all(row['ssd'] == 0 for row in node.rows())
    code, moved = said('promote', '--device', 'sdd')
    assert (code, moved['moved']) == (0, OBJECTS)
    code, text = said('demote', '/a/c/nobody')
    assert code and '/a/c/nobody is not on this node' in text
    code, text = said('demote')
    assert code and 'say which' in text
    # Pages of one list: no more rows than were asked for, whoever has them.
    assert len(said('ls', '--limit', '15')[1]) == 15
    assert len(said('sweep')[1]) == len(said('rebuild')[1]) == len(DEVICES)
    cli(['tier', 'status', '--config', node.conf_path])
    out = capsys.readouterr().out
    for shard in status['shards']:
        assert 'shard %d: process %d' % (shard['number'], shard['pid']) in out


def test_a_shard_that_dies_is_started_again_and_hears_all(
        node: Node) -> None:
    node.daemon.start()
    node.judge()
    before = {row['number']: row for row in
              node.daemon.ask({'verb': 'status'})['shards']}
    victim = node.layout()['sdb']
    os.kill(before[victim]['pid'], signal.SIGKILL)
    # The other one goes on meanwhile.
    other = next(name for name, number in node.layout().items()
                 if number != victim)
    node.tell(node.put(other, 'while'))

    def again() -> Any:
        shard = next(row for row in node.daemon.ask(
            {'verb': 'status'})['shards'] if row['number'] == victim)
        return shard['answers'] and shard['restarts'] == 1 and shard
    assert wait_until(again, 60, 'the shard is back')['pid'] \
        != before[victim]['pid']
    node.tell(node.put('sdb', 'after'))
    node.judge()


def test_shards_end_with_their_parent_and_the_next_one_waits(
        node: Node) -> None:
    node.daemon.start()
    node.judge()
    pids = [shard['pid'] for shard in
            node.daemon.ask({'verb': 'status'})['shards']]
    node.daemon.process.kill()
    node.daemon.process.wait()
    # At once: the shards of the dead one may still be at their end.
    node.daemon.start()
    assert not any(map(_alive, pids))
    node.judge()


@pytest.mark.parametrize('step', STEPS)
def test_a_parent_killed_while_devices_move_loses_nothing(
        node: Node, step: str) -> None:
    node.daemon.start()
    node.judge()
    layout = node.layout()
    first = [name for name in DEVICES if not layout[name]]
    second = [name for name in DEVICES if layout[name]]
    node.daemon.stop()
    # One goes to the other shard, and one to a third.
    node.configure('%s; %s %s; %s' % (
        first[0], second[0], first[1], second[1]))
    with pytest.raises(Died):
        node.daemon.start(command=('-c', _KILLED_AT % step))
    node.put(first[1], 'on the way')  # nobody hears of it
    node.daemon.start()
    assert node.layout() == {first[0]: 0, second[0]: 1, first[1]: 1,
                             second[1]: 2}
    node.daemon.ask({'verb': 'sweep'})
    node.judge()


def test_devices_move_while_the_daemon_runs(node: Node) -> None:
    node.daemon.start()
    node.judge()
    layout = node.layout()
    swapped = ' '.join(name for name in DEVICES if layout[name]) + '; ' \
        + ' '.join(name for name in DEVICES if not layout[name])
    node.configure(swapped)
    node.daemon.ask({'verb': 'reload'})
    assert node.layout() == {name: 1 - number
                             for name, number in layout.items()}
    node.judge()
    # What does not parse changes nothing.
    node.configure('sda; sda')
    with pytest.raises(AssertionError, match='sda is in list 1 and in'):
        node.daemon.ask({'verb': 'reload'})
    node.configure(swapped)
    assert node.layout()['sda'] == 1 - layout['sda']
    node.judge()


def test_an_event_for_a_device_that_moved_is_passed_on(node: Node) -> None:
    node.daemon.start()
    node.judge()
    place = node.put('sda', 'late')
    wrong = os.path.join(node.root, 'run', 'shard-%d' % (
        1 - node.layout()['sda']), 'events.sock')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(wrong)
        sender.send(encode_event(Event(
            EventKind.PUT, place.version, place.partition, SIZE, '0',
            at=time.time())))
    node.judge()


def test_from_one_to_several_and_back(node: Node) -> None:
    node.configure('1')
    node.daemon.start()
    node.judge()
    assert not os.path.exists(os.path.join(node.root, 'run', shards.FILE))
    assert node.daemon.ask({'verb': 'status'}).get('shards') is None
    for wish, number in (('3', 3), ('2', 2), ('1', 0)):
        node.daemon.stop()
        node.configure(wish)
        node.daemon.start()
        node.judge()
        assert len(node.daemon.ask({'verb': 'status'}).get(
            'shards', ())) == number


def test_a_new_device_gets_a_shard(
        node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.daemon.start()
    node.judge()
    node.nodes['sde'] = SampleNode(node.root, device='sde')
    node.configure('2')
    node.put('sde', 'new')
    node.daemon.ask({'verb': 'reload'})
    assert 'sde' in node.layout()
    node.judge()


def test_a_shard_that_cannot_start_is_told_at_the_start(node: Node) -> None:
    node.configure('2', index_bytes='1')
    os.makedirs(os.path.join(node.root, 'state'))
    with open(os.path.join(node.root, 'state', 'shard-1'), 'w'):
        pass
    with pytest.raises(Died):
        node.daemon.start()
    assert node.daemon.process.returncode == 78
