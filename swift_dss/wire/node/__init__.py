"""What a node tells of itself.

Holds how full its devices are, which shard has which device, and its figures
in short: files of its daemon, and answers of its object servers.
In: texts of daemons and servers. Out: values of ``core``, or DamagedRecord.
Never: what one object has; that is in ``records``.
"""
