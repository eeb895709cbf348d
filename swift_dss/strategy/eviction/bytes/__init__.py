"""Orders of eviction over bytes by class: how much each class gives.

Holds orders by class, by weight, and one that is blind to classes.
In: bytes by class, and room to make.
Never: more than a class has above its floor.
"""
