"""A short run of the fuzzing campaign; ``fuzz_campaign.py`` is the long one.

``SWIFT_DSS_FUZZ_SEED`` replays a run.
"""

from __future__ import annotations

import os
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import parser_fuzz

SEED = int(os.environ.get('SWIFT_DSS_FUZZ_SEED',
                          int(time.time()) % 1000000))
EXECUTIONS = 1500


@pytest.mark.parametrize('target', parser_fuzz.targets(),
                         ids=lambda target: target.name)
def test_only_our_own_errors_come_out(target):
    print('seed %d, %d executions' % (SEED, EXECUTIONS))
    score = parser_fuzz.fuzz(target, SEED, EXECUTIONS)
    assert score.executions == EXECUTIONS
    # Fuzzing that never gets past the first check proves little.
    assert score.accepted > 0


def test_a_parser_that_lets_errors_out_is_caught():
    def wrong_twin(raw: bytes) -> None:
        int(raw.decode('ascii'))

    target = parser_fuzz.Target('twin', wrong_twin, (b'25',))
    with pytest.raises(parser_fuzz.Crash, match='seed 7, execution'):
        parser_fuzz.fuzz(target, 7, 1000)


def test_same_seed_gives_the_same_inputs():
    def inputs(seed: int) -> list:
        seen: list = []
        parser_fuzz.fuzz(parser_fuzz.Target(
            'spy', seen.append, (b'0-64-25',)), seed, 200)
        return seen

    assert inputs(3) == inputs(3)
    assert inputs(3) != inputs(4)
