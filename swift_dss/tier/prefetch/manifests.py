"""Find manifests and their members.

A thread of its own reads the lists of manifests that object servers served;
callers that report a manifest never wait.
"""

from __future__ import annotations

import abc
import heapq
import itertools
import queue
import threading
import time
from collections import OrderedDict
from typing import List, Optional, Tuple
from urllib.parse import unquote

from swift_dss.core.errors import BadConfig, DssError, VersionGone
from swift_dss.core.version import VersionId
from swift_dss.tier.local.listings import Listings
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.prefetch.objects import MAX_MANIFEST_BYTES, Known, Objects

#: Versions that wait to be looked at; more are not.
_MAX_WAITING = 256
#: Each range of a large object reads its manifest: once in so many seconds
#: is enough to know what it lists.
_AGAIN_SECONDS = 30.0
#: Manifests whose last time is remembered.
_REMEMBERED = 20000
#: A manifest that a reader has just got from S3 is kept a moment after that:
#: seconds until it is looked at again, once for each.
_LATER_SECONDS = (0.1, 0.3, 1.0, 3.0)

Members = List[Tuple[str, int]]


class ManifestHearer(abc.ABC):
    """Hears of manifests."""

    @abc.abstractmethod
    def on_manifest(self, known: Known, client: str,
                    members: Members) -> None:
        """A client read a manifest, which lists these. Called in the thread
        of the :class:`ManifestReader`."""


class ManifestReader:
    """Tells of manifests that were read."""

    def __init__(self, local: Local, objects: Objects,
                 hearer: ManifestHearer, metrics: Metrics) -> None:
        self._local = local
        self._objects = objects
        self._listings = Listings(local.in_force.conf.swift_dir)
        self._metrics = metrics
        self._logger = metrics.logger
        self._hearer = hearer
        self._waiting: queue.Queue[Optional[Tuple[Known, str]]] = \
            queue.Queue(_MAX_WAITING)
        #: (when, a number that breaks ties, manifest, client, tries).
        self._later: List[Tuple[float, int, Known, str, int]] = []
        self._numbers = itertools.count()
        #: When manifests were told of last, monotonic seconds.
        self._told: OrderedDict[VersionId, float] = OrderedDict()
        self._thread = threading.Thread(
            target=self._work, name='dss-manifests', daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the waiting work."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join()

    def look(self, known: Known, client: str = '') -> None:
        """A manifest was read by a client. Never waits."""
        if known.size > MAX_MANIFEST_BYTES:
            return
        if time.monotonic() - self._told.get(
                known.version, -_AGAIN_SECONDS) < _AGAIN_SECONDS:
            return
        try:
            self._waiting.put_nowait((known, client))
        except queue.Full:
            self._metrics.count('tier.prefetch.manifests_skipped')

    def _work(self) -> None:
        while True:
            try:
                job = self._waiting.get(timeout=max(
                    0.0, self._later[0][0] - time.monotonic())
                    if self._later else None)
            except queue.Empty:
                _, _, known, client, tries = heapq.heappop(self._later)
                self._try(known, client, tries)
                continue
            if job is None:
                return
            self._try(*job)

    def _try(self, known: Known, client: str, tries: int = 0) -> None:
        try:
            members = self._members(known)
            if members:
                self._note(known.version)
                self._hearer.on_manifest(known, client, members)
        except VersionGone:
            # Its bytes are in S3 alone, or on their way.
            if tries < len(_LATER_SECONDS) and \
                    len(self._later) < _MAX_WAITING:
                heapq.heappush(self._later, (
                    time.monotonic() + _LATER_SECONDS[tries],
                    next(self._numbers), known, client, tries + 1))
            else:
                self._metrics.count('tier.prefetch.manifest_errors')
        except DssError as err:
            self._metrics.count('tier.prefetch.manifest_errors')
            self._logger.debug('manifest %s: %s', known.version.key, err)
        except Exception:  # the next one must still come
            self._logger.exception('manifest %s', known.version.key)

    def _note(self, version: VersionId) -> None:
        self._told.pop(version, None)
        self._told[version] = time.monotonic()
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

    def _members(self, known: Known) -> Members:
        headers = {name.lower(): value for name, value in
                   self._local.describe(known.version, known.partition)
                   .metadata.items()}
        listed = headers.get('x-object-manifest', '')
        if listed:
            return self._listed(known.account, unquote(listed))
        if headers.get('x-static-large-object', '').lower() not in (
                'true', '1', 'yes', 'on', 't', 'y'):
            return []               # a POST made it an ordinary object
        with self._local.open(known.version, known.partition) as reader:
            raw = reader.read(0, known.size)
        return self._objects.members(known.account, raw)

    def _listed(self, account: str, listed: str) -> Members:
        container, _, prefix = listed.lstrip('/').partition('/')
        if not prefix:
            raise BadConfig('X-Object-Manifest %r' % listed)
        return [(self._objects.member(account, '/%s/%s' % (container, name)),
                 length) for name, length in self._listings.page(
                     account, container, prefix)]
