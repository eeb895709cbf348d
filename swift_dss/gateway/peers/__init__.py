"""The other primaries of an object: their ranks and newest states.

Holds ranks by the ring, the addresses of this node, and questions to other
object servers.
In: the hash and policy of an object.
Out: ranks and newest states. Bytes of objects never pass here.
"""
