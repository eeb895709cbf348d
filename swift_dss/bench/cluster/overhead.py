"""The cost of classes: PUT and GET against stock Swift, A B A B.

Each *cell* is one operation, size and concurrency. In every round each
variant of a cell runs for the same time, right after one another, and the
order turns round from one round to the next, so that a machine that gets
slower or faster does so for all. A variant is compared with the vanilla
run of its own round; the figure of a cell is the median over the rounds.
``vanilla 2`` is vanilla once more: how far it is from 1.00 is how far
chance alone takes a ratio.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence

from swift_dss.bench import cpu, figures
from swift_dss.bench.cluster import load
from swift_dss.bench.cluster.bed import Bed
from swift_dss.bench.cluster.beside import stock_side
from swift_dss.bench.cluster.client import BenchFailed, Client, Request
from swift_dss.wire import names

Say = Callable[[str], None]

SIZES = (4096, 65536, 1 << 20, 16 << 20)
CONCURRENCIES = (1, 8)
OPERATIONS = ('PUT', 'GET')

#: Bytes of each client's objects: enough to turn around in, little enough
#: to stay clear of a full disk.
_SET_BYTES = 16 << 20
_SET_OBJECTS = 4


@dataclass(frozen=True)
class Variant:
    """One way to store an object.

    :param storage_policy: Swift's
    :param class_name: of the PUT; '' for none
    """

    name: str
    storage_policy: str
    class_name: str = ''

    @property
    def container(self) -> str:
        """Where its objects are."""
        return 'overhead-%s' % self.name.replace(' ', '-')

    def side_of(self, bed: Bed) -> Bed:
        """Where its requests go."""
        return stock_side(bed) if self.storage_policy == 'vanilla' else bed


VANILLA = Variant('vanilla', 'vanilla')
VARIANTS = (VANILLA, Variant('vanilla 2', 'vanilla'),
            Variant('unclassified', 'dss'),
            Variant('classified', 'dss', 'user1'))

#: Column heads.
SHORT = {'vanilla 2': 'noise', 'unclassified': 'unclass.',
         'classified': 'class.'}


@dataclass(frozen=True)
class Plan:
    """How much to measure.

    :param seconds: of each run of a variant
    """

    rounds: int = 4
    seconds: float = 1.8
    sizes: Sequence[int] = SIZES
    concurrencies: Sequence[int] = CONCURRENCIES
    variants: Sequence[Variant] = VARIANTS


#: For a first look.
QUICK = Plan(rounds=2, seconds=0.8)


@dataclass(frozen=True)
class Cell:
    """The variants to compare."""

    operation: str
    size: int
    concurrency: int


@dataclass(frozen=True)
class Run:
    """One variant of one cell in one round.

    :param cpu_ms: milliseconds a request, by server; empty if unknown
    """

    cell: Cell
    variant: str
    round_number: int
    requests: int
    failures: int
    per_second: float
    p50_ms: float
    cpu_ms: Mapping[str, float]

    @property
    def front_cpu_ms(self) -> float:
        """Of all servers that the request goes through."""
        return sum(self.cpu_ms.get(name, 0.0) for name in cpu.FRONT)


def measure(bed: Bed, plan: Plan, say: Say) -> List[Run]:
    """All cells of the plan.

    :raises BenchFailed: the cluster refuses a request of the measurement
    """
    pool = os.urandom(max(plan.sizes))
    _prepare(bed, plan, pool, say)
    cells = [Cell(operation, size, concurrency)
             for size in plan.sizes for operation in OPERATIONS
             for concurrency in plan.concurrencies]
    runs: List[Run] = []
    for number, cell in enumerate(cells):
        mine: List[Run] = []
        for round_number in range(plan.rounds):
            order = list(plan.variants)
            if round_number % 2:
                order.reverse()
            for variant in order:
                mine.append(_run(bed, plan, cell, variant, round_number,
                                 pool))
        runs += mine
        say('%2d/%d  %s %s x%d  %s' % (
            number + 1, len(cells), cell.operation,
            figures.size_text(cell.size), cell.concurrency,
            '  '.join('%s %.2f' % (variant.name, compare(
                mine, cell, variant.name)['throughput'])
                for variant in plan.variants if variant != VANILLA)))
    return runs


def objects_of(size: int) -> int:
    """How many objects of a size each client has."""
    return max(1, min(_SET_OBJECTS, _SET_BYTES // size))


def _requests(cell: Cell, variant: Variant, number: int,
              pool: bytes) -> Iterator[Request]:
    headers = {names.OBJECT_CLASS: variant.class_name} \
        if variant.class_name else None
    body = [memoryview(pool)[:cell.size]]
    count = objects_of(cell.size)
    at = 0
    while True:
        path = '%s/%d/%d-%d' % (
            variant.container, cell.size, number, at % count)
        if cell.operation == 'PUT':
            yield Request('PUT', path, '', cell.size, body, headers)
        else:
            yield Request('GET', path)
        at += 1


def _first_requests(cell: Cell, variant: Variant, pool: bytes,
                    number: int) -> Iterator[Request]:
    return islice(_requests(cell, variant, number, pool),
                  objects_of(cell.size))


def _prepare(bed: Bed, plan: Plan, pool: bytes, say: Say) -> None:
    client = Client(bed.target)
    for variant in plan.variants:
        client.make_container(variant.container, variant.storage_policy)
    clients = max(plan.concurrencies)
    for size in plan.sizes:
        say('preparing objects of %s' % figures.size_text(size))
        cell = Cell('PUT', size, clients)
        for variant in plan.variants:
            outcome = load.run(variant.side_of(bed).target, clients, partial(
                _first_requests, cell, variant, pool))
            if outcome.failures:
                raise BenchFailed('%s: %d of %d uploads failed' % (
                    variant.name, outcome.failures, len(outcome.samples)))
    _check(client, plan, pool)
    client.close()


def _check(client: Client, plan: Plan, pool: bytes) -> None:
    """Check bytes and classes before timing, so that a fast wrong answer
    cannot win.
    """
    for variant in plan.variants:
        for size in plan.sizes:
            path = '%s/%d/0-0' % (variant.container, size)
            if client.get_bytes(path) != pool[:size]:
                raise BenchFailed('%s: other bytes than were stored' % path)
            shown = client.head(path).get(names.OBJECT_CLASS.lower())
            if bool(variant.class_name) != (shown not in (None, '0')):
                raise BenchFailed('%s: shows class %r' % (path, shown))


def _run(bed: Bed, plan: Plan, cell: Cell, variant: Variant,
         round_number: int, pool: bytes) -> Run:
    bed = variant.side_of(bed)
    crowd = load.Crowd(
        bed.target, cell.concurrency,
        lambda number: _requests(cell, variant, number, pool), plan.seconds)
    before = cpu.by_name(bed.pids)
    crowd.begin()
    outcome = crowd.result()
    after = cpu.by_name(bed.pids)
    good = outcome.good
    if not good:
        raise BenchFailed('%s %s: no request succeeded' % (
            variant.name, cell.operation))
    spent = {name: (after[name] - before[name]) * 1000 / len(good)
             for name in after if bed.pids.get(name)}
    return Run(cell, variant.name, round_number, len(good),
               outcome.failures, outcome.per_second,
               1000 * figures.percentile(
                   [sample.seconds for sample in good], 50), spent)


def compare(runs: Sequence[Run], cell: Cell,
            variant: str) -> Dict[str, float]:
    """Medians of one variant in one cell, and its ratios to vanilla.

    A ratio is the median of the ratios of each round; ``_low`` and
    ``_high`` are the least and greatest of them.
    """
    of_variant = {run.round_number: run for run in runs
                  if run.cell == cell and run.variant == variant}
    vanilla = {run.round_number: run for run in runs
               if run.cell == cell and run.variant == VANILLA.name}
    pairs = [(of_variant[at], vanilla[at]) for at in sorted(of_variant)]
    medians: Dict[str, float] = {
        'per_second': figures.median(
            [run.per_second for run, _ in pairs]),
        'p50_ms': figures.median([run.p50_ms for run, _ in pairs]),
        'cpu_ms': figures.median([run.front_cpu_ms for run, _ in pairs]),
        'failures': sum(run.failures for run, _ in pairs)}
    for server in cpu.FRONT + cpu.BEHIND:
        medians[server.replace('-', '_') + '_cpu_ms'] = figures.median(
            [run.cpu_ms.get(server, 0.0) for run, _ in pairs])
    for name, ratios in (
            ('throughput', [figures.ratio(run.per_second, base.per_second)
                            for run, base in pairs]),
            ('cpu', [figures.ratio(run.front_cpu_ms, base.front_cpu_ms)
                     for run, base in pairs])):
        medians[name] = figures.median(ratios)
        medians[name + '_low'], medians[name + '_high'] = (
            min(ratios), max(ratios))
    return medians


def overall(runs: Sequence[Run], variant: str) -> Dict[str, float]:
    """Medians of the ratios over all cells."""
    cells = list(dict.fromkeys(run.cell for run in runs))
    medians = [compare(runs, cell, variant) for cell in cells]
    return {name: figures.median([each[name] for each in medians])
            for name in ('throughput', 'cpu')}


def report(runs: Sequence[Run]) -> Dict[str, Any]:
    """All of it, for JSON."""
    cells = list(dict.fromkeys(run.cell for run in runs))
    variants = list(dict.fromkeys(run.variant for run in runs))
    return {
        'bench': 'overhead',
        'cells': [dict(compare(runs, cell, variant), variant=variant,
                       operation=cell.operation, size_bytes=cell.size,
                       concurrency=cell.concurrency)
                  for cell in cells for variant in variants],
        'overall': {variant: overall(runs, variant)
                    for variant in variants},
    }


def text(runs: Sequence[Run]) -> str:
    """The ratio table."""
    cells = list(dict.fromkeys(run.cell for run in runs))
    variants = [name for name in dict.fromkeys(run.variant for run in runs)
                if name != VANILLA.name]
    head = ['operation', 'clients', 'vanilla/s', 'CPU ms']
    for name in variants:
        head += [SHORT.get(name, name), 'CPU']
    rows = []
    for cell in cells:
        base = compare(runs, cell, VANILLA.name)
        row = ['%s %s' % (cell.operation, figures.size_text(cell.size)),
               '%d' % cell.concurrency, figures.number(
                   base['per_second'], 1), figures.number(base['cpu_ms'])]
        for name in variants:
            ratios = compare(runs, cell, name)
            row += [figures.number(ratios['throughput']),
                    figures.number(ratios['cpu'])]
        rows.append(row)
    last = ['median', '', '', '']
    for name in variants:
        ratios = overall(runs, name)
        last += [figures.number(ratios['throughput']),
                 figures.number(ratios['cpu'])]
    failures = sum(run.failures for run in runs)
    return '%s\n%s\n\n%s' % (
        figures.table(head, rows + [last]),
        'Ratios to vanilla of requests a second (more is better) and of '
        'CPU time a request\nof proxy, object and container server (less '
        'is better). noise: vanilla once more.\n'
        'Failed requests: %d' % failures, _servers(runs, cells))


def _servers(runs: Sequence[Run], cells: Sequence[Cell]) -> str:
    """Which server's CPU time it is: the mean over the cells."""
    servers = cpu.FRONT + cpu.BEHIND
    rows = []
    for variant in dict.fromkeys(run.variant for run in runs):
        medians = [compare(runs, cell, variant) for cell in cells]
        rows.append([variant] + [figures.number(sum(
            each[server.replace('-', '_') + '_cpu_ms']
            for each in medians) / len(medians)) for server in servers])
    return '%s\nMilliseconds of CPU a request, mean of all rows above; %s ' \
        'works behind the requests\nand is in no ratio.' % (
            figures.table(['CPU ms', *servers], rows),
            ' '.join(cpu.BEHIND))
