"""Which copy of an object a device here has."""

from __future__ import annotations

from types import SimpleNamespace

from swift.common.storage_policy import EC_POLICY, REPL_POLICY

from swift_dss.io.place import copies
from swift_dss.io.place.copies import Copies
from swift_dss.strategy.eviction.warmth import rank_of

HASH = '0' * 31 + '4'


class Policy:
    """Swift's policy with a ring of three primaries, the second one here."""

    policy_type = REPL_POLICY
    there = True

    def __init__(self):
        self.asked = 0
        self.object_ring = SimpleNamespace(get_part_nodes=self.nodes)

    def __int__(self):
        return 0

    def load_ring(self, swift_dir):
        assert swift_dir == '/rings'
        if not self.there:
            raise OSError('no ring')

    def nodes(self, partition):
        assert partition == 7
        self.asked += 1
        return [{'device': 'sda', 'ip': ip, 'replication_ip': ip}
                for ip in ('192.0.2.1', '127.0.0.1', '192.0.2.3')]


def ranks(policy, clock=None):
    made = Copies('/rings', '127.0.0.1',
                  *([] if clock is None else [lambda: clock[0]]))
    return lambda device='sda': made.rank(policy, device, '7', HASH)


def test_the_rank_is_that_of_the_place_in_the_ring():
    assert ranks(Policy())() == rank_of(HASH, 1, 3)


def test_a_handoff_is_behind_all_primaries():
    assert ranks(Policy())('sdb') == 3


def test_fragments_have_none():
    policy = Policy()
    policy.policy_type = EC_POLICY
    assert ranks(policy)() is None


def test_a_ring_that_comes_or_changes_counts_after_a_while():
    policy, clock = Policy(), [1.0]
    policy.there = False
    rank = ranks(policy, clock)
    assert rank() is None
    policy.there = True
    assert rank() is None
    clock[0] += copies.FRESH_SECONDS
    assert rank() == rank_of(HASH, 1, 3)
    rank()
    assert policy.asked == 1
    clock[0] += copies.FRESH_SECONDS
    rank()
    assert policy.asked == 2
