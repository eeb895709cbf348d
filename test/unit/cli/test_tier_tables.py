"""What operators are shown of the daemon's status."""

from __future__ import annotations

import re

from swift_dss.cli.tier import tables


SERIES = {'measured': 2048.0, 'predicted': None, 'mape': 1354.8,
          'method': 'holt_winters'}
#: A daemon's status, as far as it is always shown.
STATUS = {
    'pid': 1, 'up_seconds': 2.0, 'engine': 'file', 'eviction': 'lru',
    'carrier': 'null', 'event_backlog': 0, 'rebuild_needed': False,
    'sweep_needed': False, 'devices': [], 'classes': {},
    'space': {'warnings': []}, 'gateway': {},
    'link': dict.fromkeys(('up', 'down', 'drain'), SERIES)}


def table_of(head, **changes):
    """The lines below a head in what is shown of a status."""
    told, = (part for part in tables.status(dict(STATUS, **changes)).split(
        '\n\n') if part.startswith(head))
    return told.splitlines()[1:]


def test_what_is_in_a_part_of_the_gateway_has_a_line_of_its_own():
    told = table_of('GATEWAY', gateway={
        'bucket': 'b', 'errors': [], 'oldest_upload_seconds': None,
        'bundles': {'waiting_bytes': 3 << 20, 'last_error': '', 'live': 7}})
    rows = [line.split('  ', 1) for line in told]
    assert {name.strip(): value.strip() for name, value in rows} == {
        'bucket': 'b', 'errors': '-', 'oldest upload seconds': '-',
        'bundles waiting bytes': '3.0 MiB', 'bundles last error': '-',
        'bundles live': '7'}


def test_rates_have_their_unit_and_an_error_without_meaning_its_bound():
    told = table_of('LINK', link={
        'up': SERIES, 'down': dict(SERIES, mape=0.123),
        'drain': dict(SERIES, mape=None)})
    assert [re.split(' {2,}', line.strip()) for line in told] == [
        ['up', '2.0 KiB/s', '-', '>999 %', 'holt winters'],
        ['down', '2.0 KiB/s', '-', '12 %', 'holt winters'],
        ['drain', '2.0 KiB/s', '-', '-', 'holt winters']]


def test_versions_come_in_pages_under_one_line_of_heads():
    def row(number):
        return {'device': 'sda', 'name': '/a/c/o%d' % number, 'hash': 'x',
                'frag': None, 'classes': [], 'size': 1, 'ssd': 1, 'hdd': 0,
                'remote': 0, 'dirty': 1, 'pinned': False}

    rows = [row(number) for number in range(4)]
    assert '\n'.join([
        tables.listing(rows[:2]),
        tables.listing(rows[2:], with_heads=False)]) == \
        tables.listing(rows)


#: Of a prefetcher that has done nothing yet.
PREFETCH = dict.fromkeys(
    ['waiting', 'coming', 'here', 'open_bytes', 'budget_bytes',
     'state_bytes', 'dollars'] + [
        '%s_%s' % (fate, unit)
        for fate in ('useful', 'late', 'wasted', 'dropped', 'cancelled')
        for unit in ('pieces', 'bytes', 'dollars')], 0)


def head_of_prefetch(**changes):
    head, = (line for line in tables.status(dict(STATUS, prefetch=dict(
        PREFETCH, strategy='amp', **changes))).splitlines()
        if line.startswith('prefetch amp'))
    return head


def test_the_days_dollars_of_prefetching_are_shown_with_their_limit():
    assert head_of_prefetch(
        dollars=7.5, dollars_today=2.5, dollars_per_day=5.0).endswith(
            '; $7.500000, $2.500000 of $5 today')
    assert head_of_prefetch(
        dollars=7.5, dollars_today=5.0, dollars_per_day=5.0).endswith(
            ' of $5 today: no more is fetched ahead')
    for unlimited in ({}, {'dollars_today': 7.5, 'dollars_per_day': 0.0}):
        assert head_of_prefetch(dollars=7.5, **unlimited).endswith(
            '; $7.500000')


def test_words_of_the_breaker_are_not_shown():
    for state, words in (('closed', 'S3 answers'),
                         ('open', 'S3 does not answer'),
                         ('half_open',
                          'S3 is asked whether it answers again')):
        told, = table_of('GATEWAY', gateway={'state': state})
        assert told.split('  ', 1)[1].strip() == words


def test_what_first_reads_did_not_bring_is_told_where_they_bring_not_all():
    counts = {'tier.promotions_kept_out': 3, 'tier.kept_out_bytes': 2 << 20,
              'tier.promoted_bytes': 1 << 20}
    assert 'admit' not in tables.status(dict(
        STATUS, admit='all', metrics=counts))
    assert 'admit second:4: 3 first reads did not bring 2.0 MiB to the SSD, ' \
        'others brought 1.0 MiB; 0 first reads are remembered' in \
        tables.status(dict(STATUS, admit='second:4', metrics=counts))
    told = tables.kept_out(dict(
        STATUS, admit='learned', metrics=counts, devices=[
            {'name': 'sda', 'admits': 'small', 'kept_out': 3},
            {'name': 'sdb', 'admits': 'all', 'kept_out': 4}]))
    assert told.endswith('; 7 first reads are remembered\n'
                         'in force: sda small, sdb all')
