"""Classes by format, of versions whose rule says ``classify = auto``.

Holds the list of versions that wait, the child that reads one, and the POSTs
that give the ranges their class.
In: events of uploads, local bytes, rings.
Out: POSTs to object servers.
Never: a stranger's bytes in this process.
"""
