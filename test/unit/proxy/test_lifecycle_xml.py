"""Lifecycle rules as XML: what S3 takes, and its own errors."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swift.common.middleware.s3api.s3response import ErrorResponse

from swift_dss.core.lifecycle import Lifecycle, Rule, Transition, When
from swift_dss.proxy.s3 import rulesxml

CLASSES = ('STANDARD_IA', 'GLACIER')
EXPIRE = '<Expiration><Days>1</Days></Expiration>'
FILTER = '<Filter><Prefix>p</Prefix></Filter>'
DAY = 86400


def doc(*rules: str, name: str = 'LifecycleConfiguration') -> bytes:
    return ('<%s xmlns="http://s3.amazonaws.com/doc/2006-03-01/">%s</%s>' % (
        name, ''.join('<Rule>%s</Rule>' % rule for rule in rules),
        name)).encode()


def one(inside: str, status: str = 'Enabled', where: str = FILTER) -> bytes:
    return doc('<ID>i</ID><Status>%s</Status>%s%s' % (status, where, inside))


def parse(body: bytes) -> Any:
    return rulesxml.parse(body, CLASSES)


def rule_of(body: bytes) -> Rule:
    rule, = parse(body).rules
    return rule


def transition(inside: str, storage_class: str = 'GLACIER') -> str:
    return '<Transition>%s<StorageClass>%s</StorageClass></Transition>' % (
        inside, storage_class)


def test_a_rule_is_read() -> None:
    assert rule_of(one(
        transition('<Days>0</Days>', 'STANDARD_IA')
        + transition('<Days>30</Days>')
        + '<Expiration><Days>31</Days></Expiration><!-- S3 takes them -->',
        where='<Filter><And><Prefix>é</Prefix><Tag><Key>k</Key><Value/></Tag>'
        '<ObjectSizeGreaterThan>0</ObjectSizeGreaterThan>'
        '<ObjectSizeLessThan>9223372036854775807</ObjectSizeLessThan>'
        '</And></Filter>')) == Rule(
            'i', True, 'é', (('k', ''),), 0, 2 ** 63 - 1, (
                Transition(When(days=0), 'STANDARD_IA'),
                Transition(When(days=30), 'GLACIER')), When(days=31))
    assert rule_of(one(EXPIRE, 'Disabled', '<Prefix>x</Prefix>')) == Rule(
        'i', False, 'x', expiration=When(days=1), is_old=True)
    assert rule_of(one(EXPIRE, where='<Filter/>')).prefix == ''
    made = rule_of(doc('<Status>Enabled</Status>' + FILTER + EXPIRE))
    assert len(made.rule_id) == 32


@pytest.mark.parametrize('text', [
    '2024-02-29', '2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z',
    '2024-02-29T00:00:00+00:00'])
def test_dates_are_midnights(text: str) -> None:
    assert rule_of(one('<Expiration><Date>%s</Date></Expiration>' % text)
                   ).expiration == When(date=19782 * DAY)


def days(text: str) -> bytes:
    return one('<Expiration><Days>%s</Days></Expiration>' % text)


def date(text: str) -> bytes:
    return one('<Expiration><Date>%s</Date></Expiration>' % text)


def size(*texts: str) -> bytes:
    inside = ''.join(
        '<ObjectSize%s>%s</ObjectSize%s>' % (name, text, name)
        for name, text in zip(('GreaterThan', 'LessThan'), texts))
    return one(EXPIRE, where='<Filter>%s</Filter>' % (
        '<And>%s</And>' % inside if len(texts) > 1 else inside))


def tags(*keys: str) -> bytes:
    return one(EXPIRE, where='<Filter><And>%s</And></Filter>' % ''.join(
        '<Tag><Key>%s</Key><Value>v</Value></Tag>' % key for key in keys))


@pytest.mark.parametrize('body, code, names', [
    (b'', 'MalformedXML', ''), (b'<', 'MalformedXML', ''),
    (doc(), 'MalformedXML', ''), (doc('', name='Other'), 'MalformedXML', ''),
    (doc(*['<ID>%d</ID>' % at for at in range(1001)]), 'MalformedXML',
     'at most 1000 rules'),
    (one(EXPIRE, 'enabled'), 'MalformedXML', ''),
    (one(EXPIRE, where=''), 'MalformedXML', ''),
    (one(EXPIRE, where=FILTER + '<Prefix/>'), 'MalformedXML', ''),
    (one(EXPIRE, where=FILTER * 2), 'MalformedXML', ''),
    (one(EXPIRE + EXPIRE), 'MalformedXML', ''),
    (one(EXPIRE + '<Other/>'), 'MalformedXML', ''),
    (one(EXPIRE, where='<Filter><Prefix/><Tag><Key>k</Key><Value>v</Value>'
         '</Tag></Filter>'), 'MalformedXML', ''),
    (one(EXPIRE, where='<Filter><And><Prefix>p</Prefix></And></Filter>'),
     'MalformedXML', ''),
    (one(''), 'InvalidRequest', 'At least one action'),
    (one('<Expiration/>'), 'MalformedXML', ''),
    (one('<Expiration><Days>1</Days><Date>2024-01-01</Date></Expiration>'),
     'MalformedXML', ''),
    (days('x'), 'MalformedXML', ''), (days('1.5'), 'MalformedXML', ''),
    (days(''), 'MalformedXML', ''), (days('9' * 40), 'MalformedXML', ''),
    (days('0'), 'InvalidArgument', 'Days'),
    (days('-1'), 'InvalidArgument', 'Days'),
    (days('2147483648'), 'InvalidArgument', 'Days'),
    (days('9' * 20), 'InvalidArgument', 'Days'),
    (date('2024-02-30'), 'MalformedXML', ''),
    (date('tomorrow'), 'MalformedXML', ''),
    (date('2024-01-01T12:00:00Z'), 'InvalidArgument', 'Date'),
    (date('2024-01-01T00:00:00+01:00'), 'InvalidArgument', 'Date'),
    (one(transition('<Days>1</Days>', 'PLATINUM')), 'InvalidStorageClass',
     ''),
    (one(transition('<Days>-1</Days>')), 'InvalidArgument', 'Days'),
    (one('<Transition><Days>1</Days></Transition>'), 'MalformedXML', ''),
    (one(transition('')), 'MalformedXML', ''),
    (one(transition('<Days>1</Days>') * 2), 'InvalidRequest',
     'StorageClass'),
    (one(transition('<Date>2024-01-01</Date>') + EXPIRE), 'InvalidRequest',
     'mixed'),
    (one(transition('<Days>1</Days>') + EXPIRE), 'InvalidArgument', 'Days'),
    (size('-1'), 'InvalidArgument', 'ObjectSizeGreaterThan'),
    (size('9223372036854775808'), 'InvalidArgument',
     'ObjectSizeGreaterThan'),
    (size('5', '6'), 'InvalidRequest', 'ObjectSizeLessThan'),
    (tags('a', 'a'), 'InvalidRequest', 'Duplicate Tag'),
    (tags('a', ''), 'InvalidArgument', 'Key'),
    (tags('a', 'x' * 129), 'InvalidArgument', 'Key'),
    (doc(*['<ID>i</ID><Status>Enabled</Status>' + FILTER + EXPIRE] * 2),
     'InvalidArgument', 'unique'),
    (doc('<ID>%s</ID><Status>Enabled</Status>' % ('x' * 256) + FILTER
         + EXPIRE), 'InvalidArgument', 'ID'),
    (one(EXPIRE, where='<Filter><Prefix>%s</Prefix></Filter>' % ('x' * 1025)),
     'InvalidRequest', 'prefix'),
    (one('<AbortIncompleteMultipartUpload><DaysAfterInitiation>1'
         '</DaysAfterInitiation></AbortIncompleteMultipartUpload>'),
     'NotImplemented', 'AbortIncompleteMultipartUpload'),
    (one('<Expiration><ExpiredObjectDeleteMarker>true'
         '</ExpiredObjectDeleteMarker></Expiration>'),
     'NotImplemented', 'ExpiredObjectDeleteMarker')])
def test_errors_are_s3s_own(body: bytes, code: str, names: str) -> None:
    with pytest.raises(ErrorResponse) as caught:
        parse(body)
    body = caught.value.body.decode()
    assert '<Code>%s</Code>' % code in body
    assert names in unescape(body)


TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=0x2fff),
               max_size=8)


@given(TEXT, st.lists(st.tuples(TEXT.filter(bool), TEXT), max_size=3,
                      unique_by=lambda tag: tag[0]),
       st.none() | st.integers(0, 99), st.none() | st.integers(200, 300),
       st.integers(2, 9), st.booleans(), st.booleans())
def test_what_is_shown_reads_the_same(
        prefix: str, pairs: Any, over: Any, under: Any, days: int,
        is_enabled: bool, has_date: bool) -> None:
    when = When(date=days * DAY) if has_date else When(days=days)
    known = Lifecycle((
        Rule('a', is_enabled, prefix, tuple(pairs), over, under,
             (Transition(when, 'GLACIER'),)),
        Rule('b', True, prefix, expiration=when, is_old=True)))
    assert parse(rulesxml.document(known)) == known


WORDS = st.lists(st.sampled_from([
    '<Rule>', '</Rule>', '<Days>', '</Days>', '<Filter>', '</Filter>', '<And>',
    '</And>', '<Tag>', '</Tag>', '<Prefix/>', '<Status>Enabled</Status>', '1',
    EXPIRE, FILTER, '<!-- -->', '<?x y?>', '&amp;', '&x;', '<![CDATA[1]]>',
    transition('<Days>1</Days>'), '<Expiration>', '</Expiration>', '\0',
    'é']), max_size=20)


@settings(max_examples=300)
@given(WORDS)
def test_any_other_text_gets_an_error_of_s3s(words: Any) -> None:
    body = '<LifecycleConfiguration>%s</LifecycleConfiguration>' % ''.join(
        words)
    try:
        known = parse(body.encode())
    except ErrorResponse:
        return
    assert parse(rulesxml.document(known)) == known
