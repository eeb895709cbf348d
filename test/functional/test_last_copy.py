"""The last local bytes go on S3's word of now, whoever wants them to go.

S3 loses the keys behind our back after every version was proven there; then
each way to drop local bytes is tried. The judge reads what is here with
nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import io
import time

import pytest
from functional.test_gateway_relocate import CLASSES, SIZE, Node
from support import md5, wait_until
from support.edges.s3_servers import BUCKET, VersityServer
from support.nodes.daemon_node import write_node
from support.nodes.sample_node import Vouching, read_version

from swift_dss.cli.main import main
from swift_dss.core.residency import Tier
from swift_dss.gateway.mend import witness

COUNT = 12


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


class Edge(Node):
    """A node all of whose objects are in S3 and here."""

    def __init__(self, root, server, with_hdd=True, count=COUNT, **gateway):
        super().__init__(root, server, with_hdd, **gateway)
        for number in range(count):
            self.put(number)
        self.daemon.node.gateway.hurry()
        self.in_s3()
        if with_hdd:
            for place, _ in self.bodies:
                self.daemon.node.local.clean(place.version, place.partition)

    def in_s3(self):
        wait_until(lambda: all(
            self.residency(place).remote for place, _ in self.bodies),
            120, 'every record names a copy')

    def residency(self, place):
        return self.daemon.node.local.describe(
            place.version, place.partition).residency

    def lose(self):
        """All keys go, as no rule of ours would have it."""
        client = self.server.client()
        keys = [key for key in self.server.list_keys()
                if key.startswith(self.prefix)]
        for key in keys:
            client.delete_object(Bucket=BUCKET, Key=key)
        return len(keys)

    def lost(self):
        """Versions whose bytes are not all here."""
        keys = []
        for place, body in self.bodies:
            try:
                right = md5(read_version(place, {})) == md5(body)
            except (OSError, KeyError, ValueError):
                right = False
            if not right:
                keys.append(place.version.key)
        return keys

    def reload(self, classes=CLASSES, **sections):
        """The daemon goes on with other options."""
        for name, options in sections.items():
            self.options[name].update(options)
        write_node(self.root, self.options, classes)
        self.daemon.reload()

    def tier(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()) as said:
            code = main(['tier', arguments[0], '--config', self.conf_path,
                         *arguments[1:]])
        return code, said.getvalue()

    def settle(self):
        self.daemon.node.keepers.kick()
        assert self.daemon.node.settle(time.monotonic() + 120)

    def counted(self, name):
        for line in self.daemon.node.metrics.text().decode().splitlines():
            words = line.split()
            if words and words[0].startswith(
                    'swift_dss_' + name.replace('.', '_')):
                return int(float(words[-1]))
        return 0


def by_demotion(edge):
    edge.tier('demote', '--device', 'sda', '--to', 'remote')


def by_relocation(edge):
    edge.cli('relocate', '--device', 'sda', '--seconds', '0')


def by_drain(edge):
    edge.cli('drain', '--to', 'remote', '--seconds', '0')


def by_spill(edge):
    edge.reload(gateway={'spill_at': '0.0000001'})
    edge.daemon.node.relocator.spill(edge.daemon.node.keepers.of('sda').device)


def by_pressure_of_the_ssd(edge):
    edge.reload(tier={'ssd_bytes': str(SIZE)})
    edge.settle()


def by_pressure_of_the_hdd(edge):
    # Whatever is on both goes from the SSD first.
    for place, _ in edge.bodies:
        edge.daemon.node.local.demote(place.version, place.partition)
    edge.reload(tier={'hdd_high_watermark': '0.0000002',
                      'hdd_low_watermark': '0.0000001'})
    edge.settle()


def by_class(edge):
    edge.reload(CLASSES.replace('rank = 0', 'rank = 0\nremote = only'))
    edge.settle()


#: The way, and whether the node has an HDD.
WAYS = [(by_demotion, True), (by_demotion, False), (by_relocation, True),
        (by_drain, True), (by_spill, True), (by_pressure_of_the_ssd, False),
        (by_pressure_of_the_hdd, True), (by_class, True), (by_class, False)]
IDS = ['%s %s' % (way.__name__, 'ssd+hdd' if with_hdd else 'ssd')
       for way, with_hdd in WAYS]


@pytest.fixture
def make(tmp_path, server):
    made = []

    def begin(**options):
        made.append(Edge(str(tmp_path / 'n'), server, **options))
        return made[-1]
    yield begin
    for edge in made:
        edge.daemon.stop()


@pytest.mark.parametrize('way,with_hdd', WAYS, ids=IDS)
def test_no_way_drops_what_s3_has_lost(make, way, with_hdd):
    edge = make(with_hdd=with_hdd)
    assert edge.lose() == COUNT
    way(edge)
    # What it came across was sent again, and may have left after that.
    wait_until(edge.all_right, 60, 'every byte is here or in S3')
    asked = edge.counted('gateway.proof_missing')
    assert asked >= 1, 'the way did not even try'
    assert edge.counted('gateway.proof_sent_again') == asked
    wait_until(lambda: sum(
        key.startswith(edge.prefix) for key in edge.server.list_keys())
        >= asked, 60, 'what was missing is there again')


@pytest.mark.parametrize('way,with_hdd', WAYS, ids=IDS)
def test_wrong_twin_that_takes_the_records_word_loses_them(
        make, way, with_hdd):
    edge = make(with_hdd=with_hdd)
    edge.daemon.node.local.witness = Vouching()
    edge.lose()
    way(edge)
    assert edge.lost(), 'the judge cannot see'


@pytest.mark.parametrize('way,with_hdd', WAYS, ids=IDS)
def test_every_way_still_drops_what_s3_has(make, way, with_hdd):
    edge = make(with_hdd=with_hdd)
    way(edge)
    gone = [place for place, _ in edge.bodies
            if edge.residency(place).tiers == Tier.REMOTE]
    assert gone, 'nothing left'
    assert edge.all_right()
    assert edge.counted('gateway.proof_requests') >= len(gone)


@pytest.mark.parametrize('way,with_hdd', WAYS, ids=IDS)
def test_while_s3_is_away_nothing_is_dropped(make, server, way, with_hdd):
    edge = make(with_hdd=with_hdd)
    server.stop()
    try:
        way(edge)
        assert edge.lost() == []
        assert edge.counted('gateway.proof_missing') == 0
        if way is by_pressure_of_the_ssd:
            state = edge.daemon.node.keepers.of('sda').state
            assert state.room_state == 'short'
            assert 'S3 cannot be asked' in state.room_why
    finally:
        server.start()
    assert edge.all_right()


def test_what_was_lost_leaves_once_it_is_there_again(make):
    """One command is enough: it waits for what is sent again."""
    edge = make()
    edge.lose()
    code, said = edge.cli('relocate', '--device', 'sda', '--seconds', '300')
    assert (code, said['failed']) == (0, [])
    assert {edge.residency(place).tiers for place, _ in edge.bodies} == {
        Tier.REMOTE}
    assert edge.all_right()


def later(edge, monkeypatch):
    """S3's answers of until now are not believed any more."""
    clock = edge.daemon.node.gateway.parts.around.clock
    now = clock.monotonic
    monkeypatch.setattr(clock, 'monotonic',
                        lambda: now() + witness.ANSWER_SECONDS)


def test_a_key_with_other_bytes_is_put_right_first(make, monkeypatch):
    edge = make()
    place, _ = edge.bodies[0]
    for body in (b'short', b'x' * SIZE):
        edge.server.client().put_object(
            Bucket=BUCKET, Key=edge.residency(place).remote.key, Body=body)
        edge.tier('demote', '--device', 'sda', '--to', 'remote')
        assert edge.all_right()
        later(edge, monkeypatch)
        edge.tier('promote', '--device', 'sda')
        wait_until(lambda: not edge.lost(), 60, 'all is here again')


def test_a_thousand_keys_are_removed_before_pressure_comes(make):
    """The experiment: 0 last copies dropped."""
    edge = make(with_hdd=False, count=1000)
    assert edge.lose() == 1000
    began = time.monotonic()
    edge.reload(tier={'ssd_bytes': str(100 * SIZE)})
    edge.settle()
    wait_until(lambda: edge.local_bytes() <= 100 * SIZE and edge.all_right(),
               120, 'every byte is here or in S3, and there is room')
    print('1000 keys removed: 0 last copies dropped, %d found missing, %d '
          'sent again, in %.1f s' % (
              edge.counted('gateway.proof_missing'),
              edge.counted('gateway.proof_sent_again'),
              time.monotonic() - began))
    assert edge.counted('gateway.proof_missing') >= 900


def test_one_request_serves_what_leaves_together(make, monkeypatch):
    edge = make()
    for _ in range(2):
        for place, _ in edge.bodies:
            edge.daemon.node.local.ask_ahead(
                [(place.version, place.partition)] * 5, Tier.SSD | Tier.HDD)
    assert edge.counted('gateway.proof_requests') == COUNT
    later(edge, monkeypatch)
    edge.daemon.node.local.ask_ahead([(
        edge.bodies[0][0].version, edge.bodies[0][0].partition)],
        Tier.SSD | Tier.HDD)
    assert edge.counted('gateway.proof_requests') == COUNT + 1


def test_the_scrub_finds_what_is_missing_before_anything_leaves(make):
    edge = make(scrub_days='0.00005')
    wait_until(lambda: edge.daemon.upkeep.status()['gateway']['scrub']['keys'][
        'asked'] >= COUNT, 60, 'every key was asked for')
    assert edge.counted('gateway.proof_missing') == 0
    edge.lose()
    wait_until(lambda: edge.counted('gateway.proof_sent_again') == COUNT,
               120, 'all are sent again')
    wait_until(lambda: sum(
        key.startswith(edge.prefix) for key in edge.server.list_keys())
        == COUNT, 60, 'all are there again')
    assert edge.lost() == []
    counts = edge.daemon.upkeep.status()['gateway']['scrub']['keys']
    assert counts['missing'] == COUNT and counts['lost'] == 0
    assert edge.daemon.node.index.file.get_state('asked_for') != ''
