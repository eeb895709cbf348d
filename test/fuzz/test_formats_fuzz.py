"""A short run over the classifiers; ``formats_campaign.py`` is the long one.

``SWIFT_DSS_FUZZ_SEED`` replays a run.
"""

from __future__ import annotations

import os
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import formats_fuzz
import parser_fuzz

SEED = int(os.environ.get('SWIFT_DSS_FUZZ_SEED',
                          int(time.time()) % 1000000))
EXECUTIONS = 300


@pytest.mark.parametrize('target', formats_fuzz.targets(),
                         ids=lambda target: target.name)
def test_damaged_files_give_our_own_errors(target):
    print('seed %d, %d executions' % (SEED, EXECUTIONS))
    score = parser_fuzz.fuzz(target, SEED, EXECUTIONS)
    assert score.executions == EXECUTIONS
    # Fuzzing that never gets past the first check proves little.
    assert score.accepted > 0
