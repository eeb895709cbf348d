"""The WSGI filter at the proxy: facts in, tags out.

Holds one request's way: classify, admit, hand down, show.
In: requests of clients, and of middleware that copies.
Never: a header of ours from a client, or one of ours to a client unasked.
"""
