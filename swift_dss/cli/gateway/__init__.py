"""``swift-dss gateway``: one file a verb.

Holds verbs for the bucket: list, verify, restore, collect, drain.
In: words of a command line.
Never: a secret on the screen or in a log.
"""
