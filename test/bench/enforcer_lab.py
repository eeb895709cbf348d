"""The third enforcer: a trace as I/O on dm-dss, in a guest of the lab."""

import json
import pathlib
import tempfile

from support.chunk_oracle import enforcers
from swift_dss.bench.block import driver
from swift_dss.block import lab, table

GUEST = pathlib.Path(__file__).with_name('enforcer_guest.py')
#: Real time that a guest may take for one trace.
LAB_SECONDS = 3600
#: Of the guest's clock, before each request: what the one before it left
#: to do behind its answer is done. A victim that is still being filled is
#: not taken, which the other two know nothing of.
PAUSE_NS = 1000


def by_module(trace, scenario):
    """dm-dss in a guest of the lab: each request is an I/O there."""
    with tempfile.TemporaryDirectory(prefix='dss-enforcer-') as folder:
        job = module_job(trace, scenario, pathlib.Path(folder))
        ended = lab.run(
            str(GUEST), [str(job)], devices=['ssd=raw:512M', 'hdd=raw:2G'],
            modules=['dm-dss'], memory='3G', timeout=LAB_SECONDS,
            shares=[folder], say=print)
        if ended.status or ended.complaints:
            raise SystemExit('the guest ended with %d: %s%s%s' % (
                ended.status, ended.output,
                ended.stderr.decode('utf-8', 'replace'),
                '\n'.join(ended.complaints)))
        return module_outcome(job, ended.real_seconds)


def module_job(trace, scenario, folder):
    """Write what the guest needs into ``folder``."""
    chunk = enforcers.CHUNK_SECTORS
    path = {name: str(folder / name) for name in (
        'list', 'times', 'state', 'result')}
    (folder / 'list').write_bytes(driver.encode(
        driver.Request(
            oblock * chunk * 512, chunk * 512, class_id,
            driver.WRITE if write else 0, PAUSE_NS)
        for class_id, oblock, write in trace))
    job = folder / 'job'
    job.write_text(json.dumps(dict(
        path, driver=driver.build(print), slots=trace.slots,
        origin_chunks=trace.origin_chunks(), chunk_sectors=chunk,
        strategy=scenario.mode.name.lower(),
        classes=table.classes_message(
            scenario.change(trace.rows)).split(),
        ssd='/dev/mapper/ssd', hdd='/dev/mapper/hdd',
        class_ids=sorted(trace.rows))))
    return job


def module_outcome(job, seconds):
    """The module's counters in the form of the others'."""
    told = json.loads(job.read_text())
    answers = json.loads(pathlib.Path(told['result']).read_text())
    summary = json.loads(answers['summary'])
    if summary['wrong'] or summary['failed']:
        raise SystemExit('the driver met wrong bytes: %s' % summary)
    counters = table.parse_stats(answers['stats']).classes
    counts = {}
    for class_id in told['class_ids']:
        row = counters.get(class_id, {})
        counts[str(class_id)] = {
            name.replace('_', ' ', 1): number
            for name, number in row.items() if number and (
                name in ('misses', 'takes', 'resident', 'dirty')
                or name.startswith(('bypass_', 'evicted_')))}
        hits = row.get('read_hits', 0) + row.get('write_hits', 0)
        if hits:
            counts[str(class_id)]['hits'] = hits
    return enforcers.Outcome(counts, '', seconds)
