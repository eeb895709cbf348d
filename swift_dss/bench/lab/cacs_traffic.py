"""Client-aware Cloud Storage, case 2: the effect of traffic control on other
classes.

As :mod:`swift_dss.bench.lab.cacs_lab`, but each kind of object has clients of
its own that only upload, and its class says where it goes: to the SSD, which
has room for all of it, or to the HDD. Five runs: ``hdd``, where the modelled
disks are alone, and then one kind after the other is directed to the SSD.
The file system's metadata and Swift's databases are on the SSD in all but
the first.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, Sequence

from swift_dss.bench import cacs, figures
from swift_dss.bench.choices import require_known
from swift_dss.bench.lab import cacs_lab
from swift_dss.bench.lab.cacs_lab_figures import by_own_time, disks
from swift_dss.core.errors import BadConfig

Say = cacs_lab.Say

KINDS = ('files', 'pictures', 'music', 'video')
#: 'none' directs nothing: its SSD has metadata alone.
SETUPS = ('hdd', 'none', '+files', '+pictures', '+music', '+video')

#: Speed-up of each kind over all on HDDs, by Chen, Mesnier and Hahn.
PUBLISHED: Mapping[str, Sequence[float]] = {
    '+files': (3.5, 1.2, 1.1, 1.1), '+pictures': (4.0, 3.1, 1.5, 1.5),
    '+music': (3.6, 3.0, 2.3, 2.6), '+video': (2.7, 2.4, 2.1, 1.8)}

_MIB = 1 << 20


@dataclass(frozen=True)
class Plan:
    """How much to measure.

    :param counts: objects of each of ``KINDS``
    :param clients: of each kind
    :param scale: of object sizes
    """

    counts: Sequence[int] = (400, 200, 100, 50)
    seed: int = 1
    scale: float = 0.1
    clients: int = 25
    devices: int = 4
    chunk_bytes: int = 65536
    hdd: str = 'hdd'
    ssd: str = 'sata-ssd'
    setups: Sequence[str] = SETUPS
    jobs: int = 1
    timeout: float = 3600.0


QUICK = Plan(counts=(50, 30, 10, 5), clients=10)


def objects_of(plan: Plan) -> List[cacs.CacsObject]:
    """All that is uploaded."""
    return [obj for kind, count in zip(KINDS, plan.counts)
            for obj in cacs.of_kind(kind, count, plan.seed, plan.scale)]


def directed(setup: str) -> Sequence[str]:
    """The kinds that go to the SSD."""
    return KINDS[:SETUPS.index(setup) - 1] if setup != 'hdd' else ()


def disk_mib(plan: Plan) -> int:
    """Of each disk: twice its part of all copies."""
    total = sum(obj.size for obj in objects_of(plan))
    return max(512, -(-2 * total * cacs_lab.REPLICAS
                      // plan.devices // _MIB))


def devices_of(plan: Plan, setup: str) -> List[str]:
    """The modelled disks of a guest."""
    disks = [('ssd', plan.hdd)] if setup == 'hdd' else [
        ('slow', plan.hdd), ('fast', plan.ssd)]
    return ['%s-d%d=%s:%dM' % (name, number + 1, preset, disk_mib(plan))
            for number in range(plan.devices) for name, preset in disks]


def job_of(plan: Plan, setup: str) -> Dict[str, Any]:
    """The job of the guest."""
    return {'kinds': dict(zip(KINDS, plan.counts)), 'seed': plan.seed,
            'scale': plan.scale, 'clients': plan.clients,
            'devices': plan.devices,
            'strategy': '' if setup == 'hdd' else 'strict',
            'ssd_classes': [kind_class(kind) for kind in directed(setup)],
            'cache_bytes': disk_mib(plan) * _MIB,
            'chunk_bytes': plan.chunk_bytes}


def kind_class(name: str) -> int:
    """The class id of a kind."""
    kind, = (kind for kind in cacs.KINDS if kind.name == name)
    return cacs.CLASS_IDS[kind.class_name]


def check(plan: Plan) -> None:
    """:raises BadConfig: names the impossible measurement, and the reason"""
    require_known('--setups', plan.setups, SETUPS)
    if len(plan.counts) != len(KINDS) or min(plan.counts) < 1:
        raise BadConfig('--counts: %d numbers of 1 and more, for %s' % (
            len(KINDS), ', '.join(KINDS)))
    for name in ('clients', 'jobs', 'scale'):
        if getattr(plan, name) <= 0:
            raise BadConfig('--%s %s: more than 0' % (
                name, getattr(plan, name)))


def measure(plan: Plan, say: Say) -> Dict[str, Any]:
    """All set-ups; the report.

    :raises BadConfig: a plan that cannot be measured
    """
    check(plan)
    total = sum(obj.size for obj in objects_of(plan))

    def run(setup: str) -> Dict[str, Any]:
        phase, = cacs_lab.guest(
            setup, job_of(plan, setup), devices_of(plan, setup),
            cacs_lab.GUEST_BYTES + 8 * total, plan.timeout, say)
        return {'setup': setup, 'kinds': kinds(phase),
                'disks': disks(phase)}
    with ThreadPoolExecutor(plan.jobs) as pool:
        rows = list(pool.map(run, plan.setups))
    return {'bench': 'cacs-traffic', 'plan': asdict(plan),
            'data_bytes': total, 'setups': rows}


def kinds(phase: Mapping[str, Any]) -> Dict[str, Dict[str, Any]]:
    """The results of each kind's clients."""
    groups = by_own_time(phase['requests'])
    return {name: groups[name] for name in KINDS}


def failures(outcome: Mapping[str, Any]) -> int:
    """Requests that were not answered with 2xx."""
    return sum(group['failures'] for row in outcome['setups']
               for group in row['kinds'].values())


def text(outcome: Mapping[str, Any]) -> str:
    """Bandwidth and latency by kind, with the speed-up over ``hdd`` and
    the published one."""
    base = {row['setup']: row['kinds'] for row in outcome['setups']}.get('hdd')
    lines = []
    for row in outcome['setups']:
        for at, (name, group) in enumerate(row['kinds'].items()):
            published = PUBLISHED.get(row['setup'])
            lines.append((
                '' if at else row['setup'], name, str(group['requests']),
                figures.number(group['mb_per_second'], 2),
                figures.number(group['mean_ms'], 1),
                figures.number(group['p50_ms'], 1),
                figures.number(group['p99_ms'], 1),
                figures.number(figures.ratio(
                    group['mb_per_second'], base[name]['mb_per_second']), 2)
                if base else '-',
                '%.1f' % published[at] if published else '-',
                str(group['failures'])))
    return '%s of data, %d clients of each kind\n%s' % (
        figures.size_text(outcome['data_bytes']), outcome['plan']['clients'],
        figures.table(('on SSD', 'kind', 'requests', 'MB/s', 'mean ms',
                       'p50 ms', 'p99 ms', 'x hdd', 'published', 'failed'),
                      lines))
