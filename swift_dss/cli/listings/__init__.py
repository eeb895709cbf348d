"""``swift-dss listings``: classes in this node's container databases.

Holds the verbs that count them and take them out.
In: arguments. Out: text and JSON.
Never: a listing itself; proxies make those.
"""
