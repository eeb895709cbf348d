"""The demonstration: classified objects all the way to S3 and back.

Everything that it prints is read from the disks and from S3, and every
statement of success is a comparison that could have failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from typing import Any, Callable, Dict, List, Sequence, Tuple

from swift_dss.aio import clients, survey, tables
from swift_dss.aio.cluster import Cluster
from swift_dss.aio.layout import CLOUD_BUCKET, CLOUD_USER
from swift_dss.aio.processes import wait
from swift_dss.aio.survey import Replica, Share
from swift_dss.bench import cacs
from swift_dss.bench.cluster import samples
from swift_dss.bench.cluster.samples import Placed
from swift_dss.core import limits
from swift_dss.core.errors import DamagedRecord, DssError
from swift_dss.core.residency import Tier
from swift_dss.wire.node import pressure

Say = Callable[[str], None]

#: How much of the sample is uploaded before there is pressure.
FIRST_SHARE = 0.4

DEADLINE_SECONDS = 120.0


class DemoFailed(DssError):
    """Something did not come out as it must."""

    exit_code = 1


class Demo:
    """One run on a running cluster.

    :param say: gets a line for each step
    :param show: gets the lines of tables
    """

    def __init__(self, cluster: Cluster, say: Say,
                 show: Say = print) -> None:
        self._cluster = cluster
        self._conf = cluster.conf
        self._say = say
        self._show = show
        self._classes = tables.read_classes(cluster.conf)
        self._sample = samples.sample()

    def run(self) -> None:
        """Run all steps in order.

        :raises DemoFailed: a byte or a digest is wrong
        """
        self._prepare()
        first = int(len(self._sample) * FIRST_SHARE)
        self._upload(self._sample[:first])
        self._table('They fit the SSDs')
        self._upload(self._sample[first:])
        self._await_no_pressure()
        after = self._table('Under pressure, the lowest class has left first')
        self._show_order(after)
        self._await_remote()
        self._drop()
        self._table('Local bytes dropped, after S3 was asked for every copy')
        self._read_back()
        self._table('Read back, and refilled by it')
        self._say('done: %d objects, 0 differences' % len(self._sample))

    # -- in --------------------------------------------------------------

    def _prepare(self) -> None:
        connection = self._cluster.connection()
        try:
            for name, policy in samples.CONTAINERS.items():
                connection.put_container(
                    name, headers={'X-Storage-Policy': policy})
            self._install_rules(connection)
        finally:
            connection.close()

    def _install_rules(self, connection: Any) -> None:
        with open(self._conf.path('etc', 'dss-rules.conf'), 'w') as out:
            out.write(samples.rules())
        kind = cacs.KINDS[0]

        def in_force() -> bool:
            connection.put_object('cacs-rules', 'probe', b'x',
                                  content_type=kind.content_type)
            headers = connection.head_object('cacs-rules', 'probe')
            return 'x-dss-object-class' in headers
        if not wait(in_force, 15.0):
            raise DemoFailed('the proxy does not take the new rules')
        connection.delete_object('cacs-rules', 'probe')
        self._say('rules are in force, without a restart')

    def _upload(self, part: Sequence[Placed]) -> None:
        total = sum(item.obj.size for item in part)
        begin = said = time.monotonic()
        for number, (item, etag) in enumerate(
                samples.upload(self._cluster.connection, part), 1):
            if etag != cacs.digest(item.obj):
                raise DemoFailed('%s: uploaded %s, stored %s' % (
                    item.obj.name, cacs.digest(item.obj), etag))
            if time.monotonic() - said >= 2.0:
                said = time.monotonic()
                self._say('uploading: %d of %d objects' % (
                    number, len(part)))
        self._say('uploaded %d objects, %s, in %.1f s' % (
            len(part), survey.mib(total), time.monotonic() - begin))

    # -- down ------------------------------------------------------------

    def _await_no_pressure(self) -> None:
        """Until no SSD is over the mark where eviction starts."""
        begin = time.monotonic()

        def relieved() -> bool:
            return not self._devices_over()
        if not wait(relieved, DEADLINE_SECONDS):
            raise DemoFailed('still over the high watermark: %s'
                             % ', '.join(self._devices_over()))
        self._say('every SSD is below its high watermark, after %.1f s'
                  % (time.monotonic() - begin))

    def _devices_over(self) -> List[str]:
        tier = self._cluster.conf
        used = Counter()  # type: Counter[str]
        for replica in self._ours():
            used[replica.device] += replica.residency.bytes_on(Tier.SSD)
        over = []
        for device in tier.device_names:
            path = tier.path('run', 'state', device + '.json')
            try:
                with open(path, 'rb') as source:
                    high = pressure.decode(source.read()).high_bytes
            except (OSError, DamagedRecord):
                return [device]
            if used[device] > high:
                over.append(device)
        return over

    def _show_order(self, shares: Dict[int, Share]) -> None:
        """Which part of each class left, lowest rank in front."""
        parts: List[Tuple[str, float]] = []
        for spec in self._classes.in_eviction_order():
            share = shares.get(spec.class_id)
            if share and share.total:
                parts.append((spec.name,
                              100.0 * (1 - share.ssd / share.total)))
        self._say('left the SSDs, lowest rank first: %s' % ', '.join(
            '%s %d %%' % part for part in parts))

    # -- out -------------------------------------------------------------

    def _await_remote(self) -> None:
        """Until every replica knows of a verified copy in S3."""
        begin = said = time.monotonic()
        while True:
            replicas = self._ours()
            without = sum(1 for replica in replicas
                          if replica.residency.remote is None
                          and replica.content_length)
            if not without:
                break
            if time.monotonic() - begin > DEADLINE_SECONDS:
                raise DemoFailed('%d of %d replicas have no copy in S3' % (
                    without, len(replicas)))
            if time.monotonic() - said >= 2.0:
                said = time.monotonic()
                self._say('to S3: %d of %d replicas verified' % (
                    len(replicas) - without, len(replicas)))
            wait(lambda: False, 0.5)
        self._say('all %d replicas have a verified copy in S3, after %.1f s'
                  % (len(replicas), time.monotonic() - begin))

    def _drop(self) -> None:
        """Take every local byte, as an operator would."""
        replicas = self._ours()
        self._check_cloud(replicas)
        self._say('S3 lists every copy with its full length')
        for name in samples.CONTAINERS:
            self._tier('demote', '--to', 'remote', '--container',
                       'AUTH_test/' + name)
        left = [replica for replica in self._ours()
                if replica.content_length > limits.DEFAULT_MIN_DEMOTE_BYTES
                and replica.residency.tiers & ~Tier.REMOTE]
        if left:
            raise DemoFailed('%d replicas still have local bytes, such as '
                             '%s' % (len(left), left[0].path))

    def _tier(self, *arguments: str) -> Any:
        """The answer of "swift-dss tier"."""
        command = [sys.executable, '-m', 'swift_dss.cli.main', 'tier',
                   arguments[0], '--json', '--config',
                   self._conf.path('etc', 'dss.conf')]
        done = subprocess.run(command + list(arguments[1:]),
                              stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode:
            raise DemoFailed('swift-dss tier %s: %s' % (
                ' '.join(arguments),
                done.stderr.decode('utf-8', 'replace').strip()))
        return json.loads(done.stdout)

    def _check_cloud(self, replicas: Sequence[Replica]) -> None:
        """Ask S3 itself for every copy that the records speak of."""
        listed = self._cloud_listing()
        for replica in replicas:
            remote = replica.residency.remote
            if remote is None:
                continue
            if listed.get(remote.key) is None:
                raise DemoFailed('S3 lacks %s of %s' % (
                    remote.key, replica.name))
            if listed[remote.key] != replica.content_length:
                raise DemoFailed('%s has %d bytes in S3, not %d' % (
                    remote.key, listed[remote.key],
                    replica.content_length))

    def _cloud_listing(self) -> Dict[str, int]:
        account, user, key = CLOUD_USER
        connection = clients.connection(
            self._conf.cloud_url + '/auth/v1.0',
            '%s:%s' % (account, user), key)
        try:
            _headers, rows = connection.get_container(
                CLOUD_BUCKET, full_listing=True)
        finally:
            connection.close()
        return {row['name']: row['bytes'] for row in rows}

    # -- back ------------------------------------------------------------

    def _read_back(self) -> None:
        begin = said = time.monotonic()
        different = []
        for number, (item, digest) in enumerate(
                samples.digests(self._cluster.connection, self._sample), 1):
            if digest != cacs.digest(item.obj):
                different.append(item.obj.name)
            if time.monotonic() - said >= 2.0:
                said = time.monotonic()
                self._say('reading back: %d of %d objects' % (
                    number, len(self._sample)))
        if different:
            raise DemoFailed('%d objects differ: %s' % (
                len(different), ', '.join(different[:5])))
        self._say('read back %d objects in %.1f s, 0 differences' % (
            len(self._sample), time.monotonic() - begin))

    # -- looking ---------------------------------------------------------

    def _ours(self) -> List[Replica]:
        """Replicas of the sample only."""
        tops = tuple('/AUTH_test/%s/' % name for name in samples.CONTAINERS)
        return [replica for replica in survey.replicas(self._conf)
                if replica.name.startswith(tops)]

    def _table(self, title: str) -> Dict[int, Share]:
        shares = survey.by_class(self._ours())
        self._show('')
        self._show('  %s:' % title)
        for line in survey.table(shares, self._classes):
            self._show('    ' + line)
        self._show('')
        return shares
