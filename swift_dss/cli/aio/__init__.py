"""``swift-dss aio``: the all-in-one cluster, one node or many."""
