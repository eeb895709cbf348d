"""Records beside an object version: residency, sums of blocks, proofs.

In: bytes of an extended attribute. Out: values of ``core``, or DamagedRecord.
"""
