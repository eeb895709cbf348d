"""swift-dss: OpenStack Swift with classes of data: SSD, HDD and S3.

Holds the rooms; ``doc/source/explanation/find-your-way.rst`` draws them.
In: a client's bytes with a class, and an operator's tables.
Never: other bytes to a reader than were written. A class changes where bytes
lie and when they move, and nothing else.
"""

# Before anything of Swift: its first import leaves its own form of this
# module, whose sockets are eventlet's, to all who import it later. Clients
# that fork would then wake each other, and a daemon's threads would each
# have a hub.
import http.client  # noqa: F401
