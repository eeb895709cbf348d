"""Records beside an object version: residency, sums of blocks, proofs.

Holds one format a file, with its checksum.
In: bytes of an extended attribute. Out: values of ``core``, or DamagedRecord.
Never: a record that a damaged byte has changed.
"""
