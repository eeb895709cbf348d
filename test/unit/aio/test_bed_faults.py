"""Which request to the S3 goes wrong."""

from __future__ import annotations

import random

import pytest

from swift_dss.aio.bed.s3.faults import Fault, Faults, Request, without_keys
from swift_dss.aio.bed.s3.tally import Asked, Tally
from swift_dss.core.errors import BadConfig

GET = Request('n1', 'GET', 'abc/0/key')


def _faults(*each):
    faults = Faults(random.Random(7))
    for fields in each:
        faults.add(Fault.parse(fields))
    return faults


@pytest.mark.parametrize('fields, hit', [
    ({}, True), ({'node': 'n1'}, True), ({'node': 'n2'}, False),
    ({'keys': 'abc/*'}, True), ({'keys': 'abd/*'}, False),
    ({'methods': 'GET,HEAD'}, True), ({'methods': 'PUT'}, False),
    ({'methods': 'GE'}, False),
])
def test_a_fault_has_the_requests_that_it_names(fields, hit):
    met = _faults(dict(fields, kind='500')).judge(GET)
    assert bool(met) is hit


def test_the_first_of_several_faults_counts():
    faults = _faults({'kind': '500', 'node': 'n2'}, {'kind': 'hang'},
                     {'kind': '503'})
    met = faults.judge(GET)
    assert met is not None and met.kind == 'hang'


def test_a_rate_is_the_share_that_goes_wrong():
    faults = _faults({'kind': '500', 'rate': 0.25})
    hits = sum(faults.judge(GET) is not None for _ in range(4000))
    assert 850 < hits < 1150


def test_a_fault_ends_after_so_many_times():
    faults = _faults({'kind': '500', 'times': 2}, {'kind': '503'})
    kinds = [faults.judge(GET).kind for _ in range(4)]
    assert kinds == ['500', '500', '503', '503']
    assert [fault['kind'] for fault in faults.in_force()] == ['503']


def test_no_fault_is_left_after_a_heal():
    faults = _faults({'kind': '500'}, {'kind': 'forget'})
    assert faults.clear() == 2
    assert faults.judge(GET) is None and not faults.forgotten('n1')


@pytest.mark.parametrize('fields, said', [
    ({'kind': 'explode'}, 'one of refuse'),
    ({'kind': '500', 'rate': 0}, 'above 0'),
    ({'kind': '500', 'rate': 1.5}, 'at most 1'),
    ({'kind': 'slow'}, 'milliseconds'),
    ({'kind': '500', 'colour': 'red'}, 'colour'),
])
def test_a_fault_that_makes_no_sense_is_refused(fields, said):
    with pytest.raises(BadConfig, match=said):
        Fault.parse(fields)


def test_forgotten_keys_are_in_no_listing_of_that_node():
    faults = _faults({'kind': 'forget', 'keys': 'a*', 'node': 'n1'})
    listing = (b'<L><KeyCount>2</KeyCount>'
               b'<Contents><Key>a/1</Key><Size>3</Size></Contents>'
               b'<Contents><Key>b/1</Key></Contents></L>')
    assert without_keys(listing, faults.forgotten('n1')) == (
        b'<L><KeyCount>2</KeyCount>'
        b'<Contents><Key>b/1</Key></Contents></L>')
    assert without_keys(listing, faults.forgotten('n2')) == listing


def _asked(node='n1', operation='PUT', status=200, sent=5):
    return Asked(node, operation, 'k', sent, 0, status, 0.0, 0.1)


def test_counts_are_by_node_and_kind_and_begin_again():
    tally = Tally()
    for asked in (_asked(), _asked(status=500), _asked('n2', 'GET')):
        tally.note(asked)
    counts = tally.counts(reset=True)
    assert counts['n1']['PUT'] == {'requests': 2, 'sent': 10, 'got': 0,
                                   'status': {'200': 1, '500': 1}}
    assert counts['n2']['GET']['requests'] == 1
    assert tally.counts() == {} and tally.requests() == []


def test_only_so_many_requests_are_remembered():
    tally = Tally(limit=4)
    for number in range(7):
        tally.note(_asked(sent=number))
    assert [kept['sent'] for kept in tally.requests()] == [3, 4, 5, 6]
    assert tally.counts()['n1']['PUT']['requests'] == 7
