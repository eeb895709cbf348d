"""``swift-dss gateway``: one file a verb."""
