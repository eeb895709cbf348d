"""dm-dss's format on the SSD, and a cache that no kernel uses.

Holds the structures as bytes and objects, their reader, judge and repair.
In: bytes of an SSD, a device or a file. Out: findings, and blocks to write.
Never: an ioctl, or a message to a running target; the rooms above have those.
"""
