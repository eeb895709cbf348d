"""``swift-dss tier``: its verbs and their tables.

Holds questions and orders to the tier daemon.
In: words of a command line, answers of the daemon.
Never: a write to the index; the daemon alone has it.
"""
