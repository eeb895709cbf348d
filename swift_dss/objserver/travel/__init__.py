"""Versions that travel between nodes: sent, taken in, adopted, leaving.

Holds our side of ssync and of the reconstructor, and the newest state that
other nodes ask for.
In: Swift's ssync requests. Out: records and local bytes. A stub's missing
bytes never travel.
"""
