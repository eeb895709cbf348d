"""Client-aware Cloud Storage, case 1, on real Swift in the laboratory.

Each *set-up* is a guest of its own, in virtual time: four Swift devices,
each a zone, three replicas, XFS on

``hdd``, ``ssd``
    one modelled disk each: the two ends
``lru``
    dm-dss that is blind to classes: one LRU
``classes``
    dm-dss in order of class, LRU inside a class

The caches have an SSD of ``share`` of the data's bytes. All set-ups run the
same Swift, with the same classes; only the parts below XFS differ. All objects
are uploaded once; then objects drawn at random are downloaded, each as likely
as any other. Between the two the page cache is emptied.

Clients are one crowd that takes whatever comes next, or each kind of object
has a crowd of its own (``--crowds``, as in case 2): then a kind's bandwidth
is over the time in which its own clients were at work, and that of all of
them is the sum.
"""

# long: the plan, its set-ups and its results are one experiment.

from __future__ import annotations

import json
import math
import os
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, List, Mapping, Sequence

from swift_dss.bench import cacs, figures
from swift_dss.bench.choices import require_known
from swift_dss.bench.lab import cacs_lab_guest
from swift_dss.block import lab
from swift_dss.core.errors import BadConfig

Say = Callable[[str], None]

REPLICAS = 3
SETUPS = ('hdd', 'lru', 'classes', 'ssd')
PHASES = ('upload', 'download')

_MIB = 1 << 20
_LEAST_DISK_BYTES = 512 * _MIB
#: Bytes of a device's SSD beside its share of the data: XFS's journal, which
#: does not shrink with the model, its metadata and Swift's databases. On an
#: SSD of usual size they would be negligible.
METADATA_BYTES = 6 * _MIB
GUEST_BYTES = 1536 * _MIB
#: Names of dm-dss's strategies.
_STRATEGIES = {'hdd': '', 'ssd': '', 'lru': 'lru', 'classes': 'strict'}


@dataclass(frozen=True)
class Plan:
    """How much to measure.

    :param share: of the data's bytes, that the caches have as SSD
    :param scale: of object sizes, see :func:`cacs.sample`
    :param clients: at once, or of each kind
    :param crowds: each kind has clients of its own
    :param reads: downloads
    :param watermarks: percent of the SSD that is dirty when cleaning
        begins and ends
    :param link_mbit: of each device's link, each way, as its node would
        have; 0 is none
    :param jobs: guests at once
    :param timeout: of each guest, real seconds
    """

    objects: int = 200
    seed: int = 1
    scale: float = 0.25
    share: float = 0.14
    clients: int = 16
    crowds: bool = False
    reads: int = 400
    devices: int = 4
    chunk_bytes: int = 16384
    watermarks: Sequence[int] = (50, 25)
    link_mbit: int = 1000
    hdd: str = 'hdd'
    ssd: str = 'sata-ssd'
    setups: Sequence[str] = SETUPS
    jobs: int = 2
    timeout: float = 3600.0


QUICK = Plan(objects=50, reads=50)


@dataclass(frozen=True)
class Goal:
    """A published figure, and where ours is.

    :param against: the set-up that ``classes`` is divided by
    :param field: of a phase
    :param inverse: less is better
    """

    name: str
    published: float
    phase: str
    against: str
    field: str = 'mb_per_second'
    inverse: bool = False


#: Chen, Mesnier, Hahn; and the goals of this project.
GOALS = (
    Goal('upload bandwidth / LRU', 5.0, 'upload', 'lru'),
    Goal('download bandwidth / LRU', 1.6, 'download', 'lru'),
    Goal('LRU upload latency / ours', 5.5, 'upload', 'lru', 'mean_ms',
         True),
    Goal('LRU download latency / ours', 5.5, 'download', 'lru', 'mean_ms',
         True),
    Goal('LRU upload median latency / ours', 5.5, 'upload', 'lru', 'p50_ms',
         True),
    Goal('LRU download median latency / ours', 5.5, 'download', 'lru',
         'p50_ms', True),
    Goal('upload bandwidth / SSD only', 0.85, 'upload', 'ssd'),
    Goal('download bandwidth / SSD only', 0.85, 'download', 'ssd'),
)


def objects_of(plan: Plan) -> List[cacs.CacsObject]:
    """The objects to store; the guest draws the same."""
    return cacs.sample(plan.objects, plan.seed, plan.scale, 1)


def reads_of(plan: Plan) -> List[int]:
    """Which objects are read, in order; the same in all set-ups."""
    dice = random.Random('cacs reads %d' % plan.seed)
    return [dice.randrange(plan.objects) for _ in range(plan.reads)]


def device_data_bytes(plan: Plan) -> int:
    """A device's part of all copies of all objects."""
    total = sum(obj.size for obj in objects_of(plan))
    return total * REPLICAS // plan.devices


def cache_bytes(plan: Plan) -> int:
    """SSD of a device in the caches, with its table: whole chunks."""
    exact = device_data_bytes(plan) * plan.share + METADATA_BYTES
    return int(exact) // plan.chunk_bytes * plan.chunk_bytes


def disk_bytes(plan: Plan) -> int:
    """Of a disk that holds everything: half of it is free in the end."""
    return max(_LEAST_DISK_BYTES,
               math.ceil(2 * device_data_bytes(plan) / _MIB) * _MIB)


def devices_of(plan: Plan, setup: str) -> List[str]:
    """The modelled disks of a guest."""
    full = disk_bytes(plan) // _MIB
    room = math.ceil(cache_bytes(plan) / _MIB)
    disks = {'hdd': [('ssd', plan.hdd, full)],
             'ssd': [('ssd', plan.ssd, full)]}.get(setup, [
                 ('slow', plan.hdd, full), ('fast', plan.ssd, room)])
    return ['%s-d%d=%s:%dM' % (name, number + 1, preset, size)
            for number in range(plan.devices)
            for name, preset, size in disks]


def job_of(plan: Plan, setup: str) -> Dict[str, Any]:
    """The job of the guest."""
    return {'objects': plan.objects, 'seed': plan.seed,
            'scale': plan.scale, 'clients': plan.clients,
            'crowds': plan.crowds, 'reads': reads_of(plan),
            'devices': plan.devices,
            'strategy': _STRATEGIES[setup],
            'cache_bytes': cache_bytes(plan),
            'chunk_bytes': plan.chunk_bytes,
            'watermarks': list(plan.watermarks),
            'link_mbit': plan.link_mbit}


def check(plan: Plan) -> None:
    """:raises BadConfig: names the impossible measurement, and the reason"""
    require_known('--setups', plan.setups, SETUPS)
    if plan.link_mbit < 0:
        raise BadConfig('--link %d: 0 or more' % plan.link_mbit)
    for name in ('objects', 'clients', 'reads', 'jobs', 'scale', 'share'):
        if getattr(plan, name) <= 0:
            raise BadConfig('--%s %s: more than 0' % (
                name, getattr(plan, name)))
    if cache_bytes(plan) < METADATA_BYTES + _MIB \
            and set(plan.setups) & {'lru', 'classes'}:
        raise BadConfig('--share %g of %s a device is not 1 MiB of SSD: more '
                        '--objects or --scale' % (
                            plan.share, figures.size_text(
                                device_data_bytes(plan))))


def measure(plan: Plan, say: Say) -> Dict[str, Any]:
    """All set-ups, ``jobs`` at once; the report.

    :raises BadConfig: a plan that cannot be measured
    :raises lab.GuestDied: a guest failed; with its words
    """
    check(plan)

    def one(setup: str) -> Dict[str, Any]:
        phases = guest(setup, job_of(plan, setup), devices_of(plan, setup),
                       GUEST_BYTES + 6 * sum(
                           obj.size for obj in objects_of(plan)),
                       plan.timeout, say)
        return {'setup': setup, 'phases': {
            phase['name']: summary(phase, plan.crowds)
            for phase in phases}}
    with ThreadPoolExecutor(plan.jobs) as pool:
        rows = list(pool.map(one, plan.setups))
    return report(plan, rows)


def guest(name: str, job: Mapping[str, Any], devices: Sequence[str],
          memory_bytes: int, timeout: float, say: Say
          ) -> List[Dict[str, Any]]:
    """Run one set-up.

    :returns: its phases, as the guest has them
    """
    with tempfile.TemporaryDirectory(prefix='dss-cacs-') as folder:
        path = os.path.join(folder, 'job.json')
        with open(path, 'w') as out:
            json.dump(job, out)
        result = lab.run(
            os.path.abspath(cacs_lab_guest.__file__), [path],
            devices=[lab.parse_device(device) for device in devices],
            memory='%dM' % (memory_bytes // _MIB), timeout=timeout,
            sink=_progress(name, say))
    if result.status or result.complaints:
        raise lab.GuestDied('%s: status %d%s\n%s\n%s' % (
            name, result.status, ', killed' if result.killed else '',
            '\n'.join(result.complaints),
            result.stderr.decode('utf-8', 'replace')[-6000:]))
    say('%s: %.1f s of virtual time in %.1f s' % (
        name, result.virtual_seconds, result.real_seconds))
    found: List[Dict[str, Any]] = json.loads(result.output)
    return found


def _progress(name: str, say: Say) -> lab.machine.Sink:
    def sink(stream: str, data: bytes) -> None:
        if stream == 'stderr':
            for line in data.decode('utf-8', 'replace').splitlines():
                if line.strip():
                    say('%s: %s' % (name, line))
    return sink


def summary(phase: Mapping[str, Any],
            crowds: bool = False) -> Dict[str, Any]:
    """One phase of one set-up: in all, by class, by kind of disk.

    :param crowds: kinds are judged each by its own time
    """
    rows: List[Dict[str, Any]] = phase['requests']
    found = group(rows, phase['seconds'])
    for at, name in enumerate(('kinds', 'classes')):
        groups: Dict[str, List[Dict[str, Any]]] = {}
        for row in rows:
            groups.setdefault(row['label'].split()[at], []).append(row)
        found[name] = {label: group(groups[label], phase['seconds'])
                       for label in sorted(groups)}
    if crowds:
        found['kinds'] = by_own_time(rows)
        found['mb_per_second'] = sum(
            kind['mb_per_second'] for kind in found['kinds'].values())
    found['disks'] = disks(phase)
    found['cache'] = cache(phase)
    return found


def by_own_time(rows: Sequence[Mapping[str, Any]]
                ) -> Dict[str, Dict[str, Any]]:
    """The rate of each kind's clients over their *own* time of work, because
    each kind ends at another time.
    """
    kinds: Dict[str, List[Mapping[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(row['label'].split()[0], []).append(row)
    return {name: group(kinds[name], max(
        row['at'] + row['seconds'] for row in kinds[name]))
        for name in sorted(kinds)}


def group(rows: Sequence[Mapping[str, Any]],
           seconds: float) -> Dict[str, Any]:
    good = [row for row in rows if row['status'] // 100 == 2]
    count = sum(row['bytes'] for row in good)
    waits = [row['seconds'] for row in good]
    return {
        'seconds': seconds, 'requests': len(good),
        'failures': len(rows) - len(good), 'bytes': count,
        'mb_per_second': figures.ratio(count / 1e6, seconds),
        'request_mb_per_second': figures.ratio(count / 1e6, sum(waits)),
        'mean_ms': figures.ratio(1e3 * sum(waits), len(waits)),
        'p50_ms': 1e3 * figures.median(waits),
        'p99_ms': 1e3 * figures.percentile(waits, 99),
        'max_ms': 1e3 * max(waits, default=math.nan)}


def disks(phase: Mapping[str, Any]) -> Dict[str, Any]:
    """The work of the disks in the run, summed by role; ``later``: their
    writes after the last answer.
    """
    found: Dict[str, Dict[str, float]] = {}
    for name, after in phase['after']['disks'].items():
        before = phase['before']['disks'][name]
        settled = phase['settled']['disks'][name]
        row = found.setdefault(name.split('-')[0], dict.fromkeys(
            ('disks', 'reads', 'writes', 'read_bytes', 'write_bytes',
             'busy_ms', 'later_write_bytes', 'seeks', 'flushes',
             'medium_ms'), 0))
        row['disks'] += 1
        for field in ('reads', 'writes', 'read_bytes', 'write_bytes',
                      'busy_ms'):
            row[field] += after[field] - before[field]
        row['later_write_bytes'] += \
            settled['write_bytes'] - after['write_bytes']
        was, now = (phase[when].get('models', {}).get(name, {})
                    for when in ('before', 'after'))
        for field, told, unit in (('seeks', 'seeks', 1),
                                  ('flushes', 'flushes', 1),
                                  ('medium_ms', 'busy_ns', 1e6)):
            row[field] += (now.get(told, 0) - was.get(told, 0)) / unit
    for row in found.values():
        row['busy'] = figures.ratio(
            row['busy_ms'] / 1e3, phase['seconds'] * row['disks'])
    return found


def cache(phase: Mapping[str, Any]) -> Dict[str, Any]:
    """The counts of the caches in the run, summed by class id."""
    found: Dict[str, Dict[str, int]] = {}
    for name, after in phase['after'].get('caches', {}).items():
        before = phase['before']['caches'][name]['classes']
        for class_id, row in after['classes'].items():
            into = found.setdefault(class_id, {})
            for field, value in row.items():
                if isinstance(value, (int, float)):
                    into[field] = into.get(field, 0) + value - \
                        before.get(class_id, {}).get(field, 0)
    return found


def report(plan: Plan, rows: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """The result for JSON and plots."""
    total = sum(obj.size for obj in objects_of(plan))
    shares: Dict[str, float] = {}
    for obj in objects_of(plan):
        shares[obj.class_name] = shares.get(obj.class_name, 0.0) \
            + obj.size / total
    return {'plan': asdict(plan), 'data_bytes': total,
            'class_shares': shares,
            'cache_bytes': cache_bytes(plan) * plan.devices,
            'disk_bytes': disk_bytes(plan) * plan.devices,
            'setups': list(rows), 'goals': goals(rows)}


def goals(rows: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """Published figures beside ours, of the set-ups that were run."""
    by_name = {row['setup']: row['phases'] for row in rows}
    found = []
    for goal in GOALS:
        if 'classes' in by_name and goal.against in by_name:
            ours, theirs = (by_name[name][goal.phase][goal.field]
                            for name in ('classes', goal.against))
            value = figures.ratio(theirs, ours) if goal.inverse \
                else figures.ratio(ours, theirs)
            found.append({'name': goal.name, 'published': goal.published,
                          'ours': value, 'met': value >= goal.published})
    return found


def failures(found: Mapping[str, Any]) -> int:
    """Requests that were not answered with 2xx, in all set-ups."""
    return sum(phase['failures'] for row in found['setups']
               for phase in row['phases'].values())


def text(found: Mapping[str, Any]) -> str:
    """For people."""
    parts = ['%s of data; SSD of the caches: %s (%.1f %% of the copies, '
             '%s of it for metadata)' % (
        figures.size_text(found['data_bytes']),
        figures.size_text(found['cache_bytes']),
        100 * figures.ratio(found['cache_bytes'],
                            REPLICAS * found['data_bytes']),
        figures.size_text(METADATA_BYTES * found['plan']['devices']))]
    for phase in PHASES:
        parts += ['', _phase_table(found, phase)]
    parts += ['', _disk_table(found)]
    if found['goals']:
        parts += ['', figures.table(
            ('class order', 'published', 'ours', ''),
            [(row['name'], '%.2f' % row['published'],
              figures.number(row['ours']), 'met' if row['met'] else 'missed')
             for row in found['goals']])]
    return '\n'.join(parts)


def _phase_table(found: Mapping[str, Any], phase: str) -> str:
    rows: List[Sequence[str]] = []
    of = 'kinds' if found['plan']['crowds'] else 'classes'
    for row in found['setups']:
        mine = row['phases'][phase]
        rows.append(_cells(row['setup'], 'all', 1.0, mine))
        for name, group in mine[of].items():
            rows.append(_cells('', name, figures.ratio(
                group['bytes'], mine['bytes']), group))
    return figures.table(
        (phase, of, 'of bytes', 'requests', 'MB/s', 'MB/s a request',
         'mean ms', 'p50 ms', 'p99 ms', 'failed'), rows)


def _cells(setup: str, name: str, share: float,
           group: Mapping[str, Any]) -> Sequence[str]:
    return (setup, name, '%.0f %%' % (100 * share), str(group['requests']),
            figures.number(group['mb_per_second']),
            figures.number(group['request_mb_per_second']),
            figures.number(group['mean_ms'], 1),
            figures.number(group['p50_ms'], 1),
            figures.number(group['p99_ms'], 1), str(group['failures']))


def _disk_table(found: Mapping[str, Any]) -> str:
    rows = []
    for row in found['setups']:
        for phase, mine in row['phases'].items():
            for name, disk in mine['disks'].items():
                rows.append((
                    row['setup'], phase,
                    {'fast': 'ssd', 'slow': 'hdd'}.get(name, row['setup']),
                    '%d' % disk['reads'], '%.1f' % (
                        disk['read_bytes'] / 1e6),
                    '%d' % disk['writes'], '%.1f' % (
                        disk['write_bytes'] / 1e6),
                    '%.0f %%' % (100 * disk['busy']),
                    '%d' % disk['seeks'], '%d' % disk['flushes'],
                    '%.1f' % (disk['later_write_bytes'] / 1e6)))
    return figures.table(
        ('disks', 'phase', '', 'reads', 'MB', 'writes', 'MB', 'busy',
         'seeks', 'flushes', 'MB written later'), rows)
