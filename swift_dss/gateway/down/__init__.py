"""Down: bytes from S3 to readers and to local tiers.

Holds fills, single flight, and verified blocks of a version.
In: a part of a version that a reader lacks. Out: proven bytes.
Never: an unproven byte.
"""
