"""``swift-dss aio``: the all-in-one cluster, one node or many.

Holds its verbs and their arguments.
In: words of a command line.
Never: a verb of another command.
"""
