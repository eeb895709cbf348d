"""Every version's key is asked for in its time, by one replica, evenly."""

from __future__ import annotations

import logging

import pytest
from support.clocks import ClockOf

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import (
    RemoteCorrupt, RemoteUnavailable, VersionGone)
from swift_dss.core.residency import RemoteCopy, Residency
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.form.one_key import MAX_TRIES
from swift_dss.gateway.link.client import S3Down
from swift_dss.gateway.mend.scrub import Scrubber
from swift_dss.gateway.mend.scrub_ask import AskScrubber, Pass, Rounds
from swift_dss.gateway.ports import LocalVersion, NotProven

DAY = 86400.0
LOG = logging.getLogger('scrub-ask')
BEGINNING = Pass(0, 0.0)


class Bed:
    """Versions, a witness, and a clock that waiting moves."""

    def __init__(self, count, days=30.0, end_at=10 ** 9):
        self.now = self.began = 1700000000.0
        self.end_at = self.began + end_at
        self.rows = [(n, VersionId('sda', 0, '%032x' % n, '1', None), '7')
                     for n in range(1, count + 1)]
        self.asked, self.said, self.notes = [], {}, []
        self.metrics = self
        self.scrubber = AskScrubber(self.around(scrub_days=days), self, self,
                                    self)
        self.ranks = {}

    def around(self, **conf):
        return Around(GatewayConf(**conf), ClassTable, self, LOG, self,
                      ClockOf(self))

    # stopping
    def is_set(self):
        return self.now >= self.end_at

    def wait(self, seconds):
        assert seconds > 0
        self.now += seconds
        return self.is_set()

    # metrics, rank, local, witness
    def count(self, name, amount=1):
        pass

    def rank(self, version):
        return self.ranks.get(version.object_hash, 0)

    def describe(self, version, partition):
        return LocalVersion(version, partition, 'e', {}, Residency.whole(
            1).with_remote(RemoteCopy('s3', version.key, 'e', 1.0)))

    def proven(self, local):
        self.asked.append((self.now, local.version.object_hash))
        said = self.said.get(local.version.object_hash)
        if callable(said):
            said = said()
        if said is not None:
            raise said
        return local.residency.remote

    def run(self, begin=BEGINNING):
        self.scrubber.start(Rounds(
            lambda after: [row for row in self.rows if row[0] > after][:100],
            lambda: len(self.rows), self.notes.append), begin)
        self.scrubber.stop()
        return self.scrubber.status()


def test_a_million_versions_cost_less_than_a_dollar_a_month():
    bed = Bed(2000, end_at=90 * DAY)
    bed.run()
    a_month = len(bed.asked) / 3
    assert 1999 <= a_month <= 2000 * 1.01
    assert a_month / 2000 * 1e6 * 0.0004 / 1000 < 0.5, 'dollars'


def test_they_are_spread_over_the_whole_time():
    bed = Bed(720, end_at=30 * DAY)
    bed.run()
    hours = {int((at - bed.began) // 3600) for at, _ in bed.asked}
    assert len(hours) >= 719


def test_few_versions_are_asked_for_once_a_pass_too():
    bed = Bed(3, end_at=61 * DAY)
    counts = bed.run()
    assert len(bed.asked) <= 9 and counts['passes'] == 2


def test_only_the_first_replica_asks():
    bed = Bed(10, end_at=DAY * 31)
    bed.ranks = {row[1].object_hash: n % 3
                 for n, row in enumerate(bed.rows)}
    bed.run()
    assert {object_hash for _, object_hash in bed.asked} == {
        row[1].object_hash for n, row in enumerate(bed.rows) if not n % 3}


def test_a_restart_goes_on_where_it_was():
    bed = Bed(3000, end_at=10 * DAY)
    bed.run()
    again = Bed(3000, end_at=19 * DAY)
    again.run(bed.notes[-1]._replace(began=again.began - 10 * DAY))
    first = {object_hash for _, object_hash in bed.asked}
    second = {object_hash for _, object_hash in again.asked}
    assert 990 <= len(first) <= 1010 and not first & second
    assert again.notes[-1].began == again.began - 10 * DAY


def test_what_was_missing_or_lost_is_counted():
    bed = Bed(4, end_at=29 * DAY)
    hashes = [row[1].object_hash for row in bed.rows]
    bed.said = {hashes[0]: NotProven('sent again', 1),
                hashes[1]: RemoteCorrupt('lost'),
                hashes[2]: VersionGone('gone')}
    counts = bed.run()
    assert (counts['missing'], counts['lost']) == (1, 1)
    assert counts['asked'] == 3


def test_an_outage_is_waited_for_and_says_nothing_of_versions():
    bed = Bed(2, end_at=29 * DAY)
    object_hash = bed.rows[0][1].object_hash
    tries = []

    def silent():
        tries.append(bed.now)
        return S3Down('hung', 1) if len(tries) < 50 else None
    bed.said = {object_hash: silent}
    counts = bed.run()
    assert len(tries) == 50
    assert (counts['missing'], counts['lost'], counts['asked']) == (0, 0, 2)


def test_a_version_that_s3_never_answers_for_is_passed_over():
    bed = Bed(50, end_at=40 * DAY)
    bad = '%032x' % 3
    bed.said[bad] = RemoteUnavailable('head_object: 500', 1)
    bed.run()
    asked = [object_hash for _, object_hash in bed.asked]
    assert len(set(asked)) == 50
    assert asked[:49 + MAX_TRIES].count(bad) == MAX_TRIES


@pytest.mark.parametrize('down', [0, 50])
def test_the_reading_scrubber_passes_it_over_too(monkeypatch, down):
    """As well where S3 was away meanwhile: that tells nothing of a key."""
    class Reading(Bed):
        def wait(self, seconds):
            return super().wait(seconds or 1e-9)
    bed = Reading(5, end_at=DAY)
    bad, tries = bed.rows[2][1], []
    scrubber = Scrubber(bed.around(scrub_bytes_per_second=1000), bed, bed,
                        None)

    def look(version, partition):
        tries.append(version)
        if version == bad:
            raise S3Down('hung', 1) if len(tries) - 2 <= down else \
                RemoteUnavailable('get_object: 500', 1)
        return 100
    monkeypatch.setattr(scrubber, 'look', look)
    scrubber.start(lambda after: [
        row for row in bed.rows if row[0] > after], 0, bed.notes.append)
    scrubber.stop()
    assert {version.object_hash for version in tries} == {
        row[1].object_hash for row in bed.rows}
    assert tries[:8 + down].count(bad) == MAX_TRIES + down


def test_it_can_be_turned_off():
    bed = Bed(5, days=0.0, end_at=DAY)
    bed.run()
    assert not bed.asked and bed.now == bed.began
