"""The parts of a gateway, put together."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import NamedTuple, Optional

from swift_dss.core.config import GatewayConf, NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.follow import Follower
from swift_dss.gateway.bundle.keep import Keeper
from swift_dss.gateway.bundle.lean import Leaning
from swift_dss.gateway.bundle.own import OwnMembers
from swift_dss.gateway.bundle.pack import Packer, book_path
from swift_dss.gateway.bundle.proof import BundleProofs
from swift_dss.gateway.bundle.say import Sayer
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.bundle.troubles import Troubles
from swift_dss.gateway.bundle.twins import Twins
from swift_dss.gateway.collect import keys as collect
from swift_dss.gateway.collect.keys import Collector, restore_state
from swift_dss.gateway.collect.members import BundleCollector
from swift_dss.gateway.collect.regain import Regainer
from swift_dss.gateway.collect.rounds import Rounds
from swift_dss.gateway.down.fill import Filler
from swift_dss.gateway.down.supply import Supply
from swift_dss.gateway.form import verify
from swift_dss.gateway.form.cluster import cluster_id
from swift_dss.gateway.form.encrypt import KeyFile
from swift_dss.gateway.form.owner import Owner
from swift_dss.gateway.form.prefix import Prefix
from swift_dss.gateway.form.remove import Remover
from swift_dss.gateway.link.alarm import Alarm
from swift_dss.gateway.link.breaker import Breaker, Trust
from swift_dss.gateway.link.client import S3Client
from swift_dss.gateway.link.connect import Connect
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.link.trusted_clock import TrustedClock
from swift_dss.gateway.link.turns import Turns
from swift_dss.gateway.mend.repair import Remedies, Repairer
from swift_dss.gateway.mend.repairs import Repairs
from swift_dss.gateway.mend.scrub import Scrubber
from swift_dss.gateway.mend.scrub_ask import AskScrubber
from swift_dss.gateway.mend.witness import ASKERS, Asker, Means
from swift_dss.gateway.peers.aside import Asides
from swift_dss.gateway.peers.primaries import (
    Peers, Primaries, RingPrimaries, looks_at)
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.gateway.peers.succession import Succession
from swift_dss.gateway.ports import (
    LocalVersions, Logger, Metrics, TableSource)
from swift_dss.gateway.queue import Queue, queue_path
from swift_dss.gateway.restore.arrivals import Arrivals
from swift_dss.gateway.restore.places import Places, Servers, ring_there
from swift_dss.gateway.restore.renew import Renewer
from swift_dss.gateway.up.bundler import Bundler
from swift_dss.gateway.up.deletes import Agreement, Deleter
from swift_dss.gateway.up.dispatch import Dispatcher
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.gateway.up.offers import Offers
from swift_dss.gateway.up.orders import Orders
from swift_dss.gateway.up.park import Parker
from swift_dss.gateway.up.parking import Parking
from swift_dss.gateway.up.rekeying import Rekeying
from swift_dss.gateway.up.sending import SENDERS, Sending
from swift_dss.gateway.up.standing import Standing
from swift_dss.gateway.up.upkeep import Upkeep, Works
from swift_dss.gateway.up.upload import Uploader
from swift_dss.gateway.up.work import DELETES, Crew, Uploads, Worker
from swift_dss.io.workers import World

#: First and longest wait of a job that failed, seconds.
_RETRY_BASE_SECONDS = 2.0
_RETRY_CAP_SECONDS = 600.0
#: A key that need not exist: 404 is as good an answer as 200.
_PROBE_KEY = '.dss-probe'


class Outside(NamedTuple):
    """Parts that the gateway takes from outside if they are given, and
    makes itself if not.

    :param ranks: by default from the rings of ``swift_dir``
    :param primaries: the nodes to ask before bytes go; by default those of the
        rings
    :param retry: waits of jobs that failed
    :param connect: see :class:`S3Client`
    :param world: the clock, and the threads that do the gateway's work
    """

    ranks: Optional[Ranks] = None
    primaries: Optional[Primaries] = None
    breaker: Optional[Breaker] = None
    retry: Optional[Backoff] = None
    connect: Optional[Connect] = None
    world: Optional[World] = None


class LinkParts(NamedTuple):
    """S3 as the other parts reach it, and those to ask about it."""

    breaker: Breaker
    client: S3Client
    prefix: Prefix
    keys: KeyFile
    peers: Peers


class BundleParts(NamedTuple):
    """Bundles of this node, and of others that versions here lean on."""

    shelves: Shelves
    proofs: BundleProofs
    follower: Follower
    leaning: Leaning
    packer: Packer
    keeper: Keeper
    renewer: Renewer
    twins: Twins
    regainer: Regainer
    rekeying: Rekeying
    parking: Parking
    sending: Sending
    upkeep: Upkeep
    bundler: Bundler
    troubles: Troubles


class UploadParts(NamedTuple):
    """Versions on their way to S3, and orders to delete."""

    uploader: Uploader
    offers: Offers
    parker: Parker
    agreement: Agreement
    orders: Orders
    remover: Remover
    crew: Crew


class MendParts(NamedTuple):
    """Copies in S3 that are in question."""

    asides: Asides
    repairer: Repairer
    repairs: Repairs
    scrubber: Scrubber
    witness: Asker
    ask_scrubber: AskScrubber


@dataclass(frozen=True)
class GatewayParts:
    """The parts of a gateway. A part gets those others that it uses, and
    never all of them.

    :param restore_state: where a restore notes how far it has come
    """

    around: Around
    jobs: Jobs
    link: LinkParts
    bundles: BundleParts
    uploads: UploadParts
    alarm: Alarm
    supply: Supply
    filler: Filler
    dispatcher: Dispatcher
    arrivals: Arrivals
    collector: Collector
    rounds: Rounds
    mend: MendParts
    restore_state: str

    @property
    def conf(self) -> GatewayConf:
        """The options of the gateway."""
        return self.around.conf

    @property
    def client(self) -> S3Client:
        """S3."""
        return self.link.client

    @property
    def queue(self) -> Queue:
        """Rows of uploads and deletes."""
        return self.jobs.queue

    @property
    def book(self) -> Book:
        """The bundles that this node keeps."""
        return self.bundles.shelves.book


# long: the one place where the parts meet.
def assembled(conf: NodeConf, table: TableSource, local: LocalVersions,
              logger: Logger, metrics: Metrics,
              outside: Outside) -> GatewayParts:
    """Open queue and book, and put the parts together; none is at work yet.

    :param local: this node's devices
    :raises BadConfig: a part of the configuration
    """
    world = outside.world or World()
    trusted = TrustedClock(world.clock)
    around = Around(conf.gateway, table, metrics, logger,
                    threading.Event(), world.clock, trusted, world.pool,
                    world.dice)
    link = _link(conf, around, local, trusted, outside)
    jobs = _jobs(conf, around, link, outside)
    uploader = Uploader(around, link.client, local, link.keys,
                        link.prefix.conditions, jobs)
    bundles = _bundles(conf, around, link, local, jobs, uploader)
    uploads = _uploads(around, link, local, jobs, bundles, uploader)

    supply = Supply(around, link.client, jobs.backoff.dice)

    def changed(alive: bool) -> None:
        """S3 answers again, or not any more."""
        if alive:
            logger.info('gateway: S3 answers again')
            jobs.try_again()
            jobs.bundling.ring()
        else:
            supply.abandon()
        jobs.due.ring()

    alarm = Alarm(link.client, link.breaker, around.conf.prefix + _PROBE_KEY,
                  changed, logger, around.pool)
    arrivals = Arrivals(around, bundles.shelves, bundles.proofs, OwnMembers(
        bundles.shelves.book, link.client, link.keys, bundles.proofs))
    collector = Collector(
        around, link.client, local, link.peers,
        collect.Means(uploads.remover, uploads.orders, arrivals),
        BundleCollector(around, bundles.shelves, local, link.peers,
                        bundles.leaning, uploads.orders))
    mend = _mend(around, link, local, jobs, bundles, uploads, supply)
    return GatewayParts(
        around, jobs, link, bundles, uploads, alarm, supply,
        Filler(around, link.client, local, supply, alarm, mend.repairs),
        Dispatcher(around, jobs, uploads.crew, link.prefix, alarm, supply),
        arrivals, collector,
        Rounds(around, collector, jobs.queue, bundles.shelves.book,
               link.breaker),
        mend, restore_state(conf))


def _link(conf: NodeConf, around: Around, local: LocalVersions,
          trusted: TrustedClock, outside: Outside) -> LinkParts:
    clock = around.clock
    breaker = outside.breaker or Breaker(clock=clock, dice=around.dice)
    client = S3Client(
        around.conf, breaker, around.conf.uploads + around.conf.fills
        + DELETES + SENDERS + ASKERS + 2, around.table, outside.connect,
        trusted)
    owner: Optional[Owner] = None
    try:
        owner = Owner(around.conf, client, cluster_id(conf.swift_dir), clock)
        client.guard = owner.guard
    except BadConfig as err:
        around.logger.warning(
            'gateway: the prefix gets no mark of its owner: %s', err)
    ranks = outside.ranks or Ranks(conf.swift_dir, shard=conf.shard)
    return LinkParts(
        breaker, client,
        Prefix(around.conf, client, owner, around.metrics, around.logger),
        KeyFile(around.conf.key_file),
        Peers(ranks, outside.primaries or RingPrimaries(
            ranks, looks_at(local),
            is_sound=functools.partial(verify.is_sound, local))))


def _jobs(conf: NodeConf, around: Around, link: LinkParts,
          outside: Outside) -> Jobs:
    clock = around.clock
    retry = outside.retry or Backoff(
        _RETRY_BASE_SECONDS, _RETRY_CAP_SECONDS, around.dice)
    return Jobs(
        around.conf, Queue(queue_path(conf)),
        Succession(around.conf, link.peers.ranks, retry, clock),
        Standing(link.breaker, Trust(clock=clock, dice=around.dice), clock),
        retry, clock)


def _bundles(conf: NodeConf, around: Around, link: LinkParts,
             local: LocalVersions, jobs: Jobs,
             uploader: Uploader) -> BundleParts:
    # long: the one place where the parts of bundles meet.
    troubles = Troubles(around.logger)
    book = Book(book_path(conf.state_dir))
    shelves = Shelves(book, link.client, link.keys)
    proofs = BundleProofs(link.client, link.keys, around.clock)
    follower = Follower(around, link.peers, proofs, local, book)
    leaning = Leaning(around.conf, link.peers.primaries, uploader.send_apart,
                      around.trusted)
    packer = Packer(around, shelves, local, jobs, link.peers.ranks,
                    Turns(link.breaker, SENDERS, around.stopping))
    keeper = Keeper(around, shelves, local, packer, leaning, troubles)
    renewer = Renewer(around, shelves, local, jobs.queue,
                      Sayer(around, shelves, proofs), troubles)
    twins = Twins(around, book, follower, leaning, local)
    places = Places(around, shelves, Servers(conf.swift_dir), troubles)
    regainer = Regainer(around, shelves, local, link.peers.ranks)
    rekeying = Rekeying(shelves, local, jobs, renewer, follower)
    parking = Parking(around, jobs, book, packer, follower, places)
    sending = Sending(around, jobs, book, packer, twins, troubles)
    upkeep = Upkeep(around, Works(
        keeper, renewer, twins,
        places if ring_there(conf.swift_dir) else None, follower, regainer),
        rekeying, troubles)
    return BundleParts(
        shelves, proofs, follower, leaning, packer, keeper, renewer, twins,
        regainer, rekeying, parking, sending, upkeep,
        Bundler(around, jobs, parking, sending, upkeep, troubles), troubles)


def _uploads(around: Around, link: LinkParts, local: LocalVersions,
             jobs: Jobs, bundles: BundleParts,
             uploader: Uploader) -> UploadParts:
    book = bundles.shelves.book
    offers = Offers(local, around.table, jobs.line)
    agreement = Agreement(around, local, link.peers.primaries, jobs)
    orders = Orders(around, jobs, book, agreement)
    remover = Remover(around.conf, link.client)
    return UploadParts(
        uploader, offers, Parker(around, jobs, bundles.parking, offers),
        agreement, orders, remover, Crew(around, jobs, Worker(
            around, jobs,
            Uploads(around, jobs, offers, bundles.parking, uploader, orders),
            Deleter(around, link.client, local, book, jobs, remover))))


def _mend(around: Around, link: LinkParts, local: LocalVersions, jobs: Jobs,
          bundles: BundleParts, uploads: UploadParts,
          supply: Supply) -> MendParts:
    asides = Asides(local, link.peers.primaries, around.metrics, link.client)
    repairer = Repairer(around, link.client, local, Remedies(
        supply, uploads.uploader, bundles.parking, jobs, asides,
        bundles.follower))
    repairs = Repairs(around, jobs, repairer, link.prefix,
                      uploads.crew.workers)
    witness = Asker(around, link.client, local, Means(
        bundles.shelves.book, jobs, bundles.parking, repairs, repairer,
        link.prefix))
    return MendParts(
        asides, repairer, repairs, Scrubber(around, supply, local, repairs),
        witness, AskScrubber(around, local, witness, jobs.line))
