"""Admission: may this write begin, and may this device take it.

Holds pressures of the nodes, verdicts by class, Retry-After.
In: a request's class and devices. Out: yes, or 503/507 before the body.
Never: a refusal after the first byte of a body.
"""
