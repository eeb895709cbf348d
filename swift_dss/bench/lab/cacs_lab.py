"""Client-aware Cloud Storage, case 1, on real Swift in the laboratory.

Each *set-up* is a guest of its own, in virtual time: four Swift devices,
each a zone, three replicas, XFS on

``hdd``, ``ssd``
    one modelled disk each: the two ends
``scattered``
    ``hdd`` where files begin and are read as stock Swift does it: ``[io]
    placement = false`` and ``whole_read_bytes = 0``
``lru``
    dm-dss that is blind to classes: one LRU
``classes``
    dm-dss in order of class, LRU inside a class
``warm``
    the same with one warm copy of each object: ``[io] stage_cold_copies``
``file``
    no cache below XFS: engine ``file`` and its daemon move objects between
    the XFS of an SSD and that of an HDD
``bcache``, ``dm-cache``, ``dm-writecache``
    Linux's caches, at their own defaults, in write-back mode

The caches have an SSD of ``share`` of the data's bytes. All set-ups run the
same Swift, with the same classes; only the parts below XFS differ. All objects
are uploaded once; then objects drawn at random are downloaded, each as likely
as any other. Between the two the page cache is emptied.

Clients are one crowd that takes whatever comes next, or each kind of object
has a crowd of its own (``--crowds``, as in case 2): then a kind's bandwidth
is over the time in which its own clients were at work, and that of all of
them is the sum.
"""

from __future__ import annotations

import json
import math
import os
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Sequence

from swift_dss.bench import cacs, figures
from swift_dss.bench.block import targets
from swift_dss.bench.choices import require_known
from swift_dss.bench.lab import cacs_bound, cacs_lab_guest
from swift_dss.bench.lab.cacs_lab_figures import summary
from swift_dss.block import lab
from swift_dss.core.errors import BadConfig

Say = Callable[[str], None]

REPLICAS = 3
SETUPS = ('scattered', 'hdd', 'lru', 'classes', 'warm', 'file', 'bcache',
          'dm-cache', 'dm-writecache', 'ssd')
#: That are run if nothing else is said.
USUAL = ('hdd', 'lru', 'classes', 'ssd')
#: Set-ups of :mod:`swift_dss.bench.block.targets`.
THIRD_PARTIES = ('bcache', 'dm-cache', 'dm-writecache')
PHASES = ('upload', 'download')

_MIB = 1 << 20
_LEAST_DISK_BYTES = 512 * _MIB
#: Bytes of a device's SSD beside its share of the data: XFS's journal, which
#: does not shrink with the model, its metadata and Swift's databases. On an
#: SSD of usual size they would be negligible.
METADATA_BYTES = 6 * _MIB
#: XFS's journal: the least that mkfs makes on sectors of 512 bytes, and on
#: those of 4 KiB, which dm-writecache has. It gets the difference as SSD.
JOURNAL_BYTES = 4 * _MIB
_JOURNALS = {'dm-writecache': 7 * _MIB}
GUEST_BYTES = 1536 * _MIB
#: Names of dm-dss's strategies, in the set-ups that have it.
_STRATEGIES = {'lru': 'lru', 'classes': 'strict', 'warm': 'strict'}


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
    :param stage: percent of the SSD that writes of any class may use
    :param link_mbit: of each device's link, each way, as its node would
        have; 0 is none
    :param cached: the proxy remembers accounts and containers, as with
        memcached
    :param workers: of the proxy and the object server; 0 is one process each
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
    stage: int = 0
    link_mbit: int = 1000
    cached: bool = False
    workers: int = 0
    hdd: str = 'hdd'
    ssd: str = 'sata-ssd'
    setups: Sequence[str] = USUAL
    jobs: int = 2
    timeout: float = 3600.0


QUICK = Plan(objects=50, reads=50)


@dataclass(frozen=True)
class Goal:
    """A published figure or one of this project, and where ours is.

    :param against: the set-up that ours is divided by
    :param field: of a phase
    :param inverse: less is better
    :param ours: the set-up that has to meet it; ``warm`` for ``classes``
        where that was run
    """

    name: str
    published: float
    phase: str
    against: str
    field: str = 'mb_per_second'
    inverse: bool = False
    ours: str = 'classes'


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
    Goal('HDDs: upload bandwidth / as Swift has files', 1.3, 'upload',
         'scattered', ours='hdd'),
    Goal('HDDs: download bandwidth / as Swift has files', 1.3, 'download',
         'scattered', ours='hdd'),
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


def has_cache(setup: str) -> bool:
    """Whether there is an SSD before an HDD."""
    return setup in _STRATEGIES or setup in THIRD_PARTIES \
        or setup == 'file'


def room_bytes(plan: Plan, setup: str) -> int:
    """SSD of a device; what dm-cache has beside its cache is given to it."""
    return cache_bytes(plan) + journal_bytes(setup) - JOURNAL_BYTES + (
        targets.SLACK_BYTES if setup == 'dm-cache' else 0)


def journal_bytes(setup: str) -> int:
    """Of XFS on a device."""
    return _JOURNALS.get(setup, JOURNAL_BYTES)


def devices_of(plan: Plan, setup: str) -> List[str]:
    """The modelled disks of a guest."""
    full = disk_bytes(plan) // _MIB
    # A file system on a few MiB cannot be: [tier] ssd_bytes is the limit.
    room = full if setup == 'file' else \
        math.ceil(room_bytes(plan, setup) / _MIB)
    disks = [('slow', plan.hdd, full), ('fast', plan.ssd, room)] \
        if has_cache(setup) else \
        [('ssd', plan.ssd if setup == 'ssd' else plan.hdd, full)]
    return ['%s-d%d=%s:%dM' % (name, number + 1, preset, size)
            for number in range(plan.devices)
            for name, preset, size in disks]


def job_of(plan: Plan, setup: str) -> Dict[str, Any]:
    """The job of the guest."""
    return {'objects': plan.objects, 'seed': plan.seed,
            'scale': plan.scale, 'clients': plan.clients,
            'crowds': plan.crowds, 'reads': reads_of(plan),
            'devices': plan.devices,
            'strategy': _STRATEGIES.get(setup, ''),
            'placement': setup != 'scattered',
            'stage_cold_copies': setup == 'warm',
            'target': setup if setup in THIRD_PARTIES else '',
            'cache_bytes': cache_bytes(plan),
            # Journals, databases and metadata are not in a daemon's budget.
            'ssd_bytes': cache_bytes(plan) - METADATA_BYTES
            if setup == 'file' else 0,
            'room_bytes': room_bytes(plan, setup),
            'journal_bytes': journal_bytes(setup),
            'chunk_bytes': plan.chunk_bytes,
            'watermarks': list(plan.watermarks), 'stage': plan.stage,
            'link_mbit': plan.link_mbit, 'cached': plan.cached,
            'workers': plan.workers}


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
            and any(map(has_cache, plan.setups)):
        raise BadConfig('--share %g of %s a device is not 1 MiB of SSD: more '
                        '--objects or --scale' % (
                            plan.share, figures.size_text(
                                device_data_bytes(plan))))


def measure_seeds(plan: Plan, seeds: Sequence[int], say: Say
                  ) -> List[Dict[str, Any]]:
    """All set-ups with the objects of each seed, ``jobs`` guests at once; a
    report for each.

    :raises BadConfig: a plan that cannot be measured
    :raises lab.GuestDied: a guest failed; with its words
    """
    plans = [replace(plan, seed=seed) for seed in seeds]
    for of_seed in plans:
        check(of_seed)
    with ThreadPoolExecutor(plan.jobs) as pool:
        rows = list(pool.map(
            lambda pair: _measure_one(pair[0], pair[1], say),
            [(of_seed, setup) for of_seed in plans
             for setup in plan.setups]))
    count = len(plan.setups)
    return [report(of_seed, rows[at * count:(at + 1) * count])
            for at, of_seed in enumerate(plans)]


def _measure_one(plan: Plan, setup: str, say: Say) -> Dict[str, Any]:
    phases = guest('%s, seed %d' % (setup, plan.seed), job_of(plan, setup),
                   devices_of(plan, setup), GUEST_BYTES + 6 * sum(
                       obj.size for obj in objects_of(plan)),
                   plan.timeout, say)
    return {'setup': setup, 'phases': {
        phase['name']: summary(phase, plan.crowds) for phase in phases}}


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
    rows: List[Dict[str, Any]] = json.loads(result.output)
    return rows


def _progress(name: str, say: Say) -> lab.machine.Sink:
    def sink(stream: str, data: bytes) -> None:
        if stream == 'stderr':
            for line in data.decode('utf-8', 'replace').splitlines():
                if line.strip():
                    say('%s: %s' % (name, line))
    return sink


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
            'setups': list(rows), 'goals': goals(rows),
            'bounds': bounds_of(plan)}


def bounds_of(plan: Plan) -> Dict[str, Any]:
    """Of each phase, the best that HDDs below a cache could do."""
    objects = objects_of(plan)
    room = (cache_bytes(plan) - METADATA_BYTES) * plan.devices
    return {'upload': asdict(cacs_bound.upload(
        objects, REPLICAS, room, plan.devices, plan.hdd)),
        'download': asdict(cacs_bound.download(
            objects, reads_of(plan), room, plan.devices, plan.hdd))}


def goals(rows: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """Published figures beside ours, of the set-ups that were run."""
    by_name = {row['setup']: row['phases'] for row in rows}
    reached = []
    for goal in GOALS:
        mine = 'warm' if goal.ours == 'classes' and 'warm' in by_name \
            else goal.ours
        if mine in by_name and goal.against in by_name:
            ours, theirs = (by_name[name][goal.phase][goal.field]
                            for name in (mine, goal.against))
            value = figures.ratio(theirs, ours) if goal.inverse \
                else figures.ratio(ours, theirs)
            reached.append({'name': goal.name, 'published': goal.published,
                            'ours': value, 'met': value >= goal.published})
    return reached


def failures(outcome: Mapping[str, Any]) -> int:
    """Requests that were not answered with 2xx, in all set-ups."""
    return sum(phase['failures'] for row in outcome['setups']
               for phase in row['phases'].values())
