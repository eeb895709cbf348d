"""What devices of this node have of an object, and what they cannot say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swift_dss.core.errors import DamagedRecord, TierUnavailable
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.primaries import RingPrimaries, Wanted
from swift_dss.strategy.agreement import Answer

VERSION = VersionId('', 0, 'a' * 32, '1700000000.00000')


class Ranks:
    """Two primaries, both here; nobody listens at their ports."""

    def primaries(self, policy, object_hash):
        return '7', [{'ip': '127.0.0.1', 'port': 1, 'device': device}
                     for device in ('sda', 'sdb')]

    def is_here(self, node):
        return True


@pytest.mark.parametrize('error', [TierUnavailable, DamagedRecord])
def test_a_device_that_fails_is_not_one_that_has_nothing(error):
    def look(version, partition, records):
        if version.device == 'sda':
            raise error('away')
        return Answer()

    assert RingPrimaries(Ranks(), look).ask([Wanted(VERSION)]) == [
        [None, Answer()]]


def test_for_a_proof_each_answers_for_the_fragment_that_it_has():
    """Elsewhere the key of the caller's own fragment is asked for."""
    asked = []

    def look(version, partition, records):
        asked.append((version.device, version.frag_index))
        return Answer()

    primaries = RingPrimaries(Ranks(), look)
    wanted = Wanted(replace(VERSION, frag_index=3))
    primaries.ask([wanted], True)
    primaries.prove(wanted)
    assert asked == [('sda', 3), ('sdb', 3), ('sda', None), ('sdb', None)]
