"""The cache-tier daemon: mechanism only.

Holds the process, its devices and nodes, and rooms for each duty.
In: events of object servers, orders of operators.
Never: a decision; strategies make them.
"""
