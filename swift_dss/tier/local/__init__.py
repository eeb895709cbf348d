"""Local: this node's versions, their bytes, records and locks.

Holds the one way to look at a version and to move it between tiers.
In: a version by its name or file.
Out: its present state, and its moves. No decision is made here.
"""
