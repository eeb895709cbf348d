"""swift-dss: OpenStack Swift whose storage knows what its data is."""
