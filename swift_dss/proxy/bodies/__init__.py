"""Bodies and stored headers on their way in and out.

Holds the ``.dss`` form of bodies, class headers in requests and answers.
In: client headers and bytes. Out: backend headers, intact bytes.
Never: a class section as data, or data as a class section.
"""
