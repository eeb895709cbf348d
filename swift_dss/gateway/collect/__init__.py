"""Collect keys in S3 that nothing needs any more.

Holds the search for keys and bundle members without an owner, and for old
versions of versioned buckets.
In: listings, and the agreement of the primaries. Out: deletions.
Never: a key that one primary still needs.
"""
