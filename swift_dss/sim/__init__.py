"""A whole cluster in one thread, judged by a model that knows no tiers.

The tier daemons and gateways are the product's own; Swift, the network, the
clock and S3 are simulated and can fail. A seed decides everything: the same
seed gives the same trace, to the byte.

In: a seed, and how large the cluster is.
Never: a second of real time, or an import of this room by the product.
"""
