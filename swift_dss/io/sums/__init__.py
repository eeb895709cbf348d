"""Sums of bytes: digests of versions, and sums of blocks.

Holds MD5 for several uploads at once, and checks while bytes are copied.
In: bytes in their order.
Never: a sum of other bytes than the caller gave.
"""
