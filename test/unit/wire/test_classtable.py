"""dss-classes.conf: what is taken and what is refused."""

from __future__ import annotations

import dataclasses
import pathlib
import re

import pytest

from swift_dss.core.classes import (
    Allocate, ClassSpec, Direct, PrefetchHint, RemoteMode, WriteMode)
from swift_dss.core.errors import BadConfig
from swift_dss.wire.settings import classtable

SAMPLE = (pathlib.Path(__file__).resolve().parents[3] / 'etc'
          / 'dss-classes.conf-sample')


def row(options='', class_id=25, name='gold', rank=10):
    return '[class:%d]\nname = %s\nrank = %s\n%s\n' % (
        class_id, name, rank, options)


def test_every_option():
    table = classtable.parse(row(
        'allocate = Room\nfloor = 10%\ncap = 0.5\nwrite = through\n'
        'remote = never\npin = yes\nbundle = on\nwan_share = 7\n'
        'deadline_ms = 20\ninner = lru\nprefetch = never\nweight = 5\n'
        'cutoff_kib = 512\nevict_on_hit = no\nno_allocate = no\n'
        'direct = SSD\ndirty_cap = 25%\nwarm_copies = 2\n'
        's3_storage_class = STANDARD_IA , X-1', name='Gold'))
    assert table.spec(25) == ClassSpec(
        25, 'gold', 10, Allocate.ROOM, 0.1, 0.5, WriteMode.THROUGH,
        RemoteMode.NEVER, True, True, 7, 20, 'lru', PrefetchHint.NEVER, 5,
        512, False, False, 0.25, Direct.SSD, 2, ('STANDARD_IA', 'X-1'))
    assert table.storage_classes == {'STANDARD_IA': 25, 'X-1': 25}
    assert table.storage_class_of(25) == 'STANDARD_IA'
    assert table.storage_class_of(3) == ''


@pytest.mark.parametrize('options, said', [
    ('direct = ssd\nno_allocate = yes', r'\[class:25\] direct: to the SSD'),
    ('direct = ssd\nallocate = never', r'\[class:25\] direct: to the SSD'),
    ('pin = yes\ndirect = hdd', r'\[class:25\] pin: .*leave it'),
    ('pin = yes\nevict_on_hit = yes', r'\[class:25\] pin: .*leave it'),
    ('pin = yes\nno_allocate = yes', r'\[class:25\] pin: .*kept away'),
    ('direct = tape', "direct: 'tape' is not one of none, hdd, ssd"),
    ('warm_copies = 4', r"warm_copies: '4' is not a whole number of 1\.\.3"),
    ('s3_storage_class = glacier', "'glacier' is not a storage class of S3"),
    ('s3_storage_class = A, ' + 'B' * 33, 'is not a storage class of S3'),
    ('weight = 0', r"weight: '0' is not a whole number of 1\.\.1000"),
    ('cutoff_kib = 1048577', r'cutoff_kib: .* of 0\.\.1048576')])
def test_what_the_kernels_cache_cannot_do_is_refused(options, said):
    with pytest.raises(BadConfig, match=said):
        classtable.parse(row(options))


def test_options_have_the_defaults_of_the_type():
    assert classtable.parse(row()).spec(25) == ClassSpec(25, 'gold', 10)


def test_defaults_hold_for_classes_that_say_nothing_else():
    table = classtable.parse(
        '[DEFAULT]\nallocate = never\n' + row()
        + row('allocate = room', 26, 'silver', 9))
    assert table.spec(25).allocate is Allocate.NEVER
    assert table.spec(26).allocate is Allocate.ROOM


@pytest.mark.parametrize('text, said', [
    ('', r'no \[class:<id>\] section'),
    ('# nothing\n', r'no \[class:<id>\] section'),
    ('name = gold\n', 'no section headers'),
    ('[class:25\nname = a', 'no section headers'),
    ('[gold]\nrank = 1', r'\[gold\] is not \[class:<id>\]'),
    ('[class:32]\nname = a', r'\[class:32\] is not'),
    ('[class:-1]\nname = a', r'\[class:-1\] is not'),
    ('[class:025]\nname = a', r'\[class:025\] is not'),
    ('[class: 5]\nname = a', r'\[class: 5\] is not'),
    ('[class:25]\nrank = 1', r'\[class:25\] name: is missing'),
    ('[class:25]\nname = a', r'\[class:25\] rank: is missing'),
    (row() + row(name='b', rank=2), "section 'class:25' already exists"),
    (row('rank = 3'), "option 'rank' .*already exists"),
    (row() + row(class_id=26, rank=2),
     r'\[class:26\] name: gold is taken by \[class:25\]'),
    (row() + row(class_id=26, name='b'),
     r'\[class:26\] rank: 10 is taken by \[class:25\]'),
    (row(name='25'), r'\[class:25\] name: .25. would read as a class id'),
    (row(name='all'), r"\[class:25\] name: 'all' is reserved"),
    (row(name='a b'), r"\[class:25\] name: 'a b' is not a letter"),
    (row(name='-a'), r'\[class:25\] name: .*is not a letter'),
    (row(name='a' * 33), r'\[class:25\] name: .*is not a letter'),
    (row(name='käse'), r'\[class:25\] name: .*is not a letter'),
    (row(name='unclassified'), 'name: "unclassified" is class 0'),
    (row(rank='-1'), r"\[class:25\] rank: '-1' is not a whole number"),
    (row(rank='1.5'), r'\[class:25\] rank: '),
    (row(rank='٣'), r'\[class:25\] rank: '),
    (row('ranks = 3'), r'\[class:25\] ranks: no such option; there are'),
    (row('class_id = 3'), r'\[class:25\] class_id: no such option'),
    (row('allocate = maybe'),
     r"allocate: 'maybe' is not one of always, room, never"),
    (row('write = 1'), "write: '1' is not one of back, through"),
    (row('remote ='), "remote: '' is not one of back, through, never, only"),
    (row('inner = mru'), "inner: 'mru' is not one of lru"),
    (row('pin = maybe'), "pin: 'maybe' is neither true nor false"),
    (row('floor = 1.5'), r'\[class:25\] floor: .*not a share'),
    (row('floor = -0.1'), r'\[class:25\] floor: .*not a share'),
    (row('floor = 101%'), r'\[class:25\] floor: .*not a share'),
    (row('floor = nan'), r'\[class:25\] floor: .*not a share'),
    (row('cap = inf'), r'\[class:25\] cap: .*not a share'),
    (row('cap = 1e-3'), r'\[class:25\] cap: .*not a share'),
    (row('floor = 0.5\ncap = 0.25'), 'cap: 0.25 is below the floor of 0.5'),
    (row('wan_share = 0'), 'wan_share: .* of 1..1000'),
    (row('deadline_ms = fast'), 'deadline_ms: .*whole number'),
    (row('pin = true\nallocate = never'), r'\[class:25\] pin: '),
    (row('pin = true\nremote = only'), r'\[class:25\] pin: '),
    ('[DEFAULT]\nname = a\n' + row(), r'\[DEFAULT\] name: must be given'),
    ('[DEFAULT]\ncolour = red\n' + row(), r'\[class:25\] colour: no such'),
    ('[DEFAULT]\nfloor = 0.6\n' + row() + row('', 26, 'b', 2),
     'floors of all classes add up to 1.2'),
])
def test_what_is_refused_names_section_option_and_reason(text, said):
    with pytest.raises(BadConfig, match=said) as caught:
        classtable.parse(text, 'classes.conf')
    message = str(caught.value)
    assert message.startswith('classes.conf: ')
    assert '\n' not in message


def test_floors_may_take_the_whole_ssd():
    text = ''.join(row('floor = 0.1', at, 'c%d' % at, at)
                   for at in range(10))
    assert len(classtable.parse(text).specs) == 10


def test_the_sample_is_taken_and_has_the_classes_of_the_paper():
    table = classtable.parse(SAMPLE.read_text())
    ranks = [table.by_name('user%d' % n).rank for n in range(1, 8)]
    assert ranks == sorted(ranks, reverse=True)
    assert table.by_name('metadata').rank > ranks[0]
    assert table.spec(0).name == 'unclassified'
    assert table.in_eviction_order()[0].class_id == 0
    assert table.by_name('gold').class_id == 25


def test_the_sample_shows_every_option_at_its_default():
    shown = dict(re.findall(r'^# ([a-z0-9_]+) =(?: (.*))?$',
                            SAMPLE.read_text(), re.M))
    fields = {field.name: field.default
              for field in dataclasses.fields(ClassSpec)
              if field.default is not dataclasses.MISSING}
    assert set(shown) == set(fields)
    text = '[DEFAULT]\n' + ''.join(
        '%s = %s\n' % item for item in shown.items()) + row()
    assert classtable.parse(text).spec(25) == ClassSpec(25, 'gold', 10)


def test_two_classes_have_no_storage_class_together():
    with pytest.raises(BadConfig, match=r'\[class:26\] s3_storage_class: '
                       r'GLACIER is taken by \[class:25\]'):
        classtable.parse(row('s3_storage_class = GLACIER') + row(
            's3_storage_class = X, GLACIER', 26, 'silver', 9))
