"""The mark under the prefix that names its owner.

Two clusters on one prefix would delete each other's keys: each takes keys that
its own versions do not need for garbage. So the first cluster that writes puts
``.dss-owner`` under the prefix, with an id made of its hash path, which all
its nodes share. It is read at the daemon's start, hourly, and before keys are
deleted. A cluster that finds another's id there writes nothing and deletes
nothing; its local work goes on.

The client itself asks before every request that changes the bucket
(:attr:`S3Client.guard`), so that no caller can forget it.
"""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from typing import Any, Dict, NamedTuple, Optional

from swift_dss.core.config import GatewayConf, NodeConf
from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteUnavailable)
from swift_dss.gateway.form import digests
from swift_dss.gateway.form.cluster import cluster_id
from swift_dss.gateway.link.client import (
    DELETES, OWNER_KEY, S3Client, S3Missing, S3Rejected)
from swift_dss.io.workers import CLOCK, Clock

_MAX_BYTES = 4096
#: A mark that was read is believed so long: before writes, before deletes.
WRITE_SECONDS = 3600.0
DELETE_SECONDS = 60.0
#: Another cluster's mark is believed so long, so that a prefix that was
#: handed over is ours soon.
_FOREIGN_SECONDS = 10.0
#: Callers that waited for an unanswered question get the same error and do not
#: ask again.
_UNANSWERED_SECONDS = 1.0


class NotOurs(DssError):
    """The prefix belongs to another cluster, or has an odd mark."""

    http_status = 503
    exit_code = 78
    counter = 'remote_not_ours'


class Mark(NamedTuple):
    """The fields of the mark.

    :param cluster: id of the owner
    :param made: of this very mark; a new one has another
    :param since: seconds since the epoch
    :param by: host that made it
    """

    cluster: str
    made: str
    since: float
    by: str


class Owner:
    """Knows whose the prefix is. Thread-safe.

    :param cluster: id of this cluster
    """

    def __init__(self, conf: GatewayConf, client: S3Client, cluster: str,
                 clock: Clock = CLOCK) -> None:
        self._conf = conf
        self._client = client
        self._cluster = cluster
        self._clock = clock
        self._key = conf.prefix + OWNER_KEY
        self._lock = threading.Lock()
        self._read_at = -WRITE_SECONDS
        #: '' until the mark was read; then ``ours`` or the error.
        self._said = ''
        self._mark: Optional[Mark] = None
        #: The last error of S3 instead of an owner, and the end of its
        #: validity.
        self._unanswered: Optional[RemoteUnavailable] = None
        self._unanswered_until = 0.0

    def guard(self, operation: str) -> None:
        """Asked by the client before it changes the bucket.

        :raises NotOurs: it must not
        :raises RemoteUnavailable: S3 does not say whose it is
        """
        self.require(DELETE_SECONDS if operation in DELETES
                     else WRITE_SECONDS)

    def require(self, seconds: float = DELETE_SECONDS) -> None:
        """:param seconds: a mark that was read so long ago will do
        :raises NotOurs, RemoteUnavailable: as :meth:`guard`
        """
        with self._lock:
            age = self._clock.monotonic() - self._read_at
            if self._said not in ('', 'ours') and \
                    age < min(seconds, _FOREIGN_SECONDS):
                raise NotOurs(self._said)
            if self._said != 'ours' or age >= seconds:
                self._said = ''
                self._ask()

    def take(self) -> Mark:
        """Make this cluster the owner. The caller MUST know that the previous
        owner is gone or has been told to leave.
        """
        with self._lock:
            self._put(self._made())
            self._said = ''
            self._look()
            assert self._mark is not None
            return self._mark

    def read(self) -> Optional[Mark]:
        """The mark; None if there is none.

        :raises NotOurs: it is no mark
        """
        try:
            return _decode(self._client.get_small(self._key, _MAX_BYTES))
        except S3Missing:
            return None
        except (ValueError, KeyError, TypeError, DamagedRecord) as err:
            raise NotOurs(
                '%s/%s does not name the owner of the prefix (%s); if the '
                'prefix is yours: swift-dss gateway owner --take' % (
                    self._conf.bucket, self._key, err)) from err

    def require_not_foreign(self) -> None:
        """For readers: a prefix without a mark will do.

        :raises NotOurs: it belongs to another cluster
        """
        mark = self.read()
        if mark is not None:
            self._judge(mark)

    def status(self) -> Dict[str, Any]:
        """Plain values."""
        mark = self._mark
        return {'state': self._said or 'not read yet',
                'cluster': mark.cluster if mark else None,
                'since': mark.since if mark else None,
                'this_cluster': self._cluster}

    # -- inside ----------------------------------------------------------

    def _ask(self) -> None:
        if self._unanswered is not None and \
                self._clock.monotonic() < self._unanswered_until:
            raise self._unanswered
        try:
            self._unanswered = None
            self._look()
        except RemoteUnavailable as err:
            self._unanswered = err
            self._unanswered_until = \
                self._clock.monotonic() + _UNANSWERED_SECONDS
            raise

    def _look(self) -> None:
        mark = self.read()
        if mark is None:
            # The first that comes. Where If-None-Match is not honoured two
            # may come at once; both read what the last one wrote.
            self._put(self._made(), only_if_missing=True)
            mark = self.read()
        self._mark = mark
        if mark is None:
            raise NotOurs('%s/%s was written and is not there: nothing can '
                          'be kept in this bucket' % (
                              self._conf.bucket, self._key))
        self._read_at = self._clock.monotonic()
        self._judge(mark)
        self._said = 'ours'

    def _judge(self, mark: Mark) -> None:
        if mark.cluster != self._cluster:
            self._said = (
                'bucket %s, prefix %r belongs to cluster %s since %s '
                '(marked by %s); this is cluster %s. Choose another prefix, '
                'or hand this one over: swift-dss gateway owner --take' % (
                    self._conf.bucket, self._conf.prefix, mark.cluster,
                    time.strftime('%Y-%m-%d', time.gmtime(mark.since)),
                    mark.by, self._cluster))
            raise NotOurs(self._said)

    def _made(self) -> bytes:
        return json.dumps({
            'v': 1, 'cluster': self._cluster, 'made': uuid.uuid4().hex,
            'since': self._clock.wall(), 'by': socket.gethostname()},
            sort_keys=True).encode('ascii')

    def _put(self, data: bytes, only_if_missing: bool = False) -> None:
        try:
            self._client.put_mark(self._key, data,
                                  digests.md5(data).digest(),
                                  only_if_missing)
        except S3Rejected:
            if not only_if_missing:
                raise
            # 412: another cluster was faster. Or the server does not know the
            # condition: then without it.
            if self.read() is None:
                self._client.put_mark(self._key, data,
                                      digests.md5(data).digest(), False)


def owner_of(conf: NodeConf, client: S3Client) -> Owner:
    """The owner of a node's prefix, for a command; the client asks it from
    here on.

    :raises BadConfig: there is no ``swift.conf``
    """
    made = Owner(conf.gateway, client, cluster_id(conf.swift_dir))
    client.guard = made.guard
    return made


def _decode(raw: bytes) -> Mark:
    fields = json.loads(raw)
    if fields['v'] != 1 or len(str(fields['cluster'])) != 32:
        raise ValueError('no mark of ours')
    return Mark(str(fields['cluster']), str(fields['made']),
                float(fields['since']), str(fields['by'])[:255])
