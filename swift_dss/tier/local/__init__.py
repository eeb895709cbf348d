"""Local: this node's versions, their bytes, records and locks.

Holds the one way to look at a version, to move it between tiers, and to
forget it once it is gone.
In: a version by its name or file. Out: its present state, and its moves.
Never: a decision.
"""
