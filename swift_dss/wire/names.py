"""Header, metadata and attribute names, all in one place."""

# Headers that clients send and see.
OBJECT_CLASS = 'X-DSS-Object-Class'
RANGE_CLASS = 'X-DSS-Range-Class'
OBJECT_FILE = 'X-DSS-Object-File'
TIER = 'X-DSS-Tier'
CONTAINER_CLASS = 'X-DSS-Container-Class'
ACCOUNT_CLASSES = 'X-DSS-Account-Classes'
#: The class's name, beside its id, where the class table has one.
CLASS_NAME = 'X-DSS-Class-Name'
#: Ranges of one class that an object has, where they are too many to show.
RANGE_COUNT = 'X-DSS-Range-Count'
#: Of a large object whose segments do not all have the class yet.
CLASS_STATE = 'X-DSS-Class-State'
#: Of an object that was restored for some days, as ``x-amz-restore``.
RESTORE = 'X-DSS-Restore'
#: ETag of the data, where the body is its ``.dss`` form.
DATA_ETAG = 'X-DSS-Data-Etag'
S3_CLASS_META = 'X-Object-Meta-Dss-Class'
#: Where S3's tags of an object are stored (``proxy.s3.tags``).
S3_TAGGING = 'X-Object-Transient-Sysmeta-S3-Tagging'
#: A class in S3's words: the name that RGW gave it on Swift's API.
STORAGE_CLASS = 'X-Object-Storage-Class'
#: The storage class of what has no class that S3 has a name for.
STANDARD = 'STANDARD'
#: The class of an object, as the last parameter of the content type in its
#: container's row. The filter takes it off again.
LISTED_CLASS = ';x-dss-class='
#: In the query of a listing: ``true`` shows classes, ``tier`` tiers as well.
SEE_QUERY = 'dss'
#: Only rows of this class.
CLASS_QUERY = 'dss-class'
#: The marker of the next page, quoted as in a query, where a listing ends
#: before its limit and is not at its end.
NEXT_MARKER = 'X-DSS-Next-Marker'
RECLASSIFY_QUERY = 'dss-classes'

# From the proxy to the object servers; gatekeeper drops them from clients.
#: The encoded class map (``wire.classmap``), cut over ``-0``, ``-1``, ...
BACKEND_MAP = 'X-Backend-Dss-Map'
#: Proxy to object server: a word for the reader.
BACKEND_READER = 'X-Backend-Dss-Reader'
#: A GET for bytes that need no S3: the request's Range, or ``-``.
BACKEND_IF_LOCAL = 'X-Backend-Dss-If-Local'
#: The 404 to one that would: this node knows the version, without bytes.
BACKEND_ELSEWHERE = 'X-Backend-Dss-Elsewhere'
#: Its values: S3 has the bytes; the HDD has, and is busy (``wire.backlog``).
IN_S3, BUSY = '1', 'busy'
#: Milliseconds for which the device's HDD has work (``wire.backlog``).
BACKEND_BACKLOG = 'X-Backend-Dss-Backlog'
#: Why a GET could not be served: seconds until it may work.
BACKEND_UNAVAILABLE = 'X-Backend-Dss-Unavailable'
#: A PUT of ssync that carries a stub (``wire.proof``): Content-Length of
#: the version.
BACKEND_STUB = 'X-Backend-Dss-Stub'
#: Tiers that hold the version on the node that answered.
BACKEND_TIER = 'X-Backend-Dss-Tier'

#: With a HEAD: whether the node that answers has all bytes on its SSD; ``1``
#: or ``0``.
BACKEND_AT_HAND = 'X-Backend-Dss-At-Hand'

#: A proxy asks object servers here how full they are.
PRESSURE_PATH = '/dss/pressure'
#: With it the proxy sends the counts of its answers to writes since its last
#: question.
BACKEND_ADMISSIONS = 'X-Backend-Dss-Admissions'
#: Operators ask object servers here for the node's figures in short
#: (``wire.node.summary``).
STATUS_PATH = '/dss/status'
#: A gateway asks object servers here for the newest files of objects.
NEWEST_PATH = '/dss/newest'
#: Proxies send object servers many HEADs and class POSTs here at once
#: (``wire.large.many``).
MANY_PATH = '/dss/many'

#: With a class POST that follows from what the object had: the time of those
#: classes. One that has newer ones refuses it.
SEEN_MAP_AT = 'X-Backend-Dss-Seen-Map-At'

#: The node that answers: several ports may speak for one.
BACKEND_NODE = 'X-Backend-Dss-Node'
#: Seconds since the answer was made.
BACKEND_AGE = 'X-Backend-Dss-Age'
#: Seconds after which this proxy may ask again.
BACKEND_ASK_AFTER = 'X-Backend-Dss-Ask-After'

# Stored with the object. A PUT sets sysmeta, which survives POSTs; POSTs set
# transient sysmeta, which wins where present.
SYSMETA_MAP = 'X-Object-Sysmeta-Dss-Map'
#: With a PUT whose rule says ``classify = auto``: the id of the class of the
#: bytes that open the file. A node finds them after the upload.
SYSMETA_AUTO = 'X-Object-Sysmeta-Dss-Auto'
TRANSIENT_MAP = 'X-Object-Transient-Sysmeta-Dss-Map'
#: When the class map beside it was set, and when all other metadata was
#: (``wire.registers``). A POST that says the latter is ``NEVER`` only sets
#: the class map.
MAP_AT = 'X-Object-Transient-Sysmeta-Dss-Map-Timestamp'
META_AT = 'X-Object-Transient-Sysmeta-Dss-Meta-Timestamp'
#: Which manifests gave a segment classes (``wire.large.claims``). It belongs
#: to the class map that a POST sets.
CLAIMS = TRANSIENT_MAP + '-Claims'
#: Where those manifests are, as far as there is room.
CLAIMANTS = TRANSIENT_MAP + '-Claimants'
#: A manifest whose segments do not all have its classes yet: the record of
#: the work, segments that have them, and all (``proxy.large.records``).
STATE = TRANSIENT_MAP + '-State'
#: An object whose class is another one for some days (``wire.s3.restores``),
#: and the class map that it had before.
RESTORED = TRANSIENT_MAP + '-Restored'
BEFORE = TRANSIENT_MAP + '-Before'
#: ``lifecycle``, if no client gave the class map beside it.
GIVEN_BY = TRANSIENT_MAP + '-Given-By'
CONTAINER_SYSMETA_CLASS = 'X-Container-Sysmeta-Dss-Class'
#: Rules of S3's lifecycle, cut over ``-0``, ``-1``, ... (``wire.s3``).
CONTAINER_SYSMETA_LIFECYCLE = 'X-Container-Sysmeta-Dss-Lifecycle'
ACCOUNT_SYSMETA_CLASSES = 'X-Account-Sysmeta-Dss-Classes'

# In the environment of a POST that our s3api sends: no client sets them.
#: Of a container: the lifecycle configuration that it gets; None is none.
ENV_LIFECYCLE = 'swift_dss.lifecycle'
#: Of an object: days for which its bytes are to be on the SSD.
ENV_RESTORE_DAYS = 'swift_dss.restore_days'

# Extended attributes of a data file.
XATTR_RESIDENCY = 'user.dss.residency'
XATTR_CAPACITY_ID = 'user.dss.capacity'
#: Checksums of its blocks (``wire.blocks``); pages after the first have their
#: number behind it: ``user.dss.blocks.1``.
XATTR_BLOCKS = 'user.dss.blocks'
#: An operator pinned this version: its bytes stay on the SSD.
XATTR_PIN = 'user.dss.pin'
