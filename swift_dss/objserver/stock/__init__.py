"""Functions of Swift in fewer steps.

Holds functions that do for the usual case what Swift's of the same name do,
and give every other case to Swift's; and Swift's methods that call them.
In: Swift's code and what it would call.
Never: another outcome than Swift's.
"""
