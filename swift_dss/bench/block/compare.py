"""Caches between the same two disks, side by side, in virtual time.

Every *set-up* of a comparison gets a guest of its own
(:mod:`swift_dss.block.lab`) with fresh modelled disks, replays the same
requests there, and is judged by the guest's clock. Computing costs no time
on that clock: figures show the disks and the work that the cache gives them,
the same on every machine and on every run.

A read that does not get the bytes that were written fails the benchmark.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import tempfile
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from swift_dss.bench import figures
from swift_dss.bench.block import driver, guest, load, targets
from swift_dss.bench.block.load import NoTrace, Phase, Workload
from swift_dss.bench.choices import require_known
from swift_dss.block import lab

Say = Callable[[str], None]

MIB = 1 << 20
SETUPS: Sequence[str] = tuple(targets.TARGETS)
TRACES = '/usr/share/swift-dss/traces'

#: Memory of a guest beside its disks' contents.
_GUEST_BYTES = 512 * MIB


@dataclass(frozen=True)
class Plan:
    """The options of a comparison.

    :param requests: about how many a workload has
    :param chunk_bytes: of dm-dss; dm-cache takes 32 KiB at least
    :param ahead_bytes, after_bytes: the window that dm-dss fetches with a
        read that missed, and after it
    :param stage: percent of dm-dss's slots that writes of any class may use
    :param hdd, ssd: presets of the laboratory, with changes
    :param timeout: real seconds of one guest
    """

    setups: Sequence[str] = SETUPS
    workloads: Sequence[str] = load.WORKLOADS
    requests: int = load.REQUESTS
    seed: int = 1
    chunk_bytes: int = 64 * 1024
    ahead_bytes: int = 64 * 1024
    after_bytes: int = 0
    stage: int = 0
    mode: str = 'back'
    hdd: str = 'hdd'
    ssd: str = 'sata-ssd'
    check: bool = True
    traces: str = TRACES
    timeout: float = 1200.0


QUICK = dataclasses.replace(
    Plan(), requests=6000, workloads=('cacs', 'plain'))


@dataclass(frozen=True)
class Run:
    """The result of one set-up with one workload.

    :param phases: of those that are measured, figures by
        :func:`driver.summary` with ``hits`` and ``disks`` beside
    """

    setup: str
    phases: Dict[str, Dict[str, Any]]
    real_seconds: float


def measure(workload: Workload, setup: str, plan: Plan, say: Say,
            chunk_bytes: int = 0) -> Run:
    """One guest, one set-up, all phases of a workload.

    :param chunk_bytes: other than the plan's
    :raises lab.GuestDied: the guest's kernel broke
    :raises driver.DriverFailed: the set-up could not be made, or a
        request failed, or did not get the bytes that it had to
    """
    phases = list(workload.phases)
    if plan.check and any(request.flags & driver.WRITE
                          for phase in phases for request in phase.requests):
        phases.append(load.checks(workload))
    with tempfile.TemporaryDirectory(
            prefix='dss-bench-', dir='/dev/shm' if os.access(
                '/dev/shm', os.W_OK) else None) as folder:
        job = _job(workload, setup, plan, phases, folder, say)
        job['chunk_bytes'] = _chunk(setup, chunk_bytes or plan.chunk_bytes)
        path = os.path.join(folder, 'job.json')
        with open(path, 'w') as out:
            json.dump(job, out)
        say('%s: %s' % (workload.name, setup))
        ended = lab.run(
            guest.__file__, [path], shares=[folder],
            devices=_devices(workload, setup, plan),
            modules=['dm-dss'] if setup.startswith('dm-dss') else [],
            memory='%dM' % (_memory(workload) // MIB),
            timeout=plan.timeout, env={'PYTHONPATH': _import_path()},
            say=say)
        _refuse(ended, setup)
        return Run(setup, _read(phases, job, ended), ended.real_seconds)


def _chunk(setup: str, wanted: int) -> int:
    return max(wanted, targets.DM_CACHE_LEAST_BYTES) \
        if setup == 'dm-cache' else wanted


def _import_path() -> str:
    """Where the guest's Python finds this package."""
    here = str(pathlib.Path(__file__).resolve().parents[3])
    return os.pathsep.join(
        [here] + [path for path in [os.environ.get('PYTHONPATH')] if path])


def _memory(workload: Workload) -> int:
    return 2 * workload.origin_bytes + 2 * workload.cache_bytes \
        + _GUEST_BYTES


def _devices(workload: Workload, setup: str, plan: Plan) -> List[str]:
    origin = -(-workload.origin_bytes // MIB)
    if setup == 'ssd':
        return ['ssd=%s:%dM' % (plan.ssd, origin)]
    hdd = 'hdd=%s:%dM' % (plan.hdd, origin)
    if setup == 'hdd':
        return [hdd]
    return [hdd, 'ssd=%s:%dM' % (plan.ssd, (
        workload.cache_bytes + targets.SLACK_BYTES) // MIB)]


def _job(workload: Workload, setup: str, plan: Plan, phases: List[Phase],
         folder: str, say: Say) -> Dict[str, Any]:
    listed = []
    for number, phase in enumerate(phases):
        path = os.path.join(folder, '%d.list' % number)
        with open(path, 'wb') as out:
            out.write(driver.encode(phase.requests))
        listed.append({'name': phase.name, 'list': path,
                       'times': os.path.join(folder, '%d.times' % number),
                       'threads': phase.threads, 'seconds': phase.seconds})
    return {'setup': setup, 'driver': driver.build(say),
            'phases': listed, 'mode': plan.mode,
            'stage': plan.stage, 'ahead_bytes': plan.ahead_bytes,
            'after_bytes': plan.after_bytes,
            'classes': workload.ranks, 'cache_bytes': workload.cache_bytes,
            # In the guest's own memory, which is otherwise idle.
            'state': '/run/block-bench-state',
            'result': os.path.join(folder, 'result.json')}


def _refuse(ended: lab.Result, setup: str) -> None:
    """Whatever is wrong with how a guest ended, say so."""
    said = ended.stderr.decode('utf-8', 'replace').strip()
    if ended.killed:
        raise driver.DriverFailed(
            '%s: not done in time; it had said: %s\n%s' % (
                setup, said, ended.kernel_log[-2000:]))
    if ended.complaints:
        raise driver.DriverFailed('%s: the kernel complained: %s' % (
            setup, '; '.join(ended.complaints)))
    if ended.status not in (0, 1):
        raise driver.DriverFailed('%s: status %d: %s' % (
            setup, ended.status, said))


def _read(phases: Sequence[Phase], job: Mapping[str, Any],
          ended: lab.Result) -> Dict[str, Dict[str, Any]]:
    try:
        with open(job['result']) as source:
            result: Dict[str, Any] = json.load(source)
    except (OSError, ValueError) as err:
        raise driver.DriverFailed('%s: no result: %s\n%s' % (
            job['setup'], err,
            ended.stderr.decode('utf-8', 'replace'))) from err
    if 'failure' in result:
        raise driver.DriverFailed('%s: %s\n%s' % (
            job['setup'], result['failure'], ended.kernel_log[-2000:]))
    told = {}
    for phase, listed, answer in zip(phases, job['phases'],
                                     result['phases']):
        with open(listed['times'], 'rb') as times:
            outcome = driver.outcome(
                answer['summary'], times.read(), len(phase.requests))
        if outcome.wrong or outcome.failed:
            raise driver.DriverFailed(
                '%s, %s: %d blocks with wrong bytes, %d requests failed: %s'
                % (job['setup'], phase.name, outcome.wrong, outcome.failed,
                   outcome.trouble))
        if phase.measured:
            told[phase.name] = dict(
                driver.summary(phase.requests, outcome),
                status=answer['status'],
                **deltas(answer['before'], answer['after']))
    return told


def deltas(before: Mapping[str, Any],
           after: Mapping[str, Any]) -> Dict[str, Any]:
    """The growth of the counters of a cache and the disks in a phase.

    :returns: ``hits`` (ratios: ``all``, ``read``, by class) and ``disks``
    """
    first, last = before['counters'], after['counters']
    hits: Dict[str, float] = {}
    for name, top, bottom in (('all', 'hits', 'lookups'),
                              ('read', 'read_hits', 'reads')):
        if top in last and bottom in last:
            hits[name] = figures.ratio(last[top] - first[top],
                                       last[bottom] - first[bottom])
    nothing = {'hits': 0, 'lookups': 0}
    for class_id, row in last.get('classes', {}).items():
        was = first.get('classes', {}).get(class_id, nothing)
        hits[class_id] = figures.ratio(row['hits'] - was['hits'],
                                       row['lookups'] - was['lookups'])
    disks = {name: {field: value - before['disks'][name][field]
                    for field, value in row.items()}
             for name, row in after['disks'].items()}
    return {'hits': hits, 'disks': disks, 'counters': last}


def compare(plan: Plan, say: Say) -> Dict[str, Any]:
    """All set-ups on all workloads: the report."""
    require_known('--setups', plan.setups, SETUPS)
    require_known('--workloads', plan.workloads, load.WORKLOADS)
    made = []
    for name in plan.workloads:
        workload = _made(name, plan, say)
        if workload:
            made.append(workload)
    rows = []
    for workload in made:
        runs = [measure(workload, setup, plan, say)
                for setup in plan.setups]
        rows.append({
            'workload': workload.name, 'what': workload.what,
            'origin_bytes': workload.origin_bytes,
            'cache_bytes': workload.cache_bytes,
            'ranks': workload.ranks, 'names': workload.names,
            'setups': [{'setup': run.setup, 'phases': run.phases,
                        'real_seconds': run.real_seconds}
                       for run in runs]})
    return {'bench': 'block', 'plan': dataclasses.asdict(plan),
            'workloads': rows}


def _made(name: str, plan: Plan, say: Say) -> Optional[Workload]:
    try:
        return load.make(name, pathlib.Path(plan.traces),
                               plan.requests, plan.seed)
    except NoTrace as err:
        say('left out: %s' % err)
        return None


def text(outcome: Mapping[str, Any]) -> str:
    """The tables: set-ups, then classes of each."""
    parts = []
    for row in outcome['workloads']:
        for phase in row['setups'][0]['phases']:
            parts.append('%s, %s: %s' % (row['workload'], phase,
                                         row['what']))
            parts.append(_table(row, phase))
    return '\n\n'.join(parts)


def _table(row: Mapping[str, Any], phase: str) -> str:
    lines = []
    for setup in row['setups']:
        told = setup['phases'][phase]
        groups = [('all', told['all'])]
        if len(told['classes']) > 1:
            groups += [(name, told['classes'][name])
                       for name in sorted(told['classes'], key=int)]
        for name, figures_of in groups:
            label = setup['setup'] if name == 'all' else '  ' + str(
                row['names'].get(int(name), row['names'].get(name, name)))
            hits = told['hits'].get(name, float('nan'))
            hdd = told['disks'].get('hdd', {}) if name == 'all' else {}
            lines.append([
                label, '%d' % figures_of['requests'],
                figures.number(100 * hits, 1),
                figures.number(figures_of['mb_per_second'], 2)] + [
                    figures.number(figures_of[field] / 1e3, 3)
                    for field in ('mean_us', 'p50_us', 'p99_us', 'p999_us',
                                  'max_us')] + [
                    figures.number(100 * figures.ratio(
                        hdd.get('reads', 0) + hdd.get('writes', 0),
                        figures_of['requests']), 1) if hdd else '-'])
    return figures.table(
        ['set-up, class', 'requests', 'hit %', 'MB/s', 'mean ms', 'p50 ms',
         'p99 ms', 'p99.9 ms', 'max ms', 'HDD %'], lines)
