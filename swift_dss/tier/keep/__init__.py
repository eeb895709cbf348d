"""Keep: a device's keeper and its duties.

Holds the rounds that make room, clean and promote, and the sums of bytes
that wait for S3.
In: fill of the device, rows of the index. Out: moves.
Never: a dirty or pinned version as a victim.
"""
