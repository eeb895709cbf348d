"""swift-dss: OpenStack Swift with classes of data: SSD, HDD and S3.

Holds the rooms; ``doc/source/explanation/find-your-way.rst`` draws them.
In: a client's bytes with a class, and an operator's tables.
Never: other bytes to a reader than were written. A class changes where bytes
lie and when they move, and nothing else.
"""
