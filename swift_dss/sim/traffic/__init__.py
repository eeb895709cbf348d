"""The traffic between clients, proxies, daemons of Swift and nodes.

Holds replication, reconstruction, expiry, POSTs and reads of pieces.
In: a simulated cluster and its dice.
Never: dice of its own, or the judge's knowledge.
"""
