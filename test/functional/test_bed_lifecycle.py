"""A round of lifecycle rules on real nodes, whose leader gets a wrong clock.

``test/fault/bed_lifecycle.py`` has more trouble, and restored objects.
"""

from __future__ import annotations

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, 'fault'))

import bed_lifecycle

pytestmark = [pytest.mark.cluster, pytest.mark.root]


def test_rounds_do_what_is_due_and_nothing_else() -> None:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    report = bed_lifecycle.run(
        [bed_lifecycle.Setting('ahead', 0)], 1, count=3, nodes=3,
        restores=False)
    print('figure: %(objects)d objects in %(seconds)d s' % report)
    assert not report['wrong'], report
