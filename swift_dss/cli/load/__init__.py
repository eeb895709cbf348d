"""``swift-dss load``: its options, its table and its results.

Holds the command alone; the load itself is ``bench/load/``.
In: a scenario, an account and the files to write to.
Never: a request of its own, but for the login.
"""
