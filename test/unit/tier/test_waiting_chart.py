"""The chart of what waits for S3 has no number that is not so."""

from __future__ import annotations

import pytest

from swift_dss.tier.doors.history import Sample
from swift_dss.tier.doors.html import waiting_chart

MIB = 1 << 20


@pytest.mark.parametrize('budget, is_drawn', [
    (150 * MIB, True), (5000 * MIB, False)])
def test_a_budget_off_the_scale_is_not_drawn_at_another_height(
        budget, is_drawn):
    chart = waiting_chart([
        Sample(float(at), {}, {}, 100 * MIB, budget, 0, 0.0)
        for at in range(3)])
    assert '100 MiB' in chart
    assert ('budget' in chart, '150 MiB' in chart) == (is_drawn, is_drawn)
    assert '200 MiB' not in chart


def test_there_is_a_chart_before_the_first_sample():
    assert 'Nothing to draw yet' in waiting_chart([])
