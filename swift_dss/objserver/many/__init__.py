"""Many requests in one, for the segments of large objects.

Holds the object server's answer to ``POST /dss/many``, and the rows of
containers that such requests change.
In: a question (``wire.large.many``). Out: a status for each request in it.
Never: another way to change an object than the server's own methods.
"""
