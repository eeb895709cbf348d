"""The simulated world: clock, S3, ring and databases.

Holds power cuts, worn disks, and an S3 that fails.
In: calls of the product, as the real world gets them.
Never: an answer that the real world could not give.
"""
