"""Orders of eviction over objects of any size, for replay.

Holds LRU, S3-FIFO, SIEVE, GDSF and SARC, one a file.
In: accesses to objects, with sizes and costs.
Never: a class; the class rule stands above.
"""
