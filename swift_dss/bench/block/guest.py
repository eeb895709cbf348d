"""Inside a guest: set up one cache, replay, and write down the results.

Started as ``python block_guest.py JOB``, where the job is a JSON file in a
folder that the guest shares with the machine; the answers go there too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any, Dict

from swift_dss.bench.block import targets

#: Between two phases, on the guest's clock: bcache adds its statistics up
#: every 13.6 s.
SETTLE_SECONDS = 30.0


def _look(target: targets.Target) -> Dict[str, Any]:
    return {'counters': target.counters(), 'disks': {
        os.path.basename(path): targets.disk(path)
        for path in target.disks()}}


def _replay(target: targets.Target, device: str, job: Dict[str, Any],
            phase: Dict[str, Any]) -> Dict[str, Any]:
    before = _look(target)
    done = subprocess.run(
        [job['driver'], device, phase['list'], phase['times'], job['state'],
         str(phase['threads']), str(phase['seconds'])],
        stdin=subprocess.DEVNULL, capture_output=True,
        text=True)
    if done.returncode not in (0, 1):
        raise targets.TargetFailed(done.stderr.strip())
    # Disks are looked at once: later moves do not belong to this phase.
    disks = _look(target)['disks']
    time.sleep(SETTLE_SECONDS)
    after = dict(_look(target), disks=disks)
    return {'name': phase['name'], 'summary': done.stdout,
            'before': before, 'after': after, 'status': target.detail()}


def main(path: str) -> int:
    """Do the job."""
    with open(path) as source:
        job: Dict[str, Any] = json.load(source)
    target = targets.TARGETS[job['setup']](job)
    report: Dict[str, Any] = {'phases': []}
    try:
        device = target.start()
        for phase in job['phases']:
            report['phases'].append(_replay(target, device, job, phase))
    except (targets.TargetFailed, OSError) as err:
        report['failure'] = str(err)
    with open(job['result'], 'w') as out:
        json.dump(report, out)
        out.flush()
        os.fsync(out.fileno())
    return 1 if 'failure' in report else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
