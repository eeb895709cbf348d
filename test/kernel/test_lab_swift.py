"""A whole Swift in a guest: what it costs is what its disks cost."""

from __future__ import annotations

import pytest

from swift_dss.bench.figures import median
from swift_dss.bench.lab import lab_swift

pytestmark = pytest.mark.slow

SSD, HDD = 'sata-ssd:384M', 'hdd:384M'


@pytest.mark.parametrize('policy', lab_swift.POLICIES)
def test_hdd_costs_what_an_arm_costs(policy):
    rows = lab_swift.run(policy, SSD, HDD, 5, 1500.0, print)
    values = {(row.disk, row.method, row.size_bytes): row.values
              for row in rows}
    assert sorted(values) == sorted(
        (disk, method, size) for disk in ('ssd', 'hdd')
        for method in ('PUT', 'GET') for size in lab_swift.SIZES)
    for size in lab_swift.SIZES:
        assert median(values['ssd', 'PUT', size]) < 10
        if policy == 'dss' and size == 4 << 10:
            # Small objects stay on the SSD, whatever their class.
            assert median(values['hdd', 'PUT', size]) < 10
            continue
        # Three replicas in time of one write with its flush each; a
        # flush of the HDD alone takes longer than all of the SSD's.
        assert median(values['hdd', 'PUT', size]) > 10
        assert max(values['hdd', 'GET', size]) > \
            max(values['ssd', 'GET', size])
