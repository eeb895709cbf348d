"""The bed's S3, and the door in front of it that counts and fails.

Holds a store, faults by name, and the tally of requests.
In: requests of gateways, and orders of a test.
Never: an answer that S3 could not give. This room knows no bed.
"""
