"""Several processes of the tier daemon on one node.

In: which devices a shard has, and what shards answer.
Out: processes, their files, and answers for the whole node.
Never: a byte of an object, or a decision about one.
"""
