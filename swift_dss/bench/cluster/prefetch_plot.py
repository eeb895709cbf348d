"""How long reads took with each prefetcher, as a plot."""

from __future__ import annotations

from typing import Any, Mapping

from swift_dss.bench.plots import COLOURS, pyplot, save


def draw(report: Mapping[str, Any], path: str) -> None:
    """One panel a workload: the share of reads up to each latency."""
    plt = pyplot()
    rows = report['cells']
    workloads = list(dict.fromkeys(row['workload'] for row in rows))
    names = list(dict.fromkeys(row['strategy'] for row in rows))
    figure, axes = plt.subplots(
        1, len(workloads), figsize=(4.2 * len(workloads) + 1, 4),
        sharey=True, squeeze=False, layout='constrained')
    for axis, workload in zip(axes[0], workloads):
        for row in rows:
            if row['workload'] == workload:
                ms = sorted(row['ms'])
                axis.step(ms, [100.0 * (at + 1) / len(ms)
                               for at in range(len(ms))], where='post',
                          color=COLOURS[names.index(row['strategy'])],
                          label=row['strategy'])
        axis.set_xscale('log')
        axis.set_xlabel('latency of a read, ms')
        axis.set_title(workload, loc='left')
    axes[0, 0].set_ylabel('reads, %')
    axes[0, 0].legend(loc='lower right')
    figure.suptitle('Prefetch from an S3 behind %.0f ms' % report['rtt_ms'],
                    x=0.01, ha='left', fontweight='bold')
    save(figure, path)
