"""Every limit of the project, with its unit and the reason for it.

A limit that an operator may change is named ``DEFAULT_*`` here and has an
option; the others are properties of a format.
"""

#: Class ids fit the 5-bit GROUP NUMBER of SCSI READ and WRITE.
CLASS_ID_MAX = 31
UNCLASSIFIED = 0

#: Spans of one object after coalescing: keeps the map of the worst object
#: under 24 KiB on the wire and its header lines under Swift's count limit.
DEFAULT_MAX_SPANS = 2048

#: One header line carries at most this many bytes of an encoded class map
#: (Swift's own ``max_header_size`` is 8,192 including the name).
MAP_CHUNK_BYTES = 4096

#: Lines an encoded class map may take: Swift allows 90 metadata lines and
#: 4,096 bytes of user metadata, but sysmeta is only bound by line count.
MAX_MAP_CHUNKS = 6

#: Longest ``X-DSS-Range-Class`` value we print back on HEAD and GET; a
#: longer one is left out (the ``.dss`` form always has the whole map).
MAX_RANGE_HEADER_BYTES = 4096

#: Largest class section of a ``.dss`` object, bytes: 31 table entries a
#: span leave ample room, and a lying header can make us hold no more.
DEFAULT_MAX_DSS_SECTION_BYTES = 4 * 1024 * 1024

#: Extents in one residency record: XFS holds 64 KiB in one attribute.
MAX_EXTENTS = 2048

#: The word that stands for a reader: two a byte of its digest.
MAX_READER_CHARS = 12

#: One event to the tier daemon, bytes: fits a Unix datagram everywhere.
MAX_EVENT_BYTES = 4096

#: Seconds that an object server may keep a READ event to send it together
#: with others: each datagram wakes the daemon, which costs more than a
#: small GET may.
EVENT_BATCH_SECONDS = 0.1

#: Devices that a sweep or rebuild reads side by side in one process: each
#: waits for its disk most of the time, and all share one interpreter.
WALKS = 4

#: Objects up to this size are kept whole: below it, a stub inode costs as
#: much SSD as the data (one 4 KiB block).
DEFAULT_MIN_DEMOTE_BYTES = 4096

#: A write or read window: one trip to a pool thread moves this much.
#: Swift's default of ``reclaim_age``: a tombstone that is older is gone.
RECLAIM_SECONDS = 7 * 86400.0
IO_WINDOW_BYTES = 1024 * 1024

#: The write window of an upload that finds fewer than this many under way
#: in its worker: a trip costs what hashing 100 KiB does, and memory for two
#: windows an upload is there while uploads are few.
WIDE_WINDOW_BYTES = 4 * IO_WINDOW_BYTES
WIDE_WINDOW_UPLOADS = 8

#: Bytes of a GET that the HDD is asked for at once: 60 ms of its time, in
#: which it moves its arm once. More would keep other readers waiting.
DEFAULT_WHOLE_READ_BYTES = 8 * IO_WINDOW_BYTES

#: Threads per tier pool of one object-server worker.
DEFAULT_SSD_THREADS = 8
DEFAULT_HDD_THREADS = 8
DEFAULT_QUEUE_DEPTH = 1024

#: Seconds until a read that needs S3 gives up before its first byte.
DEFAULT_REMOTE_DEADLINE_SECONDS = 5.0
DEFAULT_RETRY_AFTER_SECONDS = 15

#: Longest Retry-After of a refused write, seconds: predictions further
#: ahead are worth nothing, and an hour later all may be well.
MAX_RETRY_AFTER_SECONDS = 3600

#: Bytes a second that no device takes (NVMe of today: less than two thirds
#: of it). A proxy need not ask about a device before that could fill it.
FASTEST_DEVICE_BYTES_PER_SECOND = 16 << 30

#: Longest time that a proxy leaves a node alone that it writes to, seconds:
#: a third of the age at which answers say nothing any more.
MAX_PRESSURE_REST_SECONDS = 10.0

#: Writes of one proxy worker that are held back at a time; more are told
#: to come again, or the waiting would be the load.
MAX_THROTTLED = 64

#: Bytes of unsent events an object server keeps on disk for a daemon that
#: is down; past it a sweep of the device replaces them.
DEFAULT_SPOOL_BYTES = 16 * 1024 * 1024

#: One part of a multipart upload and of a ranged fill, bytes (S3 wants
#: at least 5 MiB and at most 10,000 parts).
DEFAULT_PART_BYTES = 8 * 1024 * 1024
S3_MIN_PART_BYTES = 5 * 1024 * 1024
S3_MAX_PARTS = 10000

#: Bytes of a node that may be fetched from S3 ahead of readers and not be read
#: yet: 128 parts.
DEFAULT_PREFETCH_BYTES = 1 << 30

#: Memory of a prefetch strategy: about 100,000 ranges and their successors.
DEFAULT_PREFETCH_STATE_BYTES = 64 * 1024 * 1024
#: Less holds no stream.
MIN_PREFETCH_STATE_BYTES = 64 * 1024

#: Accesses of a cache in one replay: with Python's lists some 250 bytes each.
MAX_REPLAY_ACCESSES = 100_000_000

#: Last byte offset of an object that any format of ours can name: file
#: offsets are signed 64-bit numbers.
MAX_OBJECT_BYTES = (1 << 63) - 1

#: Rules of automatic classification: every proxy worker parses them again
#: after each change of the file.
MAX_RULES = 16384

#: Of them, those that no text files away (``core.rules``): each is tried
#: on every upload, and a pattern's cost grows with its length times the
#: object name's.
MAX_RULES_ALWAYS_TRIED = 1024
MAX_PATTERN_CHARS = 256

#: Steps a name pattern may take at worst on a name of 1,024 characters.
MAX_REGEX_STEPS = 1 << 22

#: Longest name of ``run_dir``: a Unix socket's name has 107 bytes
#: (``sun_path``), of which ``/events.sock`` takes 12.
RUN_DIR_BYTES = 95

#: Processes of the tier daemon of a node. Folders of their sockets are
#: called ``shard-63`` at most, which takes so much of ``RUN_DIR_BYTES``.
MAX_SHARDS = 64
SHARD_DIR_BYTES = 9

#: Largest bundle of small objects, bytes: it is built in memory, and a broken
#: connection costs one PUT of it.
MAX_BUNDLE_BYTES = 96 * 1024 * 1024
#: Data that a bundle is filled with, and the most that one can be told to.
DEFAULT_BUNDLE_BYTES = 16 * 1024 * 1024
MAX_BUNDLE_DATA_BYTES = 64 * 1024 * 1024
#: Members of one bundle: 4 KiB each fill the largest one.
MAX_BUNDLE_MEMBERS = 16384
#: Its index, bytes, packed or not: 4 KiB of metadata for each member.
MAX_BUNDLE_INDEX_BYTES = 64 * 1024 * 1024
#: Clocks of a cluster's nodes may be so far apart, seconds: NTP keeps them
#: within one, and clusters with five minutes have been seen.
MAX_CLOCK_SKEW_SECONDS = 600.0
#: Larger objects get an S3 object of their own.
DEFAULT_BUNDLE_MEMBER_BYTES = 1024 * 1024

#: Memory that a child may allocate that reads one upload to class it.
DEFAULT_CLASSIFY_BYTES = 512 * 1024 * 1024

#: Largest version that the pin rule keeps on the SSD by default.
DEFAULT_PIN_LARGEST_BYTES = 1024 * 1024

#: Objects of one question for newest files, and bytes of it and of its
#: answer: half a second of an object server's work at the worst.
MAX_ASKED = 1000
MAX_QUESTION_BYTES = 1024 * 1024
#: Policies are numbered by hand; Swift's own limit is that of the folders.
MAX_POLICY_INDEX = 10 ** 9 - 1
#: Of a fragment archive in Swift's file names and our keys; Swift's rings have
#: far fewer replicas.
MAX_FRAGMENT_INDEX = 9999

#: Manifests that a large object may nest: Swift's own ``max_recursion_depth``.
MAX_LARGE_DEPTH = 10
#: Segments of a large object that gets a class, those of nested ones counted:
#: a proxy worker holds some 300 bytes of each.
MAX_LARGE_SEGMENTS = 100000
#: Of those, the most that a POST waits for: a few seconds. More are given
#: their classes behind its back.
DEFAULT_SEGMENTS_AT_ONCE = 1000
#: A stored manifest: Swift's ``max_manifest_size``, and what it adds to each
#: segment.
MAX_MANIFEST_BYTES = 64 * 1024 * 1024
#: Segments of one large object that are classified at a time.
LARGE_CONCURRENCY = 16
#: Manifests whose classes a segment remembers, and bytes of that and of the
#: manifests' paths: ext4 has 2.6 KB for all metadata of an object.
MAX_CLAIMS = 8
MAX_CLAIM_BYTES = 1024

#: First reads that a device remembers with ``admit = second:N``: 25 MB.
MAX_KEPT_OUT = 100000

#: Of S3: tags of one object, and characters of a tag's key and value.
MAX_S3_TAGS = 10
MAX_S3_TAG_KEY_CHARS = 128
MAX_S3_TAG_VALUE_CHARS = 256
#: All tags of an object as one header; room for all of S3's in ASCII.
MAX_S3_TAGGING_BYTES = 4096
#: A document with as many tags as there may be, in long words.
MAX_S3_TAGS_DOCUMENT_BYTES = 65536

#: Of S3: rules of one lifecycle configuration, characters of a rule's ID,
#: days, and bytes of an object in its filters.
MAX_LIFECYCLE_RULES = 1000
MAX_LIFECYCLE_ID_CHARS = 255
MAX_LIFECYCLE_DAYS = 2 ** 31 - 1
MAX_LIFECYCLE_SIZE = 2 ** 63 - 1
#: The XML of a configuration: some 1,000 bytes a rule.
MAX_LIFECYCLE_DOCUMENT_BYTES = 1024 * 1024
#: One unpacked, and its lines in the container's metadata, which must fit
#: a header line of Swift's (8,192) and go with every look at the container.
MAX_LIFECYCLE_BYTES = 1024 * 1024
LIFECYCLE_CHUNK_BYTES = 4096
MAX_LIFECYCLE_CHUNKS = 4
#: The XML of a RestoreObject.
MAX_RESTORE_DOCUMENT_BYTES = 65536

#: Rows that a listing of one class reads for one answer: a second of a proxy
#: worker's time.
MAX_FILTERED_ROWS = 100000
#: Rows of a listing that shows tiers: each costs a HEAD of its object.
MAX_TIER_ROWS = 1000
#: Those HEADs at a time, of one listing.
TIER_CONCURRENCY = 16
