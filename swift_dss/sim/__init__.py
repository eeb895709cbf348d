"""A whole cluster in one thread, judged by a model that knows no tiers.

The tier daemons and gateways are the product's own; Swift, the network, the
clock and S3 are simulated and can fail. A seed decides everything: the same
seed gives the same trace, to the byte. Nothing of the product may import
this room, and this room imports no server of ours.
"""
