"""``swift-dss block``: its verbs and their tables."""
