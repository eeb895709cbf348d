"""``swift-dss tier``: its verbs and their tables."""
