"""An outage, link by link: daemon, pressure file, object server's answer,
the proxy's verdict. S3 is a real server behind a link that is cut."""

from __future__ import annotations

import itertools
import logging
import types

import pytest
from functional import test_gateway_relocate as relocate
from support import wait_until
from support.edges.s3_servers import VersityServer
from support.edges.wan_link import WanLink
from swift.common.swob import Request

from swift_dss.core.rules import Rules
from swift_dss.core.spans import ClassMap
from swift_dss.objserver.figures import pressures as asked
from swift_dss.objserver import settings
from swift_dss.proxy import replicas
from swift_dss.proxy.admit import admission, pressures
from swift_dss.proxy.settings import State
from swift_dss.proxy.target import Target
from swift_dss.wire import names
from swift_dss.wire.node import pressure as wire

BUDGET = 20 * relocate.SIZE
CLASSES = ''.join(
    '[class:%d]\nname = %s\nrank = %d\nremote = through\n' % row for row in (
        (0, 'bulk', 0), (1, 'normal', 50), (2, 'alarm', 90)))


class Logger(logging.Logger):
    """What Swift's loggers can."""

    def increment(self, name):
        pass


class Chain:
    """A node and a proxy's filter in front of it."""

    def __init__(self, root, server, monkeypatch):
        self.link = WanLink(server)
        monkeypatch.setattr(relocate, 'CLASSES', CLASSES)
        monkeypatch.setattr(settings, '_LOOK_SECONDS', 0.0)
        monkeypatch.setattr(asked, '_KEEP_SECONDS', 0.0)
        # Each write is in the daemon's books before the next one comes.
        monkeypatch.setattr(pressures, '_SETTLE_SECONDS', 0.0)
        monkeypatch.setattr(replicas, 'get_container_info',
                            lambda *args, **kwargs: {'storage_policy': '0'})
        monkeypatch.setattr(replicas.POLICIES, 'get_by_index',
                            lambda index: types.SimpleNamespace(ec_ndata=1))
        self.node = relocate.Node(
            root, server, url=self.link.url, dirty_bytes=str(BUDGET),
            dirty_reserve='0.25', throttle_at='1.0',
            remote_after_seconds='0', take_over_seconds='0')
        logger = Logger('chain')
        node = settings.Node(self.node.daemon.node.in_force.conf, logger)
        monkeypatch.setattr(asked, 'node_for', lambda conf, logger: node)
        app = asked.Pressures({}, logger)

        def ask(server, tally):
            return pressures.Answer(wire.Devices(Request.blank(
                names.PRESSURE_PATH, headers={
                    names.BACKEND_ADMISSIONS: tally}).get_response(
                        app).body))

        ring = types.SimpleNamespace(
            get_more_nodes=lambda partition: iter(()),
            get_nodes=lambda *name: (0, [
                {'ip': '127.0.0.1', 'port': 1, 'device': 'sda'}]))
        self.admission = admission.Admission(
            replicas.Replicas(types.SimpleNamespace(
                app=None, get_object_ring=lambda index: ring)),
            logger, pressures.Pressures(
                0.0, logger, ask, lambda work, *args: work(*args)))
        self.state = State(self.node.daemon.node.in_force.table, Rules())
        self.numbers = itertools.count()

    def put(self, class_id):
        """One write as the proxy sees it; Retry-After if it is refused."""
        try:
            with self.admission.judged(
                    Request.blank('/v1/a/c/o').environ, Target(
                        'a', 'c', 'o'), self.state,
                    ClassMap.uniform(class_id), relocate.SIZE):
                self.node.put(next(self.numbers), class_id)
        except admission.Refused as refused:
            assert refused.status_int == 503
            return int(refused.headers['Retry-After'])
        assert self.keeper().wait_round(30)
        return None

    def keeper(self):
        return self.node.daemon.node.keepers.of('sda')

    def backlog(self):
        return self.keeper().state.pressure.backlog

    def close(self):
        if self.link.is_cut:
            self.link.mend()
        self.node.daemon.stop()
        self.link.stop()


@pytest.fixture
def chain(tmp_path, monkeypatch):
    server = VersityServer()
    made = Chain(str(tmp_path / 'n'), server, monkeypatch)
    yield made
    made.close()
    server.close()


def test_ingest_goes_on_until_the_budget_is_full_then_by_class(chain):
    chain.link.cut()
    assert chain.put(0) is None
    wait_until(lambda: not chain.node.daemon.node.gateway.link().drains, 30,
               'the breaker opens: the fault fired')
    assert chain.keeper().wait_round(30)
    refused, accepted = {}, 1
    while len(refused) < 3:
        for class_id in (2, 1, 0):
            if class_id in refused:
                continue
            seconds = chain.put(class_id)
            if seconds is None:
                accepted += 1
                continue
            assert seconds >= 1
            refused[class_id] = accepted * relocate.SIZE
    assert list(refused) == [0, 1, 2], 'the lowest first, the top last'
    assert 0.95 * BUDGET <= refused[0] <= BUDGET + relocate.SIZE
    assert refused[2] == BUDGET * 1.25
    print('figure: admission: first refusal with %d of %d bytes taken, the '
          'top class at %d' % (refused[0], BUDGET, refused[2]))
    chain.link.mend()
    wait_until(lambda: chain.node.daemon.node.gateway.status()['uploads'] == 0,
               120, 'the backlog drains')
    wait_until(lambda: chain.keeper().wait_round(30)
               and chain.backlog().pending_bytes == 0, 60, 'nothing waits')
    assert chain.put(0) is None
    wait_until(lambda: chain.node.daemon.node.gateway.status()['uploads'] == 0,
               60)
    assert chain.node.all_right(), 'all that was taken is in S3'


def test_with_s3_there_nothing_is_refused(chain):
    """The twin: the same writes, and more than the budget of them."""
    for number in range(24):
        if chain.backlog() and chain.backlog().pending_bytes > BUDGET // 2:
            wait_until(lambda: chain.keeper().wait_round(30) and chain
                       .backlog().pending_bytes < BUDGET // 2, 60)
        assert chain.put(number % 3) is None
