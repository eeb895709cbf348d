"""Restore: names, metadata and classes of a lost node, from its bucket.

Holds the catalogue of the bucket, the rules of trust, and the writing of
stubs, accounts and containers.
In: listings and records of S3.
Out: stubs on this node. An unproven record never becomes one.
"""
