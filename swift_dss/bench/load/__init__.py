"""Load of clients after a scenario, and its measurements.

Holds scenarios of ssbench, users in closed and open loop, and histograms.
In: a scenario, an account of Swift or S3, and a seed.
Never: an object that the run did not write, or a latency that leaves out the
time that a request waited for its turn.
"""
