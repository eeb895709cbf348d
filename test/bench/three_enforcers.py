"""One strategy, three enforcers: the same classed trace through each.

``python test/bench/three_enforcers.py`` puts a generated trace of a
million requests, and the published ones that ``--traces`` holds, through
the Python reference, the shared library and, with ``--module``, dm-dss in
the lab. It prints what each did by class, and ends with status 1 if one
hit, bypass or eviction is different. Seconds are of the processor; of the
module, of a clock on the wall, with boot. ``--write-golden`` writes what
``test/golden/test_golden_chunks.py`` expects.
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support.chunk_oracle import chunk_traces, enforcers
from support.chunk_oracle.core_library import (
    ChunkLibrary, load)
from support.chunk_oracle.ordered import ChunkOrdered

GOLDEN = pathlib.Path(__file__).parents[1] / 'golden' / 'chunks.json'
#: The golden file has a beginning on fewer slots too, so that a test can
#: ask the slow reference, and slots are scarce from early on.
PREFIX, PREFIX_SLOTS = 50000, 2048


def by_reference(trace, scenario):
    return enforcers.replay(ChunkOrdered(trace.slots), trace, scenario)


def by_library(trace, scenario):
    return enforcers.replay_in_c(ChunkLibrary(trace.slots), trace, scenario)


def shown(outcome, class_id):
    """Hits, misses, bypasses and evictions of one class."""
    counts = outcome.counts[class_id]
    return [counts.get('hits', 0), counts.get('misses', 0)] + [
        ', '.join('%s %d' % (name[len(kind):], number)
                  for name, number in counts.items()
                  if name.startswith(kind)) or '-'
        for kind in ('bypass ', 'evicted ')]


def same(first, second):
    """Counters are; so are the decisions, where both show them."""
    if first.decisions and second.decisions and \
            first.decisions != second.decisions:
        return False
    return first.counts == second.counts


def compare(trace, scenario, makers):
    """Print one scenario; whether all did the same."""
    print('\n%s, %d requests, %d slots: %s' % (
        trace.name, len(trace), trace.slots, scenario.name))
    outcomes = {}
    for name, make in makers.items():
        outcome = outcomes[name] = make(trace, scenario)
        print('  %-10s hit ratio %.4f  %8.3f s  %s' % (
            name, outcome.hit_ratio(), outcome.seconds,
            outcome.decisions[:16] or 'counters only'))
        for class_id in outcome.counts:
            print('    class %-3s hits %-7d misses %-7d bypass: %-40s '
                  'evicted: %s' % (class_id, *shown(outcome, class_id)))
        sys.stdout.flush()
    first = next(iter(outcomes.values()))
    verdict = all(same(first, outcome) for outcome in outcomes.values())
    print('  identical' if verdict else '  DIFFERENT')
    return verdict


def traces(options):
    """Those that are wanted, and there."""
    wanted = options.trace or ['generated'] + (
        list(chunk_traces.PUBLISHED) if options.traces else [])
    if 'generated' in wanted:
        trace = chunk_traces.generated(options.length)
        trace.slots = options.slots or trace.slots
        yield trace
    for name in chunk_traces.PUBLISHED:
        if name not in wanted:
            continue
        try:
            yield chunk_traces.published(
                name, options.traces or pathlib.Path())
        except chunk_traces.NoTrace as err:
            print('left out: %s' % err)


def golden():
    """What the library decides, which :func:`compare` has shown to be what
    the reference does."""
    library = load()
    counts = {}
    for length in (PREFIX, chunk_traces.LENGTH):
        trace = chunk_traces.generated(length)
        if length == PREFIX:
            trace.slots = PREFIX_SLOTS
        for scenario in enforcers.SCENARIOS.values():
            outcome = enforcers.replay_in_c(
                ChunkLibrary(trace.slots, library), trace, scenario)
            counts['%s, %d requests' % (scenario.name, length)] = dict(
                outcome.counts, decisions=outcome.decisions)
    # Of the last, the longest.
    counts['trace'] = [sum(trace.class_ids), sum(trace.oblocks) % 1000003,
                       sum(trace.writes)]
    GOLDEN.write_text(json.dumps(counts, indent=1, sort_keys=True) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--traces', type=pathlib.Path, metavar='DIR',
                        help='where the published '
                        'traces are (without it: only the generated one)')
    parser.add_argument('--trace', action='append',
                        choices=['generated', *chunk_traces.PUBLISHED])
    parser.add_argument('--length', type=int, default=chunk_traces.LENGTH)
    parser.add_argument('--slots', type=int,
                        help='of the generated trace (%d)'
                        % chunk_traces.SLOTS)
    parser.add_argument('--scenario', action='append',
                        choices=list(enforcers.SCENARIOS))
    parser.add_argument('--module', action='store_true',
                        help='dm-dss too, in a guest of the lab')
    parser.add_argument('--write-golden', action='store_true')
    options = parser.parse_args()
    if options.write_golden:
        return golden()
    makers = {'reference': by_reference, 'library': by_library}
    wanted = options.scenario or list(enforcers.SCENARIOS)
    if options.module:
        # Only here: the lab needs more of a machine than the others.
        import enforcer_lab
        makers['module'] = enforcer_lab.by_module
        # What the cleaner of the module has done by when depends on the
        # disks, so no two runs with dirty chunks need be the same.
        wanted = [name for name in wanted
                  if not enforcers.SCENARIOS[name].write_back]
    results = [compare(trace, enforcers.SCENARIOS[name], makers)
               for trace in traces(options) for name in wanted]
    print('\n%d of %d comparisons identical' % (sum(results), len(results)))
    return 0 if results and all(results) else 1


if __name__ == '__main__':
    sys.exit(main())
