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
#: ETag of the data, where the body is its ``.dss`` form.
DATA_ETAG = 'X-DSS-Data-Etag'
S3_CLASS_META = 'X-Object-Meta-Dss-Class'
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
#: Why a GET could not be served: seconds until it may work.
BACKEND_UNAVAILABLE = 'X-Backend-Dss-Unavailable'
#: A PUT of ssync that carries a stub (``wire.proof``): Content-Length of
#: the version.
BACKEND_STUB = 'X-Backend-Dss-Stub'
#: Tiers that hold the version on the node that answered.
BACKEND_TIER = 'X-Backend-Dss-Tier'

#: A proxy asks object servers here how full they are.
PRESSURE_PATH = '/dss/pressure'
#: With it the proxy sends the counts of its answers to writes since its last
#: question.
BACKEND_ADMISSIONS = 'X-Backend-Dss-Admissions'
#: A gateway asks object servers here for the newest files of objects.
NEWEST_PATH = '/dss/newest'

#: The node that answers: several ports may speak for one.
BACKEND_NODE = 'X-Backend-Dss-Node'
#: Seconds since the answer was made.
BACKEND_AGE = 'X-Backend-Dss-Age'
#: Seconds after which this proxy may ask again.
BACKEND_ASK_AFTER = 'X-Backend-Dss-Ask-After'

# Stored with the object. A PUT sets sysmeta, which survives POSTs; POSTs set
# transient sysmeta, which wins where present.
SYSMETA_MAP = 'X-Object-Sysmeta-Dss-Map'
TRANSIENT_MAP = 'X-Object-Transient-Sysmeta-Dss-Map'
#: When the class map beside it was set, and when all other metadata was
#: (``wire.registers``). A POST that says the latter is ``NEVER`` only sets
#: the class map.
MAP_AT = 'X-Object-Transient-Sysmeta-Dss-Map-Timestamp'
META_AT = 'X-Object-Transient-Sysmeta-Dss-Meta-Timestamp'
CONTAINER_SYSMETA_CLASS = 'X-Container-Sysmeta-Dss-Class'
ACCOUNT_SYSMETA_CLASSES = 'X-Account-Sysmeta-Dss-Classes'

# Extended attributes of a data file.
XATTR_RESIDENCY = 'user.dss.residency'
XATTR_CAPACITY_ID = 'user.dss.capacity'
#: Checksums of its blocks (``wire.blocks``); pages after the first have their
#: number behind it: ``user.dss.blocks.1``.
XATTR_BLOCKS = 'user.dss.blocks'
#: An operator pinned this version: its bytes stay on the SSD.
XATTR_PIN = 'user.dss.pin'
