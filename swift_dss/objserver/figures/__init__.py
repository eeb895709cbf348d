"""What an object server says of its node, and of no object.

Holds the answers to ``GET /dss/pressure``, for proxies, and ``GET
/dss/status``, for operators.
In: files that the tier daemon keeps in ``run_dir``. Out: their text.
Never: a wait for the daemon: its age is said instead.
"""
