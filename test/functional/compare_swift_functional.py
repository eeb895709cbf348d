#!/usr/bin/env python3
"""Run Swift's own functional tests with us and without us, and compare.

The tests are those of the installed Swift release, from its source
distribution. Each side gets a cluster of its own, alike but for us: ours
has the dss filter in the pipeline and our diskfiles under the default
policy, the plain one is stock Swift. The sets of passed, failed and
skipped tests must be the same (R32).

    python test/functional/compare_swift_functional.py           all
    python test/functional/compare_swift_functional.py --quick   a subset

Exit code 0: the same set. The last line is the figure to report.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from importlib import metadata
from typing import Dict, List, Sequence

from swift_dss.aio import layout, processes, storage
from swift_dss.aio.cluster import Cluster

#: What the quick comparison runs: plain, large and multipart objects.
QUICK = ('test/functional/test_object.py', 'test/functional/test_dlo.py',
         'test/functional/s3api/test_multi_upload.py')

TEST_CONF = '''[func_test]
auth_uri = http://127.0.0.1:%(port)d/auth/v1.0
s3_storage_url = http://127.0.0.1:%(port)d/
s3_region = us-east-1
account = test
username = tester
password = testing
s3_access_key = test:tester
s3_secret_key = testing
account2 = test2
username2 = tester2
password2 = testing2
username3 = tester3
password3 = testing3
s3_access_key2 = test:tester2
s3_secret_key2 = testing2
s3_access_key3 = test:tester3
s3_secret_key3 = testing3
account6 = admin
username6 = admin
password6 = admin
collate = C
insecure = no
'''

GIB = 1 << 30


def main() -> int:
    """Both sides, one after the other; the comparison at the end."""
    args = _arguments()
    source = swift_source(args.cache, args.sdist)
    tests = list(args.tests or (QUICK if args.quick else
                                ('test/functional',)))
    results = {}
    for side in ('ours', 'plain'):
        begin = time.monotonic()
        results[side] = run_side(side, args.policy, source, tests)
        print('%-5s %s in %.0f s' % (
            side, summary(results[side]), time.monotonic() - begin),
            flush=True)
    return report(results['ours'], results['plain'], args.policy)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--quick', action='store_true',
                        help='only %d of the files' % len(QUICK))
    parser.add_argument('--policy', default='dss',
                        choices=('dss', 'dss-ec'),
                        help='which diskfile is under the default policy')
    parser.add_argument('--sdist', help='Swift\'s source distribution, if '
                        'it is here already')
    parser.add_argument('--cache', default=os.path.join(
        os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'),
        'swift-dss'), help='where it is unpacked (%(default)s)')
    parser.add_argument('tests', nargs='*', metavar='TEST',
                        help='which tests, as pytest is told')
    return parser.parse_args()


def swift_source(cache: str, sdist: str) -> str:
    """Folder of the source of the Swift release that is installed."""
    version = metadata.version('swift')
    folder = os.path.join(cache, 'swift-' + version)
    if os.path.isdir(os.path.join(folder, 'test', 'functional')):
        return folder
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        if not sdist:
            subprocess.run(
                [sys.executable, '-m', 'pip', 'download', '-q', '--no-deps',
                 '--no-binary', ':all:', '--dest', scratch,
                 'swift==' + version],
                check=True, stdin=subprocess.DEVNULL)
            sdist = os.path.join(scratch, 'swift-%s.tar.gz' % version)
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(os.path.join(scratch, 'swift-' + version), folder)
    return folder


def run_side(side: str, policy: str, source: str,
             tests: Sequence[str]) -> Dict[str, str]:
    """Test -> ``passed``, ``failed`` or ``skipped`` on a new cluster."""
    root = tempfile.mkdtemp(prefix='dss-cmp-', dir='/var/tmp')
    # Sparse, and larger than the largest object allowed: one test sends a
    # Content-Length of 5 GiB, for which Swift reserves room.
    conf = layout.AioConf(
        root=root, base_port=processes.free_base_port(
            layout.PORTS, first=19080),
        storage='folders' if storage.why_no_loops() else 'loops',
        ssd_bytes=16 * GIB, hdd_bytes=16 * GIB, ssd_budget_bytes=0,
        hdd_iops=0, background=False, plain=side == 'plain',
        default_policy=policy)
    cluster = Cluster(conf, lambda line: print(
        '%-5s %s' % (side, line), flush=True))
    cluster.start()
    try:
        return run_tests(cluster, source, tests)
    finally:
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)


def run_tests(cluster: Cluster, source: str,
              tests: Sequence[str]) -> Dict[str, str]:
    """The verdict on every test."""
    conf = cluster.conf
    conf_file = conf.path('test.conf')
    with open(conf_file, 'w') as out:
        out.write(TEST_CONF % {'port': conf.proxy_port})
    xml = conf.path('junit.xml')
    env = dict(os.environ, SWIFT_TEST_CONFIG_FILE=conf_file)
    # Swift's files do not all have pytest's names: without the pattern a
    # fifth of the tests would silently be left out.
    command = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider',
               '-W', 'ignore', '-o', 'python_files=test*.py',
               '--tb=short', '--junitxml=' + xml] + list(tests)
    log = os.path.join(conf.log, 'swift-functional.log')
    with open(log, 'wb') as out:
        done = subprocess.run(command, cwd=source, env=env, stdout=out,
                              stderr=out, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 1) or not os.path.exists(xml):
        raise SystemExit('pytest ended with %d:\n%s' % (
            done.returncode, processes.tail(log)))
    results = verdicts(xml)
    if done.returncode:
        print(processes.tail(log, 200), flush=True)
    return results


def verdicts(xml: str) -> Dict[str, str]:
    """What a JUnit file says about each test."""
    by_test: Dict[str, str] = {}
    for case in ElementTree.parse(xml).iter('testcase'):
        verdict = 'passed'
        for child in case:
            if child.tag in ('failure', 'error'):
                verdict = 'failed'
            elif child.tag == 'skipped':
                verdict = 'skipped'
        by_test['%s::%s' % (case.get('classname'), case.get('name'))] = verdict
    return by_test


def summary(verdict_of: Dict[str, str]) -> str:
    """Counts, in pytest's order."""
    counts: List[str] = []
    values = list(verdict_of.values())
    for verdict in ('passed', 'failed', 'skipped'):
        counts.append('%d %s' % (values.count(verdict), verdict))
    return ', '.join(counts)


def report(ours: Dict[str, str], plain: Dict[str, str],
           policy: str) -> int:
    """Print differences and the figure; 0 if there are none."""
    different = [
        (test, ours.get(test, 'absent'), plain.get(test, 'absent'))
        for test in sorted(set(ours) | set(plain))
        if ours.get(test) != plain.get(test)]
    for test, with_us, without in different:
        print('%s: %s with us, %s without' % (test, with_us, without))
    print('with us:    %s' % summary(ours))
    print('without us: %s' % summary(plain))
    print('R32: %d tests on policy %s, same set: %s' % (
        len(ours), policy, 'no' if different else 'yes'))
    return 1 if different else 0


if __name__ == '__main__':
    sys.exit(main())
