"""The other primaries of an object: their ranks and newest states.

Holds ranks by the ring, the addresses of this node, questions to other
object servers, and the quarantine that they agree to.
In: the hash and policy of an object.
Out: ranks and newest states.
Never: a byte of an object.
"""
