"""Several processes of the tier daemon on one node.

Holds the parent that starts and watches them, and the map of devices.
In: which devices a shard has, and what shards answer.
Out: processes, their files, and answers for the whole node.
Never: a byte of an object, or a decision about one.
"""
