"""Bundles: many small versions in one S3 object.

Holds the book of bundles, packing, reading, proving and rewriting them.
In: small versions of one account, reads of members, deletions of members.
Out: members' bytes and proofs.
Never: two accounts in one bundle.
"""
