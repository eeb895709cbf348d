"""Classes of a large object on real nodes: a proxy dies, a node is cut off.

``test/fault/bed_large.py`` has more trouble.
"""

from __future__ import annotations

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, 'fault'))

import bed_large

pytestmark = [pytest.mark.cluster, pytest.mark.root]


def test_bytes_have_what_a_manifest_shows() -> None:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    report = bed_large.run([bed_large.Setting('kill', 'cut')], 1, count=50)
    print('figure: %(segments)d segments in %(seconds)d s' % report)
    assert not report['wrong'], report
