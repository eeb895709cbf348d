"""Which order the SSD should have, learnt from what is read.

Shadow caches (keys and sizes, no bytes) of a sample of the objects run every
candidate; what their hits saved says which one to take. The configured choice
is always one of them.
In: accesses as (key, size, class), the room, the class table.
Never: a choice that the operator's class order does not allow; more than a
fixed memory.
"""
