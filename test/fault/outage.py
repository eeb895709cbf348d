"""S3 goes away under a steady ingest, and comes back.

    python test/fault/outage.py [--faults refused,slow,...] [--budget 8m]
        [--rate 512k] [--object 64k] [--cycles 0] [--minutes 0]
        [--without-admission | --trusting]

A real cluster (three devices, three replicas, so that each device gets
every byte) writes to a real S3 server through a link that can be cut,
stalled and slowed, and a proxy that lies and throttles. For each way in
which S3 can be away: ingest at a fixed rate, classes in turn, until even
the top class is refused; then S3 returns, and the backlog drains while new
writes of the top class go on.

What must hold: the first refusal comes not before 0.95 of what budget and
rate say; the lowest class is refused first and the top class last; every
refusal is a 503 with Retry-After and none a time-out; nothing is hammered
when S3 is back; what is new then does not wait for the end of the backlog;
every acknowledged object is in S3, byte for byte. With ``--cycles`` S3 then
goes and comes that often, with kill -9 of the tier daemon thrown in.

The judge is a file of digests that nothing of ours reads, and the bucket.
``--without-admission`` is the wrong twin of the outage, ``--trusting`` the
one of the cycles: the campaign must fail with them.
"""

# long: one campaign, told in the order in which it happens.
from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional, Sequence

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from support import tier, wait_until
from support.edges.faulty_s3 import FaultyS3
from support.edges.wan_link import WanLink
from support.nodes.tuned_cluster import TunedCluster
from swiftclient import ClientException

from swift_dss.aio import configs, layout, processes

KIB, MIB = 1024, 1024 * 1024
#: Lowest first.
CLASSES = ('bulk', 'normal', 'alarm')
TABLE = ''.join(
    '[class:%d]\nname = %s\nrank = %d\nremote = through\n' % (
        number, name, rank) for number, name, rank in (
            (0, 'bulk', 0), (1, 'normal', 50), (2, 'alarm', 90)))
FAULTS = ('refused', 'hung', 'slow', 'throttled', 'lying', 'gone')
#: Those that S3 itself commits, by name of :mod:`support.edges.faulty_s3`.
ARMED = {'throttled': '503', 'gone': 'gone', 'lying': 'swallow'}
#: What a link is when it is "slow": far under any ingest.
SLOW_BYTES = 20 * KIB
BUCKET = 'outage'
#: In a cycle: how long an upload may be in coming, and how many PUTs a liar
#: has to swallow.
_MET_SECONDS = 60.0
_SWALLOWED = 3
#: A refusal is an answer and not a time-out: nothing near this.
REFUSAL_SECONDS = 10.0
#: So many requests at once may be among the first ones after an outage,
#: and one more for each that was answered: one upload, one delete, a bundle.
AT_ONCE = 3
FIRST_REQUESTS = 8
FIRST_SECONDS = 3.0


class Wrong(AssertionError):
    """What must hold did not."""


def require(holds: Any, text: str, *values: Any) -> None:
    """:raises Wrong: it does not hold"""
    if not holds:
        raise Wrong(text % values)


class Server:
    """The cluster's cloud as tests know S3 servers."""

    def __init__(self, conf: layout.AioConf) -> None:
        self.url = conf.cloud_url
        self.access_key = '%s:%s' % layout.CLOUD_USER[:2]
        self.secret_key = layout.CLOUD_USER[2]


class OutageCluster(TunedCluster):
    """A cluster whose gateway goes through the link."""

    def __init__(self, conf: layout.AioConf, url: str, budget: int,
                 admission: bool, trusting: bool = False) -> None:
        super().__init__(conf)
        self._trusting = trusting
        self._url = url
        self._budget = budget
        self._admission = admission
        self.options = {
            'tier': {'ssd_bytes': '0', 'interval_seconds': '1',
                     'clean_after_seconds': '86400',
                     'dirty_watermark': '1.0'},
            'gateway': {'url': url, 'dirty_bytes': str(budget),
                        'remote_after_seconds': '1',
                        'take_over_seconds': '20',
                        'delete_delay_seconds': '1',
                        'read_timeout_seconds': '3',
                        'connect_timeout_seconds': '1',
                        'throttle_seconds': '0.2'}}

    def spawn(self, name: str, procs: Optional[Sequence[str]] = None,
              arguments: Sequence[str] = (),
              extra_env: Optional[Dict[str, str]] = None) -> int:
        """The wrong twin's daemon is another one."""
        if name == 'tierd' and self._trusting:
            return processes.spawn(
                self.conf.root, name,
                os.path.join(self.conf.log, name + '.log'),
                [os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              'trusting_daemon.py'),
                 '--config', self.conf_file(name)], [], extra_env).pid
        return super().spawn(name, procs, arguments, extra_env)

    def _configure(self) -> None:
        super()._configure()
        changes = {'etc/dss-classes.conf': TABLE, 'etc/dss-rules.conf': ''}
        if not self._admission:
            with open(self.conf.path('etc', 'proxy-server.conf')) as source:
                proxy = source.read()
            changes['etc/proxy-server.conf'] = proxy.replace(
                'reload_interval = 1\n',
                'reload_interval = 1\nadmission = false\n')
        configs.write(self.conf, changes)


@dataclass
class Put:
    """One write and its answer."""

    name: str
    class_name: str
    begun: float
    seconds: float
    status: int
    retry_after: Optional[str] = None


@dataclass
class Figures:
    """What one outage showed."""

    fault: str
    budget_bytes: int = 0
    bytes_per_second: float = 0.0
    expected_seconds: float = 0.0
    #: Of the rate, what the writers really did until the first refusal.
    rate_held: float = 0.0
    first_refusal_seconds: Dict[str, float] = field(default_factory=dict)
    #: The first of them, to what budget and rate say.
    refusal_ratio: float = 0.0
    accepted_bytes_before: int = 0
    accepted: int = 0
    refused: int = 0
    slowest_refusal_seconds: float = 0.0
    retry_after: Dict[int, int] = field(default_factory=dict)
    fired: int = 0
    first_seconds_requests: int = 0
    first_requests_at_once: int = 0
    s3_retry_after: str = ''
    drained_seconds: float = 0.0
    drain_displacement: float = 0.0
    top_during_drain: int = 0
    top_refused_during_drain: int = 0
    new_write_in_s3_seconds: float = 0.0
    lost: int = 0


class Campaign:
    """One cluster and what was acknowledged.

    :param cluster: what :class:`layout.AioConf` has otherwise than others
    """

    #: Of what budget and rate say, what must have been before a refusal.
    least = 0.95

    def __init__(self, budget: int, rate: float, size: int,
                 admission: bool = True, trusting: bool = False,
                 **cluster: Any) -> None:
        self.budget, self.rate, self.size = budget, rate, size
        self.acknowledged: Dict[str, str] = {}
        self._lock = threading.Lock()
        self._number = 0
        self._local = threading.local()
        root = tempfile.mkdtemp(prefix='dss-out-', dir='/var/tmp')
        self.conf = layout.AioConf(
            root=root, storage='folders', devices=3, background=False,
            base_port=processes.free_base_port(layout.PORTS, first=21080),
            **cluster)
        self.faulty = FaultyS3(Server(self.conf))
        self.link = WanLink(self.faulty)
        self.cluster = OutageCluster(self.conf, self.link.url, budget,
                                     admission, trusting)
        try:
            self.cluster.start()
        except BaseException:
            self.close()
            raise
        swift = self.cluster.connection()
        swift.put_container(BUCKET)
        swift.close()

    def close(self) -> None:
        """Leave nothing."""
        self.cluster.stop()
        self.link.stop()
        self.faulty.stop()
        shutil.rmtree(self.conf.root, ignore_errors=True)

    # -- faults ----------------------------------------------------------

    def begin(self, fault: str) -> Any:
        """S3 goes away; what counts how often that was met."""
        if fault == 'refused':
            self.link.cut()
        elif fault == 'hung':
            self.link.stall()
        elif fault == 'slow':
            self.link.set_rate(SLOW_BYTES)
        else:
            return self.faulty.arm(
                ARMED[fault], lambda request: fault != 'lying'
                or request.method == 'PUT', times=0)
        return None

    def end(self) -> None:
        """S3 is back."""
        self.faulty.disarm()
        self.link.set_rate(0)
        self.link.flow()
        if self.link.is_cut:
            self.link.mend()

    # -- traffic ---------------------------------------------------------

    def put(self, class_name: str, size: Optional[int] = None) -> Put:
        """One write, without retries."""
        with self._lock:
            self._number += 1
            name = '%s-%06d' % (class_name, self._number)
        body = os.urandom(size or self.size)
        swift = getattr(self._local, 'swift', None)
        if swift is None:
            swift = self._local.swift = self.cluster.connection()
            swift.retries = 0
        begun = time.monotonic()
        try:
            swift.put_object(BUCKET, name, body, headers={
                'X-DSS-Object-Class': class_name})
            made = Put(name, class_name, begun, time.monotonic() - begun, 201)
            with self._lock:
                self.acknowledged[name] = hashlib.md5(body).hexdigest()
        except ClientException as err:
            headers = {key.lower(): value for key, value in (
                err.http_response_headers or {}).items()}
            made = Put(name, class_name, begun, time.monotonic() - begun,
                       err.http_status or 0, headers.get('retry-after'))
        return made

    def ingest(self, seconds: float) -> List[Put]:
        """Writes at the fixed rate, classes in turn; ends once every class
        was refused."""
        done: List[Put] = []
        refused: Dict[str, int] = {}
        step = self.size / self.rate
        started = time.monotonic()

        def put(class_name: str) -> None:
            made = self.put(class_name)
            done.append(made)
            if made.status != 201:
                refused[class_name] = refused.get(class_name, 0) + 1

        with ThreadPoolExecutor(8) as pool:
            number = 0
            while time.monotonic() - started < seconds and \
                    len(refused) < len(CLASSES):
                at = started + number * step
                time.sleep(max(0.0, at - time.monotonic()))
                pool.submit(put, CLASSES[number % len(CLASSES)])
                number += 1
        return done

    # -- looking ---------------------------------------------------------

    def _gateway(self) -> Dict[str, Any]:
        status: Dict[str, Any] = tier(self.cluster, 'status')['gateway']
        return status

    def settled(self) -> bool:
        """All that waits is in S3."""
        gateway = self._gateway()
        return not (gateway['uploads'] or gateway['uploading'])

    def pending(self) -> int:
        """Bytes that wait, on the fullest device."""
        return max(device['pressure']['backlog']['pending_bytes']
                   for device in tier(self.cluster, 'status')['devices'])

    def lost(self) -> List[str]:
        """Acknowledged and not readable, or not in the bucket."""
        swift = self.cluster.connection()
        missing = [name for name, digest in self.acknowledged.items()
                   if hashlib.md5(swift.get_object(BUCKET, name)[1]
                                  ).hexdigest() != digest]
        swift.close()
        digests = self._bucket_digests()
        return missing + [name for name, digest in
                          self.acknowledged.items()
                          if digest not in digests]

    def _bucket_digests(self) -> Dict[str, str]:
        import boto3
        from botocore.config import Config
        client = boto3.client(
            's3', endpoint_url=self.conf.cloud_url,
            region_name='us-east-1',
            aws_access_key_id=self.faulty.access_key,
            aws_secret_access_key=self.faulty.secret_key,
            config=Config(s3={'addressing_style': 'path'}))
        digests = {}
        for page in client.get_paginator('list_objects_v2').paginate(
                Bucket=layout.CLOUD_BUCKET):
            for item in page.get('Contents', ()):
                body = client.get_object(
                    Bucket=layout.CLOUD_BUCKET,
                    Key=item['Key'])['Body'].read()
                digests[hashlib.md5(body).hexdigest()] = item['Key']
        return digests

    # -- one outage ------------------------------------------------------

    def outage(self, fault: str) -> Figures:
        """Away, full, back, empty."""
        wait_until(lambda: self.settled() and self.pending() == 0, 120,
                   'an empty backlog')
        figures = Figures(fault, self.budget, self.rate,
                          self.budget / self.rate)
        armed = self.begin(fault)
        if fault in ('refused', 'hung', 'throttled', 'gone'):
            # The first write's upload finds out; all others are counted
            # from a known state.
            self.put('bulk', 1000)
        accepted_before = self.link.accepted
        started = time.monotonic()
        puts = self.ingest(4 * figures.expected_seconds + 30)
        self._judge_ingest(figures, puts, started)
        figures.s3_retry_after = self._through_s3()
        require(figures.s3_retry_after.isdigit(),
                '%s: an S3 client got no Retry-After', fault)
        figures.fired = armed.fired if armed else int(
            not self.settled())
        require(figures.fired, '%s: the fault never fired', fault)
        require(fault != 'slow' or self.link.accepted > accepted_before
                or self.link.up_gate.passed, 'nothing went by')
        before = len(self.faulty.requests)
        self.end()
        returned = time.monotonic()
        drained = self._drain(figures, returned)
        self._judge_return(figures, before, returned)
        self._judge_new(figures, drained, before)
        figures.drain_displacement = self._displacement(before, time.time()
                                                        - time.monotonic()
                                                        + returned)
        require(figures.drain_displacement < 0.5,
                '%s: the backlog did not drain in order', fault)
        lost = self.lost()
        figures.lost = len(lost)
        require(not lost, '%s: lost %s', fault, lost[:3])
        return figures

    def _through_s3(self) -> str:
        """Retry-After that an S3 client gets for the lowest class; ''."""
        import boto3
        from botocore.config import Config
        from botocore.exceptions import ClientError
        client = boto3.client(
            's3', endpoint_url=self.conf.s3_url, region_name='us-east-1',
            aws_access_key_id='test:tester',
            aws_secret_access_key='testing',
            config=Config(s3={'addressing_style': 'path'},
                          retries={'total_max_attempts': 1}))
        try:
            client.put_object(Bucket=BUCKET, Key='through-s3',
                              Body=b'x' * self.size,
                              Metadata={'dss-class': CLASSES[0]})
        except ClientError as err:
            said = err.response['ResponseMetadata']
            require(said['HTTPStatusCode'] == 503, 'S3: %s', said)
            return str(said['HTTPHeaders'].get('retry-after', ''))
        return ''

    def _judge_return(self, figures: Figures, before: int,
                      returned: float) -> None:
        """Was S3 hammered? Requests that hung are not new ones."""
        new = [request for request in self.faulty.requests[before:]
               if figures.fault != 'hung' or request.connected > returned]
        figures.first_seconds_requests = sum(
            request.at < returned + FIRST_SECONDS for request in new)
        figures.first_requests_at_once = max(
            [sum(transfer.at <= request.at < transfer.ended
                 for transfer in new)
             for request in new[:FIRST_REQUESTS]] or [0])
        # Every answer lets one more go. On a slow link transfers were under
        # way all the time.
        require(figures.fault == 'slow' or all(
            sum(transfer.at <= request.at < transfer.ended for transfer in new)
            <= AT_ONCE + sum(transfer.ended <= request.at for transfer in new)
            for request in new[:FIRST_REQUESTS]),
                '%s: %d requests at once when S3 was back', figures.fault,
                figures.first_requests_at_once)

    def _judge_new(self, figures: Figures, puts: List[Put],
                   before: int) -> None:
        """Did what was written while the backlog drained wait for it?"""
        hash_of = {row['name'].rpartition('/')[2]: row['hash']
                   for row in tier(self.cluster, 'ls')}
        at = {}
        for request in self.faulty.requests[before:]:
            parts = request.key.split('/')
            # A record of the bucket, as of its owner, is of no object.
            if request.method == 'PUT' and len(parts) > 1:
                at.setdefault(parts[-2], request.at)
        waits = sorted(at[hash_of[put.name]] - put.begun for put in puts
                       if hash_of.get(put.name) in at)
        require(waits, '%s: no new write of the top class came in during '
                'the drain', figures.fault)
        figures.new_write_in_s3_seconds = waits[len(waits) // 2]
        require(waits[len(waits) // 2] < max(
            10.0, figures.drained_seconds / 2),
                '%s: new writes waited %.1f s for the backlog',
                figures.fault, waits[len(waits) // 2])

    def _displacement(self, since: int, returned_at: float) -> float:
        """How far the upload that was furthest out of the order of age
        was, as a share of its class's backlog; the worst class.

        Keys end with the object's hash and the time of its PUT.
        """
        class_of = {row['hash']: row['name'].rpartition('/')[2].partition(
            '-')[0] for row in tier(self.cluster, 'ls')}
        sent: Dict[str, List[float]] = {}
        for request in self.faulty.requests[since:]:
            parts = request.target.partition('?')[0].split('/')
            if request.method != 'PUT' or parts[-2] not in class_of:
                continue
            times = sent.setdefault(class_of[parts[-2]], [])
            with contextlib.suppress(ValueError):  # a side car
                at = float(parts[-1])
                if at < returned_at and at not in times:
                    times.append(at)
        worst = 0.0
        for times in sent.values():
            places = {at: place for place, at in enumerate(sorted(times))}
            worst = max([worst] + [
                abs(place - places[at]) / len(times)
                for place, at in enumerate(times)])
        return worst

    def _judge_ingest(self, figures: Figures, puts: List[Put],
                      started: float) -> None:
        for put in puts:
            if put.status == 201:
                figures.accepted += 1
                continue
            figures.refused += 1
            require(put.status == 503 and (put.retry_after or '').isdigit(),
                    '%s: %s was answered %s, Retry-After %s', figures.fault,
                    put.name, put.status, put.retry_after)
            after = int(put.retry_after or 0)
            figures.retry_after[after] = figures.retry_after.get(
                after, 0) + 1
            figures.slowest_refusal_seconds = max(
                figures.slowest_refusal_seconds, put.seconds)
            at = put.begun - started
            figures.first_refusal_seconds[put.class_name] = min(
                figures.first_refusal_seconds.get(put.class_name, at), at)
        first = figures.first_refusal_seconds
        require(set(first) == set(CLASSES), '%s: refused only %s',
                figures.fault, sorted(first))
        figures.accepted_bytes_before = self.size * sum(
            put.status == 201 and put.begun - started < min(first.values())
            for put in puts)
        figures.refusal_ratio = round(
            min(first.values()) / figures.expected_seconds, 3)
        figures.rate_held = round(
            self.size * sum(put.begun - started < min(first.values())
                            for put in puts)
            / min(first.values()) / self.rate, 3)
        require(figures.accepted_bytes_before >= (self.least - 0.05)
                * self.budget,
                '%s: refused with %d of %d bytes taken', figures.fault,
                figures.accepted_bytes_before, self.budget)
        require(min(first.values()) >= self.least * figures.expected_seconds,
                '%s: the first refusal came after %.1f s, and budget and '
                'rate say %.1f', figures.fault, min(first.values()),
                figures.expected_seconds)
        order = sorted(first, key=lambda name: first[name])
        require(order[0] == CLASSES[0] and order[-1] == CLASSES[-1],
                '%s: refused in the order %s', figures.fault, order)
        require(figures.slowest_refusal_seconds < REFUSAL_SECONDS,
                '%s: a refusal took %.1f s', figures.fault,
                figures.slowest_refusal_seconds)

    def _drain(self, figures: Figures, returned: float) -> List[Put]:
        """Until nothing waits; writes of the top class that came in
        meanwhile."""
        taken: List[Put] = []

        def drained() -> bool:
            made = self.put(CLASSES[-1], 16000)
            figures.top_during_drain += 1
            figures.top_refused_during_drain += made.status != 201
            if made.status == 201:
                taken.append(made)
            time.sleep(0.3)
            return self.pending() < self.budget // 4

        wait_until(drained, 300, 'the backlog drains')
        wait_until(lambda: self.settled() and self.pending() == 0, 300,
                   'the backlog is empty')
        figures.drained_seconds = time.monotonic() - returned
        return taken

    # -- many ------------------------------------------------------------

    def _kill(self) -> None:
        """The tier daemon dies, objects come in, it starts again."""
        processes.kill(self.conf.root, ['tierd'])
        self.put(CLASSES[-1], 20000)
        try:
            self.cluster.restart('tierd')
        except processes.StartFailed:
            # A machine that is at work for others.
            wait_until(self._answers, 180, 'the daemon answers')

    def _answers(self) -> bool:
        try:
            return bool(tier(self.cluster, 'status'))
        except (AssertionError, OSError):
            return False

    def _meets(self, fault: str, armed: Any, before: str,
               passed: int) -> bool:
        """The gateway meets this fault, or nothing of it for a while.

        :param before: the error that it told of before
        :param passed: bytes that the link had carried before
        """
        def met() -> bool:
            if armed is not None:
                return bool(armed.fired >= _SWALLOWED
                            if fault == 'lying' else armed.fired)
            if fault == 'slow':
                return self.link.up_gate.passed > passed
            status = self._gateway()
            return status['last_error'] not in ('', before) or \
                fault == 'hung' and bool(status['uploading'])

        try:
            wait_until(met, _MET_SECONDS, 'the fault is met')
        except AssertionError:
            return False
        return True

    def cycles(self, count: int, minutes: float = 0.0) -> Dict[str, Any]:
        """S3 goes and comes, and the tier daemon is killed in between.

        :param minutes: end after so many, and tell how often that was
        """
        kills = 0
        fired = dict.fromkeys(FAULTS, 0)
        started = time.monotonic()
        done = 0
        for number in range(count):
            if minutes and time.monotonic() - started > 60 * minutes:
                break
            done += 1
            fault = FAULTS[number % len(FAULTS)]
            before = self._gateway()['last_error']
            passed = self.link.up_gate.passed
            armed = self.begin(fault)
            for step in range(4):
                self.put(CLASSES[step % len(CLASSES)], 20000)
            # The other half of the kills meets an S3 that is there.
            if number % 4 == 1:
                self._kill()
                kills += 1
            fired[fault] += self._meets(fault, armed, before, passed)
            self.end()
            for step in range(2):
                self.put(CLASSES[step % len(CLASSES)], 20000)
            if number % 4 == 3:
                self._kill()
                kills += 1
        require(all(fired[fault] for fault in FAULTS[:done]),
                'some faults never fired: %s', fired)
        wait_until(lambda: self.settled() and self.pending() == 0, 400,
                   'everything is in S3')
        lost = self.lost()
        require(not lost, 'lost after %d cycles: %s', done, lost[:3])
        return {'cycles': done, 'kills': kills, 'lost': len(lost),
                'cycles_with_fault': sum(fired.values()), 'fired': fired,
                'acknowledged': len(self.acknowledged),
                'seconds': time.monotonic() - started}


def size(text: str) -> int:
    """``24m``, ``256k`` or a number."""
    unit = {'k': KIB, 'm': MIB}.get(text[-1].lower())
    return int(float(text[:-1]) * unit) if unit else int(text)


def main(argv: Optional[List[str]] = None) -> int:
    """The command; 1 if something that must hold did not."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--faults', default=','.join(FAULTS))
    parser.add_argument('--budget', type=size, default=8 * MIB)
    parser.add_argument('--rate', type=size, default=512 * KIB)
    parser.add_argument('--object', type=size, default=64 * KIB)
    parser.add_argument('--cycles', type=int, default=0)
    parser.add_argument('--minutes', type=float, default=0.0,
                        help='of cycles, at most about; 0 is no limit')
    twins = parser.add_mutually_exclusive_group()
    twins.add_argument('--without-admission', action='store_true')
    twins.add_argument('--trusting', action='store_true')
    args = parser.parse_args(argv)
    # A time limit from outside must not leave a cluster behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    campaign = Campaign(args.budget, args.rate, args.object,
                        not args.without_admission, args.trusting)
    try:
        for fault in filter(None, args.faults.split(',')):
            print(json.dumps(asdict(campaign.outage(fault)),
                             sort_keys=True), flush=True)
        if args.cycles:
            print(json.dumps(campaign.cycles(args.cycles, args.minutes),
                             sort_keys=True))
    except Wrong as err:
        print('wrong: %s' % err)
        return 1
    finally:
        campaign.close()
    return 0


if __name__ == '__main__':
    sys.exit(main())
