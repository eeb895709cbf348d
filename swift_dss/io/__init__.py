"""Classified I/O on local tiers.

Holds pools of threads, moves between tiers, records beside versions, and
how requests wait.
In: spans with their classes, from the object server and the tier daemon.
Never: a decision where bytes belong, or a blocked event loop.
"""
