"""Rules of S3, as decisions.

Holds the choice of the action that is due.
In: rules, facts about an object, the time. Out: an action, or none.
Never: a clock.
"""
