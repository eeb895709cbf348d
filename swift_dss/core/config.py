"""The node's configuration, parsed: what ``dss.conf`` means."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import FrozenSet, Mapping, Optional, Tuple

from swift_dss.core import limits


#: Of a field that no file can set.
NO_OPTION = MappingProxyType({'option': False})


@dataclass(frozen=True)
class IoConf:
    """How object servers of the node do their I/O.

    :param carrier: ``auto``, ``classified``, ``ioprio`` or ``null``
    :param block_checksums: keep checksums of blocks, and check bytes from a
        disk before they are sent
    :param placement: begin new files of a device side by side
    :param whole_read_bytes: of a GET that the HDD is asked for at once; 0:
        a window at a time
    :param stage_cold_copies: of engine ``block``: the kernel gets cold copies
        under the lowest class; its caches MUST have a stage
    """

    carrier: str = 'auto'
    ssd_threads: int = limits.DEFAULT_SSD_THREADS
    hdd_threads: int = limits.DEFAULT_HDD_THREADS
    queue_depth: int = limits.DEFAULT_QUEUE_DEPTH
    remote_deadline_seconds: float = limits.DEFAULT_REMOTE_DEADLINE_SECONDS
    spool_bytes: int = limits.DEFAULT_SPOOL_BYTES
    block_checksums: bool = True
    placement: bool = True
    whole_read_bytes: int = limits.DEFAULT_WHOLE_READ_BYTES
    stage_cold_copies: bool = False


@dataclass(frozen=True)
class Division:
    """How the devices of a node are divided among processes of the tier
    daemon (``strategy.sharding``).

    :param count: of processes; 0 is by the number of devices
    :param lists: devices that an operator gave to each
    """

    count: int = 0
    lists: Tuple[Tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        """As the option spells it."""
        return '; '.join(map(' '.join, self.lists)) or \
            str(self.count or 'auto')


@dataclass(frozen=True)
class Admit:
    """Which missed objects come to the SSD.

    :param window: those that were missed before, within the misses of so many
        caches (``strategy.eviction.objects.doorkeeper``); 0: all
    :param learns: the rule that writes least at no loss
        (``strategy.eviction.objects.learned``)
    """

    window: int = 0
    learns: bool = False

    def __str__(self) -> str:
        """As the option spells it."""
        if self.learns:
            return 'learned'
        return 'second:%d' % self.window if self.window else 'all'


@dataclass(frozen=True)
class TierConf:
    """Limits and rules of the tier daemon.

    :param engine: the engine that moves bytes between SSD and HDD, for devices
        without a line in [engine]
    :param eviction: ``class_ordered``, ``weighted``, or an order for all
        classes
    :param admit: which versions come to the SSD when they are read from a
        slower tier
    :param self_tuning: choose the order inside classes (or that of all) by
        what is read
    :param ssd_bytes: room for objects on each device's SSD; 0 takes the
        file system's size
    :param high_watermark: share of ``ssd_bytes`` where eviction starts
    :param low_watermark: share where it stops
    :param hdd_high_watermark: share of the HDD where bytes with a verified
        remote copy start to leave it
    :param dirty_watermark: share of the SSD that may lack an HDD copy
        before the cleaner runs at full speed
    :param clean_after_seconds: age at which a dirty version is copied
    :param min_demote_bytes: smaller versions stay on the SSD
    :param prometheus_port: loopback port of the metrics; 0 is none
    :param index_dir: folder of the index and of the book of bundles
    :param shards: how the devices are divided among processes
    :param pin_share: share of the SSD for versions that the pin rule keeps
        there; 0 pins none
    :param pin_depth: ``LEAST-LARGEST`` slashes in an object's name
    :param pin_types: patterns of content types, with ``,`` between
    :param pin_classes: names or ids, with ``,`` between
    :param pin_idle_seconds: after so long without use a version loses its pin;
        0 is never
    :param classify: read uploads whose rule says ``classify = auto``
    :param classify_after_seconds: from an upload to the read
    :param classify_next_seconds: after which the node of the next replica
        reads an upload that has no classes yet
    :param classify_seconds: after which the child that reads is killed
    :param classify_memory_bytes: that it may allocate
    """

    engine: str = 'file'
    eviction: str = 'class_ordered'
    admit: Admit = Admit()
    self_tuning: bool = False
    ssd_bytes: int = 0
    high_watermark: float = 0.85
    low_watermark: float = 0.75
    hdd_high_watermark: float = 0.85
    hdd_low_watermark: float = 0.75
    dirty_watermark: float = 0.25
    clean_after_seconds: float = 30.0
    interval_seconds: float = 5.0
    min_demote_bytes: int = limits.DEFAULT_MIN_DEMOTE_BYTES
    movers: int = 2
    sweep_interval_seconds: float = 86400.0
    sweep_files_per_second: float = 200.0
    index_dir: str = '/var/lib/swift-dss'
    index_bytes: int = 0
    shards: Division = Division()
    prometheus_port: int = 0
    pin_share: float = 0.0
    pin_largest_bytes: int = limits.DEFAULT_PIN_LARGEST_BYTES
    pin_depth: str = ''
    pin_types: str = ''
    pin_classes: str = ''
    pin_idle_seconds: float = 0.0
    classify: bool = False
    classify_after_seconds: float = 5.0
    classify_next_seconds: float = 900.0
    classify_seconds: float = 20.0
    classify_memory_bytes: int = limits.DEFAULT_CLASSIFY_BYTES


@dataclass(frozen=True)
class PrefetchConf:
    """Fetching ahead of readers, and its limits.

    :param strategy: ``none``, ``seq``, ``amp``, ``graph`` or ``combined``
    :param workers: fetches at a time
    :param max_degree: parts of S3 in one request of the strategy
    :param budget_bytes: limit of bytes fetched ahead and not read yet, of the
        node
    :param state_bytes: memory of the strategy
    :param bytes_per_second: pace; 0: the spare rate of the link
    :param dollars_per_gb: price of bytes that leave S3, for the counts
    :param dollars_per_day: daily limit of the price; 0: no limit
    """

    strategy: str = 'amp'
    workers: int = 4
    max_degree: int = 16
    budget_bytes: int = limits.DEFAULT_PREFETCH_BYTES
    state_bytes: int = limits.DEFAULT_PREFETCH_STATE_BYTES
    bytes_per_second: int = 0
    dollars_per_gb: float = 0.09
    dollars_per_day: float = 5.0


@dataclass(frozen=True)
class GatewayConf:
    """Where the remote tier is and how it is used.

    :param endpoint: name that records carry; not the address
    :param url: S3 endpoint address
    :param secret_file: 0600 file with ``access_key`` and ``secret_key``
    :param remote_after_seconds: age at which a version is uploaded
    :param delete_delay_seconds: from an overwrite or delete to the S3
        delete, so that slow replicas can still read the old version
    :param reclaim_age_seconds: as Swift's ``reclaim_age``: a primary that
        is silent for so long after a newer version keeps no key
    :param gc_interval_seconds: time between searches of the bucket for keys
        that nothing needs; 0 is never
    :param verify: ``etag`` (digest in S3's answer) or ``readback``
    :param bundle_bytes: data of one bundle, of classes that have them
    :param bundle_member_bytes: larger versions get a key of their own
    :param bundle_age_seconds: age at which a bundle is sent although it is not
        full
    :param bundle_dead_share: share of dead bytes above which a bundle is
        rewritten
    :param bundle_put_bytes: what a PUT costs, as bytes that are stored for a
        year; 0: nothing
    :param key_file: 0600 file of keys; with it S3 gets no plaintext
    :param queue_dir: folder of the queue; '' is that of the index
    :param queue_bytes: size of the queue that logs a warning
    :param spill_at: share of a device's room from which the least
        recently used versions are sent and dropped; 0 is never
    :param relocate_stop_seconds: how long a stopping daemon may send versions
        that S3 lacks; 0 sends none
    :param push_idle_after_seconds: age at which an idle link takes a
        version before ``remote_after_seconds``; 0 is never
    :param scrub_days: interval in which S3 is asked once for each version's
        key; 0 is never
    :param scrub_bytes_per_second: pace of reading back and proving S3's bytes
        while the link is idle; 0 is none
    :param dirty_bytes: bytes of each device that S3 may lack before writes are
        refused; 0 is all the room of the device
    :param dirty_reserve: share of it on top, for classes above the lowest
    :param headroom: share of a device's room for moves and fills
    :param throttle_at: share of its limit where a class is slowed down
    """

    enabled: bool = False
    endpoint: str = 's3'
    url: str = ''
    region: str = 'us-east-1'
    bucket: str = ''
    prefix: str = ''
    secret_file: str = ''
    ca_bundle: Optional[str] = None
    verify: str = 'etag'
    checksums: str = 'when_required'
    addressing_style: str = 'path'
    part_bytes: int = limits.DEFAULT_PART_BYTES
    uploads: int = 4
    fills: int = 8
    connect_timeout_seconds: float = 3.0
    read_timeout_seconds: float = 20.0
    deadline_seconds: float = limits.DEFAULT_REMOTE_DEADLINE_SECONDS
    retry_after_seconds: int = limits.DEFAULT_RETRY_AFTER_SECONDS
    remote_after_seconds: float = 60.0
    delete_delay_seconds: float = 3600.0
    take_over_seconds: float = 3600.0
    reclaim_age_seconds: float = 604800.0
    gc_interval_seconds: float = 259200.0
    bundle_bytes: int = limits.DEFAULT_BUNDLE_BYTES
    bundle_member_bytes: int = limits.DEFAULT_BUNDLE_MEMBER_BYTES
    bundle_age_seconds: float = 60.0
    bundle_dead_share: float = 0.3
    bundle_put_bytes: int = 18000
    key_file: str = ''
    push_idle_after_seconds: float = 0.0
    scrub_days: float = 30.0
    scrub_bytes_per_second: int = 0
    queue_dir: str = ''
    queue_bytes: int = 0
    spill_at: float = 0.0
    relocate_stop_seconds: float = 0.0
    admission: bool = True
    dirty_bytes: int = 0
    dirty_reserve: float = 0.1
    headroom: float = 0.05
    throttle_at: float = 0.75
    throttle_seconds: float = 2.0


@dataclass(frozen=True)
class Shard:
    """The part of a node that one process of the tier daemon looks after.

    :param number: 0 up to ``count``
    :param devices: names
    """

    number: int
    count: int
    devices: FrozenSet[str]


@dataclass(frozen=True)
class NodeConf:
    """All of ``dss.conf``.

    :param devices: Swift's devices folder
    :param run_dir: sockets, and files that a reboot may lose
    :param allow_tmpfs: index and queue may be where a reboot forgets them
    :param object_conf: configuration of the object server, or its folder
    :param log_level: of the tier daemon, which logs to stderr
    :param log_statsd_host: as in Swift's servers; '' sends nothing
    :param recon_cache_path: where ``dss.recon`` is written, if it exists
    :param capacity: device name to its capacity folder; a device that is
        not named has no HDD tier
    :param engines: device name to ``file`` or ``block``
    :param shard: the part of the node that is meant; None is all of it
    """

    devices: str = '/srv/node'
    swift_dir: str = '/etc/swift'
    mount_check: bool = True
    run_dir: str = '/run/swift-dss'
    allow_tmpfs: bool = False
    object_conf: str = '/etc/swift/object-server.conf'
    class_table: str = '/etc/swift/dss-classes.conf'
    log_level: str = 'INFO'
    log_statsd_host: str = ''
    log_statsd_port: int = 8125
    log_statsd_default_sample_rate: float = 1.0
    log_statsd_sample_rate_factor: float = 1.0
    log_statsd_metric_prefix: str = ''
    recon_cache_path: str = '/var/cache/swift'
    capacity: Mapping[str, str] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)
    io: IoConf = IoConf()
    tier: TierConf = TierConf()
    gateway: GatewayConf = GatewayConf()
    prefetch: PrefetchConf = PrefetchConf()
    shard: Optional[Shard] = field(
        default=None, metadata=NO_OPTION)

    @property
    def index_dir(self) -> str:
        """Folder of the state of all shards of the node."""
        return self.tier.index_dir or TierConf.index_dir

    @property
    def state_dir(self) -> str:
        """Folder of the index and of the book of bundles."""
        return self._own(self.index_dir)

    @property
    def queue_dir(self) -> str:
        """Folder of the gateway's queue."""
        return self._own(self.gateway.queue_dir or self.index_dir)

    @property
    def sockets_dir(self) -> str:
        """Folder of the tier daemon's sockets and lock."""
        if self.shard is None:
            return self.run_dir
        return shard_dir(self.run_dir, self.shard.number)

    def of_shard(self, number: int) -> NodeConf:
        """The same with the folders of a shard, whatever devices it has."""
        return replace(self, shard=Shard(number, number + 1, frozenset()))

    def _own(self, folder: str) -> str:
        # The first shard has the state that a daemon without shards has:
        # no file moves when an operator changes the number of shards.
        if self.shard is None or not self.shard.number:
            return folder
        return shard_dir(folder, self.shard.number)


def shard_dir(folder: str, number: int) -> str:
    """A shard's own part of a folder of the node."""
    return '%s/shard-%d' % (folder, number)
