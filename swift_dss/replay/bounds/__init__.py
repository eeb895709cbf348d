"""The limit that no order of a cache can beat, and how near one can come.

Holds the reads that could be hits, the rents that bound their worth, and an
order that knows every request beforehand.
In: a plan of a trace, a set-up.
Never: a figure of an order that a server could run.
"""
