"""Parts of the product with stand-ins around them, for unit tests.

A rig makes one part and what it needs, says what happened, and asserts
nothing.
"""
