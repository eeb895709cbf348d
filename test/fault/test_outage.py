"""One outage in CI: a small budget, S3 cut, all of it checked."""

from __future__ import annotations

import pytest
from fault import outage

pytestmark = pytest.mark.cluster


def test_an_outage_is_ingested_refused_in_order_and_drained():
    campaign = outage.Campaign(4 * outage.MIB, 384 * outage.KIB,
                               64 * outage.KIB)
    campaign.least = 0.9
    try:
        found = campaign.outage('refused')
    finally:
        campaign.close()
    print('figure: outage: first refusal after %.1f s, budget and rate say '
          '%.1f; %d of %d bytes taken; drained in %.0f s, %d lost' % (
              min(found.first_refusal_seconds.values()),
              found.expected_seconds, found.accepted_bytes_before,
              found.budget_bytes, found.drained_seconds, found.lost))
