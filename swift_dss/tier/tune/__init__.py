"""Tune: the daemon chooses the order of eviction by what is read.

Holds the tuner of a daemon or shard, and what it says of its choice.
In: reads, writes and deletes as the ledger applies them. Out: the order in
force.
Never: an order while the option is off; ranks, weights, floors or caps.
"""
