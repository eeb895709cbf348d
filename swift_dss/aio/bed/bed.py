"""A cluster of many nodes on one machine: talk to it and look at it.

:mod:`frame` brings it up, :mod:`changes` changes it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import Any, Iterator, List, Mapping, Optional, Sequence
from urllib.parse import quote

from swift_dss.aio.bed import configure, http, look
from swift_dss.aio.bed.changes import Changes
from swift_dss.aio.layout import POLICIES
from swift_dss.core.errors import BadConfig


class Bed(Changes):
    """One bed, running or not. A context manager: up on entry, gone on
    exit.
    """

    # -- talking ---------------------------------------------------------

    def client(self, user: str = 'test:tester', key: str = 'testing',
               proxy: str = 'p1', seconds: float = 60.0) -> http.Client:
        """A user at a proxy, in whose namespace its requests are made."""
        conf = self.member(proxy).conf
        server = (conf.address, conf.proxy_port)
        return http.Client(
            lambda: self.network.connect(proxy, server, seconds),
            conf.address, conf.proxy_port, user, key)

    @contextlib.contextmanager
    def inside(self, name: str = 'p1') -> Iterator[None]:
        """Run the calling thread in a member's namespace: clients of other
        makes reach the bed from there.
        """
        self.member(name)
        with self.network.inside(name):
            yield

    def direct(self, node: str, method: str, path: str, policy: int = 0,
               headers: Optional[Mapping[str, str]] = None,
               body: Any = None, device: str = '',
               seconds: float = 30.0) -> http.Reply:
        """One request to a node's object server, past the proxies.

        :param path: ``/account/container/object``
        :param device: the object's there if nothing is said
        """
        place = self._place(node, path, policy, device)
        sent = {'X-Backend-Storage-Policy-Index': str(policy)}
        sent.update(headers or {})
        conf = self.node(node).conf
        return http.request(
            lambda: self.network.connect(
                node, (conf.address, place.port), seconds),
            conf.address, place.port, method, '/%s/%d%s' % (
                place.device, place.partition, quote(path)),
            body, sent)

    def _place(self, node: str, path: str, policy: int,
               device: str) -> look.Place:
        for place in self.locate(path, policy):
            if place.node == node and device in ('', place.device):
                return place
        raise BadConfig('no device %s of %s in the rings' % (device, node))

    def run(self, name: str, command: Sequence[str],
            **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command in a member's namespace, to its end.

        :param options: as ``subprocess.run`` takes them
        """
        self.member(name)
        options.setdefault('stdin', subprocess.DEVNULL)
        return subprocess.run(
            self.network.entrance(name) + list(command), **options)

    def tool(self, node: str, *words: str,
             seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        """``swift-dss WORDS`` as that node's operator calls it: in its
        namespace, by its clock, with its ``dss.conf`` (``{conf}`` in the
        words is its path)."""
        conf = self.node(node).conf
        path = conf.path('etc', 'dss.conf')
        return self.run(
            node, [sys.executable, '-m', 'swift_dss.aio.bed.run',
                   configure.clock_file(conf), 'swift_dss.cli.main']
            + [word.replace('{conf}', path) for word in words],
            env=dict(os.environ, SWIFT_DSS_CONF=path,
                     **self.plan.environment(node)),
            capture_output=True, text=True, timeout=seconds)

    # -- looking ---------------------------------------------------------

    def policy_of(self, container: str) -> int:
        """Index of a container's storage policy."""
        reply = self.client().head(container)
        return POLICIES.index(reply.headers['x-storage-policy'])

    def locate(self, path: str, policy: int = 0) -> List[look.Place]:
        """Primaries in ring order, then handoffs, of
        ``/account/container/object``."""
        return look.locate(self.plan, path, policy)

    def primaries(self, path: str, policy: int = 0) -> List[str]:
        """Nodes of the primaries, in ring order."""
        return [place.node for place in self.locate(path, policy)
                if place.primary is not None]

    def hash_of(self, path: str) -> str:
        """Swift's hash of an object, which its keys in S3 contain."""
        return look.hash_of(self.plan, path)

    def files(self, path: str) -> List[look.Found]:
        """Every file of an object on any node's disks."""
        return [placed for name in self.plan.nodes
                for placed in look.files(self.plan, name, path)]

    def quarantined(self) -> List[str]:
        """Everything that any server has quarantined."""
        return [path for node in self.nodes
                for path in look.quarantined(node.conf)]
