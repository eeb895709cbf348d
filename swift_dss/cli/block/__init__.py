"""``swift-dss block``: its verbs and their tables.

Holds verbs for devices of dm-dss.
In: words of a command line, and an operator's yes.
Never: a verb that destroys data without a question.
"""
