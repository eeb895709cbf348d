"""The index: the versions on this node's devices, in SQLite.

Holds schema, rows, orders of eviction that live in rows, and pins.
In: events as rows, filters as values, notes of a comparison.
Out: pages of rows, victims and sums.
Never: SQL.
"""
