"""Restore: names, metadata and classes of a lost node, from its bucket.

Holds the catalogue of the bucket, the rules of trust, the writing of stubs,
accounts and containers, and the proof of stubs that other nodes send.
In: listings and records of S3.
Out: stubs on this node.
Never: a stub of an unproven record.
"""
