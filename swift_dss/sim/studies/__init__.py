"""Studies: many clusters that all ask one question.

Holds the subsets of primaries that writes reach, and the state of daemons
that is lost at any point.
In: a simulated cluster.
Out: counts of the events, and a line for each broken promise.
Never: a change of the product's own rules.
"""
