"""What each program and server of ours does as it starts.

Holds reading configuration files, the replicator's method and versions.
In: paths and options that an operator gave.
Never: a meaning of an option of ours; ``wire/settings`` has it.
"""
