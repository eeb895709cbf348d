"""In a guest: random requests of all classes, and power cuts.

SSD and HDD have volatile caches that write back a part of what they hold
by themselves. A cut stops both devices, drops what they had not flushed,
and starts dm-dss anew from what is left. Then every sector must have a
version that it may have, the cache must be warm, and no sector may change
when its chunk leaves the SSD.
"""

from __future__ import annotations

import json
import random
import sys

from dss_guest import Direct, Load, Machine, Shadow, seed_from

ROWS = ('0,0,room,back,0,65536,1,0,-', '11,700,always,back,0,65536,1,0,-',
        '12,600,always,through,0,65536,1,0,-',
        '25,900,always,around,0,65536,1,0,-')
#: Between two flushes: what passes the SSD is not durable at once then.
NEVER = 10**9
MODES = ('writeback', 'writeback', 'writethrough', 'writearound')


def main() -> None:
    seed = seed_from(sys.argv[1:])
    chunk, grain = int(sys.argv[2]), int(sys.argv[3])
    cuts, requests = int(sys.argv[4]), int(sys.argv[5])
    # Each round has a stage, and nobody but the cleaner flushes the HDD.
    is_staged = sys.argv[6:] == ['staged']
    chance = random.Random(seed)
    machine = Machine(chunk, grain)
    shadow = Shadow(machine.disks['hdd'].sectors)
    dss = machine.start('writeback')
    dss.message('classes', *ROWS)
    rounds = []
    for number in range(cuts):
        # In every other round nobody reads, and the cleaner takes several
        # rows with one flush.
        writes = is_staged or number % 2 == 1
        dss.message('watermarks', *(('10', '5') if writes else ('50', '25')))
        # With a stage class 11 becomes dirty by that alone. A few slots are
        # soon full.
        few = 2 if chunk <= 64 else 10
        stage = chance.choice((few, 40) if is_staged else (0, few, 40))
        dss.message('stage', str(stage))
        dss.message('class', ROWS[1] + (',0' if stage else ''))
        load = Load(shadow, dss.path, seed + number, threads=6,
                    flush_every=NEVER if is_staged
                    else chance.choice((5, 200, NEVER)),
                    reads=not writes)
        dss.message(chance.choice(('ahead', 'after')), str(4 * chunk))
        load.start()
        load.wait(chance.randrange(1, requests))
        if chance.random() < 0.3 and not load.errors:
            dss.message('mode', chance.choice(MODES))
            load.wait(chance.randrange(1, requests))
        before = dss.status()
        waits = dss.stats()[-1]['stage_waits']
        machine.cut()
        load.stop()
        machine.lose_power(dss)
        dss = machine.start(chance.choice(MODES))
        after = dss.status()
        device = Direct(dss.path)
        lost = shadow.after_crash(device)
        # What was read now must not change when chunks leave.
        dss.message('drain')
        dss.message('demote', '0', str(dss.sectors))
        shadow.check_all(device)
        shadow.flush(device)
        device.close()
        dss.message('check')
        rounds.append({
            'io_errors': load.io_errors, 'lost': lost,
            'stage_waits': waits,
            'used_before': before['used'], 'used_after': after['used'],
            'dirty_before': before['dirty_grains'],
            'dirty_after': after['dirty_grains'],
            'classes_after': sorted(after['classes'])})
    print(json.dumps(rounds))


main()
