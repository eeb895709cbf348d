"""Processes that have users, here and on other machines.

Holds their start, all that they say on the way, and the loss of one.
In: a plan, specifications of execnet, and words of other processes.
Never: a loss that takes the figures of the others with it, or a time that is
not of the clock of the machine that measures.
"""
