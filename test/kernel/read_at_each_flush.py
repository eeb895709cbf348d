"""Campaign R07: dm-dss from every flush or FUA point of both its devices.

``python test/kernel/read_at_each_flush.py [--points N] [--requests N]
[--seed N] [--stage PERCENT]`` boots guests until that many points were
examined, each from two images, and says how many there were; then it makes
sure that wrong twins of the module are caught. With a stage all dirty chunks
are its own. Exit status 1 if a byte was stale or lost, or a twin was not
caught.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile

import dss_lab
import test_dm_dss_crash

#: Points that one guest examines, so that there is something to see.
GUEST_POINTS = 200

#: Guests with seeds of their own that a twin gets to lose a byte in: as many
#: points as the whole campaign has by default.
TWIN_GUESTS = 5

#: As in test_dm_dss_crash.py, where the twins are told apart.
TWINS = {
    'flush_without_table': ('dss_commit.c',
                            'pass->ssd_error = dss_write_regions(d, nr);',
                            'pass->ssd_error = 0;'),
    'no_intent': ('dss_verbs.c', 'commit = true;\n\t\t\td->nr_intents++;',
                  'd->nr_intents++;'),
}
#: A chunk that became dirty by the stage has no intent.
STAGE_TWINS = {
    'stage_without_intent': test_dm_dss_crash.TWINS['stage_without_intent'],
}


def campaign(points: int, requests: int, seed: int, stage: int) -> int:
    """Examine that many points; how many there were."""
    examined = 0
    while examined < points:
        report = dss_lab.found('dss_each_flush.py', [
            seed, requests, min(points - examined, GUEST_POINTS), stage],
            timeout=3600)
        assert report['examined'], 'seed %d: no flush or FUA point' % seed
        assert report['staged'] or not stage, 'seed %d: empty stage' % seed
        examined += report['examined']
        print('seed %d: %s' % (seed, json.dumps(report)))
        sys.stdout.flush()
        seed += 1
    return examined


def caught_in(name: str, requests: int, seed: int, stage: int) -> int:
    """The number of the guest, from 1 on, in which a twin lost a byte; 0 if
    it did in none."""
    with tempfile.TemporaryDirectory() as folder:
        module = dss_lab.wrong_twin(
            folder, [{**TWINS, **STAGE_TWINS}[name]])
        for number in range(TWIN_GUESTS):
            ended = dss_lab.result(
                'dss_each_flush.py',
                [seed + number, requests, GUEST_POINTS, stage],
                module, timeout=3600)
            if ended.status and b'WrongBytes' in ended.stderr:
                return number + 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--points', type=int, default=1000)
    parser.add_argument('--requests', type=int, default=200)
    parser.add_argument('--seed', type=int,
                        default=random.randrange(1 << 20))
    parser.add_argument('--stage', type=int, default=0, metavar='PERCENT')
    parser.add_argument('--no-twins', action='store_true')
    options = parser.parse_args()
    try:
        examined = campaign(options.points, options.requests, options.seed,
                            options.stage)
    except AssertionError as error:
        print(error)
        return 1
    print('%d points, %d images, 0 stale or lost' % (examined, 2 * examined))
    status = 0
    twins = {**TWINS, **(STAGE_TWINS if options.stage else {})}
    for name in () if options.no_twins else sorted(twins):
        guest = caught_in(name, 600, options.seed, options.stage)
        print('wrong twin %s: %s' % (name, 'caught in guest %d' % guest
                                     if guest else 'NOT CAUGHT'))
        status |= not guest
    return status


if __name__ == '__main__':
    sys.exit(main())
