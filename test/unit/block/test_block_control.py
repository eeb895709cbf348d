"""Control of devices, where it needs no kernel."""

import logging

import pytest
from unit.block.test_table import STATUS

from swift_dss.block import control, control_classes, control_status, table
from swift_dss.block.control import ControlFailed
from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import BadConfig

GOOD = '[class:0]\nname = unclassified\nrank = 0\n'


class Kernel:
    """Devices that take class tables, or refuse them."""

    def __init__(self, *names):
        self.rows = dict.fromkeys(names)
        self.refusing = set()
        self.sent = []

    def send(self, name, rows):
        self.sent.append(name)
        if name in self.refusing:
            raise ControlFailed('no')
        changed = self.rows[name] != rows
        self.rows[name] = dict(rows)
        return changed


@pytest.fixture
def feed(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / 'classes'
    path.write_text(GOOD)
    kernel = Kernel('a', 'b')
    made = control_classes.ClassFeed(str(path), logging.getLogger('t'),
                                     kernel.send)
    return made, kernel, path


def test_table_is_sent_once_to_each_device(feed):
    made, kernel, _path = feed
    assert made.look(['a', 'b']) == ['a', 'b']
    assert made.look(['a', 'b']) == []
    assert kernel.sent == ['a', 'b']


def test_changed_file_is_sent_at_the_next_look(feed):
    made, kernel, path = feed
    made.look(['a'])
    path.write_text(GOOD + '[class:9]\nname = nine\nrank = 3\n')
    assert made.look(['a']) == ['a']
    assert set(kernel.rows['a']) == {0, 9}


def test_bad_file_changes_nothing_and_is_said_once(feed, caplog):
    made, kernel, path = feed
    made.look(['a'])
    before = kernel.rows['a']
    path.write_text('[class:0]\nname = x\nrank = -1\n')
    for _ in range(3):
        assert made.look(['a']) == []
    assert kernel.rows['a'] == before
    assert made.table.name_of(0) == 'unclassified'
    assert 'stays as it was' in made.errors['']
    assert caplog.text.count('stays as it was') == 1
    path.write_text(GOOD)
    made.look(['a'])
    assert made.errors == {}


def test_device_that_refuses_keeps_its_own_and_is_tried_again(feed):
    made, kernel, _path = feed
    kernel.refusing.add('a')
    assert made.look(['a', 'b']) == ['b']
    assert kernel.rows['a'] is None
    assert 'keeps its class table' in made.errors['a']
    kernel.refusing.clear()
    assert made.look(['a', 'b']) == ['a']
    assert made.errors == {}


def test_device_that_came_back_is_told_again(feed):
    made, kernel, _path = feed
    made.look(['a', 'b'])
    made.look(['a'])
    kernel.rows['b'] = None
    assert made.look(['a', 'b']) == ['b']


def test_rows_that_the_kernel_refuses_name_the_class():
    with pytest.raises(BadConfig, match=r'\[class:3\]: rank'):
        control_classes.checked_rows(ClassTable.of([
            ClassSpec(3, 'x', 2000000)]), 'file')


def test_status_is_put_together_and_becomes_metrics():
    status = control_status.describe(
        'fast', table.parse_status(STATUS), table.parse_stats(
            'class=11 resident=10 dirty=3 read_hits=7 write_hits=5 misses=9 '
            'bypass_room=1 evicted_own=2 promoted_sectors=16\ncommits=4\n'),
        table.parse_latency(
            'class=11 op=read count=2 total_us=10 max_us=6 buckets=%s'
            % ','.join(['0', '0', '0', '2'] + ['0'] * 22)),
        ClassTable.of([ClassSpec(11, 'user1', 700)]))
    row = status['classes'][11]
    assert (row['name'], row['hits'], row['bytes']) == (
        'user1', 12, 10 * 512 * 512)
    assert row['bypasses']['room'] == 1 and row['evictions']['own'] == 2
    assert row['latency']['read']['p99_us'] == 6
    by_name = {}
    for name, labels, value in control_status.samples(
            status, {'device': 'sdb1'}):
        assert labels['device'] == 'sdb1'
        by_name.setdefault(name, []).append((labels, value))
    assert by_name['block.healthy'] == [({'device': 'sdb1'}, 1.0)]
    assert ({'device': 'sdb1', 'class': 'user1', 'reason': 'room'},
            1.0) in by_name['block.class_bypasses']
    assert by_name['block.class_latency_seconds'][0][1] == 6e-6
    buckets = by_name['block.class_latency_histogram_seconds_bucket']
    assert [value for _labels, value in buckets] == [0.0] * 3 + [2.0] * 23
    assert [labels['le'] for labels, _value in buckets][::25] == [
        '1e-06', '+Inf']
    assert by_name['block.class_latency_histogram_seconds_sum'][0][1] == 1e-5
    # One name, one set of labels: Prometheus has no families else.
    for rows in by_name.values():
        assert len({tuple(labels) for labels, _value in rows}) == 1


def test_command_waits_for_udev_only_where_it_is(monkeypatch, tmp_path):
    program = tmp_path / 'dmsetup'
    program.write_text('#!/bin/sh\n')
    program.chmod(0o755)
    monkeypatch.setenv('PATH', str(tmp_path))
    monkeypatch.setattr(control, '_UDEV', str(tmp_path / 'none'))
    assert control.command(['ls']) == [
        str(program), '--noudevsync', '--noudevrules', 'ls']
    monkeypatch.setattr(control, '_UDEV', str(program))
    assert control.command(['ls']) == [str(program), 'ls']


def test_refusal_of_dmsetup_is_told(monkeypatch, tmp_path):
    program = tmp_path / 'dmsetup'
    program.write_text('#!/bin/sh\necho "no such\n device" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv('PATH', '%s:/bin' % tmp_path)
    with pytest.raises(ControlFailed, match='no such device'):
        control.run(['status', 'x'])


class Module:
    """The answers of dmsetup for a module of some version."""

    def __init__(self, version):
        self.version = version
        self.table = ''

    def run(self, words):
        if words == ['targets']:
            return 'linear           v1.4.0\ndss              v%s\n' \
                % self.version
        assert words[:4] == ['message', 'a', '0', 'classes']
        if len(words) > 4:
            self.table = '\n'.join(words[4:])
        return self.table


@pytest.mark.parametrize('version, classes', [
    ('1.2.0', {5, 8}), ('1.3.0', {5, 8, 31}), ('1.10.0', {5, 8, 31})])
def test_a_module_gets_the_classes_of_cold_copies_if_it_knows_them(
        monkeypatch, version, classes):
    module = Module(version)
    monkeypatch.setattr(control, 'run', module.run)
    rows = control_classes.rows_of(ClassTable.of([
        ClassSpec(5, 'cold', 1), ClassSpec(8, 'high', 10)]))
    assert control.send_classes('a', rows)
    assert set(table.parse_rows(module.table)) == classes
    assert not control.send_classes('a', rows)
