"""Versions that travel between nodes: sent, taken in, adopted, leaving.

Holds our side of ssync and of the reconstructor, and the newest state that
other nodes ask for.
In: Swift's ssync requests. Out: records and local bytes.
Never: the bytes that a stub lacks.
"""
