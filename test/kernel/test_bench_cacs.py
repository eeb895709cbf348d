"""CACS case 1, tiny: the whole path of one set-up."""

from __future__ import annotations

from swift_dss.bench.lab import cacs_lab

PLAN = cacs_lab.Plan(objects=6, reads=6, scale=0.25, share=0.6, clients=4,
                     setups=('classes',), jobs=1, timeout=1500.0)


def test_classes_reach_the_cache_below_swift():
    report, = cacs_lab.measure_seeds(PLAN, [PLAN.seed], print)
    assert cacs_lab.failures(report) == 0
    phases = report['setups'][0]['phases']
    total = sum(obj.size for obj in cacs_lab.objects_of(PLAN))
    assert phases['upload']['bytes'] == total
    assert phases['upload']['requests'] == 6
    assert phases['download']['requests'] == 6
    by_id = {obj.class_id: 0 for obj in cacs_lab.objects_of(PLAN)}
    for obj in cacs_lab.objects_of(PLAN):
        by_id[obj.class_id] += obj.size
    cache = phases['upload']['cache']
    for class_id, size in by_id.items():
        # Three replicas, all of them under their class.
        assert 512 * cache[str(class_id)]['write_sectors'] >= 3 * size
    assert phases['upload']['disks']['fast']['write_bytes'] > 0
    assert phases['upload']['mean_ms'] > 0
