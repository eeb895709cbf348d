"""The all-in-one cluster: a whole Swift with classes on one machine.

Holds its layout, rings, configuration, processes and storage.
In: a plan of nodes and devices, from the command line or a test.
Never: a file outside its root folder, or a process that it did not start.
"""
