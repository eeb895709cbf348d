"""The devices that a node attaches at boot."""

from __future__ import annotations

import pytest

from swift_dss.block import tab
from swift_dss.core.errors import BadConfig

LINE = 'fast /dev/s /dev/h'


def test_line_has_a_name_two_devices_and_settings():
    assert tab.parse('''
# NAME SSD ORIGIN OPTIONS
fast  /dev/disk/by-id/nvme-X-part1  /dev/sdb  nofail,high=70,low=10
slow\t/dev/s\t/dev/h\t-
  ''') == ({
        'fast': tab.Entry('fast', '/dev/disk/by-id/nvme-X-part1', '/dev/sdb',
                          high=70, low=10, nofail=True),
        'slow': tab.Entry('slow', '/dev/s', '/dev/h')}, [])


def test_every_option_sets_its_field():
    entries, wrong = tab.parse(
        LINE + ' class-table=/etc/swift/c.conf,mode=writethrough,strategy=lru,'
        'meta-class=255,high=9,low=8,idle-ms=0,stage=7,noauto,nofail')
    assert not wrong
    assert entries['fast'] == tab.Entry(
        'fast', '/dev/s', '/dev/h', '/etc/swift/c.conf', 'writethrough',
        'lru', 255, 9, 8, 0, 7, True, True)


@pytest.mark.parametrize('line, said', [
    ('fast /dev/s', '2 words; wanted: NAME SSD ORIGIN'),
    (LINE + ' a b', '5 words'), ('-f /dev/s /dev/h', "'-f' is no name"),
    ('f/g /dev/s /dev/h', 'no name'), ('fast s /dev/h', "'s' is no path"),
    ('fast /dev/s%i /dev/h', 'is no path'),
    ('fast /dev/s /dev/s', 'are one device'),
    (LINE + ' fast', "no option 'fast'; there are noauto, nofail"),
    (LINE + ' mode=sideways', 'no option'), (LINE + ' nofail=1', 'no option'),
    (LINE + ' high', 'no option'), (LINE + ' class-table=x', 'no option'),
    (LINE + ' high=101', 'high=101; wanted: 0 to 100'),
    (LINE + ' high=-1', 'wanted: 0 to 100'),
    (LINE + ' high=4,high=5', 'high is given twice'),
    (LINE + ' high=10', 'low=25 is over high=10')])
def test_wrong_line_costs_its_device_alone_and_is_named(line, said):
    entries, wrong = tab.parse('\n%s\nlast /dev/a /dev/b' % line, 'x.tab')
    assert list(entries) == ['last']
    assert len(wrong) == 1 and wrong[0].startswith('x.tab, line 2: ')
    assert said in wrong[0]


def test_second_device_of_a_name_does_not_count():
    entries, wrong = tab.parse(LINE + '\nfast /dev/a /dev/b')
    assert entries['fast'].ssd == '/dev/s'
    assert wrong == ['/etc/dss-block.tab, line 2: a second device fast']


def test_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(BadConfig, match='none: '):
        tab.read(str(tmp_path / 'none'))
