"""The set-up that serves an operator's goal best, and how sure that is.

Holds the goals, the search, its intervals, and what is told of them.
In: a plan of a trace, a budget, a goal.
Never: a figure that no replay gave.
"""
