"""In a guest of the lab: one trace through dm-dss, and its counters.

``python enforcer_guest.py JOB``: started by ``three_enforcers.py``, which
writes the job and reads the answers.
"""

import json
import os
import subprocess
import sys

TARGET = 'enforcer'
#: Sectors of superblock, table and alignment that a first guess allows.
SLACK = 4096
ATTEMPTS = 12


def call(*words):
    # The guest has no udev: dmsetup makes the nodes itself.
    done = subprocess.run(words, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, DM_DISABLE_UDEV='1'))
    output = done.stdout.decode('utf-8', 'replace')
    if done.returncode:
        raise SystemExit('%s: %s' % (' '.join(words), output))
    return output


def create(name, sectors, rest):
    call('dmsetup', 'create', name, '--noudevsync', '--noudevrules',
         '--table', '0 %d %s' % (sectors, rest))
    return '/dev/mapper/' + name


def remove(name):
    call('dmsetup', 'remove', '--noudevsync', '--noudevrules', name)


def slots_of(status):
    """``<start> <length> dss <version> ... <used>/<slots>``."""
    return int(next(word for word in status.split()[3:]
                    if '/' in word).split('/')[1])


def start(job):
    """The target with exactly as many slots as the others have."""
    chunk = job['chunk_sectors']
    sectors = job['slots'] * chunk + SLACK
    for _attempt in range(ATTEMPTS):
        ssd = create('exact', sectors, 'linear %s 0' % job['ssd'])
        path = create(TARGET, job['origin_chunks'] * chunk,
                      'dss %s %s %d 7 writethrough %s meta_class 255 '
                      'idle_ms 0 format' % (
                          ssd, job['hdd'], chunk, job['strategy']))
        slots = slots_of(call('dmsetup', 'status', TARGET))
        if slots == job['slots']:
            call('dmsetup', 'message', TARGET, '0', *job['classes'])
            return path
        remove(TARGET)
        remove('exact')
        sectors += (job['slots'] - slots) * chunk
    raise SystemExit('no SSD has exactly %d slots' % job['slots'])


def main(path):
    with open(path) as source:
        job = json.load(source)
    device = start(job)
    answers = {'summary': call(
        job['driver'], device, job['list'], job['times'], job['state'],
        '1', '0')}
    answers['stats'] = call('dmsetup', 'message', TARGET, '0', 'stats')
    answers['status'] = call('dmsetup', 'status', TARGET)
    call('dmsetup', 'message', TARGET, '0', 'check')
    with open(job['result'], 'w') as out:
        json.dump(answers, out)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
