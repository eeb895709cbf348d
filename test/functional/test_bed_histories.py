"""Real nodes show what acknowledged writes allow, whatever primaries they
reached."""

from __future__ import annotations

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, 'fault'))

import bed_histories

pytestmark = [pytest.mark.cluster, pytest.mark.root]

#: Of all settings together; 100 and more with all settings.
COUNT = int(os.environ.get('SWIFT_DSS_BED_HISTORIES', '8'))
#: A few that have all: both losses, both delays, both rings, and a cut.
FEW = [bed_histories.Setting('after', True, True),
       bed_histories.Setting('before', False, False, True)]


def test_histories_of_subsets_of_primaries() -> None:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    report = bed_histories.run(
        COUNT, COUNT, bed_histories.SETTINGS if COUNT >= 100 else FEW)
    print('figure: %(histories)d histories in %(seconds)d s: %(put_bytes)d '
          'bytes put, %(leaked_bytes)d leaked' % report)
    assert not bed_histories.is_broken(report), report
