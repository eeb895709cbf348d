"""Work that outlives its proxy: rows in hidden accounts, and leases on them.

Holds the storage of rows, the lease, and the one proxy that leads.
In: names, texts, times. Out: the same, from any proxy of the cluster.
Never: a client's data, or a row that only one node has.
"""
