"""dss-rules.conf: what is taken and what is refused."""

from __future__ import annotations

import pathlib

import pytest

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import BadConfig
from swift_dss.core.limits import (
    MAX_OBJECT_BYTES, MAX_RULES, MAX_RULES_ALWAYS_TRIED)
from swift_dss.core.rules import RequestFacts, Rules
from swift_dss.strategy.classify import classify, first_match
from swift_dss.wire.settings import classtable, rules

TABLE = ClassTable.of([ClassSpec(25, 'gold', 10)])
ETC = pathlib.Path(__file__).resolve().parents[3] / 'etc'


def only(options, name='one'):
    parsed = rules.parse('[rule:%s]\nclass = gold\n%s' % (name, options),
                         TABLE)
    return parsed.rules[0]


def test_rules_keep_the_order_of_the_file():
    text = ''.join('[rule:%s]\nclass = %d\n' % (name, at)
                   for at, name in enumerate(('z', 'a', 'm')))
    assert [(rule.name, rule.class_id)
            for rule in rules.parse(text, TABLE).rules] == [
                ('z', 0), ('a', 1), ('m', 2)]


def test_a_file_without_rules_is_legal():
    assert rules.parse('# nothing\n', TABLE) == Rules()


@pytest.mark.parametrize('text, least, most', [
    ('< 10', 0, 9), ('<=10', 0, 10), ('> 10', 11, MAX_OBJECT_BYTES),
    ('>= 10', 10, MAX_OBJECT_BYTES), ('10', 10, 10), ('5-10', 5, 10),
    ('64k - 512K', 65536, 524288), ('<= 64KB', 0, 65536),
    ('<= 64 KiB', 0, 65536), ('1m-1g', 1 << 20, 1 << 30),
    ('> 1t', (1 << 40) + 1, MAX_OBJECT_BYTES), ('0', 0, 0)])
def test_sizes(text, least, most):
    rule = only('size = %s' % text)
    assert (rule.by_size, rule.min_bytes, rule.max_bytes) == (
        True, least, most)


@pytest.mark.parametrize('options, said', [
    ('class = gold', "option 'class' .*already exists"),
    ('size = big', r":3: \[rule:one\] size: 'big' is none of"),
    ('size = < 0', 'size: .*fits no size'),
    ('size = 10-5', 'size: .*fits no size'),
    ('size = 9999999999999999999t', 'size: .*fits no size'),
    ('size = 1.5m', 'size: .*is none of'),
    ('size =', 'size: is empty'),
    ('size = -5', 'size: .*is none of'),
    ('\nsizes = 5', r':4: \[rule:one\] sizes: no such option; there are'),
    ('name = a,,b', 'name: an empty pattern'),
    ('name = *.jpg # pictures', 'name: a comment has to be on a line of'),
    ('name = ' + 'a' * 257, 'name: a pattern of 257 characters'),
    ('name_regex = (', r'name_regex: is no regular expression'),
    ('name_regex = (a+)+', 'name_regex: repeats inside a repetition'),
    ('header = X-A', "header: 'X-A' is not"),
    ('header = X A: b', 'header: .* is not "Name: pattern"'),
    ('header = X-A:', 'header: an empty pattern'),
])
def test_what_is_refused_names_line_section_option_and_reason(
        options, said):
    with pytest.raises(BadConfig, match=said) as caught:
        rules.parse('[rule:one]\nclass = gold\n' + options, TABLE,
                    'r.conf')
    assert str(caught.value).startswith('r.conf')
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize('text, said', [
    ('[rule:one]\nsize = 5\n', r':1: \[rule:one\] class: is missing'),
    ('[rule:one]\nclass = silver\n',
     r":2: \[rule:one\] class: 'silver' is neither"),
    ('[rule:one]\nclass = 32\n', 'class: class id .32. is not in'),
    ('[one]\nclass = 1\n', r':1: \[one\] is not \[rule:<name>\]'),
    ('[rule:]\nclass = 1\n', r'\[rule:\] is not'),
    ('[DEFAULT]\nclass = 1\n[rule:a]\n', r'\[DEFAULT\] has options'),
    ('[rule:a]\nclass = 1\n[rule:a]\nclass = 1\n', 'already exists'),
    ('class = 1\n', 'no section headers'),
    (''.join('[rule:%d]\nclass = 1\n' % n for n in range(MAX_RULES + 1)),
     '16385 rules are more than 16384'),
    (''.join('[rule:%d]\nclass = 1\nname_regex = a%d\n' % (n, n)
             for n in range(MAX_RULES_ALWAYS_TRIED + 1)),
     '1025 rules have no pattern that begins or ends with plain text'),
])
def test_files_that_are_refused_whole(text, said):
    with pytest.raises(BadConfig, match=said):
        rules.parse(text, TABLE)


def test_every_condition_of_the_sample_works():
    sample = (ETC / 'dss-rules.conf-sample').read_text()
    switched_on = '\n'.join(
        line[2:] if ' = ' in line or line.startswith(('# [', '#    '))
        else line for line in sample.splitlines())
    table = classtable.parse(
        (ETC / 'dss-classes.conf-sample').read_text())
    assert rules.parse(sample, table) == Rules()
    parsed = rules.parse(switched_on, table)
    every = parsed.rules[0]
    assert every.name == 'every option'
    assert all((every.content_types, every.names, every.name_regex,
                every.by_size, every.users, every.accounts,
                every.containers)) and len(every.headers) == 2
    assert table.name_of(parsed.rules[-1].class_id) == 'user1'


@pytest.mark.parametrize('name, media, size, wanted', [
    ('notes.txt', 'text/plain', 60000, 'user1'),
    ('a.jpg', 'image/jpeg', 400000, 'user2'),
    ('a.mp3', 'audio/mpeg; x=y', 4 << 20, 'user3'),
    ('a.mp4', 'video/mp4', 9 << 20, 'user4'),
    ('disk.vmdk', 'application/octet-stream', 5 << 20, 'user5'),
    ('a.mp4', 'video/mp4', 10 * (1 << 20), 'user4'),
    ('a.mp4', 'video/mp4', 10 * (1 << 20) + 1, 'user7'),
    ('disk.vmdk', '', 20 << 30, 'user7'),
    ('chunked.jpg', 'image/png', None, 'user2')])
def test_the_distribution_of_the_paper(name, media, size, wanted):
    table = classtable.parse(
        (ETC / 'dss-classes.conf-sample').read_text())
    sample = (ETC / 'dss-rules.conf-sample').read_text()
    paper = sample[sample.index('# [rule:large]'):]
    parsed = rules.parse('\n'.join(
        line[2:] for line in paper.splitlines()), table)
    facts = RequestFacts(obj=name, content_type=media, size=size)
    assert first_match(facts, parsed) is not None
    assert table.name_of(classify(facts, parsed).rest) == wanted


def test_a_rule_may_have_a_node_find_the_hot_bytes():
    rule = only('classify = auto\nhot = 7\nname = *.parquet')
    assert (rule.class_id, rule.auto_class) == (25, 7)
    assert only('hot = gold\nclassify = auto').auto_class == 25
    assert only('name = *').auto_class is None


@pytest.mark.parametrize('options, reason', [
    ('classify = auto', 'need each other'), ('hot = 7', 'need each other'),
    ('classify = yes\nhot = 7', "'yes' is not auto"),
    ('classify = auto\nhot = brass', 'brass'),
    ('classify = auto\nhot = 32', '32')])
def test_half_of_a_rule_with_auto_is_none(options, reason):
    with pytest.raises(BadConfig, match=reason):
        only(options)
